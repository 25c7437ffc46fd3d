package view_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// marked lists what rows carry which marks.
func marked(v *view.View) string {
	var out []string
	for _, r := range v.Rows() {
		for _, m := range r.Marks {
			name := m.Branch
			if name == "" {
				name = "head"
			}
			out = append(out, fmt.Sprintf("%s:%s@%s", r.ID, name, m.Entry))
		}
	}
	return strings.Join(out, " ")
}

// If the head or a branch is at a hidden entry, its nearest shown ancestor has the mark.
func TestMarksStandOnWhatIsShown(t *testing.T) {
	b := transcript.NewTreeBuilder()
	for _, r := range []codec.Row{
		{ID: "s0", Parent: codec.NoParent, Type: "model_change"},
		{ID: "u1", Parent: 0, Type: "message", Role: "user"},
		{ID: "a1", Parent: 1, Type: "message", Role: "assistant"},
		{ID: "k1", Parent: 2, Type: "custom"},
		{ID: "k2", Parent: 3, Type: "custom"},
		{ID: "u2", Parent: 2, Type: "message", Role: "user"},
		{ID: "l1", Parent: 2, Type: "label", Target: "u1", Preview: "kept"},
	} {
		b.AddRow(r)
	}
	branches := []transcript.Branch{
		{Name: "main", Head: "k2"},
		{Name: "side", Head: "u2"},
		{Name: "start", Head: "s0"},
		{Name: "empty"},
	}
	v := view.New(b.Tree("k2", branches, nil))
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "a1:head@k2 a1:main@k2 u2:side@u2"},
		{func() { v.Filter(transcript.FilterUserOnly) }, "u1:head@k2 u1:main@k2 u2:side@u2"},
		{func() { v.Filter(transcript.FilterLabeledOnly) }, "u1:head@k2 u1:main@k2 u1:side@u2"},
		{func() { v.Filter(transcript.FilterAll) }, "s0:start@s0 k2:head@k2 k2:main@k2 u2:side@u2"},
		{func() { v.Fold("k1") }, "s0:start@s0 k1:head@k2 k1:main@k2 u2:side@u2"},
		{func() { v.Unfold("k1"); v.Search("no such words") }, ""},
	} {
		step.do()
		if got := marked(v); got != step.want {
			t.Errorf("marks %s, want %s", got, step.want)
		}
	}
}

// A view searches whole texts where it is given them, keeps what it found as filters change, and looks at the previews of
// what comes later.
func TestSearchInWholeTexts(t *testing.T) {
	far := strings.Repeat("語", 40)
	words := []string{"u1<:u " + far + " needle", "a1<u1:a no", "u2<a1:u needle"}
	v := view.New(treeOf(t, "u2", words...))
	v.Search("needle")
	want(t, v, "[u2]")
	texts := func(end error) func(func(transcript.Entry, error) bool) {
		return func(yield func(transcript.Entry, error) bool) {
			raw := fmt.Sprintf(`{"type":"message","id":"u1","message":{"role":"user","content":"%s needle"}}`, far)
			if yield(transcript.Entry{Ordinal: 0, Type: "message", Raw: []byte(raw)}, nil) && end != nil {
				yield(transcript.Entry{}, end)
			}
		}
	}
	v.Fold("u2")
	if err := v.SearchIn("needle", texts(errors.New("gone"))); err == nil {
		t.Error("no error")
	}
	want(t, v, "[u2]")
	if err := v.SearchIn("needle", texts(nil)); err != nil {
		t.Fatal(err)
	}
	want(t, v, "u1 [u2]")
	v.Filter(transcript.FilterAll)
	want(t, v, "u1 [u2]")
	v.Grown(treeOf(t, "a3", append(words, "a3<u2:a a needle again", "a4<u2:a nothing")...))
	want(t, v, "u1 [u2] a3")
	v.Search("needle")
	want(t, v, "[u2] a3")
	if err := v.SearchIn("", texts(nil)); err != nil {
		t.Fatal(err)
	}
	want(t, v, "u1 a1 [u2] a3 a4")
}

// The line of the head comes first, the others by their times; versions are counted by time.
func TestOthersAreOldestFirst(t *testing.T) {
	b := transcript.NewTreeBuilder()
	row := func(id string, parent, ms int64) {
		b.AddRow(codec.Row{ID: id, Parent: parent, Type: "message", Role: "user", Time: ms})
	}
	row("u1", codec.NoParent, 1000)
	row("a", 0, 5000)
	row("b", 0, 4000)
	row("c", 0, 0) // behind b
	row("d", 0, 2000)
	row("e", codec.NoParent, 500)
	v := view.New(b.Tree("a", nil, nil))
	want(t, v, "u1 [a] d b c e")
	var got []string
	for _, r := range v.Rows() {
		got = append(got, fmt.Sprintf("%s %d/%d", r.ID, r.Version, r.Versions))
	}
	if s, want := strings.Join(got, ", "), "u1 2/2, a 4/4, d 1/4, b 2/4, c 3/4, e 1/2"; s != want {
		t.Errorf("versions %s, want %s", s, want)
	}
}

// A thousand branches that end on one long line of hidden entries: no way is walked twice.
func TestMarksAreLinear(t *testing.T) {
	const n, heads = 20_000, 1_000
	b := transcript.NewTreeBuilder()
	var branches []transcript.Branch
	for i := range n {
		b.AddRow(codec.Row{ID: fmt.Sprintf("e%06d", i), Parent: int64(i) - 1, Type: "custom"})
		if i >= n-heads {
			branches = append(branches, transcript.Branch{Name: fmt.Sprint(i), Head: fmt.Sprintf("e%06d", i)})
		}
	}
	asked := 0
	marks := view.Marks(b.Tree("e019999", branches, nil), func(ordinal uint64) bool { asked++; return ordinal == 7 })
	if len(marks) != 1 || len(marks[7]) != heads+1 || asked > n {
		t.Errorf("marks on %d entries, %d on one, %d entries were asked for", len(marks), len(marks[7]), asked)
	}
}

// Several entries are folded at once, one below the other too.
func TestFoldSeveral(t *testing.T) {
	v := view.New(forked(t))
	if !v.Fold("u2", "nosuch", "a4", "u3", "a1") || v.Fold("u2", "a1") {
		t.Error("fold")
	}
	want(t, v, "u1 [a1+6]")
	if !v.Unfold("a1", "u3") {
		t.Error("unfold")
	}
	want(t, v, "u1 [a1] u3+2 u2+2")
}
