package transcript

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
)

// Path, Up, Depth, Ancestor and Down agree with parents followed one by one, whatever parents the rows name, in trees
// of a builder that grows between them, and in older trees too.
func TestPathsAgainstParents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawRows(rt)
		if rapid.Bool().Draw(rt, "wild") {
			for i := range rows {
				if rows[i].Parent = rapid.Int64Range(-1, int64(len(rows))).Draw(rt, "to"); rows[i].Parent == int64(i) {
					rows[i].Parent = -1
				}
			}
		}
		b, from := NewTreeBuilder(), 0
		var trees []*Tree
		for from < len(rows) {
			n := rapid.IntRange(1, len(rows)-from).Draw(rt, "rows")
			if rapid.Bool().Draw(rt, "packed") {
				if err := b.AddSkeleton(skeletonOf(t, from, rows[from:from+n])); err != nil {
					rt.Fatal(err)
				}
			} else {
				for _, r := range rows[from : from+n] {
					b.AddRow(r)
				}
			}
			from += n
			pending := rapid.IntRange(0, len(rows)-from).Draw(rt, "pending")
			head := rapid.IntRange(0, from+pending-1).Draw(rt, "head")
			trees = append(trees, b.Tree(rows[head].ID, nil, rows[from:from+pending]))
		}
		for _, i := range rapid.Permutation(indexes(len(trees))).Draw(rt, "order") {
			checkPaths(rt, trees[i])
		}
	})
}

func indexes(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func checkPaths(t *rapid.T, tree *Tree) {
	head, headErr := tree.Ordinal(tree.Head())
	above := map[uint64]bool{}
	for ok := headErr == nil; ok; head, ok = tree.Parent(head) {
		above[head] = true
	}
	for i := range uint64(tree.Len()) {
		var want []uint64
		for j, ok := i, true; ok; j, ok = tree.Parent(j) {
			want = append(want, j)
		}
		slices.Reverse(want)
		if d, ok := tree.Depth(i); !ok || d != len(want)-1 {
			t.Fatalf("depth of %d: %d, path %v", i, d, want)
		}
		for d := range want {
			if at, ok := tree.Ancestor(i, d); !ok || at != want[d] {
				t.Fatalf("ancestor of %d at %d: %d, path %v", i, d, at, want)
			}
			if got := slices.Collect(tree.Down(i, d)); !slices.Equal(got, want[d:]) {
				t.Fatalf("down to %d from %d: %v, path %v", i, d, got, want)
			}
		}
		if _, ok := tree.Ancestor(i, len(want)); ok {
			t.Fatalf("%d is its own child", i)
		}
		if n := tree.NodeAt(i); n.OnPath != above[i] || n.ID != tree.ID(i) || n.Size != tree.Size(i) {
			t.Fatalf("%+v; on the path: %v", n, above)
		}
		if tree.IsCommit(i) {
			continue
		}
		path := slices.Collect(tree.Path(tree.ID(i)))
		up := slices.Collect(tree.Up(tree.ID(i)))
		slices.Reverse(up)
		if !slices.Equal(path, up) || len(path) != len(want) {
			t.Fatalf("path of %d: %v, up %v, want %v", i, path, up, want)
		}
		for k, n := range path {
			if n != tree.NodeAt(want[k]) {
				t.Fatalf("%+v instead of %+v", n, tree.NodeAt(want[k]))
			}
		}
	}
	for n := range tree.Nodes(FilterAll) { // marks the path for what follows
		if n != tree.NodeAt(n.Ordinal) {
			t.Fatalf("%+v instead of %+v", n, tree.NodeAt(n.Ordinal))
		}
	}
}

// From the end of a chain every ancestor is reached in three times the logarithm of its length.
func TestAncestorSteps(t *testing.T) {
	const n, most = 1 << 16, 3 * 16
	b := NewTreeBuilder()
	for i := range n {
		b.AddRow(codec.Row{Parent: int64(i) - 1, Type: "message"})
	}
	tree := b.Tree("", nil, nil)
	tree.climbOnce.Do(tree.heights)
	for depth := range uint32(n) {
		steps := 0
		for i := uint32(n - 1); tree.depth[i] > depth; steps++ {
			if far := tree.jump[i]; tree.depth[far] >= depth {
				i = far
			} else {
				i = tree.parent(i)
			}
		}
		if steps > most {
			t.Fatalf("%d steps to depth %d", steps, depth)
		}
	}
}
