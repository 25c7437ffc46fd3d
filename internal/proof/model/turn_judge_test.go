package model

// The results of a judgement that are not answers: what to compose.
const (
	goPlain uint8 = iota + 32
	goKept
	goNote
)

// judges decides on the state known to the handle. A refusal of a turn with a key, and "nothing to do", are decided on
// the newest state.
func (x *turnStep) judges(t *turnState, i int) {
	h, o := &t.h, &x.m.ops[i]
	v, base := x.verdict(t, i)
	stale := h.tip != t.good()
	idles := v == idleAnswer && x.m.without != idleOnOldState
	if stale && v < goPlain && (o.key != 0 || v == exists || v == failed || idles) {
		x.refresh(t)
		v, base = x.verdict(t, i)
	}
	switch {
	case v == repeated || v == idleAnswer:
		if x.m.without != answerUnconfirmed {
			x.confirm(t)
		}
		if o.kind == opNote && v == idleAnswer && t.ln[t.good()].note != o.note {
			t.bad = badNothing
		}
		if v == repeated && x.takesBuffer(o) {
			h.buf = [2]uint8{}
		}
		x.answer(t, i, v, evAnswer)
	case v < goPlain:
		x.answer(t, i, v, evAnswer)
	default:
		x.composes(t, i, v, base)
	}
}

// keeps reports whether a turn names KeepBoth.
func (x *turnStep) keeps(t *turnState, i int) bool {
	o := &x.m.ops[i]
	return o.kind == opTurn && (o.keep || o.keepLater && t.ops[i].calls > 1)
}

// takesBuffer reports whether a turn commits the appended drafts.
func (x *turnStep) takesBuffer(o *turnOp) bool {
	return o.kind == opTurn && !o.based && (!o.from || x.m.without == fromTakesDrafts)
}

// verdict implements rules 2, 4, 5, 7, 9 and 10. Keys are checked first.
func (x *turnStep) verdict(t *turnState, i int) (answer, base uint8) {
	h, o, p := &t.h, &x.m.ops[i], &t.ops[i]
	tip := h.tip
	if h.creating && tip != 0 && x.m.without == existsBeforeKey {
		return exists, 0
	}
	if l := t.keyed(tip, o.key); l != 0 && (p.tries == 0 || x.m.without != keyLookedUpOnce) {
		p.got = l
		if !x.sameTurn(t, i, l) {
			p.got = 0
			return reused, 0
		}
		return repeated, 0
	}
	switch {
	case h.creating && tip != 0:
		return exists, 0
	case t.ln[tip].kind == lineTomb, t.ln[tip].life != h.life && tip != 0 && x.m.without != oldLifeGoesOn:
		return deleted, 0
	case o.kind == opClaim:
		return goNote, h.view
	case o.kind == opNote && t.fence(tip, h.view):
		return fenced, 0
	case o.kind == opNote && t.ln[tip].note == o.note:
		return idleAnswer, 0
	case o.kind == opNote:
		return goNote, h.view
	}
	if base = h.view; o.based {
		base = p.base
	}
	keep := x.keeps(t, i)
	switch at := t.chain(tip); {
	case base != 0 && at>>base&1 == 0:
		return failed, 0 // an unknown base
	case !o.based && h.buf[0] != 0 && (o.kind == opMove || o.from && x.m.without != fromTakesDrafts):
		return uncommitted, 0
	case t.fence(tip, base) && !(keep || x.m.keepBoth && x.m.without == optionLiftsFence && o.kind == opTurn):
		return fenced, 0
	case t.fence(tip, base):
		return goKept, base
	case t.ln[base].kind == lineKept:
		if x.endsBranch(t, tip, base) || keep || x.m.keepBoth {
			return goKept, base
		}
		return conflict, 0
	}
	judged := t.at(tip)
	if x.m.without == judgedOnView {
		judged = t.at(h.view)
	}
	switch {
	case judged != t.at(base) && (keep || x.m.keepBoth && o.kind == opTurn):
		return goKept, base
	case judged != t.at(base):
		return conflict, 0
	case o.kind == opTurn && !o.entry && !o.doc && (o.based || h.buf[0] == 0):
		return idleAnswer, base
	}
	return goPlain, base
}

// endsBranch reports whether no later line continues the branch of a kept line.
func (x *turnStep) endsBranch(t *turnState, tip, kept uint8) bool {
	for l := tip; l != kept; l = t.ln[l].prev {
		if t.ln[l].kind == lineKept && t.ln[l].branch == t.ln[kept].branch {
			return false
		}
	}
	return true
}

// sameTurn compares a turn with the line that has its key. If that line was the handle's doubt, it holds the drafts of
// that time, and the turn is compared with those.
func (x *turnStep) sameTurn(t *turnState, i int, l uint8) bool {
	h, o := &t.h, &x.m.ops[i]
	if t.ln[l].digest != o.digest {
		return false
	}
	taken := h.buf
	if !x.takesBuffer(o) {
		taken = [2]uint8{}
	}
	if taken == t.ln[l].drafts || x.m.without == digestWithoutDrafts {
		return true
	}
	// The doubt's drafts count as those of the turn, even if another call has ended the doubt; not if more was appended
	// since.
	last := h.lastOp != 0 && x.m.ops[h.lastOp-1].key == o.key && h.lastLine == l
	if x.m.without == doubtsDraftsForgotten {
		last = last && t.ops[i].ended
	}
	return last && taken == [2]uint8{}
}

