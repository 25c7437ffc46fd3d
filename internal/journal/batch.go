package journal

import (
	"bytes"
	"math"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// batch is what one request makes durable: a commit line for each turn, and those that the rules add.
//
// It is made in this order: turns that Rebase knows, turns of the queue, what else is pending, the navigation, siblings
// of anchors that are no longer in force, the line back to the session, the fence.
type batch struct {
	*Composer
	j     *Journal
	base  *state.State // on which it is composed
	keep  bool         // turns are kept beside the session's line
	from  origin       // from which the next kept line grows
	waits bool         // it puts the head elsewhere: Append waits for its outcome

	pend   []*Entry // the entries that were pending when it was composed, and that no line has yet
	lines  []*sentLine
	turns  []*turn           // all that it decides
	byID   map[string]*Entry // entries of the lines before mapped
	mapped int
	later  []*turn // navigations and siblings: after everything else
}

// sentLine is a commit line of a request.
type sentLine struct {
	turn    *turn // nil = one that the rules add
	rec     checkpoint.Record
	entries []*Entry
	first   uint64       // ordinal of the first of them
	after   *state.State // after the line
	tip     origin       // what the line itself leaves, also if it is a kept one
}

// kept reports whether the line keeps a losing turn.
func (l *sentLine) kept() bool { return state.Kept(&l.rec) }

// take returns the pending entries before a position, and has them taken.
func (b *batch) take(upto uint64) (list []*Entry) {
	n := 0
	for n < len(b.pend) && b.pend[n].pos < upto {
		n++
	}
	list, b.pend = b.pend[:n:n], b.pend[n:]
	return list
}

// put composes a line.
func (b *batch) put(t *turn, step *Step, entries []*Entry, from origin, kept bool) error {
	tip, err := b.add(step, entries, from, kept)
	if err != nil {
		return err
	}
	l := &sentLine{
		turn: t, rec: *b.Record, entries: entries, first: b.Next.Next - 1 - uint64(len(entries)), after: b.Next,
		tip: tip,
	}
	b.lines = append(b.lines, l)
	if t != nil {
		t.line = l
	}
	return nil
}

// line composes the line of a turn with these entries: the session's, or one that is kept.
func (b *batch) line(t *turn, step *Step, entries []*Entry) error {
	if !b.keep {
		return b.put(t, step, entries, originOf(b.Next), false)
	}
	if err := b.put(t, step, entries, b.from, true); err != nil {
		return err
	}
	b.from = b.lines[len(b.lines)-1].tip
	return nil
}

// turn composes what a turn asks for. A turn that cannot be composed, that lost, or that is known already has no line.
func (b *batch) turn(t *turn) {
	b.turns = append(b.turns, t)
	t.twin, t.line = b.sameKey(t), nil
	switch {
	case t.known != nil && b.grown(t):
		if t.lost = b.decideIDs(t); t.lost == nil {
			t.lost = b.line(nil, b.restStep(), append(b.take(t.upto), t.own()...))
		}
		return
	case t.known != nil || t.lost != nil:
		return
	case t.step.Refuse != nil:
		t.lost = b.j.notApplied("commit", t.step.Refuse)
		return
	case t.twin != nil && t.twin.step.Digest != t.step.Digest:
		t.twin, t.lost = nil, b.j.notApplied("commit", ErrKeyReused)
		return
	case t.twin != nil: // others' entries that were appended before it are stored all the same
		if ents := b.take(t.upto); len(ents) > 0 {
			t.lost = b.line(nil, b.restStep(), ents)
		}
		return
	case b.refused(t):
		return
	case t.brings() && b.nothing(t): // others' entries that were appended before it are stored all the same
		if t.idle = true; t.kept {
			return // Rebase stores what else is pending
		}
		if ents := b.take(t.upto); len(ents) > 0 {
			t.lost = b.line(nil, b.restStep(), ents)
		}
		return
	case t.step.moves:
		b.later = append(b.later, t)
		return
	case t.step.Anchor != nil && !b.inForce(t):
		if !t.step.KeepBoth && !t.kept {
			t.lost = withdrawn(conflict(b.Next))
			return
		}
		if ents := b.take(t.upto); len(ents) > 0 { // they are not the turn's, and stay on the path
			if t.lost = b.line(nil, b.restStep(), ents); t.lost != nil {
				return
			}
		}
		if t.kept { // what grows from it comes after it, beside the session's line
			b.keep, b.waits = true, true
			b.from = b.sibling(t)
			return
		}
		b.later = append(b.later, t)
		return
	}
	pend := b.pend
	ents := b.take(t.upto)
	if err := b.line(t, t.step, append(ents, t.own()...)); err != nil {
		b.pend, t.lost = pend, b.j.notApplied("commit", err)
	}
}

// refused decides what of a turn the session has, and reports whether it is refused for that.
func (b *batch) refused(t *turn) bool {
	if !t.step.names() {
		return false
	}
	if err := b.decideIDs(t); err != nil {
		t.lost = b.j.notApplied("commit", err)
	}
	return t.lost != nil
}

// names reports whether the caller chose the id of an entry of the step: the session may have it.
func (s *Step) names() bool {
	return slices.ContainsFunc(s.Entries, func(e *Entry) bool { return e.Named })
}

// brings reports whether the turn came with entries of its own.
func (t *turn) brings() bool { return len(t.step.Entries)+len(t.step.IDs) > 0 }

// own returns the entries of a turn that are to be stored.
func (t *turn) own() []*Entry {
	if len(t.skipped) == 0 {
		return t.step.Entries
	}
	return t.rest()
}

// ids returns the ids of what the turn brought, in order.
func (t *turn) ids() (ids []string) {
	if t.step.IDs != nil {
		return t.step.IDs
	}
	for _, e := range t.step.Entries {
		ids = append(ids, e.ID)
	}
	return ids
}

// grown reports whether something pending grows from entries of a turn that was in doubt. They are stored then,
// although the turn is repeated: what grows from them names them, and has no other place.
func (b *batch) grown(t *turn) bool {
	return t.kept && slices.ContainsFunc(b.pend, func(e *Entry) bool {
		return slices.Contains(t.step.Entries, e.At().Entry)
	})
}

// sameKey finds the turn of the batch that has the same key.
func (b *batch) sameKey(t *turn) *turn {
	if t.step.Key == "" {
		return nil
	}
	for _, o := range b.turns[:len(b.turns)-1] {
		if o.step.Key == t.step.Key && o.twin == nil && o.known == nil {
			return o
		}
	}
	return nil
}

// inForce reports whether what an anchored turn was made on is what it would grow from: head and document are the same,
// and nothing else is pending that moves the head.
func (b *batch) inForce(t *turn) bool {
	a := t.step.Anchor
	if b.keep || a.Branch != b.Next.Summary.Branch ||
		!bytes.Equal(a.JSON, b.Next.DocJSON) {
		return false
	}
	head := Place{ID: b.Next.Summary.Entry, Ord: b.Next.HeadOrd}
	for _, e := range b.pend {
		if !e.Aside {
			if e.pos >= t.upto && t.kept { // it was in doubt, and others grew from it since
				continue
			}
			if e.pos >= t.upto {
				return false
			}
			head = PlaceAt(e)
		}
	}
	at := a.At.Settled()
	if at.Entry != nil {
		if ord, ok := b.ords[at.Entry]; ok {
			at = Place{ID: at.ID, Ord: int64(ord)}
		}
	}
	return at.Is(head)
}

// behind reports whether a turn was refused although it was made on a commit that is newer than the batch's base.
func (b *batch) behind() bool {
	for _, t := range b.turns {
		if a := t.step.Anchor; a != nil && t.lost != nil && a.Seq > b.base.Summary.Seq {
			return true
		}
	}
	return false
}

// rest composes a line for what else is pending.
func (b *batch) rest(step *Step) error {
	ents := b.take(math.MaxUint64)
	if len(ents) == 0 {
		return nil
	}
	return b.line(nil, step, ents)
}

// navigations composes the moves. One that loses is not kept.
func (b *batch) navigations() {
	for _, t := range b.later {
		if !t.step.moves {
			continue
		}
		if b.keep {
			t.lost = withdrawn(conflict(b.Next))
			continue
		}
		if b.refused(t) {
			continue
		}
		if err := b.put(t, t.step, t.own(), originOf(b.Next), false); err != nil {
			t.lost = b.j.notApplied("commit", err)
			continue
		}
	}
}

// siblings composes anchored turns beside the session's line, each where it was made.
func (b *batch) siblings() {
	for _, t := range b.later {
		if t.step.Anchor != nil && !b.refused(t) {
			b.sibling(t)
		}
	}
}

// sibling composes an anchored turn beside the session's line, and returns what it leaves.
func (b *batch) sibling(t *turn) origin {
	a := t.step.Anchor
	ord, err := b.ordinal(a.At.Settled())
	from := origin{ord: ord, entry: a.At.ID, branch: a.Branch, doc: a.Doc, json: a.JSON}
	if err == nil {
		err = b.put(t, t.step, t.own(), from, true)
	}
	if err != nil {
		t.lost = b.j.notApplied("commit", err)
		return from
	}
	return b.lines[len(b.lines)-1].tip
}

// back composes the line that returns to the session's head and document, where the newest line is a kept one: it moves
// nothing, but readers of earlier releases take the newest line for the session's.
func (b *batch) back() error {
	if !b.Next.AfterKept {
		return nil
	}
	return b.put(nil, &Step{Reason: state.ReasonConflict}, nil, originOf(b.Next), false)
}

// fence composes the line that takes the session.
func (b *batch) fence(step *Step) error {
	return b.put(nil, step, nil, originOf(b.Next), false)
}

// empty reports whether there is nothing to send.
func (b *batch) empty() bool { return len(b.lines) == 0 && !b.MustRoll }

// held calls f for each entry that the batch holds.
func (b *batch) held(f func(e *Entry)) {
	for _, l := range b.lines {
		for _, e := range l.entries {
			f(e)
		}
	}
}
