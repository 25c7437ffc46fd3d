package claudecode

import "github.com/coppice-go/coppice/transcript"

// chain finds the preceding row of the conversation for each row with content. A turn is a question and the rows after
// it up to the next question, without forks.
type chain struct {
	x      *index
	last   []int32           // by child: the newest row with content
	turn   []int32           // by row with content: the first row of its turn
	newest []int32           // by first row of a turn: its newest row
	calls  []bool            // by row: it calls tools
	again  map[lineKey]int32 // by ID: the last row so far that repeats an earlier one
	steps  int               // remaining steps from turn to turn
}

// follow links the rows. Only the user makes branches: a message that names an earlier message begins one. A row that
// names a line without content, or a repeated line, continues from the newest message of a turn: the turn of the newest
// message before that line in the file.
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

// findFlat sets flat if answers have no parents.
func (x *index) findFlat() {
	said := make([]bool, x.Children+1)
	for i := range x.Rows {
		r := &x.Rows[i]
		x.flat = x.flat || r.Kind == kindAssistant && r.Flags&flagNamed == 0 && said[r.Child]
		said[r.Child] = said[r.Child] || r.Kind.Speaks()
	}
}

// speaker returns a row with content unchanged; else the row from which it continues, or noRow.
func (x *index) speaker(i int32) int32 {
	if x.Rows[i].Kind.Speaks() {
		return i
	}
	return x.Rows[i].link
}

// child returns the child of a row. A row that repeats another belongs to that row's child.
func (t *chain) child(i int32) int32 {
	if r := &t.x.Rows[i]; r.Kind == kindAgain || r.Kind == kindNewer {
		i = r.parent
	}
	return t.x.Rows[i].Child
}

// named returns the latest earlier copy of the row that a row names, or false if the same child has none.
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

// aside returns the row from which a row without content continues: the newest message before it, or the message that
// it names if that is not an ancestor of the newest one. A command of the user, or a damaged line, continues from the
// row that it names.
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

// leads reports whether from is an ancestor of to, turn by turn.
func (t *chain) leads(from, to int32) bool {
	top := t.turn[from]
	for ; t.turn[to] > top && t.steps > 0; t.steps-- {
		if to = t.x.Rows[t.turn[to]].link; to == noRow {
			return false
		}
	}
	return t.turn[to] == top && from <= to || t.steps == 0
}

// speaks links a row with content.
func (t *chain) speaks(i int32) {
	r := &t.x.Rows[i]
	before := t.last[r.Child]
	question := r.Kind == kindUser && r.Held == 0
	if r.link = t.x.follows(i); r.link == noRow {
		r.link = t.before(i, before, question)
	}
	from := r.link
	if r.Kind == kindBoundary && before != noRow {
		from = before // rows that continue from the turn continue from the compaction
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

// message returns the number of the provider's message to which a row belongs, as a piece or as an answer; for any
// other row a number of its own.
func (t *chain) message(i int32) int32 {
	if call := t.x.Rows[i].call; call != noRow {
		i = call
	}
	if n := t.x.Rows[i].msg; n != 0 {
		return n
	}
	return -1 - i // its own
}

// before returns the preceding row of the conversation. newest is the newest row before i in the file.
func (t *chain) before(i, newest int32, question bool) int32 {
	r := &t.x.Rows[i]
	p, ok := t.named(i)
	switch {
	case ok && p > i && newest != noRow && r.msg != 0 && t.x.Rows[p].msg == r.msg && t.message(newest) == r.msg:
		return newest // pieces of an answer in wrong order
	case ok && p > i && r.Kind != kindBoundary && t.x.Rows[p].Kind.Speaks():
		return p
	case ok && p > i && r.Kind != kindBoundary:
		return newest
	case ok && p < i:
		at := t.x.speaker(p)
		switch {
		case at == noRow && question: // before the first message
		case at == noRow:
			at = newest
		case at != p || r.Kind == kindMeta && t.calls[p]: // nothing continues from a call without its results
			at = t.newest[t.turn[at]]
		}
		return at
	case r.Child != 0 && r.parent != noRow && r.parent != i:
		return noRow // called by a row of another child
	case r.Flags&flagNamed == 0 && question && !t.x.flat:
		return noRow // only a question can be a root
	case r.Flags&flagNamed != 0 && r.names != t.x.forked:
		t.x.Note(r.Line, transcript.DiagOrphan,
			"its parent is not in the file, or not before it: it goes on from the line before it")
	}
	return newest
}
