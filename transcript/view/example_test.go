package view_test

import (
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// grow returns a tree of a question, two versions of its answer, and the answer's next question; more grow on that.
func grow(head string, more ...codec.Row) *transcript.Tree {
	row := func(id string, parent int64, role, text string) codec.Row {
		return codec.Row{
			ID: id, Parent: parent, Type: "message", Role: role, Preview: text, Flags: codec.FlagText | codec.FlagVisible,
		}
	}
	b := transcript.NewTreeBuilder()
	b.AddRow(row("q1", codec.NoParent, "user", "When is high water?"))
	b.AddRow(row("a1", 0, "assistant", "At noon."))
	b.AddRow(row("a2", 0, "assistant", "At 11:42."))
	b.AddRow(row("q2", 2, "user", "And low water?"))
	for _, r := range more {
		b.AddRow(r)
	}
	return b.Tree(head, []transcript.Branch{{Name: "first try", Head: "a1"}}, nil)
}

func draw(v *view.View) {
	for i, r := range v.Rows() {
		mark := "-"
		if i == v.Selected() {
			mark = ">"
		}
		fmt.Printf("%s %s%s", mark, strings.Repeat("  ", r.Indent), r.Preview)
		if r.Versions > 1 {
			fmt.Printf(" (%d/%d)", r.Version, r.Versions)
		}
		if r.Folded {
			fmt.Printf(" +%d", r.Hidden)
		}
		for _, m := range r.Marks {
			if m.Branch == "" {
				m.Branch = "head"
			}
			fmt.Printf(" [%s]", m.Branch)
		}
		fmt.Println()
	}
	fmt.Println()
}

// A selector of entries: keys move, fold, filter and search; after each the rows are drawn.
func ExampleView() {
	v := view.New(grow("q2"))
	draw(v)
	v.Select("q1")
	v.Fold("a2")
	draw(v)
	v.Unfold("a2")
	v.Filter(transcript.FilterUserOnly)
	draw(v)
	v.Filter(transcript.FilterDefault)
	v.Search("noon")
	draw(v)
	// Output:
	// - When is high water?
	// -   At 11:42. (2/2)
	// >   And low water? [head]
	// -   At noon. (1/2) [first try]
	//
	// > When is high water?
	// -   At 11:42. (2/2) +1 [head]
	// -   At noon. (1/2) [first try]
	//
	// > When is high water? [first try]
	// - And low water? [head]
	//
	// > At noon. [first try]
}

// A session grows while it is shown: the selection stays.
func ExampleView_Grown() {
	v := view.New(grow("q2"))
	v.Select("a1")
	v.Grown(grow("a3", codec.Row{
		ID: "a3", Parent: 3, Type: "message", Role: "assistant", Preview: "At 17:55.", Flags: codec.FlagText | codec.FlagVisible,
	}))
	draw(v)
	// Output:
	// - When is high water?
	// -   At 11:42. (2/2)
	// -   And low water?
	// -   At 17:55. [head]
	// >   At noon. (1/2) [first try]
}

// Previews have 80 bytes. The whole text of entries, as Session.Entries yields them, is searched on request.
func ExampleView_SearchIn() {
	v := view.New(grow("q2"))
	entries := func(yield func(transcript.Entry, error) bool) {
		yield(transcript.Entry{
			Ordinal: 2, ID: "a2", Type: "message",
			Raw: []byte(`{"type":"message","id":"a2","message":{"role":"assistant","content":"At 11:42. The coefficient is 95."}}`),
		}, nil)
	}
	if err := v.SearchIn("coefficient", entries); err != nil {
		fmt.Println(err)
		return
	}
	draw(v)
	// Output:
	// > At 11:42. [head]
}

// Without a View: where the head and the branches are, among the entries that a program shows.
func ExampleMarks() {
	t := grow("q2")
	questions := func(ordinal uint64) bool { return t.NodeAt(ordinal).Role == "user" }
	marks := view.Marks(t, questions)
	for _, ordinal := range []uint64{0, 3} {
		for _, m := range marks[ordinal] {
			fmt.Printf("%s: branch %q at %s\n", t.NodeAt(ordinal).ID, m.Branch, m.Entry)
		}
	}
	// Output:
	// q1: branch "first try" at a1
	// q2: branch "" at q2
}
