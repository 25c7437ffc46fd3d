package model

// waits emits what a writer may do while its PUT is unanswered.
func (x *step) waits(i int) {
	if x.m.lossless {
		return
	}
	s, w := x.s, &x.s.w[i]
	if w.tries < x.m.tries {
		t := *s
		if x.send(&t, request{id: w.pending, cond: tagOf(s, w.view)}) {
			t.w[i].tries++
			t.w[i].lost = true
			x.emit(&t, event{evRetry, w.pending, 0})
		}
	}
	t := *s
	t.w[i].lost = true
	x.judge(&t, i, evLook)
	t = *s
	t.w[i].st, t.w[i].doubts = doubtful, w.doubts|1<<w.pending
	if s.c[w.pending].tomb {
		t.w[i] = writer{}
	}
	x.emit(&t, event{evGiveUp, w.pending, 0})
}

// judge reads the head and determines the outcome of the writer's PUT.
func (x *step) judge(t *replaceState, i int, what uint8) {
	w := &t.w[i]
	p := w.pending
	e := event{what, p, t.head}
	length := 0 // where the lineage is too short, the log is searched
	if x.m.blindSearch || x.m.blindCreate && w.view == 0 {
		length = x.m.lineage
	}
	past := t.lineage(t.head, length)
	switch {
	case t.head == 0 && w.view != 0:
		t.w[i] = writer{} // corrupt: the handle stops
		x.emit(t, e)
	case past>>p&1 == 1:
		x.acknowledge(t, i)
		x.emit(t, e)
	case t.head == w.view: // not applied yet, or never
		if w.tries < x.m.tries && x.send(t, request{id: p, cond: tagOf(t, w.view)}) {
			w.tries++
			x.emit(t, e)
		}
	case w.view == 0: // the first commit of another session
		t.failed |= 1 << p
		t.w[i] = writer{}
		x.emit(t, e)
	default:
		x.moved(t, i, e)
	}
}

// moved handles another writer's commit in force that rules out the pending one.
func (x *step) moved(t *replaceState, i int, e event) {
	w := &t.w[i]
	t.failed |= 1 << w.pending
	if t.c[w.pending].tomb { // a deletion starts again
		*w = writer{}
		x.emit(t, e)
		return
	}
	u := *t
	if w.rebases {
		x.again(&u, i, e)
		return
	}
	u.w[i].st = conflicted
	if t.c[t.head].tomb {
		u.w[i] = writer{}
	}
	x.emit(&u, e)
	if t.left.rebases > 0 && !t.c[t.head].tomb { // at once if the other commit moved nothing, or both are to be kept
		u = *t
		u.left.rebases--
		x.again(&u, i, e)
	}
}

// again commits the same turn on the present head.
func (x *step) again(t *replaceState, i int, e event) {
	w := &t.w[i]
	if t.c[t.head].tomb {
		t.w[i] = writer{}
		x.emit(t, e)
		return
	}
	past := t.lineage(t.head, 0)
	if old := w.doubts & past; old != 0 && !x.m.rebaseOnce {
		t.acked |= old
		*w = writer{st: ready, view: t.head, fresh: true}
		x.emit(t, e)
		return
	}
	w.fresh = true
	if !x.m.keepUploads {
		w.seg, w.foreign = 0, false
	}
	w.doubts &^= past
	if id, ok := x.put(t, i, t.head, w.turn, func(*replaceState, *commit) {}); ok {
		w.rebases = true
		x.emit(t, event{evAgain, e.a, id})
	}
}

// acknowledge reports to the caller that the commit is in force.
func (x *step) acknowledge(t *replaceState, i int) {
	w := &t.w[i]
	t.acked |= 1 << w.pending
	*w = writer{st: ready, view: w.pending}
}

