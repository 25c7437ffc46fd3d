package checkpoint_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
)

var at = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

// Reading a segment in another program: its prelude has the key that verifies its commit lines.
func ExampleParseRecord() {
	prelude, err := checkpoint.Prelude{ID: "p0", Time: at, Session: "s1", Key: 0x0123456789abcdef}.Line()
	if err != nil {
		fmt.Println(err)
		return
	}
	entries := []byte(`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"hi"}}` + "\n")
	doc := []byte(`{"state":{"n":1}}`)
	written := checkpoint.Record{
		ID: "c0", Time: at, Seq: 1, Epoch: 1, Writer: "host:42", Reason: "turn", Head: "a", Branch: "main", Entries: 1,
		Doc: doc, DocCRC: codec.CRC(doc),
	}
	line, _, err := written.AppendLine(nil, 0x0123456789abcdef, 0, entries)
	if err != nil {
		fmt.Println(err)
		return
	}

	p, ok := checkpoint.ParsePrelude(prelude)
	fmt.Println("session", p.Session, ok)
	r, ours, err := checkpoint.ParseRecord(line, p.Key)
	if err != nil || !ours {
		fmt.Println(ours, err)
		return
	}
	fmt.Printf("commit %d by %s: %s, head %s, entries intact: %v\n", r.Seq, r.Writer, r.Doc, r.Head, r.Covers(0, entries))
	line[40] ^= 1
	_, ours, err = checkpoint.ParseRecord(line, p.Key)
	fmt.Println("with a flipped bit it is ours:", ours, err)
	// Output:
	// session s1 true
	// commit 1 by host:42: {"state":{"n":1}}, head a, entries intact: true
	// with a flipped bit it is ours: false <nil>
}

