package model

// confirm makes the readable part of the log durable.
func (x *turnStep) confirm(t *turnState) {
	for l := t.end; l != 0; l = t.ln[l].prev {
		t.ln[l].durable = true
	}
}

// tidy is a writer's preparation of a log before it writes: it confirms the log, and moves the torn part aside: half a
// line, and kept lines at the end, except those of its own request.
func (x *turnStep) tidy(t *turnState, own *turnRequest) {
	if x.m.replace {
		return
	}
	x.confirm(t)
	t.torn = false
	for t.ln[t.end].kind == lineKept && !own.has(t.end) {
		t.end = t.ln[t.end].prev
	}
}

func (r *turnRequest) has(l uint8) bool {
	return r.op != 0 && (r.lines[0] == l || r.lines[1] == l || r.lines[2] == l)
}

// sends sends a request, and emits each possible outcome.
func (x *turnStep) sends(i int) {
	t := *x.s
	h, p := &t.h, &t.ops[i]
	r, resend := p.req, p.phase == again
	if resend {
		r = h.doubt
	} else {
		x.leavesUnsent(i)
	}
	if !h.trusts {
		x.tidy(&t, &r)
	}
	k := uint8(0)
	for k < r.n && t.chain(t.end)>>r.lines[k]&1 == 1 {
		k++
	}
	if k == r.n || t.end != t.ln[r.lines[k]].prev {
		x.lostCondition(&t, i, resend)
		return
	}
	ok := t
	x.apply(&ok, &r, k, r.n, true)
	x.arrives(&ok, i, &r, resend)
	if t.left.faults > 0 {
		t.left.faults--
		x.faults(&t, i, &r, k, resend)
	}
}

// leavesUnsent ends the context before the request is sent.
func (x *turnStep) leavesUnsent(i int) {
	t := *x.s
	if t.left.cancels == 0 {
		return
	}
	t.left.cancels--
	if x.m.without == lockFreedEarly && t.late.op == 0 {
		t.late = t.ops[i].req // it is under way, and its caller has gone
		for j := range t.late.n {
			t.ln[t.late.lines[j]].denied = true
		}
	}
	x.answer(&t, i, failed, evCancel)
}

// lostCondition reads the newest state, and judges again.
func (x *turnStep) lostCondition(t *turnState, i int, resend bool) {
	p := &t.ops[i]
	p.req = turnRequest{}
	if resend {
		p.phase = asking
		x.emit(t, event{evLostCondition, uint8(i), t.good()})
		return
	}
	x.refresh(t)
	if p.tries++; p.tries > triesMax {
		x.answer(t, i, failed, evAnswer)
		return
	}
	p.phase = holding
	x.emit(t, event{evLostCondition, uint8(i), t.good()})
}

// apply appends lines k to n of a request.
func (x *turnStep) apply(t *turnState, r *turnRequest, k, n uint8, durable bool) {
	for ; k < n; k++ {
		l := &t.ln[r.lines[k]]
		if k == r.main && (l.kind == lineTurn || l.kind == lineMove) && t.at(t.end) != t.at(r.saw) {
			t.bad = badLost
		}
		l.durable = durable
		t.end = r.lines[k]
	}
}

// arrives is the answer that everything is stored.
func (x *turnStep) arrives(t *turnState, i int, r *turnRequest, resend bool) {
	if resend {
		x.ended(t, i, true)
		return
	}
	t.h.trusts = false
	if x.takesBuffer(&x.m.ops[i]) {
		t.h.buf = [2]uint8{}
	}
	t.ops[i].got = r.lines[r.main]
	x.takes(t, i, r)
	x.answer(t, i, stored, evAnswer)
}

