package model

// The events of the torn-tail model.
const (
	evTornOpen uint8 = iota
	evTornStale
	evTornMend
	evTornAppend
	evTornKill
	evTornShort
	evTornCut
	evTornUncut
	evTornSync
	evTornRetry
	evTornPower
	evTornHole
	evTornNotYet
)

var tornEvents = map[uint8]string{
	evTornOpen:   "a process opens the log behind commit %d",
	evTornStale:  "a process finds commits of others behind commit %d: it stands on commit %d now",
	evTornMend:   "a process moves %d tokens aside and cuts them off",
	evTornAppend: "a process appends %d commits up to %d: acknowledged",
	evTornKill:   "a process dies after %d tokens of an append up to commit %d",
	evTornShort:  "a process has space for %d tokens of an append up to commit %d",
	evTornCut:    "it cuts its %d tokens off again: failed",
	evTornUncut:  "it cannot cut its %d tokens off: unknown",
	evTornSync:   "the sync of an append of %d commits up to %d fails: unknown",
	evTornRetry:  "the sync of an append of %d commits up to %d fails, and succeeds when it is called again",
	evTornPower:  "power is lost, and with it all behind token %d that was not on disk",
	evTornHole:   "power is lost, and with it token %d alone",
	evTornNotYet: "a process appends %d commits up to %d: acknowledged before the sync",
}

func (m *tornModel) next(s *tornState, emit func(*tornState, event)) {
	locked := false
	for i := range s.p {
		locked = locked || s.p[i].cutting > 0
	}
	for i := range s.p {
		p := &s.p[i]
		switch {
		case p.cutting > 0:
			m.cutBack(s, i, emit)
		case i > 0 && *p == s.p[i-1]:
		case locked && !m.dirtyReads:
		case !p.open && s.left.opens > 0:
			r := m.read(s)
			t := *s
			t.left.opens--
			t.p[i] = handle{open: true, size: r.good, last: r.last}
			emit(&t, event{evTornOpen, r.last, 0})
		case p.open && !locked:
			m.append(s, i, emit)
		}
	}
	if s.left.powers > 0 {
		m.power(s, emit)
	}
}

// append writes one commit, or two in one append, if the log ends at the handle's position.
func (m *tornModel) append(s *tornState, i int, emit func(*tornState, event)) {
	p := &s.p[i]
	t := *s
	if s.n != p.size {
		r := m.read(s)
		switch {
		case r.good != p.size || r.last != p.last:
			t.p[i].size, t.p[i].last = r.good, r.last
			emit(&t, event{evTornStale, p.last, r.last})
			return
		case !m.appendBehind && !m.declare:
			if !m.noResync {
				synced(&t, true)
			}
			for j := r.good; j < t.n; j++ {
				t.tok[j] = token{}
			}
			t.n = r.good
			emit(&t, event{evTornMend, s.n - r.good, 0})
			return
		}
	}
	if !m.noResync {
		synced(&t, true)
	}
	for _, commits := range []int{1, 2} {
		u := t
		if m.compose(&u, i, commits) {
			m.outcomes(&t, &u, i, uint8(commits), emit)
		}
	}
}

// compose writes the whole append into u, all of it dirty.
func (m *tornModel) compose(u *tornState, i, commits int) bool {
	p := &u.p[i]
	last, from := p.last, p.size
	add := func(kind, id uint8) bool {
		if int(u.n) == m.tokens {
			return false
		}
		u.tok[u.n] = token{kind, id, dirty}
		u.n++
		return true
	}
	torn := u.n > p.size
	begin := u.n
	if bare := u.n > 0 && u.tok[u.n-1].kind == commitBare; (torn && m.declare || bare && m.bareCounts) && !wholeLine(u.tok[u.n-1].kind) && !add(newline, 0) {
		return false
	}
	for c := range commits {
		if int(u.made) == m.attempts {
			return false
		}
		u.made++
		a := attempt{parent: last, synced: p.size}
		if c == 0 && torn && m.declare {
			a.from, a.to = from, begin
		}
		u.att[u.made] = a
		p.tried |= 1 << u.made
		last = u.made
		if !add(entryLine, last) || !add(commitLine, last) {
			return false
		}
	}
	return true
}

func wholeLine(kind uint8) bool { return kind == entryLine || kind == commitLine || kind == newline }

