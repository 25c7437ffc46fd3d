// Package rows is the order in which a tree is drawn: ordinals and lanes, and no content of the entries. The
// command line and other views draw the rows of one range from it.
//
// Guarantees:
//
//   - Building costs time linear in the tree, and 16 bytes an entry, and 28 for each child of a fork.
//   - At and IndexOf cost the logarithm of the number of forks for each row.
package rows

import (
	"errors"
	"slices"

	"github.com/coppice-go/coppice/transcript"
)

// MaxEntries bounds the tree: links need a bit.
const MaxEntries = 1<<31 - 2

// ErrTooLarge means that a tree has more than MaxEntries.
var ErrTooLarge = errors.New("rows: the tree has too many entries")

// Order is one of the two orders of drawing. Versions of one entry are in both ordered by time (transcript.SortByTime).
type Order uint8

// The orders.
const (
	// Drawn is the order of a tree on paper: at a fork first the side lanes, the oldest first, then the line on which
	// the head is; off its path the newest version continues the line.
	Drawn Order = iota
	// ActiveFirst is that of a selector: at a fork the line on which the head is comes first, then the others, the
	// oldest first.
	ActiveFirst
)

// Options choose what is shown. Head and tree are the tree's own.
type Options struct {
	Order  Order
	Filter transcript.Filter
	Folds  map[uint64]bool // ordinals of entries below which nothing is shown; those without children do not count
	Search string          // for Key: what Found was searched for
	Found  []uint64        // a bit for each ordinal that a search found; nil = no search
}

// Row is the place of one entry.
type Row struct {
	Ordinal, Parent   uint64 // Parent: the nearest ancestor that is shown, meaningful where HasParent
	HasParent         bool
	Depth, Indent     int // shown ancestors; the lane, from 0
	Children          int // shown entries directly below, folded ones too
	Version, Versions int // ‹Version/Versions› of the entries with the same parent, from 1
	Folded            bool
	Hidden            int  // of a folded row: entries below it
	OnPath            bool // on the way to the head
}

const (
	none   = ^uint32(0)
	forked = uint32(1) << 31 // in a link: the rest is the number of a fork
)

// run is a stretch of rows each of which is the only continuation of the one before it.
type run struct {
	row, depth, indent uint32
	onPath             bool
}

// fork is the children of one entry, or the roots: kids[from:to], and by ordinal in byOrd with ranks.
type fork struct{ from, to uint32 }

// Rows are the rows of one tree. A slot is an ordinal and one; 0 is above all roots.
type Rows struct {
	t      *transcript.Tree
	o      Options
	near   []uint32 // by slot: the slot of the nearest entry on the way up that is shown, itself included; 0 = none is
	link   []uint32 // by slot: the child's slot, none, or a fork
	place  []uint32 // by slot: its row; none = it has none
	order  []uint32 // by row: its slot
	runs   []run
	forks  []fork
	kids   []uint32 // slots in drawing order of versions
	byOrd  []uint32 // the same ascending
	ranks  []uint32 // of byOrd: the version, from 0
	hidden map[uint32]int
	head   uint32 // the slot of the head, or of its nearest ancestor that is shown; 0 = none
	active []uint64
}

// New returns the rows of a tree.
func New(t *transcript.Tree, o Options) (*Rows, error) {
	n := t.Len()
	if n > MaxEntries {
		return nil, ErrTooLarge
	}
	r := &Rows{t: t, o: o, hidden: map[uint32]int{}}
	r.near, r.link, r.place = make([]uint32, n+1), make([]uint32, n+1), make([]uint32, n+1)
	for i := range r.link {
		r.near[i], r.link[i], r.place[i] = none, none, none
	}
	r.near[0] = 0
	shown := r.hang()
	r.head = r.headSlot()
	r.active = make([]uint64, n/64+1)
	for s := r.head; s != 0; s = r.parent(s) {
		r.active[s/64] |= 1 << (s % 64)
	}
	r.order = make([]uint32, 0, shown)
	r.walk()
	return r, nil
}

