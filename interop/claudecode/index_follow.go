package claudecode

import "github.com/coppice-go/coppice/transcript"

// chain finds for each row that speaks the one that speaks before it. A turn is a question and what follows it, up to
// the next question, without forks.
type chain struct {
	x      *index
	last   []int32           // by child: the newest row that speaks
	turn   []int32           // by row that speaks: the first row of its turn
	newest []int32           // by first row of a turn: its newest row
	calls  []bool            // by row: it calls tools
	again  map[lineKey]int32 // by id: the last row so far that repeats an earlier one
	steps  int               // that may still be taken from turn to turn
}

// follow links the rows. Branches are what the user made: a message that names an earlier one begins one. What names a
// line without content, or one that was written again, continues from the newest message of a turn: that of the newest
// message before such a line in the file.
func (x *index) follow() {
	x.findFlat()
	t := chain{
		x: x, last: x.perChild(), turn: make([]int32, len(x.Rows)), newest: make([]int32, len(x.Rows)),
		calls: make([]bool, len(x.Rows)), again: map[lineKey]int32{}, steps: 4 * len(x.Rows),
	}
	for _, c := range x.Calls {
		t.calls[c.Row] = true
	}
	for i := range x.Rows {
		r, at := &x.Rows[i], int32(i)
		switch {
		case r.Kind.Speaks():
			t.speaks(at)
		case r.Kind >= kindOther:
			r.link = t.aside(at)
		case r.Kind == kindAgain || r.Kind == kindNewer:
			r.link = t.last[t.child(at)]
			t.again[r.Key] = at
		}
	}
}

// findFlat finds out whether answers have no parents.
func (x *index) findFlat() {
	said := make([]bool, x.Children+1)
	for i := range x.Rows {
		r := &x.Rows[i]
		x.flat = x.flat || r.Kind == kindAssistant && r.Flags&flagNamed == 0 && said[r.Child]
		said[r.Child] = said[r.Child] || r.Kind.Speaks()
	}
}

// speaker returns a row if it speaks, else the one that it continues from; noRow = none.
func (x *index) speaker(i int32) int32 {
	if x.Rows[i].Kind.Speaks() {
		return i
	}
	return x.Rows[i].link
}

// child returns the child of a row; of one that repeats another, that one's.
func (t *chain) child(i int32) int32 {
	if r := &t.x.Rows[i]; r.Kind == kindAgain || r.Kind == kindNewer {
		i = r.parent
	}
	return t.x.Rows[i].Child
}

// named returns the row that a row names, as it was written last before it. false: there is none in the same child.
func (t *chain) named(i int32) (p int32, ok bool) {
	r := &t.x.Rows[i]
	if r.Flags&flagNamed == 0 {
		return noRow, false
	}
	p, ok = t.again[r.names]
	if !ok {
		p = r.parent
	}
	return p, p != noRow && p != i && t.child(p) == r.Child
}

// aside returns the row from which one without content continues: the newest message before it, or the message that it
// names if that one is not on the way there. A command of the user, and a damaged line, continue from what they name.
func (t *chain) aside(i int32) int32 {
	r := &t.x.Rows[i]
	newest := t.last[r.Child]
	p, ok := t.named(i)
	if !ok || p > i {
		return newest
	}
	at := t.x.speaker(p)
	if newest == noRow || at != noRow && (r.Kind == kindPlace || !t.leads(at, newest)) {
		return at
	}
	return newest
}

// leads reports whether a row is on the way to another one, from turn to turn.
func (t *chain) leads(from, to int32) bool {
	top := t.turn[from]
	for ; t.turn[to] > top && t.steps > 0; t.steps-- {
		if to = t.x.Rows[t.turn[to]].link; to == noRow {
			return false
		}
	}
	return t.turn[to] == top && from <= to || t.steps == 0
}

// speaks links a row that speaks.
func (t *chain) speaks(i int32) {
	r := &t.x.Rows[i]
	before := t.last[r.Child]
	question := r.Kind == kindUser && r.Held == 0
	if r.link = t.x.follows(i); r.link == noRow {
		r.link = t.before(i, before, question)
	}
	from := r.link
	if r.Kind == kindBoundary && before != noRow {
		from = before // what continues from the turn continues from the compaction
	}
	if t.turn[i] = i; !question && from != noRow && from < i {
		newest := t.newest[t.turn[from]]
		if newest == from || t.message(newest) == t.message(from) {
			t.turn[i] = t.turn[from]
		}
	}
	t.newest[t.turn[i]] = i
	t.last[r.Child] = i
}

// message returns the number of the provider's message that a row is a piece of, or answers; of any other row one of
// its own.
func (t *chain) message(i int32) int32 {
	if call := t.x.Rows[i].call; call != noRow {
		i = call
	}
	if n := t.x.Rows[i].msg; n != 0 {
		return n
	}
	return -1 - i // its own
}

// before returns the row that speaks before a row; newest is the newest one before it in the file.
func (t *chain) before(i, newest int32, question bool) int32 {
	r := &t.x.Rows[i]
	p, ok := t.named(i)
	switch {
	case ok && p > i && newest != noRow && r.msg != 0 && t.x.Rows[p].msg == r.msg && t.message(newest) == r.msg:
		return newest // the pieces of an answer, out of their order
	case ok && p > i && r.Kind != kindBoundary && t.x.Rows[p].Kind.Speaks():
		return p
	case ok && p > i && r.Kind != kindBoundary:
		return newest
	case ok && p < i:
		at := t.x.speaker(p)
		switch {
		case at == noRow && question: // before all that was said
		case at == noRow:
			at = newest
		case at != p || r.Kind == kindMeta && t.calls[p]: // nothing goes back to a call without its results
			at = t.newest[t.turn[at]]
		}
		return at
	case r.Child != 0 && r.parent != noRow && r.parent != i:
		return noRow // called by a row of another child
	case r.Flags&flagNamed == 0 && question && !t.x.flat:
		return noRow // only a question begins afresh
	case r.Flags&flagNamed != 0 && r.names != t.x.forked:
		t.x.Note(r.Line, transcript.DiagOrphan,
			"its parent is not in the file, or not before it: it goes on from the line before it")
	}
	return newest
}
