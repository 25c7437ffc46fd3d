package model

// The limits of a state of the turn model.
const (
	linesMax = 12 // ids 1 to 12; 0 = none
	opsMax   = 8
	reqMax   = 3 // lines of a turnRequest
	foreign  = 9 // first number of the other writer's entries and documents
)

// The kinds of lines.
const (
	lineCreate uint8 = iota + 1
	lineTurn
	lineMove
	lineKept    // a turn on a branch of its own: it moves nothing
	lineRestate // follows a kept line: the session as it was before it
	lineNote    // an annotation: it sets the one annotated field of the model
	lineClaim
	lineRoll // closes a full segment
	lineTomb
)

// line is a commit line. Its id is its index in the state; its content never changes.
type line struct {
	kind, op, call uint8 // op: 1 + the operation that made it, and its call; 0 = the other writer
	prev           uint8 // the previous line
	head           uint8 // the parent of the next entry; 0 = the root
	branch, doc    uint8
	patch          uint8    // 1 + the document that doc is a patch against; 0 = doc is whole
	drafts         [2]uint8 // the stored entries, in order: from the buffer,
	own            uint8    // and of the turn
	key, digest    uint8
	note, claim    uint8 // the annotated field, and the newest claim, after this line
	life           uint8 // the incarnation of the session
	durable        bool
	acked          bool // ghost: a caller was told that it is stored
	denied         bool // ghost: a caller was told that it is not
}

// turnRequest is the request of one operation: one append, or one conditional PUT.
type turnRequest struct {
	op    uint8 // 1 + the operation; 0 = no turnRequest
	n     uint8
	main  uint8 // the index of the operation's own line
	lines [reqMax]uint8
	saw   uint8 // ghost: the line last shown to its caller
}

// turnHandle is the handle under test: what package coppice keeps in memory.
type turnHandle struct {
	open, creating   bool
	life             uint8
	view, tip        uint8 // lines
	buf              [2]uint8
	own              [2]uint8 // its claims: a set of lines, as bytes: a state without padding is fast to hash
	holder           uint8    // 1 + the operation that has the lock
	doubt            turnRequest
	lastOp, lastWhat uint8 // the outcome of its last doubt
	lastLine         uint8
	trusts           bool // a mutant: it assumes that the log is confirmed
	ours             uint8
	committed        bool

	seen    uint8 // ghost: the line last shown to its callers
	bufSeen uint8 // ghost: the same, when the first draft of the buffer was appended
	view0   uint8 // ghost: view and buffer when the lock was taken
	buf0    [2]uint8
}

// The phases of an operation.
const (
	idle    uint8 = iota
	queued        // waits for the lock
	holding       // has the lock, and judges
	sending       // its request is composed
	asking        // ends the doubt first
	again         // sends the missing lines of the doubt
	hook          // its hook runs
)

// The answers to a call.
const (
	noAnswer uint8 = iota
	stored
	repeated
	idleAnswer  // there was nothing to do
	unknown     // ErrCommitUnknown
	inDoubt     // ErrInDoubt
	conflict    // ErrConflict
	fenced      // ErrFenced
	reused      // ErrKeyReused
	failed      // not applied, or lost: the same call can be repeated
	uncommitted // ErrUncommitted
	deleted     // ErrDeleted
	exists      // ErrExist
	shut        // ErrClosed
	gone        // the process died
)

// isStored reports whether an answer is a nil error.
func isStored(a uint8) bool { return a == stored || a == repeated || a == idleAnswer }

// notStored reports whether an answer promises that nothing was stored.
func notStored(a uint8) bool { return a >= inDoubt && a != gone }

// call is the phase of an operation, and its answer.
type call struct {
	phase, answer, calls uint8
	got                  uint8 // the line of its receipt
	base, saw            uint8 // of the call: the base that it names, and ghost: the line shown to its caller
	tries                uint8
	ended                bool // this call ended the doubt
	req                  turnRequest
}

// client is a caller, with the base that it names, like a client of the HTTP service.
type client struct{ etag, seen uint8 }

// turnState is the complete state: the store, late requests, the handle, its callers.
type turnState struct {
	ln      [linesMax + 1]line
	end     uint8 // the last line of the log, or of checkpoint_latest on a store that replaces
	torn    bool  // half a line follows it
	ck      uint8 // the line of the log's checkpoint
	late    turnRequest
	h       turnHandle
	ops     [opsMax]call
	clients [2]client
	rank    [opsMax]uint8 // ghost: the order in which the drafts were appended
	bad     uint8         // ghost: the invariant that a step violated
	left    turnBudget
}

// turnBudget holds the events that may still happen.
type turnBudget struct {
	turns, docs, notes, claims, keyed, kept, known, tombs, again, unsynced uint8 // by the other writer
	faults, lates, cancels, deaths, powers, opens, rolls, publishes        uint8
}

// place is the part of a session that conflicts are judged by.
type place struct{ head, branch, doc uint8 }

// at returns branch, head and document of the session after a line: a kept line changes none of them.
func (s *turnState) at(l uint8) place {
	for s.ln[l].kind == lineKept {
		l = s.ln[l].prev
	}
	return s.of(l)
}

// of returns the content of a line itself, also of a kept one.
func (s *turnState) of(l uint8) place { return place{s.ln[l].head, s.ln[l].branch, s.ln[l].doc} }

// chain returns the set of a line and its predecessors.
func (s *turnState) chain(l uint8) (set uint16) {
	for ; l != 0; l = s.ln[l].prev {
		set |= 1 << l
	}
	return set
}