// shows reports whether an entry is shown, folds aside.
func (r *Rows) shows(ord uint64) bool {
	if f := r.o.Found; f != nil && (ord/64 >= uint64(len(f)) || f[ord/64]>>(ord%64)&1 == 0) {
		return false
	}
	return r.t.Shows(r.o.Filter, ord)
}

// hang puts each shown entry below its nearest shown ancestor, and returns how many there are.
func (r *Rows) hang() (shown int) {
	type pair struct{ parent, kid uint32 }
	var more []pair // children but the first
	for s := uint32(1); s < uint32(len(r.near)); s++ {
		if r.nearest(s) != s {
			continue
		}
		shown++
		if p := r.parent(s); r.link[p] == none {
			r.link[p] = s
		} else {
			more = append(more, pair{p, s})
		}
	}
	slices.SortStableFunc(more, func(a, b pair) int { return int(int64(a.parent) - int64(b.parent)) })
	r.kids = make([]uint32, 0, 2*len(more))
	for len(more) > 0 {
		p, from := more[0].parent, uint32(len(r.kids))
		r.kids = append(r.kids, r.link[p])
		for len(more) > 0 && more[0].parent == p {
			r.kids, more = append(r.kids, more[0].kid), more[1:]
		}
		r.link[p] = forked | uint32(len(r.forks))
		r.forks = append(r.forks, fork{from, uint32(len(r.kids))})
	}
	r.byOrd, r.ranks = slices.Clone(r.kids), make([]uint32, len(r.kids))
	for _, f := range r.forks {
		r.inTime(r.kids[f.from:f.to])
		by := r.byOrd[f.from:f.to]
		for rank, s := range r.kids[f.from:f.to] {
			at, _ := slices.BinarySearch(by, s)
			r.ranks[f.from+uint32(at)] = uint32(rank)
		}
	}
	return shown
}

// inTime sorts versions, which come by ordinal, by time: one without a time stays after the one before it.
func (r *Rows) inTime(kids []uint32) {
	type dated struct {
		ms   int64
		slot uint32
	}
	list := make([]dated, len(kids))
	ms := int64(-1 << 63)
	for i, s := range kids {
		if at := r.t.Time(uint64(s - 1)); !at.IsZero() {
			ms = at.UnixMilli()
		}
		list[i] = dated{ms, s}
	}
	slices.SortStableFunc(list, func(a, b dated) int {
		switch {
		case a.ms < b.ms:
			return -1
		case a.ms > b.ms:
			return 1
		}
		return 0
	})
	for i := range list {
		kids[i] = list[i].slot
	}
}

// above returns the slot of an entry's parent in the tree.
func (r *Rows) above(s uint32) uint32 {
	if p, ok := r.t.Parent(uint64(s - 1)); ok {
		return uint32(p) + 1
	}
	return 0
}

// parent returns the slot of the nearest shown ancestor.
func (r *Rows) parent(s uint32) uint32 { return r.nearest(r.above(s)) }

// nearest fills near on the way up; each slot is walked over once.
func (r *Rows) nearest(s uint32) uint32 {
	at, steps := s, 0
	for ; r.near[at] == none; steps++ {
		if !r.t.IsCommit(uint64(at-1)) && r.shows(uint64(at-1)) {
			r.near[at] = at
			break
		}
		at = r.above(at)
	}
	found := r.near[at]
	for ; steps > 0 && s != at; steps-- {
		r.near[s] = found
		s = r.above(s)
	}
	return found
}

func (r *Rows) headSlot() uint32 {
	ord, ok := r.t.HeadOrdinal()
	if !ok {
		return 0
	}
	return r.nearest(uint32(ord) + 1)
}

func (r *Rows) isActive(s uint32) bool {
	return s/64 < uint32(len(r.active)) && r.active[s/64]>>(s%64)&1 == 1
}

// children returns the shown children of a slot in the order of their versions.
func (r *Rows) children(s uint32, one *[1]uint32) []uint32 {
	switch l := r.link[s]; {
	case l == none:
		return nil
	case l&forked != 0:
		f := r.forks[l&^forked]
		return r.kids[f.from:f.to]
	default:
		one[0] = l
		return one[:]
	}
}