// Commit lines whose key is lost: two that verify under one key belong to one segment.
func ExampleKeyOf() {
	line, _, err := checkpoint.Record{
		ID: "c0", Time: at, Seq: 7, Epoch: 1, Writer: "host:42", Reason: "turn", HeadOrd: -1, Branch: "main",
		Doc: json.RawMessage(`{}`), DocCRC: codec.CRC([]byte(`{}`)),
	}.AppendLine(nil, 0x0123456789abcdef, 0, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	key, ok := checkpoint.KeyOf(line)
	_, ours, err := checkpoint.ParseRecord(line, key)
	fmt.Println(ok, ours, err)

	// A line that was verified before is parsed without a key.
	r, err := checkpoint.VerifiedRecord(line)
	seq, _ := checkpoint.RecordSeq(line)
	fmt.Println(r.Commit().Writer, seq, err)
	// Output:
	// true true <nil>
	// host:42 7 <nil>
}

// A commit stores a patch of the previous document, if that is at most half as long.
func ExampleMakePatch() {
	document := func(n int) []byte {
		state := fmt.Appendf(nil, `{"n":%d,"harbour":"Brest","country":"France","zone":"Europe/Paris","coefficient":95}`, n)
		p, err := checkpoint.Document{State: state, Branch: "main"}.Encode()
		if err != nil {
			panic(err)
		}
		return p
	}
	from, to := document(1), document(2)
	patch, sorted, ok := checkpoint.MakePatch(from, to)
	fmt.Println(string(patch), ok)

	again, err := checkpoint.ApplyPatch(from, patch, sorted)
	fmt.Println(string(again) == string(to), err)

	// For people: the change of the state.
	a, err := checkpoint.DecodeDocument(from)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := checkpoint.DecodeDocument(to)
	if err != nil {
		fmt.Println(err)
		return
	}
	diff, err := a.DiffState(b)
	fmt.Println(string(diff), err)
	// Output:
	// [{"op":"replace","path":"/state/n","value":2}] true
	// true <nil>
	// [{"op":"replace","path":"/n","value":2}] <nil>
}

// A checkpoint is one object: listings read only its summary, a session resumes from the whole.
func ExampleDecodeObject() {
	doc, err := checkpoint.Document{State: json.RawMessage(`{"n":1}`)}.Encode()
	if err != nil {
		fmt.Println(err)
		return
	}
	o := &checkpoint.Object{
		Summary: checkpoint.Summary{
			ID: "s1", Title: "Tides", Created: at, Updated: at, Entries: 1,
			Head: checkpoint.Head{Seq: 1, Epoch: 1, Commit: "c1", Entry: "a", Branch: "main"},
		},
		Document: doc, Key: 1,
	}
	o.Show([]uint64{0}, [][]byte{[]byte(`{"type":"message","id":"a","message":{"role":"user","content":"hi"}}`)})
	o.Reuse(nil) // the next checkpoint, Reuse(o), compresses only new parts
	o.Keys = checkpoint.AppendKey(o.Keys, checkpoint.KeyRef{Hash: checkpoint.KeyHash("order-17"), Seq: 1})
	p, err := o.Encode()
	if err != nil {
		fmt.Println(err)
		return
	}

	summary, err := checkpoint.DecodeSummary(p[:min(len(p), 4096)])
	fmt.Println(summary.Name(), summary.Seq, err)
	got, err := checkpoint.DecodeObject(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s\n", got.Document, got.Pool[0])
	fmt.Println("the key was used:", got.Keys[0].Hash == checkpoint.KeyHash("order-17"))
	// Output:
	// Tides 1 <nil>
	// {"state":{"n":1}} {"type":"message","id":"a","message":{"role":"user","content":"hi"}}
	// the key was used: true
}

// The segments of a long session: 64 fold into one index object, so that the map stays short.
func ExampleSegmentMap() {
	var m checkpoint.SegmentMap
	for i := range uint64(70) {
		ref := codec.Ref{First: i * 100, Count: 100, FirstSeq: i * 10, RawBytes: 1, Bytes: 1, Epoch: 1, Rnd: "0123456789abcdef"}
		if err := m.Append(ref); err != nil {
			fmt.Println(err)
			return
		}
	}
	level, refs, ok := m.FoldCandidate()
	if ok {
		index := codec.Ref{First: refs[0].First, Count: 6400, FirstSeq: refs[0].FirstSeq, RawBytes: 64, Bytes: 1, Epoch: 1, Rnd: "fedcba9876543210"}
		if err := m.Fold(level, index); err != nil {
			fmt.Println(err)
			return
		}
	}
	for level, ref := range m.Refs {
		fmt.Println("level", level, "from", ref.First, "entries", ref.Count)
	}
	level, ref, _ := m.Find(250)
	fmt.Println("entry 250: level", level, ref.Rnd)
	level, ref, _ = m.FindSeq(655)
	fmt.Println("commit 655: level", level, "from entry", ref.First)
	// Output:
	// level 1 from 0 entries 6400
	// level 0 from 6400 entries 100
	// level 0 from 6500 entries 100
	// level 0 from 6600 entries 100
	// level 0 from 6700 entries 100
	// level 0 from 6800 entries 100
	// level 0 from 6900 entries 100
	// entry 250: level 1 fedcba9876543210
	// commit 655: level 0 from entry 6500
}

// The fields of a header line in addition to pi's, and later changes of the metadata.
func ExampleHeaderRelation() {
	relation, meta := checkpoint.HeaderRelation([]byte(
		`{"type":"session","version":3,"id":"s2","coppice":{"relation":"fork","meta":{"team":"blue","draft":"yes"}}}`))
	fmt.Println(relation, meta)

	red := "red"
	change := checkpoint.MetaChange{"team": &red}.Then(checkpoint.MetaChange{"draft": nil})
	meta = change.Apply(maps.Clone(meta))
	fmt.Println(meta, change.Valid(), checkpoint.ValidMetaKey("two words"))
	// Output:
	// fork map[draft:yes team:blue]
	// map[team:red] true false
}

// Names and sizes of documents are checked before a turn is made.
func ExampleCheckDoc() {
	fmt.Println(checkpoint.CheckDocName("notes/today"), checkpoint.CheckDoc("notes/today", []byte(`{"n":1}`)))
	fmt.Println(checkpoint.CheckDocName("two words") != nil)
	// Output:
	// <nil> <nil>
	// true
}

// JSON is checked before a turn is made: the levels of the log line around it count as well.
func ExampleCheckState() {
	deep := []byte(strings.Repeat("[", checkpoint.MaxStateDepth) + strings.Repeat("]", checkpoint.MaxStateDepth))
	fmt.Println(checkpoint.CheckState("state", deep))
	fmt.Println(checkpoint.CheckState("state", append(append([]byte("["), deep...), ']')))
	fmt.Println(checkpoint.CheckItem(deep))
	// Output:
	// <nil>
	// state: nesting of JSON: 510 is over the limit of 509
	// message: nesting of JSON: 508 is over the limit of 507
}

// The title in a summary is truncated.
func ExampleCutText() {
	title := checkpoint.CutText(strings.Repeat("title ", 1000))
	fmt.Println(len(title), strings.HasSuffix(title, "…"))
	// Output: 4096 true
}

func ExampleDocument_StateLost() {
	before := checkpoint.Document{State: []byte(`{"turn":7}`), Branch: "main"}
	d := before.WithoutState() // the document that a repair writes if the state is lost
	fmt.Println(before.StateLost(), d.StateLost(), d.Branch)
	// Output: false true main
}