// faults emits the ways in which a request fails, or its answer is lost.
func (x *turnStep) faults(t *turnState, i int, r *turnRequest, k uint8, resend bool) {
	doubts := func(u *turnState, what, n uint8) {
		h := &u.h
		if resend {
			x.cannotEnd(u, i)
			return
		}
		h.doubt, h.trusts = *r, false
		h.lastOp, h.lastWhat, h.lastLine = 0, 0, 0
		if x.takesBuffer(&x.m.ops[i]) {
			h.buf = [2]uint8{}
		}
		x.answer(u, i, unknown, what)
	}
	refused := *t
	if resend {
		x.cannotEnd(&refused, i)
	} else {
		x.answer(&refused, i, failed, evNotApplied)
	}
	if x.m.replace {
		lost, applied := *t, *t
		doubts(&lost, evRequestLost, 0)
		x.apply(&applied, r, k, r.n, true)
		doubts(&applied, evAnswerLost, 0)
		if t.left.lates > 0 && t.late.op == 0 {
			late := *t
			late.left.lates--
			late.late = *r
			doubts(&late, evLate, 0)
		}
		return
	}
	creates := t.ln[r.lines[0]].kind == lineCreate && x.m.without != createAlone
	for n := k; n <= r.n; n++ {
		if creates && n > k && n < r.n {
			continue // a new file exists whole or not at all
		}
		u := *t
		x.apply(&u, r, k, n, false)
		u.torn = n < r.n
		doubts(&u, evTear, n)
	}
}

// others emits the steps of everything except the handle and its callers.
func (x *turnStep) others() {
	x.rival()
	s := x.s
	if s.late.op != 0 {
		t := *s
		r := t.late
		t.late = turnRequest{}
		x.emit(&t, event{evDropped, r.op - 1, 0})
		x.tidy(&t, &turnRequest{})
		if t.end == t.ln[r.lines[0]].prev {
			x.apply(&t, &r, 0, r.n, true)
			x.emit(&t, event{evArrived, r.op - 1, 0})
		}
	}
	if s.left.publishes > 0 && s.h.open && s.h.committed && !x.m.replace {
		t := *s
		t.left.publishes--
		x.publish(&t, false)
		x.emit(&t, event{evPublish, t.ck, 0})
	}
	if s.left.opens > 0 && !s.h.open && s.h.holder == 0 && s.ln[s.good()].kind != lineTomb {
		t := *s
		t.left.opens--
		end := t.good()
		t.h = turnHandle{open: true, creating: end == 0, life: max(t.ln[end].life, 1), view: end, tip: end, seen: end}
		x.emit(&t, event{evOpened, end, 0})
	}
}

// rival is the other writer: it keeps every rule, and each of its requests is one step.
func (x *turnStep) rival() {
	l := &x.s.left
	for _, e := range [...]struct {
		what uint8
		left *uint8
	}{
		{evRivalTurn, &l.turns},
		{evRivalDoc, &l.docs},
		{evRivalNote, &l.notes},
		{evRivalClaim, &l.claims},
		{evRivalKeyed, &l.keyed},
		{evRivalKept, &l.kept},
		{evRivalKnown, &l.known},
		{evRivalTomb, &l.tombs},
		{evRivalAgain, &l.again},
		{evRivalUnsynced, &l.unsynced},
	} {
		if *e.left == 0 || e.what == evRivalUnsynced && x.m.replace {
			continue
		}
		*e.left--
		t := *x.s
		*e.left++
		if x.rivals(&t, e.what) {
			x.emit(&t, event{e.what, t.end, 0})
		}
	}
}

func (x *turnStep) rivals(t *turnState, what uint8) bool {
	x.tidy(t, &turnRequest{})
	begins := what == evRivalAgain || t.end == 0
	switch {
	case (t.ln[t.end].kind == lineTomb) != (what == evRivalAgain),
		t.end == 0 && what != evRivalTurn && what != evRivalKeyed,
		what == evRivalKnown && t.has(t.end, knownEntry),
		what == evRivalKeyed && t.keyed(t.end, 1) != 0:
		return false
	case begins && !x.adds(t, evRivalAgain):
		return false
	}
	if what == evRivalAgain {
		what = evRivalTurn
	}
	return x.adds(t, what) && (what != evRivalKept || x.adds(t, evRivalRestates))
}

