package view

import (
	"iter"

	"github.com/coppice-go/coppice/transcript"
)

// hits are the entries that a search has found, a bit each by ordinal.
type hits struct {
	bits []uint64
	seen uint64 // ordinals below were looked at
}

func newHits(t *transcript.Tree) *hits {
	return &hits{bits: make([]uint64, t.Len()/64+1), seen: uint64(t.Len())}
}

func (h *hits) add(ordinal uint64) { h.bits[ordinal/64] |= 1 << (ordinal % 64) }

// Search shows only the entries that Tree.Search finds: those whose preview, label, role or type has every word of
// text; "" = all again.
func (v *View) Search(text string) {
	v.text, v.whole = text, nil
	clear(v.folded)
	v.build()
}

// SearchIn is Search over all that the entries show, which whole gives, as Session.Entries does: it is gone through
// once. Of entries that it leaves out, and of those that come later, the previews count. On an error the view stays as
// it was.
func (v *View) SearchIn(text string, whole iter.Seq2[transcript.Entry, error]) error {
	found := newHits(v.t)
	for n, err := range v.t.SearchIn(text, whole) {
		if err != nil {
			return err
		}
		found.add(n.Ordinal)
	}
	v.text, v.whole = text, found
	clear(v.folded)
	v.build()
	return nil
}

// hits are the entries that the search finds; nil = there is none.
func (v *View) hits() *hits {
	if v.text == "" {
		return nil
	}
	if v.whole != nil && v.whole.seen >= uint64(v.t.Len()) {
		return v.whole
	}
	found := newHits(v.t)
	for n := range v.t.Search(v.text) {
		if v.whole == nil || n.Ordinal >= v.whole.seen {
			found.add(n.Ordinal)
		}
	}
	if v.whole != nil {
		for i, bits := range v.whole.bits {
			found.bits[i] |= bits
		}
	}
	return found
}
