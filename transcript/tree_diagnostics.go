package transcript

import (
	"github.com/coppice-go/coppice/codec"
)

// Details of the diagnostics about parents.
const (
	detailOrphan = "its parent is not there: it starts a root"
	detailSelf   = "it names itself as its parent: it starts a root"
	detailCycle  = "its parents lead back to it: it starts a root"
)

// Diagnostics returns what is unusual about the tree: at most 100, then one that counts the rest.
func (t *Tree) Diagnostics() []Diagnostic {
	t.ready()
	list := t.odd.Clone()
	list.AddMore(t.noted.more)
	for _, i := range t.noted.rows {
		c, k := t.at(i)
		if c.row(k).Flags&codec.FlagOrphan != 0 {
			kind, detail := t.astray(i)
			list.Add(t.id(i), uint64(i), kind, detail)
		} else {
			list.Add(t.id(i), uint64(i), DiagNoted, "reported when it was committed")
		}
	}
	t.lookup("") // so that the index knows what is double
	t.ids.mu.RLock()
	for _, i := range t.ids.doubles {
		if i < t.n {
			list.Add(t.id(i), uint64(i), DiagDuplicateID, "a later entry has the same id and answers to it")
		}
	}
	list.AddMore(t.ids.doubled - len(t.ids.doubles))
	t.ids.mu.RUnlock()
	return list.All()
}

// astray returns why an entry that names a parent has none: the caller that committed it cut a circle there, or did not
// find the parent. RowOf keeps the parent's name as the target of such an entry; rows that were packed before it did,
// and those of labels, which have targets of their own, count as orphans.
func (t *Tree) astray(i uint32) (kind, detail string) {
	c, k := t.at(i)
	p, ok := noRow, false
	if name := c.target(k); name != "" && t.class(i)&classLabel == 0 {
		p, ok = t.lookup(name)
	}
	switch {
	case ok && p == i:
		return DiagSelfParent, detailSelf
	case !ok:
		return DiagOrphan, detailOrphan
	}
	for ; p != noRow; p = t.parent(p) {
		if p == i {
			return DiagCycle, detailCycle
		}
	}
	return DiagOrphan, detailOrphan
}