// outcomes emits the possible results of an append. t is the log before it, u after it.
func (m *tornModel) outcomes(t, u *tornState, i int, commits uint8, emit func(*tornState, event)) {
	p := &u.p[i]
	tried := p.tried
	ok := *u
	ok.acked |= tried
	synced(&ok, false)
	ok.p[i] = handle{open: true, size: ok.n, last: ok.made}
	emit(&ok, event{evTornAppend, commits, ok.made})
	if m.earlyAck {
		early := *u
		early.acked |= tried
		early.p[i] = handle{open: true, size: early.n, last: early.made}
		emit(&early, event{evTornNotYet, commits, early.made})
	}
	if u.left.syncs > 0 {
		bad := *u
		bad.left.syncs--
		for j := t.n; j < bad.n; j++ {
			bad.tok[j].safe = clean
		}
		retried := bad
		bad.p[i] = handle{}
		emit(&bad, event{evTornSync, commits, bad.made})
		if m.retrySync {
			retried.acked |= tried
			retried.p[i] = handle{open: true, size: retried.n, last: retried.made}
			emit(&retried, event{evTornRetry, commits, retried.made})
		}
	}
	for end := t.n; end < u.n; end++ {
		for _, kind := range parts(u.tok[end].kind) {
			part := *u
			n := end
			if kind != nothing {
				part.tok[n] = token{kind, u.tok[end].id, dirty}
				n++
			}
			for j := n; j < u.n; j++ {
				part.tok[j] = token{}
			}
			if part.n = n; n == t.n {
				continue
			}
			if u.left.kills > 0 {
				x := part
				x.left.kills--
				x.p[i] = handle{}
				emit(&x, event{evTornKill, n - t.n, u.made})
			}
			if u.left.shorts > 0 {
				x := part
				x.left.shorts--
				x.p[i].cutting = n - t.n
				emit(&x, event{evTornShort, n - t.n, u.made})
			}
		}
	}
}

// parts returns the tokens that may remain of one that was cut in the middle; none = cut before its first byte.
func parts(kind uint8) []uint8 {
	switch kind {
	case entryLine:
		return []uint8{nothing, entryPart}
	case commitLine:
		return []uint8{nothing, commitPart, commitBare}
	default:
		return []uint8{nothing}
	}
}

// cutBack removes a short write; the writer still holds the lock.
func (m *tornModel) cutBack(s *tornState, i int, emit func(*tornState, event)) {
	p := &s.p[i]
	t := *s
	if m.shortStays {
		t.failed |= p.tried
		t.p[i] = handle{open: true, size: p.size, last: p.last}
		emit(&t, event{evTornCut, p.cutting, 0})
		return
	}
	t.p[i] = handle{}
	emit(&t, event{evTornUncut, p.cutting, 0})
	for j := s.n - p.cutting; j < s.n; j++ {
		t.tok[j] = token{}
	}
	t.n = s.n - p.cutting
	synced(&t, false)
	t.failed |= p.tried
	t.p[i] = handle{open: true, size: p.size, last: p.last}
	emit(&t, event{evTornCut, p.cutting, 0})
}

// synced makes dirty tokens durable; rewrite: clean ones as well.
func synced(s *tornState, rewrite bool) {
	for j := range s.n {
		if t := &s.tok[j]; t.safe == dirty || rewrite {
			t.safe = onDisk
		}
	}
}

// power emits power losses: of the tokens not on disk, those from some position on are lost, or one in the middle.
func (m *tornModel) power(s *tornState, emit func(*tornState, event)) {
	base := *s
	base.left.powers--
	base.p = [handlesMax]handle{}
	for at := uint8(0); at <= s.n; at++ {
		if at < s.n && s.tok[at].safe == onDisk {
			continue
		}
		t := base
		for j := at; j < t.n; j++ {
			if t.tok[j].safe != onDisk {
				t.tok[j] = token{kind: zeros}
			}
		}
		settle(&t)
		emit(&t, event{evTornPower, at, 0})
		if at < s.n {
			t = base
			t.tok[at] = token{kind: zeros}
			settle(&t)
			emit(&t, event{evTornHole, at, 0})
		}
	}
}

// settle ends the file after the last written byte; its content is on disk.
func settle(s *tornState) {
	for s.n > 0 && s.tok[s.n-1].kind == zeros {
		s.n--
		s.tok[s.n] = token{}
	}
	for j := range s.tok[:s.n] {
		s.tok[j].safe = onDisk
	}
}
