package transcript

import (
	"fmt"
	"slices"
	"sort"

	"github.com/coppice-go/coppice/codec"
)

// noRow is no ordinal: the parent of a root. A tree holds at most noRow-1 entries.
const noRow = ^uint32(0)

// chunk is a run of consecutive rows, packed or plain.
type chunk struct {
	first uint32
	sk    *codec.Skeleton
	rows  []codec.Row
}

// notes are the rows that diagnostics speak of: the first of them, and how many more.
type notes struct {
	rows []uint32
	more int
}

func (n *notes) add(i uint32, flags uint8) {
	switch {
	case flags&(codec.FlagOrphan|codec.FlagDiagnosed) == 0:
	case len(n.rows) < MaxDiagnostics:
		n.rows = append(n.rows, i)
	default:
		n.more++
	}
}

// sealRows is how many single rows are gathered before they are packed.
const sealRows = 256

// TreeBuilder gathers the rows of a session in ordinal order and returns trees of them. Rows stay packed as
// the skeletons that they came in; in addition it keeps 5 bytes an entry. One goroutine at a time may use
// a builder; the trees that it gave are not disturbed by what is added later.
type TreeBuilder struct {
	chunks    []chunk // append only, so that trees may share it; the same holds for all slices here
	rows      []codec.Row
	parents   []uint32
	classes   []class
	labels    []uint32
	amends    []uint32
	noted     notes
	irregular bool // a parent that comes later, or a commit as a parent
	ids       *idIndex
	shared    *climb
}

// NewTreeBuilder returns a builder without rows.
func NewTreeBuilder() *TreeBuilder { return &TreeBuilder{ids: newIDIndex(), shared: &climb{}} }

// Len is the number of rows: the ordinal of the next one.
func (b *TreeBuilder) Len() int { return len(b.parents) }

// AddSkeleton adds the rows of a skeleton, which must start at Len. The skeleton is kept, not copied.
func (b *TreeBuilder) AddSkeleton(sk *codec.Skeleton) error {
	n, count := uint64(len(b.parents)), sk.Len()
	if sk.First() != n {
		return fmt.Errorf("add skeleton: it starts at ordinal %d, the tree ends at %d", sk.First(), n)
	}
	if n+uint64(count) >= uint64(noRow) {
		return fmt.Errorf("add skeleton: %d entries and %d more: over the limit of %d", n, count, noRow-1)
	}
	b.seal()
	b.parents = slices.Grow(b.parents, count)
	b.classes = slices.Grow(b.classes, count)
	kinds := make([]class, sk.Kinds())
	for k := range kinds {
		kinds[k] = classOf(sk.KindAt(k))
	}
	for i := range count {
		flags := sk.Flags(i)
		b.add(sk.Parent(i), flagClass(kinds[sk.KindIndex(i)], flags), flags)
	}
	b.chunks = append(b.chunks, chunk{first: uint32(n), sk: sk})
	return nil
}

// AddRow adds one row, whose ordinal is Len.
func (b *TreeBuilder) AddRow(r codec.Row) {
	if len(b.parents) >= int(noRow)-1 {
		return // as many as a tree can hold; a session of 4 billion entries has failed long before
	}
	b.add(r.Parent, flagClass(classOf(r.Type, r.Role), r.Flags), r.Flags)
	if b.rows = append(b.rows, r); len(b.rows) >= sealRows {
		b.seal()
	}
}

// seal packs the single rows. Rows that cannot be packed stay as they are.
func (b *TreeBuilder) seal() {
	if len(b.rows) == 0 {
		return
	}
	first := len(b.parents) - len(b.rows)
	c := chunk{first: uint32(first), rows: b.rows}
	if p, err := codec.EncodeSkeleton(uint64(first), b.rows); err == nil {
		if sk, err := codec.DecodeSkeleton(p); err == nil {
			c.sk, c.rows = sk, nil
		}
	}
	b.chunks = append(b.chunks, c)
	b.rows = nil
}

