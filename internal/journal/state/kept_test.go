package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/segment"
)

// long makes documents so long that a difference is worth a patch.
var long = bytes.Repeat([]byte("x"), 1000)

func documentOf(t *testing.T, branch string, n int) []byte {
	t.Helper()
	d := checkpoint.Document{State: fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, n, long), Branch: branch}
	if n == 3 {
		d.Manager = json.RawMessage(`{"of":"a loser"}`)
	}
	raw, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func saying(id, parent, role, text string) string {
	at := "null"
	if parent != "" {
		at = `"` + parent + `"`
	}
	return `{"type":"message","id":"` + id + `","parentId":` + at +
		`,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"` + role + `","content":"` + text + `"}}`
}

// lineAfter makes the commit that follows st: rec with what the log demands, and these entries.
func lineAfter(t *testing.T, st *State, rec checkpoint.Record, doc []byte, entries ...string) *segment.Commit {
	t.Helper()
	rec.Seq, rec.Parent, rec.Entries, rec.DocCRC = st.Summary.Seq+1, st.Summary.Commit, len(entries), codec.CRC(doc)
	if st.Summary.Commit == "" {
		rec.Seq = 0
	}
	rec.ID, rec.Time = fmt.Sprintf("commit-%d", rec.Seq), time.Date(2026, 1, 1, 0, 0, int(rec.Seq), 0, time.UTC)
	if rec.Reason == "" {
		rec.Reason = "turn"
	}
	var since []byte
	c := &segment.Commit{}
	for _, e := range entries {
		since = append(append(since, e...), '\n')
		c.Entries = append(c.Entries, []byte(e))
	}
	line, _, err := rec.AppendLine(nil, st.Key, st.Self, since)
	if err != nil {
		t.Fatal(err)
	}
	var ours bool
	if c.Record, ours, err = checkpoint.ParseRecord(line, st.Key); err != nil || !ours {
		t.Fatalf("%s: %v", line, err)
	}
	c.Line = line
	return c
}

