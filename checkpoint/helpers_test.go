package checkpoint

import (
	"encoding/json"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/name, or writes it under -update.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	testutil.Golden(t, *update, filepath.Join("testdata", name), got)
}

const (
	testKey  = 0x0123456789abcdef
	testPrev = 0xdeadbeef
)

var testTime = time.Date(2026, 11, 20, 10, 30, 0, 123e6, time.UTC)

func testID(n int) string { return fmt.Sprintf("0193f2a0-0000-7000-8000-%012d", n) }

// plainRecord is a turn with nothing special about it.
func plainRecord() Record {
	return Record{
		ID: testID(9), ParentID: testID(8), Time: testTime, Seq: 7, Parent: testID(6), Epoch: 2, Writer: "host:42",
		Reason: "turn", Head: testID(8), HeadOrd: 12, Branch: "main", Entries: 2,
		Doc: json.RawMessage(`{"state":{"n":1},"branch":"main"}`), DocCRC: codec.CRC([]byte(`{"state":{"n":1},"branch":"main"}`)),
		Synced: 4096,
	}
}

// fullRecord has every field set that can be combined with the others.
func fullRecord() Record {
	r := plainRecord()
	r.Reason = "rollback"
	r.Doc, r.Patch, r.Sorted = nil, json.RawMessage(`[{"op":"replace","path":"/state/n","value":9007199254740993}]`), true
	r.Parents = []ParentDelta{{Index: 0, Delta: 5}, {Index: 1, Delta: -3}}
	r.Key, r.Kept, r.Snapshot = "job \"17\"\n\u2028é", "conflict-1a2b3c4d", "00000000000000000006-00000006"
	r.Torn, r.Next, r.Original, r.Claim = "torn/0-1", "00000000000000000013-2-00112233", "originals/ab.zst", true
	r.Base = &Base{
		Branches: []BranchRef{{Name: "main", Head: testID(8), Ord: 12}, {Name: "empty", Ord: -1}},
		Title:    "a <title> & more", Cwd: "/home/someone", Parent: testID(1), Created: testTime, Entries: 13, Bytes: 5000, HeadOrd: 11, Self: testPrev, Original: "abcd", Claimed: 3,
	}
	return r
}

// firstRecord is fullRecord of a session with the first prompt, which those before 2026-11-22 do not have.
func firstRecord() Record {
	r := fullRecord()
	r.Base.First = "what is \"it\"?"
	return r
}

// keyedRecord is a turn with an idempotency key and the digest of its content.
func keyedRecord() Record {
	r := plainRecord()
	r.Key, r.Digest = "job 17", "00c0ffee00c0ffee"
	return r
}

// outlineRecord moves the head without entries, in the first commit of a segment: it and its base describe the
// conversation at the two heads.
func outlineRecord() Record {
	r := firstRecord()
	r.Outline = &Outline{Preview: "done: \"it\" <works>", Status: "answered"}
	r.Base.Outline = Outline{Status: "asked"}
	return r
}

func rulesRecord() Record {
	r := outlineRecord()
	r.Base.Profile, r.Base.MaxBytes = "atomic", -1
	return r
}

// namesRecord renames a branch and removes the name of another, in a commit that moves the head and begins a segment.
func namesRecord() Record {
	r := outlineRecord()
	r.Names = []Rename{{From: "rollback-1"}, {From: "ma\"in", To: "trunk é"}}
	return r
}

// docsRecord contains a document with small named documents.
func docsRecord() Record {
	r := plainRecord()
	doc := Document{Branch: "main", Docs: map[string]json.RawMessage{
		"summary": json.RawMessage(`{"n":1,"text":"a <b> & \u00e9"}`), "app/x:1": json.RawMessage(`[1.0,null]`),
	}}
	r.Doc, _ = doc.Encode()
	r.DocCRC = codec.CRC(r.Doc)
	return r
}

// partialRecord is one of earlier releases: it changes only partial output.
func partialRecord() Record {
	r := plainRecord()
	r.Reason, r.Entries = "partial", 0
	r.Doc = json.RawMessage(`{"state":{"n":1},"branch":"main","partial":{"role":"assistant","content":"so f"}}`)
	r.DocCRC = codec.CRC(r.Doc)
	return r
}

// metaRecord opens a segment of a session whose metadata has changed.
func metaRecord() Record {
	r := rulesRecord()
	value := "blue \"1\"\n"
	r.Base.Meta = MetaChange{"team": &value, "a.b": nil}
	return r
}

