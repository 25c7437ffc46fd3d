package transcript

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/codec"
)

// model answers the tree's questions the slow and obvious way, for rows without circles.
type model []codec.Row

func (m model) commit(i int) bool { return m[i].Flags&codec.FlagCommit != 0 }
func (m model) hidden(i int) bool {
	return m.commit(i) || classOf(m[i].Type, m[i].Role)&classHidden != 0
}
func (m model) aside(i int) bool { return m[i].Type == "label" || m[i].Type == "leaf" }

func (m model) parent(i int) int {
	p := int(m[i].Parent)
	for p >= 0 && m.commit(p) {
		p = int(m[p].Parent)
	}
	return p
}

func (m model) visibleParent(i int) int {
	p := m.parent(i)
	for p >= 0 && m.hidden(p) {
		p = m.parent(p)
	}
	return p
}

func (m model) under(i, top int) bool {
	for ; i >= 0; i = m.parent(i) {
		if i == top {
			return true
		}
	}
	return top < 0
}

func (m model) siblings(i int) (list []int) {
	for j := range m {
		if !m.hidden(j) && m.visibleParent(j) == m.visibleParent(i) {
			list = append(list, j)
		}
	}
	return list
}

// newest: the last entry below top that counts and has none below it that counts.
func (m model) newest(top int) int {
	best := top
	found := false
	for i := range m {
		if m.commit(i) || m.aside(i) || !m.under(i, top) {
			continue
		}
		leaf := true
		for j := range m {
			if j != i && !m.commit(j) && !m.aside(j) && m.under(j, i) {
				leaf = false
			}
		}
		if leaf && (!found || i > best) {
			best, found = i, true
		}
	}
	return best
}

func (m model) commitOn(i int) int {
	before := len(m)
	for {
		best := -1
		for j := range m {
			if m.commit(j) && m.parent(j) == i && j < before {
				best = j
			}
		}
		if best >= 0 || i < 0 {
			return best
		}
		i, before = m.parent(i), i
	}
}

// drawRows draws rows whose parents may come earlier or later, without circles.
func drawRows(t *rapid.T) []codec.Row {
	names := []string{"user", "asst", "calls", "res", "model", "cust", "label", "leaf", "cmt", "new"}
	n := rapid.IntRange(1, 40).Draw(t, "n")
	order := make([]int, n) // a parent has a smaller order
	for i := range order {
		order[i] = i
	}
	if rapid.Bool().Draw(t, "forward") {
		order = rapid.Permutation(order).Draw(t, "order")
	}
	rows := make([]codec.Row, n)
	for i := range rows {
		k := rowKinds[rapid.SampledFrom(names).Draw(t, "kind")]
		rows[i] = codec.Row{ID: fmt.Sprintf("%04x", i), Parent: codec.NoParent, Type: k.typ, Role: k.role, Flags: k.flags, Preview: fmt.Sprint("p", i)}
		if p := rapid.IntRange(-1, n-1).Draw(t, "parent"); p >= 0 && order[p] < order[i] {
			rows[i].Parent = int64(p)
		}
		if k.typ == "label" {
			rows[i].Target = fmt.Sprintf("%04x", rapid.IntRange(0, n-1).Draw(t, "target"))
		}
	}
	return rows
}

func TestTreeAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := model(drawRows(rt))
		packed := rapid.IntRange(0, len(m)).Draw(rt, "packed")
		single := rapid.IntRange(0, len(m)-packed).Draw(rt, "single")
		head := rapid.IntRange(0, len(m)-1).Draw(rt, "head")
		tree := treeOf(t, m[head].ID, m, packed, single)

		seen := map[string]bool{"": true}
		count := 0
		for n := range tree.Nodes(FilterAll) {
			if !seen[n.ParentID] {
				rt.Fatalf("%s comes before its parent %s", n.ID, n.ParentID)
			}
			seen[n.ID] = true
			count++
			if got, want := n.OnPath, !m.commit(head) && m.under(head, int(n.Ordinal)); got != want {
				rt.Fatalf("%s on the path: %v, want %v", n.ID, got, want)
			}
		}
		checkVersions(rt, tree, m)
		for i := range m {
			if c, ok := tree.CommitOn(uint64(i)); !m.commit(i) && (ok != (m.commitOn(i) >= 0) || ok && int(c) != m.commitOn(i)) {
				rt.Fatalf("commit on %d: %d %v, want %d", i, c, ok, m.commitOn(i))
			}
			if m.commit(i) {
				count++
				continue
			}
			if n, ok := tree.Newest(m[i].ID); !ok || int(n.Ordinal) != m.newest(i) {
				rt.Fatalf("newest below %d: %d, want %d", i, n.Ordinal, m.newest(i))
			}
			nodes, at := tree.Siblings(m[i].ID)
			var got []int
			for _, n := range nodes {
				got = append(got, int(n.Ordinal))
			}
			switch {
			case m.hidden(i):
				if nodes != nil || at != -1 {
					rt.Fatalf("structure %d has versions %v", i, got)
				}
			case !slices.Equal(got, m.siblings(i)) || got[at] != i:
				rt.Fatalf("siblings of %d: %v at %d, want %v", i, got, at, m.siblings(i))
			}
		}
		if count != len(m) {
			rt.Fatalf("%d of %d rows seen", count, len(m))
		}
	})
}

// checkVersions compares the versions of all entries at once with those of each.
func checkVersions(t *rapid.T, tree *Tree, m model) {
	at := 0
	for v := range tree.VersionsAt(func(yield func(uint64) bool) {
		for i := 0; i <= len(m) && yield(uint64(i)); i++ { // one more than there are
		}
	}) {
		if i := at; i == len(m) || m.hidden(i) {
			if v.Ordinals != nil || v.At != -1 || v.Children != 0 {
				t.Fatalf("%d has versions %v", i, v)
			}
		} else {
			next := 0
			for j := range m {
				if !m.hidden(j) && m.visibleParent(j) == i {
					next++
				}
			}
			var got []int
			for _, ord := range v.Ordinals {
				got = append(got, int(ord))
			}
			if !slices.Equal(got, m.siblings(i)) || got[v.At] != i || v.Children != next {
				t.Fatalf("versions of %d: %v at %d with %d below, want %v with %d", i, got, v.At, v.Children, m.siblings(i), next)
			}
		}
		at++
	}
	if at != len(m)+1 {
		t.Fatalf("%d of %d were yielded", at, len(m)+1)
	}
}

// Whatever the parents are, everything ends and every entry is there once.
func TestTreeAnyParents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := drawRows(rt)
		for i := range rows {
			rows[i].Parent = rapid.Int64Range(-1, int64(len(rows))).Draw(rt, "wild")
			if rows[i].Parent == int64(i) {
				rows[i].Parent = -1
			}
		}
		tree := treeOf(t, rows[0].ID, rows, rapid.IntRange(0, len(rows)).Draw(rt, "packed"), 0)
		seen := map[uint64]bool{}
		for n := range tree.Nodes(FilterAll) {
			if seen[n.Ordinal] {
				rt.Fatalf("%d comes twice", n.Ordinal)
			}
			seen[n.Ordinal] = true
			tree.Newest(n.ID)
			tree.Siblings(n.ID)
			if p := slices.Collect(tree.Path(n.ID)); p[len(p)-1].ID != n.ID || p[0].ParentID != "" {
				rt.Fatalf("path of %s: %s", n.ID, forest(p))
			}
		}
		for i, r := range rows {
			if r.Flags&codec.FlagCommit == 0 && !seen[uint64(i)] {
				rt.Fatalf("%d is nowhere", i)
			}
			tree.CommitOn(uint64(i))
		}
	})
}
