package view_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// treeOf makes a tree of words "id<parent:kind text", kind u, a, r (result), s (setting) or l (label, text on
// target). The head is the last word, "head=id".
func treeOf(t *testing.T, head string, words ...string) *transcript.Tree {
	t.Helper()
	b, at := transcript.NewTreeBuilder(), map[string]int64{}
	for i, w := range words {
		id, rest, _ := strings.Cut(w, "<")
		parent, rest, _ := strings.Cut(rest, ":")
		kind, text, _ := strings.Cut(rest, " ")
		place := fmt.Sprintf(`"id":%q,"parentId":%q,"timestamp":"2026-01-02T03:04:%02d.000Z"`, id, parent, i)
		line := map[string]string{
			"u": `{"type":"message",%s,"message":{"role":"user","content":%q}}`,
			"a": `{"type":"message",%s,"message":{"role":"assistant","content":%q}}`,
			"r": `{"type":"message",%s,"message":{"role":"toolResult","toolCallId":"c","toolName":"t","content":%q}}`,
			"s": `{"type":"thinking_level_change",%s,"thinkingLevel":%q}`,
		}[kind]
		raw := fmt.Sprintf(line, place, text)
		if kind == "l" {
			target, label, _ := strings.Cut(text, "=")
			raw = fmt.Sprintf(`{"type":"label",%s,"targetId":%q,"label":%q}`, place, target, label)
		}
		l, err := transcript.ParseLine([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		up := int64(codec.NoParent)
		if p, ok := at[parent]; ok {
			up = p
		}
		at[id] = int64(i)
		b.AddRow(transcript.RowOf(l, up))
	}
	return b.Tree(head, nil, nil)
}

// forked has a fork below a1: u2 and what grows on it came first, u3 is the head's line.
func forked(t *testing.T) *transcript.Tree {
	return treeOf(t, "a4", "s0<:s high", "u1<s0:u find it", "a1<u1:a found", "u2<a1:u mend it", "r2<u2:r done", "a2<r2:a mended",
		"l1<a2:l a1=green", "u3<a1:u leave it", "s3<u3:s off", "r3<s3:r left", "a4<r3:a fine")
}

// shown is the ids of the rows; the selected one in brackets, a folded one with how many it hides.
func shown(v *view.View) string {
	var b strings.Builder
	for i, r := range v.Rows() {
		word := r.ID
		if r.Folded {
			word += fmt.Sprintf("+%d", r.Hidden)
		}
		if i == v.Selected() {
			word = "[" + word + "]"
		}
		b.WriteString(word + " ")
	}
	return strings.TrimSpace(b.String())
}

func want(t *testing.T, v *view.View, rows string) {
	t.Helper()
	if got := shown(v); got != rows {
		t.Errorf("rows %s\nwant %s", got, rows)
	}
}

func TestTheActiveBranchComesFirst(t *testing.T) {
	v := view.New(forked(t))
	want(t, v, "u1 a1 u3 r3 [a4] u2 r2 a2")
	v = view.New(treeOf(t, "a2", "u1<:u x", "a1<u1:a x", "a2<u1:a x", "a3<u1:a x"))
	want(t, v, "u1 [a2] a1 a3")
	for i, n := range []string{"0 of 1", "2 of 3", "1 of 3", "3 of 3"} {
		r := v.Rows()[i]
		if got := fmt.Sprintf("%d of %d", r.Version, r.Versions); i > 0 && got != n {
			t.Errorf("%s is version %s, want %s", r.ID, got, n)
		}
	}
	want(t, view.New(treeOf(t, "", "u1<:u x", "u2<:u x")), "u1 [u2]")
}

func TestRowsKnowTheirPlace(t *testing.T) {
	v := view.New(forked(t))
	type place struct{ depth, indent, children int }
	for id, w := range map[string]place{
		"u1": {0, 0, 1}, "a1": {1, 0, 2}, "u3": {2, 1, 1}, "a4": {4, 1, 0}, "u2": {2, 1, 1},
	} {
		for _, r := range v.Rows() {
			if got := (place{r.Depth, r.Indent, r.Children}); r.ID == id && got != w {
				t.Errorf("%s: %+v, want %+v", id, got, w)
			}
			if r.ID == "a1" && (r.Label != "green" || r.LabelTime.Second() != 6) {
				t.Errorf("label %q, set %v", r.Label, r.LabelTime)
			}
			if r.ID == "u3" && r.ParentID != "a1" || r.ID == "u1" && r.ParentID != "" {
				t.Errorf("%s hangs on %q", r.ID, r.ParentID)
			}
		}
	}
}

func TestFilterSwitching(t *testing.T) {
	v := view.New(forked(t))
	for f, rows := range map[transcript.Filter]string{
		transcript.FilterNoTools:     "u1 a1 u3 [a4] u2 a2",
		transcript.FilterUserOnly:    "u1 [u3] u2",
		transcript.FilterLabeledOnly: "[a1]",
		"":                           "u1 a1 u3 r3 [a4] u2 r2 a2",
	} {
		v.Select("a4")
		v.Filter(f)
		want(t, v, rows)
		v.Filter("")
	}
}

func TestNearestVisibleAncestor(t *testing.T) {
	v := view.New(forked(t))
	v.Select("a2")
	v.Filter(transcript.FilterUserOnly)
	want(t, v, "u1 u3 [u2]")
	v.Select("s3") // never shown here: its nearest is
	want(t, v, "u1 [u3] u2")
	v.Select("s0") // nothing above it is shown: the last row
	want(t, v, "u1 u3 [u2]")
	if v.Select("nosuch") {
		t.Error("what is not there was selected")
	}
}

func TestEmptyFilterKeepsTheSelection(t *testing.T) {
	v := view.New(treeOf(t, "a1", "u1<:u x", "a1<u1:a x"))
	v.Select("u1")
	v.Filter(transcript.FilterLabeledOnly)
	want(t, v, "")
	if v.Selected() != -1 {
		t.Errorf("row %d of none is selected", v.Selected())
	}
	v.Filter(transcript.FilterDefault)
	want(t, v, "[u1] a1")
	v.Search("no such words")
	want(t, v, "")
	v.Search("")
	want(t, v, "[u1] a1")
}

func TestFoldAndUnfold(t *testing.T) {
	v := view.New(forked(t))
	if !v.Fold("u2") || v.Fold("u2") || v.Fold("a4") || v.Fold("nosuch") {
		t.Error("fold")
	}
	want(t, v, "u1 a1 u3 r3 [a4] u2+2")
	v.Fold("a1") // hides the selection: the folded row has it
	want(t, v, "u1 [a1+6]")
	if !v.Unfold("a1") || v.Unfold("a1") {
		t.Error("unfold")
	}
	want(t, v, "u1 [a1] u3 r3 a4 u2+2") // what was folded below is still
	v.Unfold("u2")
	want(t, v, "u1 [a1] u3 r3 a4 u2 r2 a2")
}

func TestSearchResetsFolds(t *testing.T) {
	v := view.New(forked(t))
	v.Fold("u2")
	v.Search("MENDED")
	want(t, v, "[a2]")
	v.Search("")
	want(t, v, "u1 a1 u3 r3 a4 u2 r2 [a2]")
	v.Fold("u2")
	v.Filter(transcript.FilterNoTools)
	want(t, v, "u1 a1 u3 a4 [u2] a2")
	v.Search("green") // a label's words count
	want(t, v, "[a1]")
	v.Filter("")
	v.Search("it")
	want(t, v, "[u1] u3 u2")
	if r := v.Rows()[2]; r.ParentID != "u1" || r.Versions != 2 {
		t.Errorf("below what is shown: %q, %d versions", r.ParentID, r.Versions)
	}
}

func TestAGrownTreeKeepsTheView(t *testing.T) {
	words := []string{"u1<:u x", "a1<u1:a x", "u2<a1:u x", "a2<u2:a x"}
	v := view.New(treeOf(t, "a1", words[:3]...))
	v.Select("u1")
	v.Fold("a1")
	v.Grown(treeOf(t, "a2", words...))
	want(t, v, "[u1] a1+2")
}

// A chain of 30,000 entries and a fork of as many: no recursion, no square.
func TestLongAndWideTrees(t *testing.T) {
	const n = 30_000
	for name, parent := range map[string]func(i int) int64{
		"chain": func(i int) int64 { return int64(i) - 1 },
		"fork":  func(i int) int64 { return min(int64(i)-1, 0) },
	} {
		b := transcript.NewTreeBuilder()
		for i := range n {
			b.AddRow(codec.Row{ID: fmt.Sprintf("e%06d", i), Parent: parent(i), Type: "message", Role: "user", Preview: "x"})
		}
		v := view.New(b.Tree("e029999", nil, nil))
		v.Fold("e000001")
		v.Search("x")
		if len(v.Rows()) != n {
			t.Errorf("%s: %d rows", name, len(v.Rows()))
		}
	}
}
