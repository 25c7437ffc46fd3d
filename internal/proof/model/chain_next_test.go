package model

// The events of the chain model.
const (
	evLogOpen uint8 = iota
	evLogJudge
	evLogCrash
	evLogCommit
	evLogStale
	evLogCreate
	evLogRoll
	evLogSeal
	evLogSealLost
	evLogBuild
	evLogPublish
	evLogOlder
	evLogRemove
	evLogRepair
	evLogFlip
	evLogPower
	evLogList
	evLogCollect
)

var chainEvents = map[uint8]string{
	evLogOpen:     "a process opens the log: segment %d, epoch %d comes next",
	evLogJudge:    "a process opens segment %d and cuts its last line off as torn",
	evLogCrash:    "the process on segment %d dies",
	evLogCommit:   "commit %d is appended to segment %d: acknowledged",
	evLogStale:    "a process finds segment %d changed: it stands on segment %d now",
	evLogCreate:   "segment %d is created to follow segment %d",
	evLogRoll:     "segment %d is closed: segment %d follows",
	evLogSeal:     "segment %d is sealed",
	evLogSealLost: "segment %d is sealed, its directory sync fails",
	evLogBuild:    "a checkpoint of %d commits is made, with sealed segments %04b",
	evLogPublish:  "the checkpoint of %d commits is published",
	evLogOlder:    "the checkpoint of %d commits is dropped: a newer one is in force",
	evLogRemove:   "the plain form of segment %d is removed",
	evLogRepair:   "a repair copies segment %d into segment %d",
	evLogFlip:     "at rest, a bit flips in the last line of segment %d",
	evLogPower:    "power is lost",
	evLogList:     "the collector lists: plain %04b, sealed %04b",
	evLogCollect:  "the collector deletes: plain %04b, sealed %04b",
}

func (m *chainModel) next(s *chainState, emit func(*chainState, event)) {
	x := &logStep{m, s, emit}
	for i := range m.processes {
		p := &s.p[i]
		if i > 0 && *p == s.p[i-1] {
			continue
		}
		if !p.open {
			x.opens(i)
			continue
		}
		if s.left.crashes > 0 {
			t := *s
			t.left.crashes--
			t.p[i] = process{}
			emit(&t, event{evLogCrash, p.seg, 0})
		}
		x.commits(i)
		x.rolls(i)
		x.publishes(i)
	}
	x.seals()
	x.upkeep()
	x.collect()
}

type logStep struct {
	m    *chainModel
	s    *chainState
	emit func(*chainState, event)
}

// opens reads the log and judges what follows the last commit, as the first commit of a handle does.
func (x *logStep) opens(i int) {
	if x.s.left.opens == 0 {
		return
	}
	t := *x.s
	l := x.m.follow(&t)
	t.left.opens--
	t.p[i] = process{open: true, seg: l.last, set: t.s[l.last].set, epoch: min(l.epoch+1, 7)}
	e := event{evLogOpen, l.last, l.epoch + 1}
	if g := &t.s[l.last]; g.damaged {
		g.damaged, g.next = false, 0
		e.what = evLogJudge
	}
	x.emit(&t, e)
}

// fits reports whether the active segment ends at the process's position.
func (x *logStep) fits(s *chainState, p *process) bool {
	g := &s.s[p.seg]
	return g.plain && g.set == p.set && g.next == 0 && !g.damaged
}

func (x *logStep) commits(i int) {
	s, p := x.s, &x.s.p[i]
	t := *s
	g, q := &t.s[p.seg], &t.p[i]
	fits := x.fits(s, p)
	switch {
	case x.m.blindAppend && g.plain && !fits && int(s.made) < x.m.commits:
		t.made++ // it continues from a commit that is no longer the last: no reader follows it
		t.acked |= 1 << t.made
		x.emit(&t, event{evLogCommit, t.made, p.seg})
		return
	case x.m.appendCreates && !g.plain && p.set == 0:
		*g = seg{plain: true, epoch: p.epoch, sealed: g.sealed}
		fits = true
	}
	if !fits {
		l := x.m.follow(&t)
		*q = process{open: true, seg: l.last, set: t.s[l.last].set, epoch: min(l.epoch+1, 7)}
		x.emit(&t, event{evLogStale, p.seg, l.last})
		return
	}
	if int(s.made) == x.m.commits {
		return
	}
	t.made++
	g.set |= 1 << t.made
	g.epoch = max(g.epoch, p.epoch)
	q.set |= 1 << t.made
	t.acked |= 1 << t.made
	x.emit(&t, event{evLogCommit, t.made, p.seg})
}

// rolls closes the active segment: the next one is created first, then the last line names it.
func (x *logStep) rolls(i int) {
	s, p := x.s, &x.s.p[i]
	fits := x.fits(s, p)
	switch {
	case p.half: // a left-out rule: the line was written first
		t := *s
		t.s[p.next-1] = seg{plain: true, epoch: p.epoch}
		t.p[i].seg, t.p[i].set, t.p[i].next, t.p[i].half = p.next-1, 0, 0, false
		x.emit(&t, event{evLogCreate, p.next - 1, p.seg})
	case p.next != 0 && fits:
		t := *s
		t.s[p.seg].next = p.next
		t.s[p.seg].epoch = max(t.s[p.seg].epoch, p.epoch)
		t.p[i].seg, t.p[i].set, t.p[i].next = p.next-1, t.s[p.next-1].set, 0
		x.emit(&t, event{evLogRoll, p.seg, p.next - 1})
	case p.next == 0 && fits && s.left.rolls > 0 && int(s.named) < x.m.segments && p.set != 0:
		t := *s
		t.left.rolls--
		t.named++
		t.p[i].next = t.named
		if x.m.rollFirst {
			t.p[i].half = true
			t.s[p.seg].next = t.named
			x.emit(&t, event{evLogRoll, p.seg, s.named})
			return
		}
		t.s[s.named] = seg{plain: true, epoch: p.epoch}
		x.emit(&t, event{evLogCreate, s.named, p.seg})
	}
}

