package model

// The kinds of operations.
const (
	opAppend uint8 = iota + 1
	opTurn
	opMove
	opNote
	opClaim
	opSettle
	opReload
	opDiscard
	opClose
	opRead // a client reads the session elsewhere: its next base
)

// knownEntry is the id of an entry that both a caller and the other writer choose.
const knownEntry = 31

// turnOp is an operation of a scenario. Its number is the entry and the document that it stores.
type turnOp struct {
	kind, who       uint8 // who: which caller
	based           bool  // it names its base, as a client of the service does
	keep, keepLater bool  // Turn.KeepBoth; keepLater: set on a retry
	entry, doc      bool
	known           bool // its entry has the id knownEntry, and is left out if that is stored
	from            bool // its parent is the root (Turn.From); of a move: the target
	hook            bool // it runs a hook afterwards, which calls the handle
	key, digest     uint8
	note            uint8
	of, after       uint8 // 1 + the operation to settle; 1 + one that must have been answered
	calls           uint8 // maximum number of calls, repeated only after an error; 0 = once
}

// turnModel is the rules of a turn in one scenario. without is the rule that is left out.
type turnModel struct {
	without  mutant
	replace  bool // a store that replaces whole objects; else one that appends
	keepBoth bool // the option of the handle
	creates  bool // there is no session yet
	lines    int
	ops      []turnOp
	left     turnBudget
}

// triesMax bounds the judgements after a lost condition within one call.
const triesMax = 3

func (m *turnModel) space() *space[turnState, turnState] {
	s := turnState{left: m.left}
	s.h = turnHandle{open: true, creating: m.creates, life: 1}
	if !m.creates {
		s.ln[1] = line{kind: lineTurn, own: foreign, head: foreign, doc: foreign, life: 1, durable: true, acked: true}
		s.end, s.h.view, s.h.tip, s.h.seen = 1, 1, 1, 1
		s.clients = [2]client{{1, 1}, {1, 1}}
	}
	same := func(s *turnState) turnState { return *s }
	whole := func(k turnState) turnState { return k }
	return &space[turnState, turnState]{begin: s, pack: same, open: whole, next: m.next, wrong: m.wrong}
}

// turnStep is a state whose successors are emitted.
type turnStep struct {
	m    *turnModel
	s    *turnState
	emit func(*turnState, event)
}

func (m *turnModel) next(s *turnState, emit func(*turnState, event)) {
	x := &turnStep{m, s, func(t *turnState, e event) {
		u := *t
		u.sweep()
		emit(&u, e)
	}}
	for i := range m.ops {
		switch s.ops[i].phase {
		case idle:
			x.calls(i)
		case queued:
			x.waits(i)
		case holding:
			x.works(i)
		case sending, again:
			x.sends(i)
		case asking:
			x.asks(i)
		case hook:
			t := *s
			t.ops[i].phase = idle
			emit(&t, event{evHook, uint8(i), 0})
		}
	}
	x.others()
	x.deaths()
}

// calls starts an operation of an idle caller.
func (x *turnStep) calls(i int) {
	o, p := &x.m.ops[i], &x.s.ops[i]
	most := max(o.calls, 1)
	if p.calls == most || isStored(p.answer) || !x.s.h.open || o.after != 0 && x.s.ops[o.after-1].answer == noAnswer {
		return
	}
	for j := range x.m.ops {
		if x.m.ops[j].who == o.who && x.s.ops[j].phase != idle {
			return
		}
	}
	keeps := o.keep || o.keepLater || x.m.keepBoth
	if (p.answer == unknown || p.answer == gone) && o.kind != opSettle && o.key == 0 && (!o.based || keeps) {
		return // it may be stored already: without a key its caller settles, and does not send it again
	}
	t := *x.s
	c := t.clients[o.who]
	q := &t.ops[i]
	if p.calls == 0 || !o.based || notStored(p.answer) && p.answer != conflict && p.answer != fenced {
		q.base, q.saw = c.etag, c.seen // a retry names the same base
	}
	q.calls++
	q.answer, q.tries, q.ended, q.phase = noAnswer, 0, false, queued
	if o.kind == opRead {
		q.phase, q.answer = idle, idleAnswer
		t.clients[o.who] = client{t.good(), t.good()}
	}
	x.emit(&t, event{evCall, uint8(i), o.kind})
}

