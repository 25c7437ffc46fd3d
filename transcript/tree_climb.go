package transcript

import (
	"iter"
	"sync"
)

// climb finds the ancestor of a row at any depth in as many steps as the logarithm of the depth. Besides its depth
// each row has a jump to one ancestor; the lengths of the jumps along a path are those of the skew-binary numbers
// (Myers, An applicative random-access stack, 1983). 8 bytes an entry, made when first asked for.
type climb struct {
	mu    sync.Mutex
	depth []uint32 // append only, as jump: trees may share what is there
	jump  []uint32 // of a root itself
}

// grow adds rows up to n, parents of which parent returns: of rows before n, also of ones that come later.
func (x *climb) grow(n uint32, parent func(i uint32) uint32) {
	const unset = noRow
	from := uint32(len(x.depth))
	for i := from; i < n; i++ {
		x.depth, x.jump = append(x.depth, unset), append(x.jump, i)
	}
	var way []uint32 // to a row that comes after its children
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

// heights makes depth and jump of the tree: of the committed rows those that all trees of the builder share, unless
// parents of this one had to be put right.
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

// Depth returns how many entries are above one on its path: 0 for a root. false: there is no such entry. The
// first call of this method or of Ancestor makes an index of 8 bytes an entry, which later trees of the session
// share.
func (t *Tree) Depth(ordinal uint64) (depth int, ok bool) {
	if ordinal >= uint64(t.n) {
		return 0, false
	}
	t.climbOnce.Do(t.heights)
	return int(t.depth[ordinal]), true
}

// Ancestor returns the ordinal of the entry that is at a depth on the path to an entry, which is its own ancestor at
// its own depth. It takes at most three times the logarithm of the depth in steps. false: there is none so deep, or no
// such entry.
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

// isOnPath reports whether a row is on the way from the head to its root.
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

// markPath marks the rows on the way from the head to its root, for passes: a bit for each row.
func (t *Tree) markPath() {
	marks := make([]uint64, t.n/64+1)
	for i := t.headRow(); i != noRow; i = t.parent(i) {
		marks[i/64] |= 1 << (i % 64)
	}
	t.onPath.Store(&marks)
}

// HeadOrdinal returns the ordinal of the head. false: there is none, or it is not in the tree. It makes no index by id
// where the head is one of the last entries.
func (t *Tree) HeadOrdinal() (uint64, bool) {
	i := t.headRow()
	return uint64(i), i != noRow
}

// headRow returns the row of the head.
func (t *Tree) headRow() uint32 {
	t.headOnce.Do(func() {
		t.headOrd = noRow
		if t.head == "" {
			return
		}
		// The head is nearly always among the last: no need of an index then.
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

// pathBlock is how many rows of a path are held at once.
const pathBlock = 512

// Path returns the entries from the root to leaf, leaf included. A node is made when it is yielded, in addition 2 KiB
// are held; the first call makes the index of Depth.
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

// Up returns the entries from one to its root, itself first. A node is made when it is yielded; nothing else is held.
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

// Down returns the ordinals on the path to an entry, itself last, from the one at this depth on: of an entry that is
// not there, and below its depth, none. It holds 2 KiB.
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

// down is Down, block by block: the end of each is found by jumps, and from there it is filled upwards.
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
