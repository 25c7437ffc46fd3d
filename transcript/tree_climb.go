package transcript

import (
	"iter"
	"sync"
)

// climb is an index that finds the ancestor of a row at a given depth in O(log depth) steps. It holds, for each row,
// the depth and a jump: the row of one ancestor. The lengths of the jumps along a path follow the skew-binary numbers
// (Myers, An applicative random-access stack, 1983). The index takes 8 bytes per row and is built on first use.
type climb struct {
	mu    sync.Mutex
	depth []uint32 // number of ancestors of each row; append-only, like jump, because trees share the elements
	jump  []uint32 // row of an ancestor; a root jumps to itself
}

// grow extends the index to n rows. parent returns the parent row of a row below n, or noRow for a root. A parent may
// have a higher row number than its child.
func (x *climb) grow(n uint32, parent func(i uint32) uint32) {
	const unset = noRow
	from := uint32(len(x.depth))
	for i := from; i < n; i++ {
		x.depth, x.jump = append(x.depth, unset), append(x.jump, i)
	}
	var way []uint32 // rows from i upwards whose depth is not known yet
	for i := from; i < n; i++ {
		for j := i; j != noRow && x.depth[j] == unset; j = parent(j) {
			way = append(way, j)
		}
		for ; len(way) > 0; way = way[:len(way)-1] {
			j := way[len(way)-1]
			p := parent(j)
			if p == noRow {
				x.depth[j] = 0
				continue
			}
			x.depth[j], x.jump[j] = x.depth[p]+1, p
			if far := x.jump[p]; x.depth[p]-x.depth[far] == x.depth[far]-x.depth[x.jump[far]] {
				x.jump[j] = x.jump[far]
			}
		}
	}
}

// heights sets t.depth and t.jump. All trees of one builder share the index of the committed rows. A tree whose parents
// were corrected (t.fixed) builds an index of its own.
func (t *Tree) heights() {
	t.ready()
	if t.fixed != nil {
		var own climb
		own.grow(t.n, t.parent)
		t.depth, t.jump = own.depth, own.jump
		return
	}
	t.shared.mu.Lock()
	defer t.shared.mu.Unlock()
	if uint32(len(t.shared.depth)) < t.committed {
		t.shared.grow(t.committed, t.parent)
	}
	all := climb{depth: t.shared.depth[:t.committed:t.committed], jump: t.shared.jump[:t.committed:t.committed]}
	if t.n > t.committed {
		all.grow(t.n, t.parent)
	}
	t.depth, t.jump = all.depth, all.jump
}

// Depth returns the number of ancestors of an entry: 0 for a root. ok is false if the tree has no such entry. The first
// call of Depth or Ancestor builds an index of 8 bytes per entry, which later trees of the session share.
func (t *Tree) Depth(ordinal uint64) (depth int, ok bool) {
	if ordinal >= uint64(t.n) {
		return 0, false
	}
	t.climbOnce.Do(t.heights)
	return int(t.depth[ordinal]), true
}

// Ancestor returns the ordinal of the entry at the given depth on the path from the root to an entry. At the depth of
// the entry itself that is the entry. It takes at most 3 log2(depth) steps. It returns false if the tree has no such
// entry, or if depth is negative or greater than that of the entry.
func (t *Tree) Ancestor(ordinal uint64, depth int) (uint64, bool) {
	have, ok := t.Depth(ordinal)
	if !ok || depth < 0 || depth > have {
		return 0, false
	}
	return uint64(t.ancestor(uint32(ordinal), uint32(depth))), true
}

func (t *Tree) ancestor(i, depth uint32) uint32 {
	for t.depth[i] > depth {
		if far := t.jump[i]; t.depth[far] >= depth {
			i = far
		} else {
			i = t.parent(i)
		}
	}
	return i
}

// isOnPath reports whether a row is on the path from the root to the head, both included.
func (t *Tree) isOnPath(i uint32) bool {
	if marks := t.onPath.Load(); marks != nil {
		return (*marks)[i/64]>>(i%64)&1 == 1
	}
	head := t.headRow()
	if head == noRow {
		return false
	}
	t.climbOnce.Do(t.heights)
	return t.depth[i] <= t.depth[head] && t.ancestor(head, t.depth[i]) == i
}

// markPath sets t.onPath: one bit for each row, set for the rows on the path from the root to the head. A pass over the
// whole tree uses it in place of the index.
func (t *Tree) markPath() {
	marks := make([]uint64, t.n/64+1)
	for i := t.headRow(); i != noRow; i = t.parent(i) {
		marks[i/64] |= 1 << (i % 64)
	}
	t.onPath.Store(&marks)
}

// HeadOrdinal returns the ordinal of the head. It returns false if the session has no head, or if the tree does not
// contain it. It builds no index by id if the head is among the last 64 entries.
func (t *Tree) HeadOrdinal() (uint64, bool) {
	i := t.headRow()
	return uint64(i), i != noRow
}

// headRow returns the row of the head, or noRow.
func (t *Tree) headRow() uint32 {
	t.headOnce.Do(func() {
		t.headOrd = noRow
		if t.head == "" {
			return
		}
		// The head is nearly always among the last rows. A scan of those avoids the index by id.
		const near = 64
		i, ok := noRow, false
		if len(t.pending.rows) == 0 {
			i, ok = t.lookBack([]byte(t.head), near)
		}
		if !ok {
			i, ok = t.lookup(t.head)
		}
		if ok {
			t.ready()
			t.headOrd = i
		}
	})
	return t.headOrd
}

// pathBlock is the number of rows of a path that are in memory at a time.
const pathBlock = 512

// Path yields the entries from the root to leaf, both included; nothing if the tree has no such entry. Besides the node
// that it yields it holds 2 KiB. The first call builds the index of Depth.
func (t *Tree) Path(leaf string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		last, err := t.find(leaf)
		if err != nil {
			return
		}
		t.climbOnce.Do(t.heights)
		p := t.newPass()
		parent := noRow
		for i := range t.down(last, 0) {
			if !yield(p.node(i, parent)) {
				return
			}
			parent = i
		}
	}
}

// Up yields the entry from and its ancestors up to the root; nothing if the tree has no such entry. It holds one node
// at a time.
func (t *Tree) Up(from string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		i, err := t.find(from)
		if err != nil {
			return
		}
		t.ready()
		for p := (&pass{t: t, labelled: true}); i != noRow; i = t.parent(i) {
			if !yield(p.node(i, t.parent(i))) {
				return
			}
		}
	}
}

// Down yields the ordinals on the path from the ancestor at the given depth to the entry to, both included. It yields
// nothing if the tree has no such entry, or if depth is negative or greater than that of the entry. It holds 2 KiB.
func (t *Tree) Down(to uint64, depth int) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		if have, ok := t.Depth(to); !ok || depth < 0 || depth > have {
			return
		}
		for i := range t.down(uint32(to), uint32(depth)) {
			if !yield(uint64(i)) {
				return
			}
		}
	}
}

// down is Down by rows. It works block by block: jumps find the last row of a block, and parents lead from there to its
// first row.
func (t *Tree) down(to, depth uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		var block [pathBlock]uint32
		for end := t.depth[to] + 1; depth < end; {
			n := min(end-depth, pathBlock)
			i := t.ancestor(to, depth+n-1)
			for k := n; k > 0; k-- {
				block[k-1], i = i, t.parent(i)
			}
			for _, j := range block[:n] {
				if !yield(j) {
					return
				}
			}
			depth += n
		}
	}
}
