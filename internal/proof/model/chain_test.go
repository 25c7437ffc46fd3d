package model

import "math/bits"

const (
	segmentsMax  = 4
	logsMax      = 6 // commit ids 1 to 6
	processesMax = 3
)

// seg is a segment of a log. Its commits are a set: they were made in the order of their ids.
type seg struct {
	plain   bool
	sealed  uint8 // 0 = not, 1 = visible but possibly not on disk, 2 = on disk
	set     uint8
	next    uint8 // 1 + the segment that its last line names; 0 = open
	epoch   uint8
	damaged bool // the last line cannot be read
}

// cache is a checkpoint_latest.
type cache struct {
	there    bool
	seq, seg uint8
	sealed   uint8 // the segments that it names in sealed form
}

// process is a handle on the log.
type process struct {
	open       bool
	seg, set   uint8 // its position: the segment that it takes for active, and the part of it that it has read
	epoch      uint8
	next       uint8 // 1 + a segment that it has created, before its roll line
	half       bool  // it has written the roll line and not yet created the segment (a left-out rule)
	building   bool
	checkpoint cache
}

// sweep is a run of GC.
type sweep struct{ step, plain, sealed uint8 }

type chainState struct {
	s     [segmentsMax]seg
	named uint8
	made  uint8
	acked uint8
	ck    cache
	p     [processesMax]process
	gc    sweep
	left  struct{ opens, crashes, rolls, cks, gcs, repairs, flips, powers uint8 }
}

// chainModel is the append strategy across segments. The switches leave rules out.
type chainModel struct {
	blindAppend    bool // an append does not compare the length
	appendCreates  bool // an append to a missing file creates it
	rollFirst      bool // the roll line is written before the segment that it names
	noHarden       bool // a sealed segment of another process is assumed durable
	removeEarly    bool // the plain form is removed when the sealed one is visible
	collectAll     bool // GC does not check the epoch
	rootsOfCache   bool // the roots of GC are those of checkpoint_latest alone
	repairUnfenced bool // a repair does not close the segment that it replaces
	judgeAlone     bool // a tail is judged without later segments

	processes, segments, commits                               int
	opens, crashes, rolls, cks, gcs, repairs, flips, lostPower uint8
}

func (m *chainModel) space() *space[chainState, key] {
	s := chainState{named: 1}
	s.s[0] = seg{plain: true, epoch: 1}
	l := &s.left
	l.opens, l.crashes, l.rolls, l.cks, l.gcs, l.repairs, l.flips, l.powers = m.opens, m.crashes, m.rolls, m.cks, m.gcs, m.repairs, m.flips, m.lostPower
	return &space[chainState, key]{begin: s, pack: m.pack, open: m.unpack, next: m.next, wrong: m.wrong}
}

// log is the chain as a reader finds it.
type log struct {
	set, last, epoch uint8
	on               uint8 // its segments
	broken           bool  // it names a missing segment
}

// follow reads the log from its first segment. After an unreadable last line it continues in later segments whose
// commits name the last one read.
func (m *chainModel) follow(s *chainState) (l log) {
	for range segmentsMax + 1 {
		g := &s.s[l.last]
		if !g.plain && g.sealed == 0 {
			l.broken = true
			return l
		}
		l.set |= g.set
		l.on |= 1 << l.last
		l.epoch = max(l.epoch, g.epoch)
		if g.next == 0 || g.damaged && (m.judgeAlone || s.s[g.next-1].set == 0) {
			return l
		}
		l.last = g.next - 1
	}
	l.broken = true
	return l
}

func (m *chainModel) wrong(s *chainState) string {
	l := m.follow(s)
	switch {
	case l.broken:
		return "I3: a segment of the log is gone"
	case s.acked&^l.set != 0 && !(m.judgeAlone && s.waitsForJudge()):
		return "I1: an acknowledged commit is not in the log"
	}
	return ""
}

// waitsForJudge reports whether a last line is damaged and not yet judged: nothing is decided.
func (s *chainState) waitsForJudge() bool {
	for i := range s.s {
		if s.s[i].damaged {
			return true
		}
	}
	return false
}

func seqOf(set uint8) uint8 { return uint8(bits.OnesCount8(set)) }

func (m *chainModel) pack(full *chainState) key {
	s := *full
	var w bitWriter
	for i := range s.s {
		g := &s.s[i]
		w.put(bitsOf(flags(g.plain, g.damaged), 2, g.sealed, 2, g.set>>1, 6, g.next, 3, g.epoch, 3), 16)
	}
	w.put(bitsOf(s.named, 3, s.made, 3, s.acked>>1, 6, flags(s.ck.there, false), 1, s.ck.seq, 3, s.ck.seg, 2, s.ck.sealed, 4), 22)
	ps := [processesMax]uint64{packProcess(&s.p[0]), packProcess(&s.p[1]), packProcess(&s.p[2])}
	for _, at := range [...]int{0, 1, 0} {
		if ps[at] < ps[at+1] {
			ps[at], ps[at+1] = ps[at+1], ps[at]
		}
	}
	for _, p := range ps {
		w.put(p, 26)
	}
	l := &s.left
	w.put(bitsOf(s.gc.step, 2, s.gc.plain, 4, s.gc.sealed, 4), 10)
	w.put(bitsOf(l.opens, 3, l.crashes, 3, l.rolls, 3, l.cks, 3, l.gcs, 3, l.repairs, 3, l.flips, 3, l.powers, 3), 24)
	return w.k
}

func packProcess(p *process) uint64 {
	c := &p.checkpoint
	return bitsOf(flags(p.open, p.half), 2, p.seg, 2, p.set>>1, 6, p.epoch, 3, p.next, 3) |
		bitsOf(flags(p.building, false), 1, c.seq, 3, c.seg, 2, c.sealed, 4)<<16
}

func (m *chainModel) unpack(k key) (s chainState) {
	r := bitReader{k: &k}
	for i := range s.s {
		g := &s.s[i]
		g.plain, g.damaged, g.sealed, g.set, g.next, g.epoch = r.flag(), r.flag(), r.get(2), r.get(6)<<1, r.get(3), r.get(3)
	}
	s.named, s.made, s.acked = r.get(3), r.get(3), r.get(6)<<1
	s.ck.there, s.ck.seq, s.ck.seg, s.ck.sealed = r.flag(), r.get(3), r.get(2), r.get(4)
	for i := range s.p {
		p := &s.p[i]
		p.open, p.half, p.seg, p.set, p.epoch, p.next = r.flag(), r.flag(), r.get(2), r.get(6)<<1, r.get(3), r.get(3)
		c := &p.checkpoint
		p.building, c.seq, c.seg, c.sealed = r.flag(), r.get(3), r.get(2), r.get(4)
		c.there = p.building
	}
	s.gc.step, s.gc.plain, s.gc.sealed = r.get(2), r.get(4), r.get(4)
	l := &s.left
	l.opens, l.crashes, l.rolls, l.cks = r.get(3), r.get(3), r.get(3), r.get(3)
	l.gcs, l.repairs, l.flips, l.powers = r.get(3), r.get(3), r.get(3), r.get(3)
	return s
}