// seals writes the sealed form of a closed segment: any process past it may.
func (x *logStep) seals() {
	for i := range x.s.s {
		g := &x.s.s[i]
		if !g.plain || g.next == 0 || g.damaged || g.sealed == 2 {
			continue
		}
		t := *x.s
		t.s[i].sealed = 2
		if g.sealed == 1 && x.m.noHarden {
			continue
		}
		x.emit(&t, event{evLogSeal, uint8(i), 0})
		if g.sealed == 0 && x.m.lostPower > 0 {
			t.s[i].sealed = 1
			x.emit(&t, event{evLogSealLost, uint8(i), 0})
		}
	}
}

// publishes makes a checkpoint of the process's position, once everything before it is sealed, and puts it in force
// later: only forward, and only over the checkpoint that it has seen.
func (x *logStep) publishes(i int) {
	s, p := x.s, &x.s.p[i]
	if !p.building {
		l := x.m.follow(s)
		sealed, set := uint8(0), uint8(0)
		for at := uint8(0); at != p.seg; at = s.s[at].next - 1 {
			g := &s.s[at]
			if g.next == 0 || g.sealed == 0 || g.sealed == 1 && !x.m.noHarden {
				return // not on the path to it, or not sealed
			}
			sealed |= 1 << at
			set |= g.set
		}
		if s.left.cks == 0 || l.on>>p.seg&1 == 0 {
			return
		}
		t := *s
		t.left.cks--
		t.p[i].building, t.p[i].checkpoint = true, cache{true, seqOf(set | p.set), p.seg, sealed}
		x.emit(&t, event{evLogBuild, seqOf(set | p.set), sealed})
		return
	}
	t := *s
	t.p[i].building, t.p[i].checkpoint = false, cache{}
	if c := p.checkpoint; s.ck.there && s.ck.seq > c.seq {
		x.emit(&t, event{evLogOlder, c.seq, 0})
	} else {
		t.ck = c
		x.emit(&t, event{evLogPublish, c.seq, 0})
	}
}

// upkeep is the background work of no process.
func (x *logStep) upkeep() {
	s := x.s
	rest := true
	for i := range s.p {
		rest = rest && !s.p[i].open
	}
	for i := range s.s {
		g, n := &s.s[i], uint8(i)
		if g.plain && g.sealed > 0 && (x.m.removeEarly || s.ck.sealed>>n&1 == 1) {
			t := *s
			t.s[i].plain = false
			x.emit(&t, event{evLogRemove, n, 0})
		}
		if rest && s.left.flips > 0 && g.plain && g.sealed == 0 && g.next != 0 && !g.damaged {
			t := *s
			t.left.flips--
			t.s[i].damaged = true
			x.emit(&t, event{evLogFlip, n, 0})
		}
	}
	if s.left.powers > 0 {
		t := *s
		t.left.powers--
		t.p = [processesMax]process{}
		for i := range t.s {
			if t.s[i].sealed == 1 {
				t.s[i].sealed = 0
			}
		}
		x.emit(&t, event{evLogPower, 0, 0})
	}
	x.repairs()
}

// repairs copies the readable part of the active segment into a new one that replaces it; the old one is closed, as by
// a rollover.
func (x *logStep) repairs() {
	s := x.s
	l := x.m.follow(s)
	if s.left.repairs == 0 || int(s.named) == x.m.segments || l.broken || l.last == 0 {
		return
	}
	t := *s
	t.left.repairs--
	n := s.named
	t.named++
	old := &t.s[l.last]
	t.s[n] = seg{plain: true, set: old.set, epoch: min(l.epoch+1, 7)}
	for i := range t.s[:n] {
		if g := &t.s[i]; g.next == l.last+1 && l.on>>i&1 == 1 {
			g.next = n + 1
		}
	}
	if !x.m.repairUnfenced {
		old.next = n + 1
	}
	x.emit(&t, event{evLogRepair, l.last, n})
}

// collect lists, then reads the log and the checkpoint, and deletes.
func (x *logStep) collect() {
	t := *x.s
	g := &t.gc
	if g.step == 0 {
		if t.left.gcs == 0 {
			return
		}
		t.left.gcs--
		g.step = 1
		for i := range t.s {
			if t.s[i].plain {
				g.plain |= 1 << i
			}
			if t.s[i].sealed > 0 {
				g.sealed |= 1 << i
			}
		}
		x.emit(&t, event{evLogList, g.plain, g.sealed})
		return
	}
	l := x.m.follow(&t)
	keep := l.on | t.ck.sealed
	if x.m.rootsOfCache {
		keep = t.ck.sealed | 1<<t.ck.seg
	}
	e := event{what: evLogCollect}
	for i := range t.s {
		o, bit := &t.s[i], uint8(1)<<i
		garbage := keep&bit == 0 && (o.epoch < l.epoch || x.m.collectAll) && (o.set == 0 || x.m.rootsOfCache)
		if g.plain&bit != 0 && o.plain && (garbage || t.ck.sealed&bit != 0 && o.sealed > 0) {
			o.plain = false
			e.a |= bit
		}
		if g.sealed&bit != 0 && garbage {
			o.sealed = 0
			e.b |= bit
		}
	}
	t.gc = sweep{}
	x.emit(&t, e)
}