// composes makes the lines of a request on the tip.
func (x *turnStep) composes(t *turnState, i int, what, base uint8) {
	h, o, p := &t.h, &x.m.ops[i], &t.ops[i]
	r := turnRequest{op: uint8(i + 1), saw: h.seen}
	if o.based {
		r.saw = p.saw
	}
	if t.late.op != 0 && t.late.op != uint8(i+1) && x.m.without == lockFreedEarly {
		t.bad = badTwo
	}
	add := func(l line) bool {
		id := t.free()
		if id == 0 || int(id) > x.m.lines {
			return false
		}
		l.prev, l.life, l.note, l.claim = h.tip, h.life, t.ln[h.tip].note, t.ln[h.tip].claim
		if r.n > 0 {
			l.prev, l.note, l.claim = r.lines[r.n-1], t.ln[r.lines[r.n-1]].note, t.ln[r.lines[r.n-1]].claim
		}
		switch l.kind {
		case lineNote:
			l.note = o.note
		case lineClaim:
			l.claim = id
		case lineKept:
			if l.branch == 0 {
				l.branch = 16 + id
			}
		}
		t.ln[id] = l
		r.lines[r.n] = id
		r.n++
		return true
	}
	ok := true
	if h.creating && h.tip == 0 {
		ok = add(line{kind: lineCreate})
	}
	r.main = r.n
	ok = ok && add(x.line(t, i, what, base))
	if what == goKept {
		at := t.at(h.tip)
		back := line{kind: lineRestate, head: at.head, branch: at.branch, doc: at.doc}
		if x.m.without == restateAsPatch {
			back.patch = 1 + at.doc
		}
		ok = ok && add(back)
	} else if x.takesBuffer(o) && h.buf[0] != 0 && t.at(h.bufSeen) != t.at(r.saw) {
		t.bad = badDrafts
	}
	if t.fence(h.tip, r.saw) && (what == goPlain || what == goKept && !x.keeps(t, i)) {
		t.bad = badFenced
	}
	if !ok {
		return // the model's log is full
	}
	p.req, p.phase = r, sending
	x.emit(t, event{evCompose, uint8(i), r.n})
	if t.left.rolls > 0 && what == goPlain {
		u := *t
		u.left.rolls--
		t, h, p = &u, &u.h, &u.ops[i]
		last := t.ln[r.lines[r.n-1]]
		if add(line{kind: lineRoll, head: last.head, branch: last.branch, doc: last.doc, patch: 1 + last.doc}) {
			p.req = r
			x.emit(t, event{evCompose, uint8(i), r.n})
		}
	}
}

// line returns an operation's own line.
func (x *turnStep) line(t *turnState, i int, what, base uint8) line {
	h, o, p := &t.h, &x.m.ops[i], &t.ops[i]
	at := t.at(h.tip)
	l := line{kind: lineTurn, op: uint8(i + 1), call: p.calls, key: o.key, digest: o.digest, patch: 1 + at.doc}
	switch o.kind {
	case opNote:
		l.kind = lineNote
	case opClaim:
		l.kind = lineClaim
	case opMove:
		l.kind = lineMove
	}
	if what == goKept {
		at = t.of(base)
		l.kind, l.patch = lineKept, 0
		if t.ln[base].kind != lineKept || !x.endsBranch(t, h.tip, base) {
			at.branch = 0 // a new one
		}
	}
	if o.from {
		at = place{branch: 1}
		if o.kind == opTurn && h.buf[0] != 0 && x.takesBuffer(o) && t.at(h.bufSeen).head != 0 {
			t.bad = badDrafts
		}
	}
	if x.takesBuffer(o) {
		l.drafts = h.buf
		if l.drafts[1] != 0 && t.rank[l.drafts[0]-1] > t.rank[l.drafts[1]-1] {
			t.bad = badDrafts
		}
		for _, d := range h.buf {
			if d != 0 {
				at.head = d
			}
		}
	}
	if o.entry {
		l.own = uint8(i + 1)
		if o.known {
			l.own = knownEntry
			if t.has(h.tip, knownEntry) && (p.tries == 0 || x.m.without != idsAskedOnce) {
				l.own = 0 // known: left out
			}
		}
		if l.own != 0 {
			at.head = l.own
		}
	}
	if o.doc {
		at.doc = uint8(i + 1)
	}
	l.head, l.branch, l.doc = at.head, at.branch, at.doc
	return l
}

// takes updates the handle after a request of its own is stored: rule "the view moves only".
func (x *turnStep) takes(t *turnState, i int, r *turnRequest) {
	h, o, c := &t.h, &x.m.ops[i], &t.clients[x.m.ops[i].who]
	main, last := r.lines[r.main], r.lines[r.n-1]
	before := t.ln[r.lines[0]].prev
	h.tip, h.committed = last, true
	switch kind := t.ln[main].kind; {
	case kind == lineClaim:
		h.own[main/8] |= 1 << (main % 8)
		if x.m.without == claimMovesView {
			h.view = last
		}
	case kind == lineNote:
		if x.m.without == noteMovesView {
			h.view = last
		}
		if t.at(last) == t.at(c.etag) {
			*c = client{last, last}
		} else if x.m.without == noteLendsBase {
			c.etag = last
		}
	case kind == lineKept:
		if x.m.without == keptMovesView {
			h.view = last
		}
	default:
		made := !o.based || t.at(before) == t.at(h.view) && !t.fence(before, h.view)
		under := o.based && h.buf[0] != 0
		if t.at(before) == t.at(h.seen) && !t.fence(before, h.seen) && !under {
			h.seen = last
		}
		if (made || x.m.without == anyBaseMovesView) && (!under || x.m.without == baseMovesBuffer) {
			h.view = last
		}
		if t.at(r.saw) == t.at(before) {
			*c = client{last, last}
		}
	}
	x.follow(t)
}
