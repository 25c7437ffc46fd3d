package rows_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

var filters = []transcript.Filter{
	transcript.FilterDefault, transcript.FilterNoTools, transcript.FilterUserOnly, transcript.FilterLabeledOnly,
	transcript.FilterAll,
}

// drawRow draws the row of entry i, which mostly hangs on the one before it.
func drawRow(t *rapid.T, i, n int) codec.Row {
	kinds := []codec.Row{
		{Type: "message", Role: "user", Flags: codec.FlagText},
		{Type: "message", Role: "assistant", Flags: codec.FlagText},
		{Type: "message", Role: "assistant", Flags: codec.FlagCalls},
		{Type: "message", Role: "toolResult"},
		{Type: "model_change"},
		{Type: "label", Preview: "good"},
		{Type: "custom", Flags: codec.FlagCommit},
	}
	r := kinds[rapid.IntRange(0, len(kinds)-1).Draw(t, "kind")]
	r.ID, r.Parent = fmt.Sprintf("%04x", i), int64(i)-1
	r.Time = int64(1000 * rapid.IntRange(0, 5).Draw(t, "time"))
	if rapid.IntRange(0, 2).Draw(t, "fork") == 0 {
		r.Parent = rapid.Int64Range(-1, int64(i)-1).Draw(t, "parent")
	}
	if n > 0 {
		r.Parent = rapid.Int64Range(-1, int64(n)-1).Draw(t, "wild")
	}
	if r.Parent == int64(i) {
		r.Parent = -1
	}
	if r.Type == "label" {
		r.Target = fmt.Sprintf("%04x", rapid.IntRange(0, i).Draw(t, "target"))
	}
	return r
}

// model answers the slow and obvious way.
type model struct {
	t    *transcript.Tree
	o    rows.Options
	kids map[int64][]transcript.Node // by ordinal of the nearest shown ancestor, -1 = the roots
	up   map[uint64]int64
	on   map[uint64]bool
	rows []rows.Row
}

func modelOf(t *transcript.Tree, o rows.Options) []rows.Row {
	m := &model{t: t, o: o, kids: map[int64][]transcript.Node{}, up: map[uint64]int64{}, on: map[uint64]bool{}}
	shown := map[uint64]bool{}
	var list []transcript.Node
	for n := range t.Nodes(o.Filter) {
		if o.Found == nil || o.Found[n.Ordinal/64]>>(n.Ordinal%64)&1 == 1 {
			shown[n.Ordinal] = true
			list = append(list, n)
		}
	}
	for _, n := range list {
		up := int64(-1)
		for p, ok := t.Parent(n.Ordinal); ok; p, ok = t.Parent(p) {
			if shown[p] {
				up = int64(p)
				break
			}
		}
		m.up[n.Ordinal] = up
		m.kids[up] = append(m.kids[up], n)
	}
	for _, kids := range m.kids {
		transcript.SortByTime(kids)
	}
	for n := range t.Up(t.Head()) {
		if shown[n.Ordinal] {
			m.on[n.Ordinal] = true
		}
	}
	m.draw(-1, 0, 0)
	return m.rows
}

// draw draws what hangs below an entry.
func (m *model) draw(top int64, depth, indent int) {
	kids := m.kids[top]
	main, side, first := -1, indent+1, false
	for i, k := range kids {
		if m.on[k.Ordinal] {
			main = i
		}
	}
	if m.o.Order == rows.ActiveFirst {
		if first = true; len(kids) < 2 {
			side = indent
		}
		indent = side
	} else {
		if main < 0 && (top < 0 || !m.on[uint64(top)]) {
			main = len(kids) - 1
		}
		if top < 0 {
			side = 0
		}
	}
	if first && main >= 0 {
		m.row(kids, main, depth, indent)
	}
	for i := range kids {
		if i != main {
			m.row(kids, i, depth, side)
		}
	}
	if !first && main >= 0 {
		m.row(kids, main, depth, indent)
	}
}

func (m *model) row(kids []transcript.Node, i, depth, indent int) {
	ord := kids[i].Ordinal
	r := rows.Row{
		Ordinal: ord, Depth: depth, Indent: indent, Children: len(m.kids[int64(ord)]), OnPath: m.on[ord],
		Version: i + 1, Versions: len(kids),
	}
	if p := m.up[ord]; p >= 0 {
		r.Parent, r.HasParent = uint64(p), true
	}
	if r.Folded = m.o.Folds[ord] && r.Children > 0; r.Folded {
		r.Hidden = m.below(int64(ord))
	}
	m.rows = append(m.rows, r)
	if !r.Folded {
		m.draw(int64(ord), depth+1, indent)
	}
}

func (m *model) below(top int64) (n int) {
	for _, k := range m.kids[top] {
		n += 1 + m.below(int64(k.Ordinal))
	}
	return n
}

