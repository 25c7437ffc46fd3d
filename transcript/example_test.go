package transcript_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

// file is what a session of pi's format holds after its header: a question, two versions of the answer.
var file = []string{
	`{"type":"message","id":"q1","parentId":null,"timestamp":"2026-03-02T09:00:00.000Z","message":{"role":"user","content":"When is high water?"}}`,
	`{"type":"model_change","id":"m1","parentId":"q1","timestamp":"2026-03-02T09:00:01.000Z","provider":"anthropic","modelId":"claude-x"}`,
	`{"type":"message","id":"a1","parentId":"m1","timestamp":"2026-03-02T09:00:02.000Z","message":{"role":"assistant","content":"At noon."}}`,
	`{"type":"message","id":"a2","parentId":"m1","timestamp":"2026-03-02T09:00:03.000Z","message":{"role":"assistant","content":"At 11:42."}}`,
	`{"type":"message","id":"q2","parentId":"a2","timestamp":"2026-03-02T09:00:04.000Z","message":{"role":"user","content":"And low water?"}}`,
}

func lines() []transcript.Line {
	var out []transcript.Line
	for _, raw := range file {
		l, err := transcript.ParseLine([]byte(raw))
		if err != nil {
			panic(err)
		}
		out = append(out, l)
	}
	return out
}

// path returns the entries of the lines with these numbers.
func path(numbers ...uint64) []transcript.Entry {
	var out []transcript.Entry
	all := lines()
	for _, n := range numbers {
		out = append(out, all[n].Entry(n))
	}
	return out
}

// The tree of a session file: parents are resolved over the whole file, then each line becomes a row.
func ExampleTreeBuilder() {
	file := lines()
	parents, diagnostics := transcript.ResolveParents(file)
	b := transcript.NewTreeBuilder()
	for i, l := range file {
		b.AddRow(transcript.RowOf(l, parents[i]))
	}
	tree := b.Tree("q2", []transcript.Branch{{Name: "first try", Head: "a1"}}, nil)

	fmt.Println(b.Len(), "rows,", len(diagnostics), "diagnostics")
	for n := range tree.Nodes(transcript.FilterDefault) {
		fmt.Println(n.ID, n.ParentID, n.OnPath, n.Preview)
	}
	for _, branch := range tree.Branches() {
		fmt.Println(branch.Name, "is at", branch.Head)
	}
	// Output:
	// 5 rows, 0 diagnostics
	// q1  true When is high water?
	// a1 q1 false At noon.
	// a2 q1 true At 11:42.
	// q2 a2 true And low water?
	// first try is at a1
}

