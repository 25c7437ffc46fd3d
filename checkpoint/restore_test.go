package checkpoint

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

// value is a JSON value of the test: tokens in their spelling, members in order, duplicate names possible.
type value struct {
	token string // of a scalar
	open  byte   // '{' or '[' of a container
	names []string
	kids  []*value
}

func (v *value) append(dst []byte) []byte {
	if v.open == 0 {
		return append(dst, v.token...)
	}
	dst = append(dst, v.open)
	for i, kid := range v.kids {
		if i > 0 {
			dst = append(dst, ',')
		}
		if v.open == '{' {
			dst = append(append(dst, v.names[i]...), ':')
		}
		dst = kid.append(dst)
	}
	return append(dst, v.open+2)
}

var (
	tokens = []string{
		"null", "true", "false", "0", "-0", "1", "1.0", "1e0", "10", "1E1", "1e400", "9007199254740993", "9007199254740992",
		"12345678901234567890", "123456789012345678901234567890.5", "0.10", `""`, `"a"`, `"é"`, `"\u00e9"`, `"<b>&"`, `"\u003cb\u003e\u0026"`,
		`"\u2028"`, "\"\u2028\"", `"\ud83d\ude00"`, `"😀"`, `"\ud800"`, `"\u0000"`, `"a/b~c"`, `"\/"`, `"line\nbreak"`, "\"\xff\"", `"null"`,
	}
	names = []string{`""`, `"a"`, `"b"`, `"c"`, `"~"`, `"/"`, `"~1"`, `"~0"`, `"-"`, `"0"`, `"1"`, `"é"`, `"\u00e9"`, `"a/b"`, `"<k>"`, `" "`, `"\ud800"`, "\"\u2028\"", `"A"`}
)

func drawValue(t *rapid.T, depth int) *value {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 || kind < 4 {
		return &value{token: rapid.SampledFrom(tokens).Draw(t, "token")}
	}
	v := &value{open: "[{"[kind&1]}
	for range rapid.IntRange(0, 6).Draw(t, "size") {
		v.insert(t, len(v.kids), drawValue(t, depth-1), 10)
	}
	return v
}

// insert inserts a kid at i; in one of oneIn cases an object may get a duplicate name.
func (v *value) insert(t *rapid.T, i int, kid *value, oneIn int) {
	if v.open == '{' {
		name := rapid.SampledFrom(names).Draw(t, "name")
		for _, n := range v.names {
			if n == name && rapid.IntRange(0, oneIn).Draw(t, "twice") > 0 {
				return
			}
		}
		v.names = append(v.names[:i:i], append([]string{name}, v.names[i:]...)...)
	}
	v.kids = append(v.kids[:i:i], append([]*value{kid}, v.kids[i:]...)...)
}

// edit changes one place, like the change of a program's state between turns.
func (v *value) edit(t *rapid.T) {
	for v.open != 0 && len(v.kids) > 0 && rapid.IntRange(0, 2).Draw(t, "descend") > 0 {
		v = v.kids[rapid.IntRange(0, len(v.kids)-1).Draw(t, "kid")]
	}
	if v.open == 0 {
		*v = *drawValue(t, 1)
		return
	}
	n := len(v.kids)
	if n == 0 {
		v.insert(t, 0, drawValue(t, 1), 10)
		return
	}
	i := rapid.IntRange(0, n-1).Draw(t, "at")
	switch rapid.IntRange(0, 4).Draw(t, "edit") {
	case 0:
		v.insert(t, i, drawValue(t, 1), 10)
	case 1:
		v.insert(t, n, drawValue(t, 1), 10)
	case 2:
		v.kids = append(v.kids[:i:i], v.kids[i+1:]...)
		if v.open == '{' {
			v.names = append(v.names[:i:i], v.names[i+1:]...)
		}
	case 3:
		j := rapid.IntRange(0, n-1).Draw(t, "with")
		v.kids[i], v.kids[j] = v.kids[j], v.kids[i]
		if v.open == '{' && rapid.Bool().Draw(t, "names too") {
			v.names[i], v.names[j] = v.names[j], v.names[i]
		}
	case 4:
		*v = *drawValue(t, 2)
	}
}

// restore replays a log of commit lines, and checks each document against its checksum.
func restore(t *rapid.T, log []byte, key uint64) [][]byte {
	var docs [][]byte
	var doc []byte
	var prev uint32
	start := 0
	for pos := 0; pos < len(log); {
		end := pos + bytes.IndexByte(log[pos:], '\n')
		r, ours, err := ParseRecord(log[pos:end], key)
		if err != nil {
			t.Fatal(err)
		}
		if ours {
			if !r.Covers(prev, log[start:pos]) {
				t.Fatalf("commit %d covers other bytes", r.Seq)
			}
			switch {
			case r.Doc != nil:
				doc = r.Doc
			case r.Patch != nil:
				if doc, err = ApplyPatch(doc, r.Patch, r.Sorted); err != nil {
					t.Fatalf("commit %d: %v", r.Seq, err)
				}
			}
			if codec.CRC(doc) != r.DocCRC {
				t.Fatalf("commit %d: document is not the one that was committed", r.Seq)
			}
			docs, prev, start = append(docs, doc), r.Self, end+1
		}
		pos = end + 1
	}
	return docs
}

// Promise: any commit can be restored exactly. Random documents with random edits are written to a log as keyframes and
// patches, and each is restored byte for byte.
func TestEveryCommitRestoresExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := drawValue(t, 4)
		var log []byte
		var want [][]byte
		var before []byte
		var prev uint32
		for seq := range uint64(rapid.IntRange(1, 12).Draw(t, "commits")) {
			for range rapid.IntRange(0, 3).Draw(t, "edits") {
				state.edit(t)
			}
			d := Document{State: state.append(nil), Branch: rapid.SampledFrom([]string{"", "main", "sïde"}).Draw(t, "branch")}
			if rapid.IntRange(0, 4).Draw(t, "explicit") == 0 {
				d.Context = []transcript.Item{{Entry: "e"}, {Message: json.RawMessage(`{"role":"user"}`)}}
			}
			doc, err := d.Encode()
			if err != nil {
				t.Fatal(err)
			}
			r := Record{ID: testID(int(seq)), Time: testTime, Seq: seq, Reason: "turn", HeadOrd: -1, DocCRC: codec.CRC(doc)}
			patch, sorted, ok := MakePatch(before, doc)
			switch {
			case before == nil:
				r.Doc = doc
			case bytes.Equal(before, doc):
				if string(patch) != "[]" || sorted || !ok {
					t.Fatalf("equal documents: patch %s, %v, %v", patch, sorted, ok)
				}
			case ok:
				if 2*len(patch) > len(doc) {
					t.Fatalf("patch of %d bytes for a document of %d", len(patch), len(doc))
				}
				r.Patch, r.Sorted = patch, sorted
			default:
				r.Doc = doc
			}
			log = append(log, testSince...)
			since := log
			if seq > 0 {
				since = testSince
			}
			line, self, err := r.AppendLine(log, testKey, prev, since)
			if err != nil {
				t.Fatal(err)
			}
			log, prev, before = append(line, '\n'), self, doc //nolint:gocritic // line begins with log
			want = append(want, doc)
		}
		got := restore(t, log, testKey)
		if len(got) != len(want) {
			t.Fatalf("%d of %d documents came back", len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(got[i], want[i]) {
				t.Fatalf("document %d:\n got %s\nwant %s", i, got[i], want[i])
			}
		}
	})
}