func follow(t *testing.T, st *State, c *segment.Commit) *State {
	t.Helper()
	next, err := st.Follows(c)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// won is a session at the entry w of the branch main, whose document has n = 2.
func won(t *testing.T) *State {
	t.Helper()
	st := Genesis{Header: []byte(`{"type":"session"}`), Title: "title"}.State("s", "pi", 1<<20)
	first := documentOf(t, "main", 1)
	rec := checkpoint.Record{Reason: ReasonCreate, HeadOrd: 0, Head: "u", Branch: "main", Doc: first, Base: st.Base()}
	rec.Base.Created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	st = follow(t, st, lineAfter(t, st, rec, first, saying("u", "", "user", "a question")))
	second := documentOf(t, "main", 2)
	rec = checkpoint.Record{HeadOrd: 2, Head: "w", Branch: "main", Doc: second}
	return follow(t, st, lineAfter(t, st, rec, second, saying("w", "u", "assistant", "the winner")))
}

// losing returns the line that keeps a turn that lost against w: an answer to u, with a document of its own.
func losing(t *testing.T, st *State) *segment.Commit {
	t.Helper()
	doc := documentOf(t, "conflict-1", 3)
	rec := checkpoint.Record{
		HeadOrd: 4, Head: "l", Branch: "conflict-1", Kept: "conflict-1", Doc: doc, Key: "job", Digest: "00c0ffee00c0ffee",
		Parents: []checkpoint.ParentDelta{{Index: 0, Delta: 4}},
	}
	return lineAfter(t, st, rec, doc, saying("l", "u", "assistant", "the loser"))
}

// described is what readers of a session see of the place where it is.
type described struct {
	Entry, Branch, Title, Cwd, Preview, Status, Reason string
	HeadOrd                                            int64
	Doc                                                string
	Window                                             []uint64
}

func describedBy(st *State) described {
	sum := st.Summary
	d := described{
		sum.Entry, sum.Branch, sum.Title, sum.Cwd, sum.Preview, sum.Status, sum.Reason, st.HeadOrd, string(st.DocJSON), nil,
	}
	for e := range st.Window.All {
		d.Window = append(d.Window, e.Ordinal)
	}
	return d
}

// A kept line counts as a commit, and moves nothing: neither head nor document, neither preview nor window.
func TestKeptLineMovesNothing(t *testing.T) {
	before := won(t)
	after := follow(t, before, losing(t, before))
	if diff := cmp.Diff(describedBy(before), describedBy(after)); diff != "" {
		t.Error(diff)
	}
	sum := after.Summary
	if sum.Seq != 2 || sum.Commit != "commit-2" || sum.Entries != 3 || after.Next != 6 || len(after.Lineage) != 3 {
		t.Errorf("the line is not counted: %+v, next %d", sum, after.Next)
	}
	if doc := after.DocumentOfLine(); !after.AfterKept || !bytes.Equal(doc, documentOf(t, "conflict-1", 3)) {
		t.Errorf("what the line itself leaves: kept %v, document %s", after.AfterKept, doc)
	}
	if after.LineHead() != 4 {
		t.Errorf("the head that the line names: %d", after.LineHead())
	}
	if b, ok := after.Branch("conflict-1"); !ok || b.Head != "l" || b.Ord != 4 {
		t.Errorf("the branch of the losing turn: %+v", after.Branches)
	}
	if b, ok := after.Branch("main"); !ok || b.Head != "w" || b.Ord != 2 {
		t.Errorf("the branch of the winner: %+v", after.Branches)
	}
	if refs := after.KeyRefs("job"); len(refs) != 1 || refs[0].Seq != 2 || refs[0].Ord != 5 {
		t.Errorf("the key of the losing turn: %+v", refs)
	}
	if after.SinceKey < keyframeDue {
		t.Errorf("the next document would not go whole: %d commits since a keyframe", after.SinceKey)
	}
}

// The line after a kept one is the session's again. It carries its document whole and the parent of its first entry, so
// that a reader who begins at a checkpoint between the two gets the same state.
func TestLineAfterAKeptOne(t *testing.T) {
	before := won(t)
	kept := follow(t, before, losing(t, before))
	restored, err := Restore(stored(t, kept.Object(true)), backend.Info{})
	if err != nil {
		t.Fatal(err)
	}
	if !restored.AfterKept || restored.LineHead() != 4 || restored.HeadOrd != 2 {
		t.Errorf("restored: kept %v, head of the line %d, head %d", restored.AfterKept, restored.LineHead(), restored.HeadOrd)
	}
	doc := documentOf(t, "main", 4)
	rec := checkpoint.Record{
		HeadOrd: 6, Head: "n", Branch: "main", Doc: doc, Parents: []checkpoint.ParentDelta{{Index: 0, Delta: 4}},
	}
	for name, st := range map[string]*State{"log": kept, "checkpoint": restored} {
		next := follow(t, st, lineAfter(t, st, rec, doc, saying("n", "w", "user", "goes on")))
		want := described{
			"n", "main", "title", "", "goes on", "asked", "turn", 6, string(doc), []uint64{0, 2, 6},
		}
		if diff := cmp.Diff(want, describedBy(next)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if next.AfterKept || next.LineHead() != 6 || next.SinceKey != 0 {
			t.Errorf("%s: kept %v, head %d, since the keyframe %d", name, next.AfterKept, next.LineHead(), next.SinceKey)
		}
	}
}

// Releases before this rule wrote a line back whose patch applies to the kept line's document, and whose first entry's
// usual parent is the kept line's head. Both still read.
func TestOldLineBack(t *testing.T) {
	before := won(t)
	kept := follow(t, before, losing(t, before))
	theirs, ours := documentOf(t, "conflict-1", 3), documentOf(t, "main", 2)
	patch, sorted, ok := checkpoint.MakePatch(theirs, ours)
	if !ok {
		t.Fatal("the documents make no patch")
	}
	back := checkpoint.Record{Reason: ReasonConflict, HeadOrd: 2, Head: "w", Branch: "main", Patch: patch, Sorted: sorted}
	st := follow(t, kept, lineAfter(t, kept, back, ours))
	want := describedBy(before)
	want.Reason = ReasonConflict
	if diff := cmp.Diff(want, describedBy(st)); diff != "" {
		t.Error(diff)
	}
	if st.AfterKept {
		t.Error("the line back counts as a kept one")
	}

	lost, err := Restore(stored(t, kept.Object(true)), backend.Info{})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := lost.Follows(lineAfter(t, lost, back, ours)); err == nil {
		t.Errorf("the patch was applied to another document: %s", st.DocJSON)
	}

	usual := checkpoint.Record{HeadOrd: 2, Head: "w", Branch: "main", Doc: ours}
	c := lineAfter(t, kept, usual, ours, saying("m", "l", "user", "below the kept line"))
	st = follow(t, kept, c)
	if parent := st.Tail[len(st.Tail)-2].Parent; parent != 4 {
		t.Errorf("the parent of the next entry is %d, want the kept line's head", parent)
	}
}

// The outline of a commit line describes the conversation at the new head, whatever the entries of the commit are; that
// of a base does so for a reader that begins there.
func TestOutlineWins(t *testing.T) {
	st := won(t)
	doc := documentOf(t, "main", 2)
	at := func(o *checkpoint.Outline) checkpoint.Record {
		return checkpoint.Record{HeadOrd: 0, Head: "u", Branch: "main", Outline: o}
	}
	asked := &checkpoint.Outline{Preview: "a question", Status: "asked"}
	aside := saying("x", "w", "assistant", "not on the way to the head")
	for name, tt := range map[string]struct {
		o               *checkpoint.Outline
		entries         []string
		preview, status string
	}{
		"outline":                {asked, nil, "a question", "asked"},
		"outline beside entries": {asked, []string{aside}, "a question", "asked"},
		"nothing was said there": {&checkpoint.Outline{}, []string{aside}, "", ""},
		"none: from the window":  {nil, nil, "a question", "asked"},
		"none: from the entries": {nil, []string{aside}, "not on the way to the head", "answered"},
	} {
		next := follow(t, st, lineAfter(t, st, at(tt.o), doc, tt.entries...))
		if next.Summary.Preview != tt.preview || next.Summary.Status != tt.status {
			t.Errorf("%s: %q, %q", name, next.Summary.Preview, next.Summary.Status)
		}
	}

	base := st.Base()
	base.Created = st.Summary.Created
	if base.Outline != (checkpoint.Outline{Preview: "the winner", Status: "answered"}) {
		t.Errorf("outline of the base: %+v", base.Outline)
	}
	fresh := &State{HeadOrd: base.HeadOrd, Next: st.Next, Key: st.Key, Self: st.Self, Opening: true}
	rec := checkpoint.Record{Reason: ReasonRoll, HeadOrd: 2, Head: "w", Branch: "main", Doc: doc, Base: base}
	c := lineAfter(t, st, rec, doc)
	next := follow(t, fresh, c)
	if next.Summary.Preview != "the winner" || next.Summary.Status != "answered" {
		t.Errorf("from the base alone: %q, %q", next.Summary.Preview, next.Summary.Status)
	}
}

// Keys are remembered by hash, in the checkpoint; of a checkpoint without them, those of its lineage are.
func TestKeysAreRestored(t *testing.T) {
	st := won(t)
	for i := range 3 {
		rec := checkpoint.Record{
			HeadOrd: 2, Head: "w", Branch: "main", Key: fmt.Sprintf("job %d", i%2), Digest: "00c0ffee00c0ffee",
		}
		st = follow(t, st, lineAfter(t, st, rec, st.DocJSON))
	}
	o := st.Object(true)
	back, err := Restore(stored(t, o), backend.Info{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(st.Keys, back.Keys); diff != "" {
		t.Error(diff)
	}
	o.Keys = nil
	if back, err = Restore(stored(t, o), backend.Info{}); err != nil {
		t.Fatal(err)
	}
	want := []checkpoint.KeyRef{{Hash: checkpoint.KeyHash("job 0"), Seq: 4}, {Hash: checkpoint.KeyHash("job 0"), Seq: 2}}
	if diff := cmp.Diff(want, back.KeyRefs("job 0")); diff != "" {
		t.Errorf("from the lineage: %s", diff)
	}
	if refs := back.KeyRefs("job 2"); refs != nil {
		t.Errorf("a key that was never used: %+v", refs)
	}
}

// stored is an object as it is read back.
func stored(t *testing.T, o *checkpoint.Object) *checkpoint.Object {
	t.Helper()
	p, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := checkpoint.DecodeObject(p)
	if err != nil {
		t.Fatal(err)
	}
	return back
}