// evRivalRestates is the second line of evRivalKept, not an event of its own.
const evRivalRestates = evRivalUnsynced + 1

// adds appends one line of the other writer.
func (x *turnStep) adds(t *turnState, what uint8) bool {
	id := t.free()
	if id == 0 || int(id) > x.m.lines {
		return false
	}
	at, p := t.at(t.end), &t.ln[t.end]
	l := line{
		kind: lineTurn, prev: t.end, head: at.head, branch: at.branch, doc: at.doc, patch: 1 + p.doc,
		note: p.note, claim: p.claim, life: max(p.life, 1), durable: true, acked: true,
	}
	switch what {
	case evRivalAgain:
		l = line{kind: lineCreate, prev: t.end, life: p.life + 1, durable: true}
	case evRivalDoc:
		l.doc = foreign + id
	case evRivalNote:
		l.kind, l.note = lineNote, 3
	case evRivalClaim:
		l.kind, l.claim = lineClaim, id
	case evRivalTomb:
		l.kind = lineTomb
	case evRivalRestates:
		l.kind, l.patch = lineRestate, 0
	case evRivalKept:
		l.kind, l.own, l.head, l.branch, l.patch = lineKept, foreign+id, foreign+id, 16+id, 0
	case evRivalKnown:
		l.own, l.head = knownEntry, knownEntry
	default:
		l.own, l.head = foreign+id, foreign+id
		l.durable = what != evRivalUnsynced
		l.acked = l.durable
		if what == evRivalKeyed {
			l.key, l.digest = 1, 1
		}
	}
	t.ln[id], t.end = l, id
	return true
}

// deaths emits process deaths and power losses.
func (x *turnStep) deaths() {
	s := x.s
	if s.left.deaths > 0 && s.h.open {
		t := *s
		t.left.deaths--
		for i := range x.m.ops {
			if p := &t.ops[i]; p.phase == sending && p.req.op != 0 {
				x.diesSending(&t, i)
			}
		}
		x.dies(&t, evDies)
	}
	if s.left.powers == 0 || x.m.replace {
		return
	}
	for l := s.end; ; l = s.ln[l].prev { // lines that were not on disk are lost from some line on
		t := *s
		t.left.powers--
		if x.gone(&t, l) {
			t.torn = false
			x.dies(&t, evPower)
		}
		if l == 0 {
			break
		}
	}
}

// gone cuts the log after a line, if the next line was not on disk.
func (x *turnStep) gone(t *turnState, end uint8) bool {
	first := uint8(0)
	for l := t.end; l != end; l = t.ln[l].prev {
		first = l
	}
	if first != 0 && t.ln[first].durable {
		return false
	}
	t.end = end
	for l := end; l != 0; l = t.ln[l].prev {
		t.ln[l].durable = true
	}
	return true
}

// diesSending is a process that dies while its request is sent: the request arrives later, or in part.
func (x *turnStep) diesSending(t *turnState, i int) {
	r := t.ops[i].req
	if x.m.replace {
		if u := *t; u.left.lates > 0 && u.late.op == 0 {
			u.left.lates--
			u.late = r
			x.dies(&u, evDies)
		}
		return
	}
	u := *t
	x.tidy(&u, &turnRequest{})
	if u.end != u.ln[r.lines[0]].prev {
		return
	}
	creates := u.ln[r.lines[0]].kind == lineCreate && x.m.without != createAlone
	for n := uint8(1); n <= r.n; n++ {
		if v := u; !creates || n == r.n {
			x.apply(&v, &r, 0, n, false)
			x.dies(&v, evDies)
		}
	}
}

// dies ends the process: no caller gets an answer.
func (x *turnStep) dies(t *turnState, what uint8) {
	u := *t
	u.h = turnHandle{}
	for i := range x.m.ops {
		if p := &u.ops[i]; p.phase != idle {
			p.phase, p.answer, p.req = idle, gone, turnRequest{}
		}
	}
	x.emit(&u, event{what, u.end, 0})
}
