package transcript

import (
	"iter"
)

// Search yields the entries that match every word of text, each parent before its children. A word matches in the
// preview (at most 80 bytes), the label, or the name of the role; for an entry that is not a message, in the name of
// its type. Case, accents and Unicode normalization are ignored. A text without words matches every entry. SearchIn
// searches whole texts.
func (t *Tree) Search(text string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		t.ready()
		q, p := newQuery(text), t.newPass()
		for i := range t.topDown() {
			if t.class(i)&classCommit == 0 && t.holds(i, q, "") && !yield(p.node(i, t.parent(i))) {
				return
			}
		}
	}
}

// SearchIn is Search in the whole text of each entry that whole yields, in any order; Session.Entries and EntriesWith
// are such sequences. For entries that whole does not yield it searches the preview. It holds one bit per entry and
// one entry of whole. It yields matches after whole has ended; if whole yields an error, SearchIn yields that error
// alone.
func (t *Tree) SearchIn(text string, whole iter.Seq2[Entry, error]) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		t.ready()
		q := newQuery(text)
		found := make([]uint64, t.n/64+1)
		for e, err := range whole {
			if err != nil {
				yield(Node{}, err)
				return
			}
			if !q.mayBeIn(e.Raw) {
				continue // the loop below searches its preview and label
			}
			if i := uint32(e.Ordinal); e.Ordinal < uint64(t.n) && t.holds(i, q, shownText(e)) {
				found[i/64] |= 1 << (i % 64)
			}
		}
		p := t.newPass()
		for i := range t.topDown() {
			if t.class(i)&classCommit != 0 || found[i/64]>>(i%64)&1 == 0 && !t.holds(i, q, "") {
				continue
			}
			if !yield(p.node(i, t.parent(i)), nil) {
				return
			}
		}
	}
}

// holds reports whether a query matches the row i: its preview, label, role or type, or the text more. A hidden entry
// never matches. An amended entry matches by its newest text.
func (t *Tree) holds(i uint32, q query, more string) bool {
	c, k := t.at(i)
	typ, role := c.kind(k)
	text := c.preview(k)
	if a, ok := t.amendment(i, noRow); ok {
		if t.hides(a) {
			return false
		}
		r := t.row(a)
		role, text = r.Role, r.Preview
	} else if t.class(i)&classAmend != 0 {
		return false // an amendment is found as the text of the entry that it amends
	}
	return q.holds(typ, role, text, t.label(i), more)
}

func (c *chunk) kind(k int) (typ, role string) {
	if c.sk != nil {
		return c.sk.Kind(k)
	}
	return c.rows[k].Type, c.rows[k].Role
}
