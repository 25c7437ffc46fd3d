package transcript

import (
	"iter"
	"slices"
)

// Versions returns which versions an entry has, and how many entries continue it. Structure, and what is hidden, has
// none: nil, -1 and 0.
type Versions struct {
	Ordinals []uint64 // of its versions, as Siblings has them; not to be changed, other entries may share it
	At       int      // the entry's place among them
	Children int      // visible entries that follow: the versions that each of them has
}

// VersionsAt yields the versions of the entries with these ordinals, in their order. What Siblings returns of each one,
// it returns of many without making their nodes: for entries of one path it visits no entry twice. The first call on a
// tree sorts all of its rows by parent.
func (t *Tree) VersionsAt(ordinals iter.Seq[uint64]) iter.Seq[Versions] {
	return func(yield func(Versions) bool) {
		t.ready()
		below := map[uint32][]uint64{} // by a place: the visible entries next below it, oldest first
		for ord := range ordinals {
			v := Versions{At: -1}
			if ord < uint64(t.n) && !t.unsaid(uint32(ord)) {
				v.Ordinals = t.saidBelow(t.saidAbove(uint32(ord)), below)
				v.At = slices.Index(v.Ordinals, ord)
				v.Children = len(t.saidBelow(uint32(ord), below))
			}
			if !yield(v) {
				return
			}
		}
	}
}

// saidAbove returns the nearest ancestor of an entry that is neither structure nor hidden; noRow = none is.
func (t *Tree) saidAbove(i uint32) uint32 {
	top := t.parent(i)
	for top != noRow && t.unsaid(top) {
		top = t.parent(top)
	}
	return top
}

// saidBelow returns the visible entries next below a place, oldest first, whatever structure is between. It remembers
// that.
func (t *Tree) saidBelow(top uint32, known map[uint32][]uint64) []uint64 {
	list, ok := known[top]
	if ok {
		return list
	}
	t.below(top, func(j uint32) (bool, bool) {
		hidden := t.unsaid(j)
		if !hidden {
			list = append(list, uint64(j))
		}
		return hidden, true
	})
	t.inTime(list)
	known[top] = list
	return list
}
