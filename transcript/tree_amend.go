package transcript

import (
	"slices"

	"github.com/coppice-go/coppice/codec"
)

// Amendment returns the ordinal of the amendment in force on an entry, of those with an ordinal below before:
// math.MaxUint64 for all. false: there is none. Of one that speaks of an entry that came after it nothing is known.
func (t *Tree) Amendment(ordinal, before uint64) (amendment uint64, ok bool) {
	if ordinal >= uint64(t.n) {
		return 0, false
	}
	at, ok := t.amendment(uint32(ordinal), uint32(min(before, uint64(noRow))))
	return uint64(at), ok
}

// Amends reports whether any entry of the tree is amended. It costs nothing.
func (t *Tree) Amends() bool { return len(t.amends) > 0 }

// Amended yields the ordinals of the entries that are amended, in no order.
func (t *Tree) Amended(yield func(ordinal uint64) bool) {
	if len(t.amends) == 0 {
		return
	}
	t.amendsOnce.Do(t.readAmends)
	for i := range t.amendsOf {
		if !yield(uint64(i)) {
			return
		}
	}
}

// askedWithin bounds the entries among which the first question is looked for.
const askedWithin = 64

// Asked returns the first entry of a user's with a text as it was appended, if that is among the first 64.
func (t *Tree) Asked() (ordinal uint64, ok bool) {
	for i := range min(t.n, askedWithin) {
		if r := t.row(i); (r.Type == "message" || r.Type == "custom_message") && r.Role == "user" && r.Preview != "" {
			return uint64(i), true
		}
	}
	return 0, false
}

// amendment returns the row of the last amendment of an entry below another row.
func (t *Tree) amendment(i, before uint32) (at uint32, ok bool) {
	if len(t.amends) == 0 {
		return 0, false
	}
	t.amendsOnce.Do(t.readAmends)
	list := t.amendsOf[i]
	k, _ := slices.BinarySearch(list, before)
	if k == 0 {
		return 0, false
	}
	return list[k-1], true
}

func (t *Tree) readAmends() {
	t.amendsOf = make(map[uint32][]uint32, len(t.amends))
	for _, i := range t.amends {
		c, k := t.at(i)
		if on, ok := t.lookup(c.target(k)); ok && on < i && amendable(t.row(on).Type) && t.class(on)&classAmend == 0 {
			t.amendsOf[on] = append(t.amendsOf[on], i)
		}
	}
}

// hides reports whether an amendment hides its entry.
func (t *Tree) hides(amendment uint32) bool {
	c, k := t.at(amendment)
	if c.sk != nil {
		return c.sk.Flags(k)&codec.FlagVisible == 0
	}
	return c.rows[k].Flags&codec.FlagVisible == 0
}

// Hides reports whether an amendment, by its ordinal, hides the entry that it speaks of.
func (t *Tree) Hides(amendment uint64) bool {
	return amendment < uint64(t.n) && t.class(uint32(amendment))&classAmend != 0 && t.hides(uint32(amendment))
}

// unsaid reports whether an entry is structure, or hidden.
func (t *Tree) unsaid(i uint32) bool {
	if t.class(i)&classHidden != 0 {
		return true
	}
	a, ok := t.amendment(i, noRow)
	return ok && t.hides(a)
}

// amendNode applies an amendment to a node.
func (t *Tree) amendNode(i uint32, n *Node) {
	a, ok := t.amendment(i, noRow)
	if !ok {
		return
	}
	if n.AmendedBy, n.Hidden = t.id(a), t.hides(a); n.Hidden {
		n.Preview = ""
		return
	}
	r := t.row(a)
	n.Role, n.Preview = r.Role, r.Preview
}

// row returns the row of an entry as it is stored.
func (t *Tree) row(i uint32) codec.Row {
	c, k := t.at(i)
	return c.row(k)
}