// testSource is the file of an import.
func testSource() *Source {
	hash := strings.Repeat("0f", 32)
	return &Source{
		Program: "claude-code", Session: "s \"1\"", Bytes: 58_000_000, SHA256: hash, Head: hash, Tail: hash,
		Size: 9_000, Changed: testTime,
	}
}

// sourceRecord is the commit of an import, and the first of its segment.
func sourceRecord() Record {
	r := rulesRecord()
	r.Source, r.Base.Source = testSource(), &Source{Program: "pi"}
	return r
}

// resumedSource is the file of an import that the next import need not read whole.
func resumedSource() *Source {
	s := testSource()
	s.Resume = &Resume{Hash: s.Head, From: 57_990_000, Line: 25_000, Entry: "a\"1", State: `{"v":1}`}
	return s
}

// resumedRecord is the commit of such an import.
func resumedRecord() Record {
	r := rulesRecord()
	r.Source, r.Base.Source = resumedSource(), testSource()
	return r
}

var testSince = []byte(`{"type":"message","id":"a","parentId":null,"timestamp":"2026-11-20T10:30:00.000Z","message":{"role":"user","content":"hi"}}` + "\n")

func mustLine(t testing.TB, r Record, key uint64, prev uint32, since []byte) ([]byte, uint32) {
	t.Helper()
	line, self, err := r.AppendLine(nil, key, prev, since)
	if err != nil {
		t.Fatal(err)
	}
	return line, self
}

func testObject() *Object {
	pool := map[uint64][]byte{}
	for i := range uint64(6) {
		pool[10+2*i] = []byte(fmt.Sprintf(`{"type":"message","id":"m%d","parentId":null,"message":{"role":"user","content":"text %d"}}`, i, i))
	}
	line, _, err := plainRecord().AppendLine(nil, testKey, testPrev, testSince)
	if err != nil {
		panic(err)
	}
	o := &Object{
		Summary: Summary{
			Head: Head{Seq: 7, Epoch: 2, Commit: testID(9), Entry: testID(8), Branch: "main"},
			ID:   testID(0), Title: "title", Cwd: "/home/someone", Parent: testID(1), Preview: "hello", Created: testTime, Updated: testTime.Add(time.Hour),
			Entries: 22, Bytes: 12345, Reason: "turn",
		},
		Document: []byte(`{"state":{"n":1},"branch":"main"}`),
		Header:   []byte(`{"type":"session","version":3}`),
		HeadOrd:  20,
		Branches: []BranchRef{{Name: "main", Head: testID(8), Ord: 20}, {Name: "side", Ord: -1}},
		Window:   WindowState{Profile: "pi", MaxBytes: 1 << 20, Base: transcript.Settings{Model: "a/b", ThinkingLevel: "high"}, Omitted: 3, Ords: []uint64{14, 10, 18}, Known: true},
		Pool:     pool,
		Blobs:    map[string][]byte{"aa": []byte("image one"), "bb": {0, 1, 2}},
		Tail:     TailState{First: 18, FirstSeq: 6, Lines: [][]byte{pool[18], line, pool[20], []byte(`{"type":"label","id":"x"}`)}},
		Key:      testKey, Prev: testPrev, CAS: true,
		Original: "abcd", Claimed: 3, SinceKey: 5, Opening: true, LastLine: 497,
	}
	for i := range 3 {
		o.Lineage = append(o.Lineage, Commit{
			Head:   Head{Seq: uint64(5 + i), Epoch: 2, Commit: testID(7 + i), Entry: testID(6 + i), Branch: "main"},
			Parent: testID(6 + i), Reason: "turn", Writer: "host:42", Time: testTime, Entries: i, Keyframe: i == 0, HeadOrd: int64(10 + i), Key: "k",
		})
	}
	for i := range uint64(3) {
		if err := o.Segments.Append(testRef(i)); err != nil {
			panic(err)
		}
	}
	o.Plain = []PlainRef{{Name: "x.jsonl", First: 18, Count: 4, FirstSeq: 6, Bytes: 900, Epoch: 2, Key: testKey, Self: testPrev}}
	return o
}

// testRef is the i-th segment of 6 entries.
func testRef(i uint64) codec.Ref {
	return codec.Ref{First: 6 * i, Count: 6, FirstSeq: 2 * i, RawBytes: 600, Bytes: 200, Epoch: 1, Rnd: fmt.Sprintf("%016x", i), Sum: [16]byte{byte(i)}}
}
