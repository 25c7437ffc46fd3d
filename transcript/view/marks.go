package view

import "github.com/coppice-go/coppice/transcript"

// none means no position.
const none = -1

// Mark records that the head or a branch is at an entry.
type Mark struct {
	Branch string // "" = the head
	Entry  string // the entry itself: the one with the mark, or a hidden one below it
}

// Marks returns the marks of a tree by the ordinal of the entry that has them: the entry of the head or the branch, or
// its nearest shown ancestor. The head comes first, then the branches in the tree's order. Without a shown ancestor
// there is no mark. Time is linear in the tree.
func Marks(t *transcript.Tree, shown func(ordinal uint64) bool) map[uint64][]Mark {
	marks := map[uint64][]Mark{}
	m := marker{t: t, shown: shown, nearest: make([]int64, t.Len())}
	put := func(branch, entry string) {
		ord, err := t.Ordinal(entry)
		if err != nil {
			return // before every root
		}
		if on, ok := m.find(ord); ok {
			marks[on] = append(marks[on], Mark{branch, entry})
		}
	}
	put("", t.Head())
	for _, b := range t.Branches() {
		put(b.Name, b.Head)
	}
	return marks
}

// marker finds the entries that have marks. It remembers results, so that no path is walked twice.
type marker struct {
	t       *transcript.Tree
	shown   func(ordinal uint64) bool
	nearest []int64 // by ordinal: the ordinal found, plus 1; 0 = unknown, none = there is none
}

func (m *marker) find(ord uint64) (carrier uint64, ok bool) {
	var passed []uint64
	found := int64(none)
	for m.nearest[ord] == 0 {
		passed = append(passed, ord)
		if m.shown(ord) {
			found = int64(ord) + 1
			break
		}
		p, ok := m.t.Parent(ord)
		if !ok {
			break
		}
		ord = p
	}
	if m.nearest[ord] != 0 {
		found = m.nearest[ord]
	}
	for _, ord := range passed {
		m.nearest[ord] = found
	}
	return uint64(found - 1), found != none
}