// Rows of random trees, parents that come later and circles among them, equal the model's.
func TestRowsAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, wild := rapid.IntRange(1, 40).Draw(rt, "n"), 0
		if rapid.IntRange(0, 4).Draw(rt, "is wild") == 0 {
			wild = n
		}
		o := rows.Options{
			Order:  rows.Order(rapid.IntRange(0, 1).Draw(rt, "order")),
			Filter: rapid.SampledFrom(filters).Draw(rt, "filter"), Folds: map[uint64]bool{},
		}
		for range rapid.IntRange(0, 3).Draw(rt, "folds") {
			o.Folds[uint64(rapid.IntRange(0, n-1).Draw(rt, "fold"))] = true
		}
		search := rapid.IntRange(0, 3).Draw(rt, "search") == 0
		b := transcript.NewTreeBuilder()
		for i := range n {
			row := drawRow(rt, i, wild)
			b.AddRow(row)
			if i < n-1 && rapid.IntRange(0, 3).Draw(rt, "skip") == 0 {
				continue
			}
			head := row.ID
			if rapid.IntRange(0, 4).Draw(rt, "elsewhere") == 0 {
				head = fmt.Sprintf("%04x", rapid.IntRange(0, i).Draw(rt, "head"))
			}
			tree := b.Tree(head, nil, nil)
			if o.Found = nil; search {
				o.Found = make([]uint64, i/64+1)
				for k := range i + 1 {
					o.Found[k/64] |= uint64(k%3&1) << (k % 64)
				}
			}
			check(rt, must(rows.New(tree, o))(rt), modelOf(tree, o), tree)
		}
	})
}

func must[T any](v T, err error) func(t *rapid.T) T {
	return func(t *rapid.T) T {
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *rapid.T, r *rows.Rows, want []rows.Row, tree *transcript.Tree) {
	if got := slices.Collect(r.At(0, r.Len())); !slices.Equal(got, want) {
		t.Fatalf("rows\n%+v\nwant\n%+v", got, want)
	}
	at := map[uint64]int{}
	for i, row := range want {
		at[row.Ordinal] = i
	}
	for ord := range uint64(tree.Len() + 1) {
		row, ok := r.IndexOf(ord)
		if want, shown := at[ord]; ok != shown || ok && row != want {
			t.Fatalf("row of %d: %d %v, want %d %v", ord, row, ok, want, shown)
		}
	}
	from, count := rapid.IntRange(-1, len(want)+1).Draw(t, "from"), rapid.IntRange(-1, 10).Draw(t, "count")
	got := slices.Collect(r.At(from, count))
	if from < 0 || from >= len(want) || count <= 0 {
		if len(got) > 0 {
			t.Fatalf("rows from %d: %v", from, got)
		}
	} else if !slices.Equal(got, want[from:min(len(want), from+count)]) {
		t.Fatalf("rows from %d: %+v", from, got)
	}
	n := rapid.IntRange(0, 12).Draw(t, "buckets")
	var next int
	list := r.Buckets(n)
	if len(list) != min(n, len(want)) {
		t.Fatalf("%d buckets of %d", len(list), n)
	}
	for _, b := range list {
		sum := rows.Bucket{From: next, Count: b.Count}
		for _, row := range want[next : next+b.Count] {
			if row.Children > 1 {
				sum.Forks++
			}
			if row.OnPath {
				sum.OnPath++
			}
			sum.Indent = max(sum.Indent, row.Indent)
		}
		if b != sum || b.Count < len(want)/n {
			t.Fatalf("bucket %+v, want %+v", b, sum)
		}
		next += b.Count
	}
	if len(list) > 0 && next != len(want) {
		t.Fatalf("buckets end at %d of %d", next, len(want))
	}
}

// Whatever changes rows changes their key.
func TestKey(t *testing.T) {
	b := transcript.NewTreeBuilder()
	for i := range 3 {
		b.AddRow(codec.Row{ID: fmt.Sprint("e", i), Parent: int64(i) - 1, Type: "message"})
	}
	seen := map[string]rows.Options{}
	for _, head := range []string{"e1", "e2"} {
		for _, o := range []rows.Options{
			{},
			{Order: rows.ActiveFirst},
			{Filter: transcript.FilterAll},
			{Folds: map[uint64]bool{0: true}},
			{Folds: map[uint64]bool{1: true}},
			{Search: "x"},
		} {
			key := must(rows.New(b.Tree(head, nil, nil), o))(nil).Key()
			if other, ok := seen[key]; ok {
				t.Errorf("%+v has the key of %+v", o, other)
			}
			seen[key] = o
		}
	}
	again := must(rows.New(b.Tree("e1", nil, nil), rows.Options{Folds: map[uint64]bool{2: false}}))(nil).Key()
	if o, ok := seen[again]; !ok || len(o.Folds) > 0 {
		t.Error("a fold that is none counts")
	}
}

// longTree is a session of n messages with a fork at every 500th, its head at the end.
func longTree(n int) *transcript.Tree {
	b := transcript.NewTreeBuilder()
	const step = 500 // 2,000 forks of 1,000,000
	for i := range n {
		row := codec.Row{ID: fmt.Sprintf("%08x", i), Parent: int64(i) - 1, Type: "message", Time: 1 + int64(i)}
		if i%step == step-1 {
			row.Parent--
		}
		b.AddRow(row)
	}
	return b.Tree(fmt.Sprintf("%08x", n-1), nil, nil)
}