// good returns the last line that counts: kept lines at the end do not (rule 12).
func (s *turnState) good() uint8 {
	l := s.end
	for s.ln[l].kind == lineKept {
		l = s.ln[l].prev
	}
	return l
}

// newer reports whether line a follows line b.
func (s *turnState) newer(a, b uint8) bool {
	return a != b && a != 0 && (b == 0 || s.chain(a)>>b&1 == 1)
}

// keyed returns the line with the key, up to tip.
func (s *turnState) keyed(tip, key uint8) uint8 {
	for l := tip; l != 0 && key != 0; l = s.ln[l].prev {
		if s.ln[l].key == key {
			return l
		}
	}
	return 0
}

// has reports whether an entry is stored up to tip.
func (s *turnState) has(tip, entry uint8) bool {
	for l := tip; l != 0 && entry != 0; l = s.ln[l].prev {
		if x := &s.ln[l]; x.own == entry || x.drafts[0] == entry || x.drafts[1] == entry {
			return true
		}
	}
	return false
}

// fence reports whether a claim of another writer follows base, up to tip.
func (s *turnState) fence(tip, base uint8) bool {
	c := s.ln[tip].claim
	return c != 0 && s.h.own[c/8]>>(c%8)&1 == 0 && s.newer(c, base)
}

// free returns an unused line id; 0 = there is none.
func (s *turnState) free() uint8 {
	for l := uint8(1); l <= linesMax; l++ {
		if s.ln[l].kind == 0 {
			return l
		}
	}
	return 0
}

// sweep removes unreachable lines, so that states which differ only in them are equal.
func (s *turnState) sweep() {
	live := s.chain(s.end) | s.chain(s.h.view) | s.chain(s.h.tip) | s.chain(s.h.seen)
	keep := func(r *turnRequest) {
		for _, l := range r.lines {
			live |= 1 << l
		}
	}
	keep(&s.late)
	keep(&s.h.doubt)
	for i := range s.ops {
		keep(&s.ops[i].req)
	}
	for _, c := range s.clients {
		live |= s.chain(c.etag) | s.chain(c.seen)
	}
	for l := range s.ln {
		if live>>l&1 == 0 && !s.ln[l].acked {
			s.ln[l] = line{}
		}
	}
}

// The names of the invariants, by number of turnState.bad.
const (
	fine uint8 = iota
	badLost
	badFenced
	badDrafts
	badView
	badNil
	badNothing
	badRefused
	badReused
	badSettle
	badReceipts
	badClose
	badTwo
	badLife
)

var broken = [...]string{
	badLost:     "lost update: a turn replaced what its caller was not shown",
	badFenced:   "fence: a fenced writer's turn is stored, and not as a branch on its own request",
	badDrafts:   "drafts: they do not grow from where they were appended, or not in order",
	badView:     "not stored, and view or buffer are not as before",
	badNil:      "nil, and what was appended before the call is not stored",
	badNothing:  "nothing to do, and the newest state says otherwise",
	badRefused:  "a turn was refused although its key is in the history",
	badReused:   "a turn that is sent again was taken for another one",
	badSettle:   "Settle returned nil for a turn that is not stored",
	badReceipts: "one key, two receipts",
	badClose:    "Close sent a request",
	badTwo:      "two requests of one handle at once",
	badLife:     "a writer of a deleted session wrote to the next one",
}

// wrong returns the name of a violated invariant; "" = none.
func (m *turnModel) wrong(s *turnState) string {
	if s.bad != fine {
		return broken[s.bad]
	}
	end := s.good()
	past := s.chain(end)
	for l := uint8(1); l <= linesMax; l++ {
		switch x := &s.ln[l]; {
		case x.acked && past>>l&1 == 0:
			return "I1: an acknowledged turn is not in the history"
		case x.denied && past>>l&1 == 1:
			return "I2: a turn that was reported as not stored is in the history"
		}
	}
	if h := s.h.holder; h != 0 && (s.ops[h-1].phase < holding || s.ops[h-1].phase == hook) {
		return "the lock is held by a call that has ended, or waits for it"
	}
	if s.ck != 0 && (past>>s.ck&1 == 0 || !s.ln[s.ck].durable) {
		return "I13: a checkpoint holds what is not confirmed"
	}
	if s.ln[end].kind == lineCreate {
		return "a session without its first turn"
	}
	return m.wrongLine(s, end)
}

// wrongLine checks each line against its predecessor.
func (m *turnModel) wrongLine(s *turnState, end uint8) string {
	var entries, keys uint32
	for l := end; l != 0; l = s.ln[l].prev {
		x, p := &s.ln[l], &s.ln[s.ln[l].prev]
		for _, e := range [...]uint8{x.own, x.drafts[0], x.drafts[1]} {
			if e != 0 && entries>>e&1 == 1 {
				return "an entry is stored twice"
			}
			entries |= 1 << e
		}
		switch {
		case x.key != 0 && keys>>x.key&1 == 1:
			return "a key is stored twice"
		case x.note != p.note && x.kind != lineNote && x.kind != lineCreate:
			return "an annotation was undone by a line that does not set its field"
		case x.patch != 0 && x.patch-1 != p.doc:
			return "I10: a reader applies a patch to another document"
		case p.kind == lineTomb && x.kind != lineCreate:
			return "a deleted session went on"
		case x.prev != 0 && x.kind != lineCreate && x.life != p.life:
			return broken[badLife]
		}
		keys |= 1 << x.key
	}
	return ""
}
