package rows_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// The two orders are those that the command line shows: of `coppice tree --full`, lanes included, and of the selector.
func TestRowsAreWhatTheCommandLineShows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(rt, "n")
		b := transcript.NewTreeBuilder()
		for i := range n {
			b.AddRow(drawRow(rt, i, 0))
		}
		head := ""
		if i := rapid.IntRange(-1, n-1).Draw(rt, "head"); i >= 0 {
			head = fmt.Sprintf("%04x", i)
		}
		tree := b.Tree(head, nil, nil)
		filter := rapid.SampledFrom(filters).Draw(rt, "filter")
		v := view.New(tree)
		v.Filter(filter)
		o := rows.Options{Filter: filter, Folds: map[uint64]bool{}}
		for range rapid.IntRange(0, 2).Draw(rt, "folds") {
			o.Folds[uint64(rapid.IntRange(0, n-1).Draw(rt, "fold"))] = true
		}
		var ids []string
		for ord := range o.Folds {
			ids = append(ids, tree.ID(ord))
		}
		v.Fold(ids...)
		sameAsText(rt, tree, must(rows.New(tree, o))(rt), term.TreeOptions{Filter: filter, Full: true, Folds: o.Folds})
		o.Order = rows.ActiveFirst
		sameAsView(rt, tree, must(rows.New(tree, o))(rt), v.Rows())
	})
}

func sameAsText(t *rapid.T, tree *transcript.Tree, r *rows.Rows, o term.TreeOptions) {
	var text bytes.Buffer
	if err := term.Tree(term.New(&text, func(string) string { return "" }), tree, o); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	if r.Len() == 0 && text.Len() == 0 {
		return
	}
	if len(lines) != r.Len() {
		t.Fatalf("%d rows of\n%s", r.Len(), &text)
	}
	i := 0
	for row := range r.At(0, r.Len()) {
		fields := strings.Fields(lines[i])
		lane, _, ok := strings.Cut(strings.ReplaceAll(lines[i], "●", "○"), "○")
		id := fields[len(fields)-1]
		if !ok || !strings.HasPrefix(tree.ID(row.Ordinal), id) || strings.Contains(lines[i], "●") != row.OnPath {
			t.Fatalf("row %d is %+v of\n%s", i, row, &text)
		}
		if columns := term.Columns(lane); columns < 40 && columns != 2*row.Indent {
			t.Fatalf("row %d is %+v, in column %d of\n%s", i, row, columns, &text)
		}
		i++
	}
}

func sameAsView(t *rapid.T, tree *transcript.Tree, r *rows.Rows, want []view.Row) {
	if r.Len() != len(want) {
		t.Fatalf("%d rows, want %d", r.Len(), len(want))
	}
	i := 0
	for got := range r.At(0, r.Len()) {
		w := want[i]
		parent := ""
		if got.HasParent {
			parent = tree.ID(got.Parent)
		}
		if got.Ordinal != w.Ordinal || parent != w.ParentID || got.Depth != w.Depth || got.Indent != w.Indent ||
			got.Children != w.Children || got.Version != w.Version || got.Versions != w.Versions ||
			got.Folded != w.Folded || got.Hidden != w.Hidden || got.OnPath != w.OnPath {
			t.Fatalf("row %d: %+v, want %+v", i, got, w)
		}
		i++
	}
}
