package transcript

import (
	"iter"
	"slices"
)

// named returns the parent row that the row i was stored with. It may be wrong: i itself, a row that does not exist, or
// a descendant of i. See parent.
func (t *Tree) named(i uint32) uint32 {
	if i < t.committed {
		return t.parents[i]
	}
	return t.pendingParents[i-t.committed]
}

// parent returns the parent of a row, or noRow for a root, after the corrections of fixParents. ready must have been
// called.
func (t *Tree) parent(i uint32) uint32 {
	if t.fixed != nil {
		return t.fixed[i]
	}
	return t.named(i)
}

// ready corrects the parents of the tree, once, if any may be wrong.
func (t *Tree) ready() {
	if t.irregular {
		t.readyOnce.Do(t.fixParents)
	}
}

// fixParents sets t.fixed to corrected parents. An entry whose parent is itself or does not exist becomes a root. In a
// cycle, the entry with the lowest ordinal becomes a root. A child of a commit becomes a child of the commit's nearest
// ancestor that is an entry. It takes time proportional to the number of rows.
func (t *Tree) fixParents() {
	fixed := make([]uint32, t.n)
	for i := range t.n {
		switch p := t.named(i); {
		case p == i:
			fixed[i] = noRow
			t.odd.Add(t.id(i), uint64(i), DiagSelfParent, detailSelf)
		case p >= t.n && p != noRow:
			fixed[i] = noRow
			t.odd.Add(t.id(i), uint64(i), DiagOrphan, detailOrphan)
		default:
			fixed[i] = p
		}
	}
	walk := make([]uint32, t.n) // start + 1 of the walk that visited the row; 0 = not visited
	for start := range t.n {
		i := start
		for i != noRow && walk[i] == 0 {
			walk[i] = start + 1
			i = fixed[i]
		}
		if i != noRow && walk[i] == start+1 { // the walk has met itself
			first := i
			for j := fixed[i]; j != i; j = fixed[j] {
				first = min(first, j)
			}
			fixed[first] = noRow
			t.odd.Add(t.id(first), uint64(first), DiagCycle, detailCycle)
		}
	}
	t.skipCommits(fixed)
	t.fixed = fixed
}

// skipCommits replaces a parent that is a commit by the nearest entry above it. Chains of commits are
// shortened as they are walked, so the work stays linear.
func (t *Tree) skipCommits(fixed []uint32) {
	for i := range t.n {
		top := fixed[i]
		for top != noRow && t.class(top)&classCommit != 0 {
			top = fixed[top]
		}
		for j := i; fixed[j] != top; {
			j, fixed[j] = fixed[j], top
		}
	}
}

// children returns the rows whose parent is p, commits included, in ordinal order. For p = noRow it returns the roots.
func (t *Tree) children(p uint32) []uint32 {
	t.linksOnce.Do(t.link)
	if p == noRow {
		p = t.n
	}
	return t.kids[t.starts[p]:t.starts[p+1]]
}

// link sets t.kids to all rows sorted by parent and ordinal (a counting sort), and t.starts to the index in t.kids of
// the first child of each row. The roots come last.
func (t *Tree) link() {
	t.ready()
	starts, kids := make([]uint32, t.n+2), make([]uint32, t.n)
	bucket := func(i uint32) uint32 {
		if p := t.parent(i); p != noRow {
			return p
		}
		return t.n
	}
	for i := range t.n {
		starts[bucket(i)+1]++
	}
	for p := range t.n + 1 {
		starts[p+1] += starts[p]
	}
	for i := t.n; i > 0; i-- { // from the back, so that starts ends one bucket early ...
		p := bucket(i - 1)
		starts[p+1]--
		kids[starts[p+1]] = i - 1
	}
	copy(starts, starts[1:]) // ... and is put in its place
	starts[t.n+1] = t.n
	t.starts, t.kids = starts, kids
}

// topDown yields all rows, each parent before its children.
func (t *Tree) topDown() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if !t.irregular {
			for i := range t.n {
				if !yield(i) {
					return
				}
			}
			return
		}
		t.below(noRow, func(i uint32) (bool, bool) { return true, yield(i) })
	}
}

// below visits the descendants of p (all rows if p is noRow) in depth-first order, siblings in ordinal order. visit
// returns whether to visit the descendants of i, and whether to continue at all.
func (t *Tree) below(p uint32, visit func(i uint32) (deeper, on bool)) {
	stack := slices.Clone(t.children(p))
	slices.Reverse(stack)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		deeper, on := visit(i)
		if !on {
			return
		}
		if deeper {
			kids := t.children(i)
			for k := len(kids); k > 0; k-- {
				stack = append(stack, kids[k-1])
			}
		}
	}
}