// waits handles an operation that waits for the lock: it gets it, or its context ends.
func (x *turnStep) waits(i int) {
	s := x.s
	if s.left.cancels > 0 {
		t := *s
		t.left.cancels--
		x.answer(&t, i, failed, evCancel)
	}
	if s.h.holder != 0 {
		return
	}
	t := *s
	h := &t.h
	h.holder = uint8(i + 1)
	h.view0, h.buf0 = h.view, h.buf
	t.ops[i].phase = holding
	x.emit(&t, event{evLock, uint8(i), 0})
}

// works is the first step of an operation under the lock.
func (x *turnStep) works(i int) {
	t := *x.s
	h, o, p := &t.h, &x.m.ops[i], &t.ops[i]
	if x.cancelled(i) {
		return
	}
	switch o.kind {
	case opAppend:
		x.appends(&t, i)
	case opDiscard:
		if h.trusts = x.m.without == discardWithoutJudgement; h.trusts {
			h.tip = max(h.tip, h.doubt.lines[h.doubt.main])
		}
		x.forgets(&t)
		x.answer(&t, i, stored, evAnswer)
	case opReload:
		x.reloads(&t, i)
	case opClose:
		x.closes(&t, i)
	case opSettle:
		x.settles(&t, i)
	default:
		if h.doubt.op == 0 {
			x.judges(&t, i)
			return
		}
		if o.kind <= opMove && o.key == 0 && !o.based {
			x.answer(&t, i, inDoubt, evAnswer)
			return
		}
		p.phase = asking
		x.emit(&t, event{evAsk, uint8(i), h.doubt.op - 1})
	}
}

// cancelled ends an operation whose context ends before its request is sent.
func (x *turnStep) cancelled(i int) bool {
	if x.s.left.cancels == 0 || x.s.ops[i].phase != holding {
		return false
	}
	t := *x.s
	t.left.cancels--
	if x.m.without == cancelKeepsLock {
		t.ops[i].phase, t.ops[i].answer = idle, failed
		x.emit(&t, event{evCancel, uint8(i), 0})
		return false
	}
	x.answer(&t, i, failed, evCancel)
	return false
}

func (x *turnStep) appends(t *turnState, i int) {
	h := &t.h
	switch {
	case h.doubt.op != 0:
		x.answer(t, i, inDoubt, evAnswer)
	case t.at(h.view) != t.at(h.tip) && !x.m.keepBoth:
		x.answer(t, i, conflict, evAnswer)
	default:
		at := 0
		if h.buf[0] != 0 {
			at = 1
		} else {
			h.bufSeen = h.seen
		}
		if h.buf[at] != 0 {
			return // the model's buffer is full
		}
		h.buf[at] = uint8(i + 1)
		most := uint8(0)
		for _, r := range t.rank {
			most = max(most, r)
		}
		t.rank[i] = most + 1
		x.answer(t, i, stored, evAnswer)
	}
}

// forgets drops buffer and doubt.
func (x *turnStep) forgets(t *turnState) {
	h := &t.h
	if x.m.without == doubtStaysOwn {
		h.ours = h.doubt.op
	}
	h.buf, h.doubt, h.bufSeen = [2]uint8{}, turnRequest{}, 0
	h.buf0 = h.buf
}

func (x *turnStep) reloads(t *turnState, i int) {
	h := &t.h
	end := t.good()
	if t.ln[end].kind == lineTomb || t.ln[end].life != h.life {
		x.answer(t, i, deleted, evAnswer)
		return
	}
	x.forgets(t)
	h.tip, h.view, h.seen = end, end, end
	h.view0 = end
	t.clients[x.m.ops[i].who] = client{end, end}
	x.answer(t, i, stored, evAnswer)
}