// A sealed segment brings its rows packed.
func ExampleTreeBuilder_AddSkeleton() {
	p, err := codec.EncodeSkeleton(0, []codec.Row{
		{ID: "q1", Parent: codec.NoParent, Type: "message", Role: "user"},
		{ID: "a1", Parent: 0, Type: "message", Role: "assistant"},
		{ID: "c1", Parent: 1, Type: "custom", Flags: codec.FlagCommit},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	sk, err := codec.DecodeSkeleton(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := transcript.NewTreeBuilder()
	if err := b.AddSkeleton(sk); err != nil {
		fmt.Println(err)
		return
	}
	tree := b.Tree("a1", nil, nil)
	commit, ok := tree.CommitOn(1)
	fmt.Println(tree.Len(), "rows; a1 was committed by row", commit, ok)
	// Output:
	// 3 rows; a1 was committed by row 2 true
}

// Moving about in a tree, as a user interface does.
func ExampleTree() {
	file := lines()
	parents, _ := transcript.ResolveParents(file)
	b := transcript.NewTreeBuilder()
	for i, l := range file {
		b.AddRow(transcript.RowOf(l, parents[i]))
	}
	b.AddRow(codec.Row{
		ID: "l1", Parent: 4, Type: "label", Target: "a2", Preview: "good", Flags: codec.FlagText,
		Time: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC).UnixMilli(),
	})
	tree := b.Tree("q2", nil, nil)

	versions, at := tree.Siblings("a2")
	fmt.Printf("a2 is version %d of %d\n", at+1, len(versions))
	from, _ := tree.Node("m1")
	children := tree.Children(from.ID)
	transcript.SortByTime(children)
	for _, n := range children {
		fmt.Println("below m1:", n.ID)
	}
	leaf, _ := tree.Newest("a2")
	fmt.Println("Switch to a2 goes to", leaf.ID)
	if parent, ok := tree.Parent(leaf.Ordinal); ok {
		n := tree.NodeAt(parent)
		label, _ := tree.LabelOf(parent)
		fmt.Printf("its parent %s is labelled %q since %s\n", n.ID, n.Label, label.Time.UTC().Format(time.TimeOnly))
	}
	for n := range tree.Search("WATER low") {
		fmt.Println("found", n.ID)
	}
	for ordinal := range tree.Labelled {
		fmt.Println("labelled:", tree.ID(ordinal))
	}
	for ordinal := range tree.Failures {
		fmt.Println("failed:", tree.ID(ordinal))
	}
	// Output:
	// a2 is version 2 of 2
	// below m1: a1
	// below m1: a2
	// Switch to a2 goes to q2
	// its parent a2 is labelled "good" since 10:00:00
	// found q2
	// labelled: a2
}

// Previews have 80 bytes: whole entries are searched where Session.Entries yields them.
func ExampleTree_SearchIn() {
	b := transcript.NewTreeBuilder()
	file := lines()
	for i, parent := range []int64{codec.NoParent, 0, 1, 1, 3} {
		b.AddRow(transcript.RowOf(file[i], parent))
	}
	entries := func(yield func(transcript.Entry, error) bool) {
		for i, l := range file {
			if !yield(l.Entry(uint64(i)), nil) {
				return
			}
		}
	}
	for n, err := range b.Tree("q2", nil, nil).SearchIn("11:42", entries) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(n.ID, n.Preview)
	}
	// Output:
	// a2 At 11:42.
}

// The context of a path by the rules of a profile: the settings in force, the messages, and calls without results.
func ExampleBuildContext() {
	p := transcript.Profile("pi")
	if !p.Valid() {
		fmt.Println("no such profile")
		return
	}
	c := transcript.BuildContext(path(0, 1, 3, 4), p)
	for _, m := range c.Messages {
		var message struct{ Content string }
		if err := m.Decode(&message); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(m.Entry, m.Role, message.Content)
	}
	fmt.Println(c.Settings.Model, c.Leaf, len(c.OpenCalls))
	fmt.Println(transcript.SettingsAfter(p, transcript.Settings{}, path(0, 1)).Model)
	// Output:
	// q1 user When is high water?
	// a2 assistant At 11:42.
	// q2 user And low water?
	// anthropic/claude-x q2 0
	// anthropic/claude-x
}

// A context that grows entry by entry within a bound reports what it left out.
func ExampleWorkingContext() {
	const bound = 300 // bytes: about two of the messages
	w := transcript.NewWorkingContext(transcript.Coppice, bound)
	for _, e := range path(0, 1, 3) {
		w.Push(e)
	}
	before := w.Clone()
	w.PushAll(path(4))
	c := w.Context()
	for _, m := range c.Messages {
		fmt.Println(m.Role, m.Text())
	}
	fmt.Println("complete:", c.Window.Complete, "- left out:", c.Window.OmittedEntries, w.Omitted())
	whole := transcript.RestoreWorkingContext(transcript.Coppice, -1, transcript.Settings{}, 0, path(0, 1, 3, 4))
	fmt.Printf("of the whole context %+v\n", whole.BeyondOf(whole.Context(), bound))
	leaf, _ := before.Leaf()
	fmt.Println("the copy is at", leaf.ID, "of", before.MaxBytes(), "bytes:", before.Bytes() <= bound)

	// Back to the answer, as a branch does.
	if w.Rewind(3) {
		leaf, _ := w.Leaf()
		fmt.Println("back at", leaf.ID, w.Settings().Model)
	}
	// Output:
	// user And low water?
	// complete: false - left out: 2 2
	// of the whole context {Count:2 From:0 To:2}
	// the copy is at a2 of 300 bytes: true
}

// A working context is stored with a checkpoint and continues where it was.
func ExampleRestoreWorkingContext() {
	w := transcript.NewWorkingContext(transcript.Coppice, 1<<20)
	w.PushAll(path(0, 1, 3))
	ordinals, stored := w.Lines()
	base, omitted := w.Base(), w.Omitted()

	var entries []transcript.Entry
	for i, raw := range stored {
		l, err := transcript.ParseLine(raw)
		if err != nil {
			fmt.Println(err)
			return
		}
		entries = append(entries, l.Entry(ordinals[i]))
	}
	again := transcript.RestoreWorkingContext(w.Profile(), w.MaxBytes(), base, omitted, entries)
	again.PushAll(path(4))
	for e := range again.All {
		fmt.Println(e.Ordinal, e.ID)
	}
	fmt.Println(w.Len(), again.Len())
	// Output:
	// 0 q1
	// 1 m1
	// 3 a2
	// 4 q2
	// 3 4
}

// Of a long path the end is enough to make the window that all of it would make.
func ExampleRestoreEnd() {
	all := path(0, 1, 3, 4)
	whole := transcript.RestoreWorkingContext(transcript.Coppice, 300, transcript.Settings{}, 0, all)
	before := transcript.SettingsAfter(transcript.Coppice, transcript.Settings{}, all[:2])
	end, ok := transcript.RestoreEnd(transcript.Coppice, 300, before, 2, nil, all[2:])
	if !ok {
		fmt.Println("more of the end is needed: the window of all has", whole.Len())
		return
	}
	fmt.Println(end.Len() == whole.Len())
	// Output: more of the end is needed: the window of all has 1
}

// Lines that cannot show a word are passed over before they are parsed.
func ExampleMayShow() {
	may := transcript.MayShow("low water")
	fmt.Println(may([]byte(`{"message":{"role":"user","content":"And low water?"}}`)))
	fmt.Println(may([]byte(`{"message":{"role":"user","content":"When is high tide?"}}`)))
	// Output:
	// true
	// false
}

// Ids of entries sort by time and come from the caller's clock and randomness.
func ExampleNewID() {
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	random := bytes.NewReader([]byte("0123456789abcdef"))
	first, err := transcript.NewID(at, random)
	if err != nil {
		fmt.Println(err)
		return
	}
	second, err := transcript.NewID(at.Add(time.Millisecond), random)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(first)
	fmt.Println(slices.IsSorted([]string{first, second}))
	// Output:
	// 019cadc6-9a80-7000-b031-323334353637
	// true
}

// A draft becomes a line, and the line an entry of which only the head was read.
func ExampleDraft_Parsed() {
	d := transcript.Draft{Type: "custom", Body: []byte(`{"customType":"deploy","data":{"host":"eu-1"}}`)}
	l, err := d.Parsed("id-1", "id-0", time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	var deploy struct{ Data struct{ Host string } }
	if err := l.Entry(7).Decode(&deploy); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(l.ID, l.ParentID, deploy.Data.Host)
	fmt.Printf("%s\n", l.Raw)
	// Output:
	// id-1 id-0 eu-1
	// {"type":"custom","id":"id-1","parentId":"id-0","timestamp":"2026-03-02T09:00:00.000Z","customType":"deploy","data":{"host":"eu-1"}}
}

// A reader of files reports what is odd in a bounded list.
func ExampleDiagnosticList() {
	var found transcript.DiagnosticList
	found.Add("a1", 3, transcript.DiagOrphan, "its parent x9 is not there")
	before := found.Clone()
	found.AddMore(250) // of another list
	for _, d := range found.All() {
		fmt.Println(d.Entry, d.Kind, d.Detail)
	}
	fmt.Println(len(before.All()))
	// Output:
	// a1 orphan its parent x9 is not there
	//  more 250 more
	// 1
}

// An amendment is an entry of its own: the amended entry stays in the file, and contexts show the new content.
func ExampleEntry_Amend() {
	p := path(0, 1, 3)
	d, err := p[2].Amend([]byte(`{"message":{"role":"assistant","content":"At 11:44."}}`), false)
	if err != nil {
		fmt.Println(err)
		return
	}
	l, err := d.Parsed("am1", "a2", time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	amendment, ok := l.Entry(5).Amendment()
	now := p[2].Amended(amendment)
	m, _ := now.Message()
	fmt.Println(amendment.Target, ok, m.Text(), "by", now.AmendedBy)

	w := transcript.NewWorkingContext(transcript.Coppice, 0)
	w.PushAll(p)
	if _, ok := w.Amend(amendment); ok {
		messages := w.Context().Messages
		fmt.Println("in the context:", messages[len(messages)-1].Text())
	}

	b := transcript.NewTreeBuilder()
	for i, l := range lines()[:4] {
		b.AddRow(transcript.RowOf(l, int64(i)-1))
	}
	b.AddRow(transcript.RowOf(l, 3))
	tree := b.Tree("a2", nil, nil)
	fmt.Println("the tree has amendments:", tree.Amends())
	for ordinal := range tree.Amended {
		by, _ := tree.Amendment(ordinal, math.MaxUint64)
		fmt.Println("entry", ordinal, "is amended by", by, "- hidden:", tree.Hides(by))
	}
	// Output:
	// a2 true At 11:44. by am1
	// in the context: At 11:44.
	// the tree has amendments: true
	// entry 3 is amended by 4 - hidden: false
}

// Metadata of a session changes with an entry; an import reads the change back.
func ExampleEntry_Meta() {
	l, err := transcript.ParseLine([]byte(
		`{"type":"custom","id":"x","parentId":null,"customType":"coppice.meta","data":{"team":"blue","draft":null}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	change, ok := l.Entry(0).Meta()
	for _, key := range slices.Sorted(maps.Keys(change)) {
		if value := change[key]; value != nil {
			fmt.Println(key, "is", *value)
		} else {
			fmt.Println(key, "is removed")
		}
	}
	fmt.Println(ok)
	// Output:
	// draft is removed
	// team is blue
	// true
}

// The path to an entry a page at a time, from either end: what is not asked for costs nothing.
func ExampleTree_Up() {
	b := transcript.NewTreeBuilder()
	for i, l := range lines()[:3] {
		b.AddRow(transcript.RowOf(l, int64(i)-1))
	}
	tree := b.Tree("a1", nil, nil)
	for n := range tree.Up("a1") { // from the newest on; break where the page is full
		fmt.Println(n.ID, "commit:", tree.IsCommit(n.Ordinal))
	}
	depth, _ := tree.Depth(2)
	above, _ := tree.Ancestor(2, depth-1)
	fmt.Println("depth", depth, "- above it", above)
	for ordinal := range tree.Down(2, 1) {
		fmt.Println(tree.NodeAt(ordinal).ID)
	}
	// Output:
	// a1 commit: false
	// m1 commit: false
	// q1 commit: false
	// depth 2 - above it 1
	// m1
	// a1
}

// A program that draws a tree works with ordinals, and makes nodes of those alone that it shows.
func ExampleTree_Shows() {
	file := lines()
	parents, _ := transcript.ResolveParents(file)
	b := transcript.NewTreeBuilder()
	for i, l := range file {
		b.AddRow(transcript.RowOf(l, parents[i]))
	}
	tree := b.Tree("q2", nil, nil)
	var shown []uint64
	for ordinal := range uint64(tree.Len()) {
		if tree.Shows(transcript.FilterUserOnly, ordinal) {
			shown = append(shown, ordinal)
		}
	}
	for n := range tree.NodesAt(slices.Values(shown)) {
		fmt.Println(n.ID, n.Preview)
	}
	head, ok := tree.HeadOrdinal()
	fmt.Println("head:", head, ok)
	// Output:
	// q1 When is high water?
	// q2 And low water?
	// head: 4 true
}

// A page of a conversation shows of each message which version it is.
func ExampleTree_VersionsAt() {
	file := lines()
	parents, _ := transcript.ResolveParents(file)
	b := transcript.NewTreeBuilder()
	for i, l := range file {
		b.AddRow(transcript.RowOf(l, parents[i]))
	}
	tree := b.Tree("q2", nil, nil)
	page := []uint64{0, 3, 4}
	i := 0
	for v := range tree.VersionsAt(slices.Values(page)) {
		fmt.Printf("%s: %d/%d, %d go on from it\n", tree.ID(page[i]), v.At+1, len(v.Ordinals), v.Children)
		i++
	}
	// Output:
	// q1: 1/1, 2 go on from it
	// a2: 2/2, 1 go on from it
	// q2: 1/1, 0 go on from it
}
