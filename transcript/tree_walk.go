package transcript

import (
	"slices"

	"github.com/coppice-go/coppice/codec"
)

// Siblings returns the versions of an entry, itself among them, and its place: ‹at+1/len(versions)›. Versions
// are the visible entries at one point of the conversation: those with the same nearest visible
// ancestor, whatever structure (settings, labels, custom entries) is between. Structure has no
// versions: nil and -1, as for an id that is not there. The oldest is the first, see SortByTime.
func (t *Tree) Siblings(id string) (versions []Node, at int) {
	i, err := t.find(id)
	if err != nil || t.unsaid(i) {
		return nil, -1
	}
	t.ready()
	for _, ord := range t.saidBelow(t.saidAbove(i), map[uint32][]uint64{}) {
		versions = append(versions, t.node(uint32(ord)))
	}
	return versions, slices.IndexFunc(versions, func(n Node) bool { return n.Ordinal == uint64(i) })
}

// Messages returns how many messages, summaries and the like (FilterDefault) are on the way from the head to its root,
// and how many are elsewhere.
func (t *Tree) Messages() (path, elsewhere int) {
	t.ready()
	t.pathOnce.Do(t.markPath)
	for i := range t.n {
		switch {
		case t.class(i)&(classHidden|classCommit) != 0 || t.unsaid(i):
		case t.isOnPath(i):
			path++
		default:
			elsewhere++
		}
	}
	return path, elsewhere
}

// Newest returns the leaf below an entry that came last, the entry itself if nothing grows on it: where
// Switch goes. Labels and leaf entries speak about the tree and are no leaves. "" = of the whole tree.
func (t *Tree) Newest(id string) (leaf Node, ok bool) {
	top, err := t.findOrTop(id)
	if err != nil {
		return Node{}, false
	}
	t.ready()
	newest := top
	if t.irregular {
		newest = t.newestLeaf(top)
	} else {
		// Parents come first here, so the last entry that counts has none below it that does.
		t.below(top, func(i uint32) (bool, bool) {
			if t.class(i)&(classAside|classCommit) == 0 && (newest == noRow || i > newest) {
				newest = i
			}
			return true, true
		})
	}
	if newest == noRow {
		return Node{}, false
	}
	return t.node(newest), true
}

// newestLeaf is Newest where parents may come after their children.
func (t *Tree) newestLeaf(top uint32) uint32 {
	var list []uint32
	t.below(top, func(i uint32) (bool, bool) {
		list = append(list, i)
		return true, true
	})
	grown := make([]uint64, t.n/64+1) // entries with something that counts below them
	newest := noRow
	for _, i := range slices.Backward(list) {
		bit, p := uint64(1)<<(i%64), t.parent(i)
		counts := t.class(i)&(classAside|classCommit) == 0
		if counts && grown[i/64]&bit == 0 && (newest == noRow || i > newest) {
			newest = i
		}
		if p != noRow && (counts || grown[i/64]&bit != 0) {
			grown[p/64] |= 1 << (p % 64)
		}
	}
	if newest == noRow {
		return top
	}
	return newest
}

// CommitOn returns the commit that was in force at an entry: the newest one on the nearest place on the way
// to the root that has any, the entry itself included. On an ancestor, commits that came after the way
// left it belong to other lines and do not count. false: nothing was committed there.
func (t *Tree) CommitOn(ordinal uint64) (commit uint64, ok bool) {
	if ordinal >= uint64(t.n) {
		return 0, false
	}
	t.ready()
	i, before := uint32(ordinal), t.n
	if t.class(i)&classCommit != 0 {
		return ordinal, true
	}
	for {
		kids := t.children(i)
		end, _ := slices.BinarySearch(kids, before)
		for k := end; k > 0; k-- {
			if t.class(kids[k-1])&classCommit != 0 {
				return uint64(kids[k-1]), true
			}
		}
		if i == noRow {
			return 0, false
		}
		i, before = t.parent(i), i
	}
}

func (c *chunk) preview(k int) string {
	if c.sk != nil {
		return c.sk.Preview(k)
	}
	return c.rows[k].Preview
}

func (c *chunk) target(k int) string {
	if c.sk != nil {
		return c.sk.Target(k)
	}
	return c.rows[k].Target
}

// label returns the label in force on an entry: the last one that was set, "" if that cleared it.
func (t *Tree) label(i uint32) string {
	t.labelsOnce.Do(t.readLabels)
	at, ok := t.labelOf[i]
	if !ok {
		return ""
	}
	c, k := t.at(at)
	return c.preview(k)
}

func (t *Tree) readLabels() {
	set := func(i uint32) {
		c, k := t.at(i)
		target := c.target(k)
		if target == "" {
			return
		}
		if on, ok := t.lookup(target); ok {
			if t.labelOf == nil {
				t.labelOf = map[uint32]uint32{}
			}
			t.labelOf[on] = i
		}
	}
	for _, i := range t.labels {
		set(i)
	}
	for k, c := range t.pendingClasses {
		if c&classLabel != 0 {
			set(t.committed + uint32(k))
		}
	}
}

// Labels yields the ordinals of the entries that set labels, in the order of appending.
func (t *Tree) Labels(yield func(ordinal uint64) bool) {
	for _, i := range t.labels {
		if !yield(uint64(i)) {
			return
		}
	}
	for k, c := range t.pendingClasses {
		if c&classLabel != 0 && !yield(uint64(t.committed)+uint64(k)) {
			return
		}
	}
}

// Labelled yields the ordinals of the entries that have a label, in no order.
func (t *Tree) Labelled(yield func(ordinal uint64) bool) {
	t.labelsOnce.Do(t.readLabels)
	for i := range t.labelOf {
		if t.label(i) != "" && !yield(uint64(i)) {
			return
		}
	}
}

// Failures yields the ordinals of the entries that failed (Node.Failed), in the order of appending.
func (t *Tree) Failures(yield func(ordinal uint64) bool) {
	for i := uint32(0); i < t.n; {
		c, k := t.at(i)
		for n := c.len(); k < n; k, i = k+1, i+1 {
			if c.flags(k)&(codec.FlagFailed|codec.FlagAmend) == codec.FlagFailed && !yield(uint64(i)) {
				return
			}
		}
	}
}

func (c *chunk) flags(k int) uint8 {
	if c.sk != nil {
		return c.sk.Flags(k)
	}
	return c.rows[k].Flags
}

// LabelOf returns the entry that last set or removed the label of an entry. false: there is none.
func (t *Tree) LabelOf(ordinal uint64) (label Node, ok bool) {
	t.labelsOnce.Do(t.readLabels)
	if at, ok := t.labelOf[uint32(min(ordinal, uint64(noRow)))]; ok {
		return t.node(at), true
	}
	return label, false
}
