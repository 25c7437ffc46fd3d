package transcript

import (
	"iter"
)

// Search returns the entries that hold every word of text in what the tree knows of them: preview and label, or the
// name of the role, or of a type that is no message. Case, accents and the Unicode normal form do not count. Parents
// first. No words: every entry. A preview is at most 80 bytes; SearchIn looks at all that an entry shows.
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

// SearchIn is Search over whole texts: those of entries that whole yields, in any order, as Session.Entries and
// EntriesWith do. Of entries that it leaves out the preview counts. Memory is a bit for each entry and one line.
// What was found comes when whole has ended; its error comes instead, and alone.
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
				continue // what the tree knows of the entry is looked at below
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

// holds looks at what the tree knows of an entry, and at more of its text.
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
		return false // its text is found as that of the entry that it amends
	}
	return q.holds(typ, role, text, t.label(i), more)
}

func (c *chunk) kind(k int) (typ, role string) {
	if c.sk != nil {
		return c.sk.Kind(k)
	}
	return c.rows[k].Type, c.rows[k].Role
}