// closes waits for no caller, settles nothing, and publishes confirmed lines.
func (x *turnStep) closes(t *turnState, i int) {
	h := &t.h
	if x.m.without == closeSendsDoubt && h.doubt.op != 0 {
		t.bad = badClose
	}
	answer := stored
	if h.buf[0] != 0 {
		answer = uncommitted
	}
	if h.doubt.op != 0 {
		answer = unknown
	}
	if h.committed && !x.m.replace {
		x.publish(t, x.m.without == closeUnconfirmed)
	}
	for j := range x.m.ops {
		if t.ops[j].phase == queued {
			t.ops[j].phase, t.ops[j].answer = idle, shut
		}
	}
	h.open = false
	t.ops[i].phase, t.ops[i].answer = idle, answer
	h.holder, h.doubt, h.buf = 0, turnRequest{}, [2]uint8{}
	x.emit(t, event{evClose, uint8(i), answer})
}

// publish advances the checkpoint of a log.
func (x *turnStep) publish(t *turnState, unconfirmed bool) {
	if !unconfirmed {
		x.confirm(t)
	}
	if tip := t.h.tip; t.chain(t.good())>>tip&1 == 1 && t.newer(tip, t.ck) {
		t.ck = tip
	}
}

// settles answers Settle.
func (x *turnStep) settles(t *turnState, i int) {
	h, o := &t.h, &x.m.ops[i]
	switch {
	case h.doubt.op == o.of && h.doubt.op != 0:
		t.ops[i].phase = asking
		x.emit(t, event{evAsk, uint8(i), o.of - 1})
	case h.lastOp == o.of && h.lastOp != 0:
		answer := h.lastWhat
		if x.m.without == settleForgets {
			answer = stored
		}
		t.ops[i].got = h.lastLine
		x.answer(t, i, answer, evAnswer)
	default: // no longer this handle's: it is searched for
		answer := unknown
		x.confirm(t)
		for l := t.good(); l != 0; l = t.ln[l].prev {
			if t.ln[l].op == o.of {
				answer, t.ops[i].got = stored, l
			}
		}
		x.answer(t, i, answer, evAnswer)
	}
}

// asks ends the doubt: it searches for the request in the newest history.
func (x *turnStep) asks(i int) {
	t := *x.s
	d := &t.h.doubt
	if t.left.faults > 0 {
		u := t
		u.left.faults--
		x.cannotEnd(&u, i)
	}
	x.tidy(&t, d)
	k := uint8(0)
	for k < d.n && t.chain(t.end)>>d.lines[k]&1 == 1 {
		k++
	}
	counts := k > d.main && t.chain(t.good())>>d.lines[d.main]&1 == 1
	whole := k == d.n || k > 0 && t.end != d.lines[k-1] && counts
	base := t.ln[d.lines[0]].prev
	switch x.m.without {
	case halfIsAll:
		whole = k > 0
	case halfIsNothing:
		if k < d.n {
			x.ended(&t, i, false)
			return
		}
	case keptAloneCounts:
		whole = whole || k > d.main
	case noLook:
		whole = false
		if t.end != base {
			x.ended(&t, i, false)
			return
		}
	default:
	}
	switch {
	case whole:
		x.ended(&t, i, true)
	case k > 0 && t.end == d.lines[k-1], k == 0 && t.good() == base:
		if x.m.without == newIDs {
			x.renews(&t)
		}
		t.ops[i].phase = again
		x.emit(&t, event{evResend, uint8(i), k})
	case x.m.without == otherHead:
		t.ln[d.lines[0]].prev = t.end
		t.ops[i].phase = again
		x.emit(&t, event{evResend, uint8(i), k})
	default:
		x.ended(&t, i, false)
	}
}

// renews replaces the ids of the doubt's lines (a broken rule).
func (x *turnStep) renews(t *turnState) {
	d := &t.h.doubt
	prev := t.ln[d.lines[0]].prev
	for j := range d.n {
		l := t.free()
		if l == 0 {
			return
		}
		t.ln[l] = t.ln[d.lines[j]]
		t.ln[l].prev = prev
		d.lines[j], prev = l, l
	}
}

// cannotEnd answers a call that could not end the doubt.
func (x *turnStep) cannotEnd(t *turnState, i int) {
	o, d := &x.m.ops[i], &t.h.doubt
	answer := inDoubt
	if o.kind == opSettle || d.op == uint8(i+1) {
		answer = unknown
	}
	x.answer(t, i, answer, evAnswer)
}