// rebase is a caller's reaction to a turn whose commit failed or is in doubt.
func (x *step) rebase(i int) {
	s, w := x.s, &x.s.w[i]
	if s.left.rebases == 0 || s.c[s.head].tomb {
		return
	}
	t := *s
	t.left.rebases--
	v := &t.w[i]
	past := s.lineage(s.head, 0)
	look := w.doubts
	if x.m.rebaseOnce {
		look &= 1 << w.pending
	}
	if found := look & past; found != 0 {
		t.acked |= found
		*v = writer{st: ready, view: s.head, fresh: true}
		x.emit(&t, event{evFound, w.pending, s.head})
		return
	}
	*v = writer{st: ready, view: s.head, fresh: true, doubts: w.doubts}
	if x.m.keepUploads {
		v.seg = w.seg
	}
	if id, ok := x.put(&t, i, s.head, w.turn, func(*replaceState, *commit) {}); ok {
		v.rebases = true
		x.emit(&t, event{evRebase, id, s.head})
	}
}

// deliver emits the outcomes of a request under way.
func (x *step) deliver(n int) {
	s := x.s
	r := s.fl[n]
	base := *s
	base.fl[n] = request{}
	if r.del {
		t := base
		t.head = 0
		if s.c[s.head].tomb {
			t.acked = 0 // the content of the session was to be removed
		}
		x.emit(&t, event{evHeadGone, r.id, 0})
		return
	}
	if s.left.hidden > 0 {
		t := *s
		t.left.hidden--
		if x.send(&t, r) {
			x.emit(&t, event{evTwice, r.id, 0})
		}
	}
	if !x.m.lossless {
		t := base
		x.emit(&t, event{evLost, r.id, 0})
	}
	who := -1
	for i := range s.w {
		if s.w[i].st == waiting && s.w[i].pending == r.id {
			who = i
		}
	}
	if who >= 0 && s.left.busy > 0 {
		x.busy(base, who, r)
	}
	if r.cond != s.version() && !x.m.unconditional {
		x.refuse(base, who, r)
		return
	}
	t := base
	t.head = r.id
	if !x.m.lossless || who < 0 {
		x.emit(&t, event{evApplied, r.id, 0})
	}
	if who >= 0 {
		x.acknowledge(&t, who)
		x.emit(&t, event{evAcked, r.id, 0})
	}
}

// busy is the answer that nothing was applied: if no earlier answer was lost and no try is left, the commit failed and
// the handle can continue; else the same bytes are sent again.
func (x *step) busy(t replaceState, who int, r request) {
	t.left.busy--
	w := &t.w[who]
	e := event{evBusy, r.id, 0}
	if w.tries < x.m.tries {
		u := t
		u.w[who].tries++
		if x.send(&u, r) {
			x.emit(&u, e)
		}
	}
	if !w.lost && x.copies(&t, r.id) == 0 {
		x.notApplied(&t, who)
		x.emit(&t, e)
	}
}

// copies counts the requests under way with a commit.
func (x *step) copies(t *replaceState, id uint8) (n int) {
	for _, r := range t.fl {
		if r.id == id {
			n++
		}
	}
	return n
}

// notApplied reports a commit as failed; the handle is unchanged. A turn that was being rebased stays in it.
func (x *step) notApplied(t *replaceState, who int) {
	w := &t.w[who]
	t.failed |= 1 << w.pending
	switch {
	case w.rebases && w.doubts != 0:
		w.st = doubtful
	case w.rebases:
		w.st = conflicted
	default:
		*w = writer{st: ready, view: w.view, fresh: w.fresh, seg: w.seg, blobs: w.blobs, foreign: w.foreign}
	}
}

// refuse is the answer 412.
func (x *step) refuse(base replaceState, who int, r request) {
	if !x.m.lossless || who < 0 {
		t := base
		x.emit(&t, event{evRefused, r.id, t.head})
	}
	if who < 0 {
		return
	}
	t := base
	switch {
	case x.m.refusedFailed:
		t.failed |= 1 << r.id
		t.w[who] = writer{}
		x.emit(&t, event{evRefused, r.id, t.head})
		return
	case x.m.refusedSure && !t.w[who].lost: // all reads fail
		x.notApplied(&t, who)
		x.emit(&t, event{evRefused, r.id, t.head})
		t = base
	}
	x.judge(&t, who, evRefused)
}