func (b *TreeBuilder) add(parent int64, c class, flags uint8) {
	i := uint32(len(b.parents))
	p := ordinalOf(parent)
	if p != noRow && (p >= i || b.classes[p]&classCommit != 0) {
		b.irregular = true // forward, to itself, or to a commit: Tree.ready puts it right
	}
	b.noted.add(i, flags)
	if c&classLabel != 0 {
		b.labels = append(b.labels, i)
	}
	if c&classAmend != 0 {
		b.amends = append(b.amends, i)
	}
	b.parents = append(b.parents, p)
	b.classes = append(b.classes, c)
}

func ordinalOf(parent int64) uint32 {
	if parent < 0 || parent >= int64(noRow) {
		return noRow
	}
	return uint32(parent)
}

// Tree returns the tree of this moment. head is the id of the entry at which the conversation is, ""
// = none; pending rows are not committed yet: they follow the committed ones, their ordinals continue
// from Len, and their parents are ordinals of either kind.
func (b *TreeBuilder) Tree(head string, branches []Branch, pending []codec.Row) *Tree {
	n := len(b.parents)
	t := &Tree{
		head: head, branches: slices.Clone(branches),
		chunks: slices.Clip(b.chunks), tail: chunk{first: uint32(n - len(b.rows)), rows: slices.Clip(b.rows)},
		pending: chunk{first: uint32(n), rows: slices.Clone(pending[:min(len(pending), int(noRow)-1-n)])},
		parents: slices.Clip(b.parents), classes: slices.Clip(b.classes), labels: slices.Clip(b.labels),
		amends: slices.Clip(b.amends),
		noted:  notes{rows: slices.Clip(b.noted.rows), more: b.noted.more}, irregular: b.irregular,
		ids: b.ids, shared: b.shared, committed: uint32(n),
	}
	t.n = uint32(n + len(t.pending.rows))
	if len(t.pending.rows) > 0 {
		t.addPending()
	}
	return t
}

// addPending notes parents and classes of the pending rows, in slices of the tree's own.
func (t *Tree) addPending() {
	for k := range t.pending.rows {
		r := &t.pending.rows[k]
		p := ordinalOf(r.Parent)
		if p != noRow && (p >= t.committed+uint32(k) || t.class(p)&classCommit != 0) {
			t.irregular = true
		}
		t.noted.add(t.committed+uint32(k), r.Flags)
		c := flagClass(classOf(r.Type, r.Role), r.Flags)
		if c&classAmend != 0 {
			t.amends = append(t.amends, t.committed+uint32(k))
		}
		t.pendingParents = append(t.pendingParents, p)
		t.pendingClasses = append(t.pendingClasses, c)
	}
}

// at returns the chunk that holds a row, and the row's place in it.
func (t *Tree) at(i uint32) (c *chunk, k int) {
	if i >= t.committed {
		return &t.pending, int(i - t.committed)
	}
	if i >= t.tail.first {
		return &t.tail, int(i - t.tail.first)
	}
	j := sort.Search(len(t.chunks), func(j int) bool { return t.chunks[j].first > i }) - 1
	return &t.chunks[j], int(i - t.chunks[j].first)
}

func (c *chunk) len() int {
	if c.sk != nil {
		return c.sk.Len()
	}
	return len(c.rows)
}

func (c *chunk) appendID(dst []byte, k int) []byte {
	if c.sk != nil {
		return c.sk.AppendID(dst, k)
	}
	return append(dst, c.rows[k].ID...)
}

// appendPackedID appends what the index by id is built from.
func (c *chunk) appendPackedID(dst []byte, k int) []byte {
	if c.sk != nil {
		return c.sk.AppendPackedID(dst, k)
	}
	return c.rows[k].AppendPackedID(dst)
}

func (c *chunk) row(k int) codec.Row {
	if c.sk != nil {
		return c.sk.Row(k)
	}
	return c.rows[k]
}