// ended records the outcome of the doubt, and continues with the operation.
func (x *turnStep) ended(t *turnState, i int, ok bool) {
	h := &t.h
	d := h.doubt
	main := d.lines[d.main]
	h.doubt = turnRequest{}
	h.lastOp, h.lastWhat, h.lastLine = d.op, stored, main
	if ok {
		x.takes(t, int(d.op-1), &d)
		x.refresh(t)
	} else {
		h.lastWhat, h.lastLine = failed, 0
		x.refresh(t)
		h.buf = t.ln[main].drafts
		for l := range t.ln { // whichever bytes hold the turn
			if y := &t.ln[l]; y.op == d.op && y.call == t.ln[main].call {
				y.denied = true
			}
		}
	}
	h.view0, h.buf0 = h.view, h.buf
	if x.m.ops[i].kind == opSettle {
		t.ops[i].got = h.lastLine
		x.answer(t, i, h.lastWhat, evAnswer)
		return
	}
	t.ops[i].phase, t.ops[i].ended = holding, true
	e := event{evEndedLost, d.op - 1, 0}
	if ok {
		e.what = evEndedStored
	}
	x.emit(t, e)
}

// refresh reads the newest state. The view follows if nothing that it shows differs.
func (x *turnStep) refresh(t *turnState) {
	h := &t.h
	h.tip = t.good()
	x.follow(t)
	if o := t.ln[h.tip].op; o != 0 && o == h.ours {
		h.view = h.tip // without the rule, its requests before the reload count as its own
	}
}

// follow moves the view to a tip that does not differ, but never past another writer's claim.
func (x *turnStep) follow(t *turnState) {
	h := &t.h
	if h.tip != h.view && t.ln[h.tip].life == h.life && t.at(h.view) == t.at(h.tip) &&
		(!t.fence(h.tip, h.view) || x.m.without == viewPassesClaims) {
		h.view = h.tip
	}
}

// answer ends a call, and checks the promise of its answer.
func (x *turnStep) answer(t *turnState, i int, a uint8, what uint8) {
	h, o, p := &t.h, &x.m.ops[i], &t.ops[i]
	held := h.holder == uint8(i+1)
	p.phase, p.answer = idle, a
	p.req = turnRequest{}
	if held {
		h.holder = 0
	}
	writes := o.kind >= opTurn && o.kind <= opClaim
	switch {
	case held && writes && notStored(a):
		x.refused(t, i, a)
	case held && o.kind == opTurn && !o.based && isStored(a):
		for _, d := range h.buf0 {
			if d != 0 && !t.has(t.good(), d) && !o.from {
				t.bad = badNil
			}
		}
	case o.kind == opSettle && a == stored:
		if l := p.got; l == 0 || t.chain(t.good())>>l&1 == 0 {
			t.bad = badSettle
		}
	}
	if isStored(a) && writes && p.got != 0 {
		t.ln[p.got].acked = true
		for j := range x.m.ops {
			q, other := &t.ops[j], &x.m.ops[j]
			same := o.key != 0 && other.key == o.key && other.digest == o.digest
			if same && isStored(q.answer) && q.got != p.got {
				t.bad = badReceipts
			}
		}
	}
	if o.hook && isStored(a) {
		p.phase = hook
		if x.m.without == hookUnderLock {
			h.holder = uint8(i + 1)
		}
	}
	x.emit(t, event{what, uint8(i), a})
}

// refused checks that a call that stored nothing left everything as it was, and was right to refuse.
func (x *turnStep) refused(t *turnState, i int, a uint8) {
	h, o := &t.h, &x.m.ops[i]
	if x.m.without == refusedDropsDrafts {
		h.buf = [2]uint8{}
	}
	if x.m.without == refusedReordersDrafts && h.buf[1] != 0 {
		h.buf[0], h.buf[1] = h.buf[1], h.buf[0]
	}
	if h.buf != h.buf0 || t.at(h.view) != t.at(h.view0) {
		t.bad = badView
	}
	l := t.keyed(t.good(), o.key)
	if l == 0 {
		return
	}
	mine, rivals := t.ln[l].op == uint8(i+1), t.ln[l].op == 0 && t.ln[l].digest == o.digest
	switch {
	case mine && a == reused && h.lastLine == l && h.buf0[0] == 0:
		t.bad = badReused
	case rivals && h.buf[0] == 0 && (a == conflict || a == exists):
		t.bad = badRefused
	}
}
