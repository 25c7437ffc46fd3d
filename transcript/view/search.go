package view

import (
	"iter"

	"github.com/coppice-go/coppice/transcript"
)

// hits are the entries that match a search, one bit each by ordinal.
type hits struct {
	bits []uint64
	seen uint64 // lower ordinals were examined
}

func newHits(t *transcript.Tree) *hits {
	return &hits{bits: make([]uint64, t.Len()/64+1), seen: uint64(t.Len())}
}

func (h *hits) add(ordinal uint64) { h.bits[ordinal/64] |= 1 << (ordinal % 64) }

// Search limits the view to the entries that Tree.Search finds: those whose preview, label, role or type has every word
// of text; "" = all entries.
func (v *View) Search(text string) {
	v.text, v.whole = text, nil
	clear(v.folded)
	v.build()
}

// SearchIn is Search in the whole text of the entries, which whole yields, as Session.Entries does; it is iterated
// once. For entries that whole lacks, and for later ones, the previews are searched. On an error the view does not
// change.
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

// hits returns the entries that match the search; nil = there is no search.
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
