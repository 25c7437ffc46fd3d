package model

// A model of one segment of a log, as tokens: whole lines, prefixes of lines, newlines. It covers the tail that a
// writer left when it died or ran out of space during an append, and the bytes that a failed sync left in memory.

const (
	tokensMax   = 13
	attemptsMax = 7 // ids 1 to 7
	handlesMax  = 2
)

// The kinds of tokens. Each represents bytes of one attempt.
const (
	nothing   uint8 = iota
	entryLine       // an entry with its newline
	entryPart       // a prefix of one
	commitLine
	commitPart
	commitBare // a whole commit line without its newline
	newline
	zeros // bytes that never reached the disk
)

// The durability of a token.
const (
	onDisk uint8 = iota
	dirty        // in memory; the next sync of the file writes it
	clean        // in memory, and assumed written by the system: a sync failed
)

type token struct{ kind, id, safe uint8 }

// attempt is the commit that an append tried to make.
type attempt struct {
	parent   uint8
	from, to uint8 // tokens that it declares torn; equal = none
	synced   uint8 // durable length of the log when it was written
}

// handle is a process that has the segment open.
type handle struct {
	open       bool
	size, last uint8 // the end of its last commit, and that commit
	cutting    uint8 // tokens of a short write, which it cuts off next
	tried      uint8 // its attempts, as a set
}

type tornState struct {
	tok           [tokensMax]token
	n             uint8
	att           [attemptsMax + 1]attempt
	made          uint8
	acked, failed uint8
	p             [handlesMax]handle
	left          struct{ opens, kills, shorts, syncs, powers uint8 }
}

// tornModel is the protocol of the log's end. The switches leave rules out.
type tornModel struct {
	appendBehind bool // torn bytes are left, and the next append follows them
	declare      bool // they are left, and the next commit declares their range
	bareCounts   bool // a commit line counts without its newline
	noResync     bool // bytes of unknown durability are not written again before a commit follows them
	dirtyReads   bool // readers read while a short write is being cut back
	shortStays   bool // a short write is reported as failed and not cut back
	retrySync    bool // a failed sync is retried, and success is trusted
	earlyAck     bool // a commit is acknowledged before it is synced

	tokens, attempts                    int
	opens, kills, shorts, syncs, powers uint8
}

func (m *tornModel) space() *space[tornState, key] {
	var s tornState
	s.left.opens, s.left.kills, s.left.shorts, s.left.syncs, s.left.powers = m.opens, m.kills, m.shorts, m.syncs, m.powers
	return &space[tornState, key]{begin: s, pack: m.pack, open: m.unpack, next: m.next, wrong: m.wrong}
}

// recovered is a reader's result.
type recovered struct {
	good, last uint8 // end and id of the last commit
	set        uint8
	corrupt    bool // a later line states a longer durable length than this
}

// read reads forward, line by line. A commit counts iff it follows the one before it, and its checksum covers the
// tokens between them.
func (m *tornModel) read(s *tornState) (r recovered) {
	var behind uint8 // declared ranges of lines that do not count
	begin := uint8(0)
	for i := uint8(0); i < s.n; i++ {
		t := s.tok[i]
		id, end := t.id, i+1
		switch t.kind {
		case commitLine:
			if begin != i {
				id = 0
			}
		case newline:
			if i != begin+1 || s.tok[begin].kind != commitBare {
				id = 0
			} else {
				id = s.tok[begin].id
			}
		case entryLine:
			id = 0
		case commitBare:
			if !m.bareCounts || i != begin || end != s.n {
				continue
			}
		default:
			continue // the line continues
		}
		if id != 0 {
			a := &s.att[id]
			if a.parent == r.last && m.covers(s, r.good, begin, id) {
				r.good, r.last = end, id
				r.set |= 1 << id
				behind = 0
			} else {
				behind = max(behind, a.synced)
			}
		}
		begin = end
	}
	r.corrupt = behind > r.good
	return r
}

// covers reports whether the tokens between the previous commit and this line are those that preceded it when it was
// written.
func (m *tornModel) covers(s *tornState, from, line, id uint8) bool {
	if a := &s.att[id]; a.to > a.from {
		if a.from != from || a.to > line {
			return false
		}
		from = a.to
	}
	for from < line && s.tok[from].kind == newline {
		from++
	}
	return line == from+1 && s.tok[from] == token{entryLine, id, s.tok[from].safe}
}

func (m *tornModel) wrong(s *tornState) string {
	r := m.read(s)
	for i := range s.p {
		if s.p[i].cutting > 0 {
			return "" // the log is locked, and not read
		}
	}
	switch {
	case s.acked&^r.set != 0:
		return "I1: an acknowledged commit is not in the log"
	case s.failed&r.set != 0:
		return "I2: a commit that was reported failed is in the log"
	case r.corrupt:
		return "I10: a log that nobody damaged is called corrupt"
	}
	return ""
}

func (m *tornModel) pack(s *tornState) key {
	var w bitWriter
	for i := range s.tok {
		t := &s.tok[i]
		w.put(bitsOf(t.kind, 3, t.id, 3, t.safe, 2), 8)
	}
	for i := range s.att[1:] {
		a := &s.att[i+1]
		w.put(bitsOf(a.parent, 3, a.from, 4, a.to, 4, a.synced, 4), 15)
	}
	w.put(bitsOf(s.n, 4, s.made, 3, s.acked>>1, 7, s.failed>>1, 7), 21)
	ps := s.p
	if a, b := packHandle(&ps[0]), packHandle(&ps[1]); a < b {
		ps[0], ps[1] = ps[1], ps[0]
	}
	for i := range ps {
		w.put(packHandle(&ps[i]), 20)
	}
	l := &s.left
	w.put(bitsOf(l.opens, 3, l.kills, 3, l.shorts, 3, l.syncs, 3, l.powers, 3), 15)
	return w.k
}

func packHandle(p *handle) uint64 {
	return bitsOf(flags(p.open, false), 1, p.size, 4, p.last, 3, p.cutting, 4, p.tried>>1, 7)
}

func (m *tornModel) unpack(k key) (s tornState) {
	r := bitReader{k: &k}
	for i := range s.tok {
		t := &s.tok[i]
		t.kind, t.id, t.safe = r.get(3), r.get(3), r.get(2)
	}
	for i := range s.att[1:] {
		a := &s.att[i+1]
		a.parent, a.from, a.to, a.synced = r.get(3), r.get(4), r.get(4), r.get(4)
	}
	s.n, s.made, s.acked, s.failed = r.get(4), r.get(3), r.get(7)<<1, r.get(7)<<1
	for i := range s.p {
		p := &s.p[i]
		p.open, p.size, p.last, p.cutting, p.tried = r.flag(), r.get(4), r.get(3), r.get(4), r.get(7)<<1
		r.n++
	}
	l := &s.left
	l.opens, l.kills, l.shorts, l.syncs, l.powers = r.get(3), r.get(3), r.get(3), r.get(3), r.get(3)
	return s
}
