package model

import "math/bits"

// Limits of the replace model: the widths of its fields.
const (
	commitsMax = 7 // ids 1 to 7; 0 = none
	namesMax   = 4 // of segments and index objects
	writersMax = 3
	flightMax  = 3 // requests under way
	blobsMax   = 2
)

// replaceRules names the left-out or changed rule of the protocol. The zero value is the protocol itself.
type replaceRules struct {
	unconditional bool   // a commit is a PUT without a condition
	refusedFailed bool   // a 412 means that the commit failed
	refusedSure   bool   // a 412 that no read explained counts as certain instead of in doubt
	sameBody      bool   // a rollback uploads the earlier bytes again: no fresh id
	dense         bool   // segments are numbered, and an existing name is taken for one's own
	lineage       int    // how many commit ids a checkpoint holds; 0 = all
	blindSearch   bool   // a commit outside the lineage is not searched in the log
	blindCreate   bool   // a first commit that meets a session does not search for itself in the log
	keepUploads   bool   // a handle that rebases still names its earlier uploads
	rebaseOnce    bool   // a rebase that meets another head does not search for itself again
	blobLate      bool   // an image is PUT after the commit that names it
	snapshotsName bool   // snapshots name segments, and a restore uses these names
	deleteHead    bool   // deletion removes checkpoint_latest at the end
	gc            gcRule // how garbage is found
}

// gcRule is a way to collect garbage.
type gcRule uint8

// The rule, and broken ones.
const (
	gcEpoch         gcRule = iota // list, read the head, delete unreachable objects of an older epoch
	gcRootsThenList               // read the head, list, delete unreachable objects
	gcListThenRoots               // list, read the head, delete unreachable objects
	gcAtOnce                      // list and read atomically, delete unreachable objects
	gcEpochEqual                  // like gcEpoch, and those of the head's own epoch too
	gcHeadThenSnaps               // like gcEpoch, with snapshots as roots, read after the head
	gcSnapsThenHead               // the same, read before the head
	gcBlobs                       // like gcEpoch, and images that the head does not name too
)

// replaceBounds limits the number of events.
type replaceBounds struct {
	writers, commits, names, flight int
	opens, crashes                  uint8 // handles in all, and how many of them crash
	tries                           uint8 // retries of one PUT
	hidden                          uint8 // PUTs that the network sends twice
	busy                            uint8 // PUTs that are answered 429 or 409
	rebases                         uint8 // conflicts and doubts that are rebased, or folded in at once
	rolls                           uint8 // rollbacks, restores of snapshots, compactions, folds
	snapshots, drops                uint8 // taken, removed
	blobs                           uint8 // images uploaded
	deletes                         uint8
	gcs                             uint8
	lossless                        bool // no answer and no request is lost
	seals                           bool // writers upload segments
}

// commit is the body of a PUT: checkpoint_latest while it is in force.
type commit struct {
	parent, epoch uint8
	refs, blobs   uint8 // sets of names and images that it refers to
	turn          uint8 // the caller's turn: the id of the first commit that tried it
	tag           uint8 // its version: equal bytes have equal versions
	foreign       bool  // one of its names holds another writer's bytes
	tomb          bool
}

// object is a segment, or an index object that covers others.
type object struct {
	there  bool
	epoch  uint8
	covers uint8
	made   uint8 // dense numbers only: the commit whose tail it holds
}

// The states of a writer.
const (
	closed     uint8 = iota
	ready            // can commit
	waiting          // a PUT is under way
	conflicted       // the last commit is known not to be in force
	doubtful         // the outcome of the last commit is unknown
)

// writer is a handle.
type writer struct {
	st      uint8
	view    uint8 // the commit of its view; 0 = it would create the session
	pending uint8 // commit under way or in doubt
	turn    uint8 // the turn of pending
	doubts  uint8 // earlier commits of the same turn with unknown outcome
	tries   uint8
	seg     uint8 // 1 + the name of an upload that the next commit names
	blobs   uint8 // uploaded for the next commit
	fresh   bool  // the next commit takes the next epoch
	lost    bool  // an answer was lost
	foreign bool  // the name of seg was taken
	rebases bool  // the PUT under way is a rebase
}

// request is a request under way to the store.
type request struct {
	id   uint8 // of the commit; 0 = nothing
	cond uint8 // version that must be in force; 0 = none must
	del  bool  // a DELETE of checkpoint_latest, after the tombstone id
}

// collection is a run of GC.
type collection struct{ step, found, roots, epoch, blobs uint8 }

// replaceState is the complete state: the store, the network, the writers, and the answers that they were given.
type replaceState struct {
	c             [commitsMax + 1]commit
	made          uint8 // number of commits made
	head          uint8 // the commit in force; 0 = no checkpoint_latest
	obj           [namesMax]object
	named         uint8
	blobs         uint8 // existing images
	snaps         uint8 // commits with a snapshot
	acked, failed uint8 // sets of commits, as reported
	w             [writersMax]writer
	fl            [flightMax]request
	gc            collection
	left          replaceBudget
}

// replaceBudget holds the events that may still happen.
type replaceBudget struct {
	opens, crashes, hidden, busy, rebases, rolls, snapshots, drops, blobs, deletes, gcs uint8
}

// replaceModel is the protocol with its rules and bounds.
type replaceModel struct {
	replaceRules
	replaceBounds
}

func (m *replaceModel) space() *space[replaceState, key] {
	b := &m.replaceBounds
	s := replaceState{left: replaceBudget{
		b.opens, b.crashes, b.hidden, b.busy, b.rebases, b.rolls, b.snapshots, b.drops, b.blobs, b.deletes, b.gcs,
	}}
	return &space[replaceState, key]{begin: s, pack: m.pack, open: m.unpack, next: m.next, wrong: m.wrong}
}

// lineage returns the newest n commits from id backward; 0 = all.
func (s *replaceState) lineage(id uint8, n int) (set uint8) {
	for i := 0; id != 0 && (n == 0 || i < n); i++ {
		set |= 1 << id
		id = s.c[id].parent
	}
	return set
}

// reach returns all names reachable from a set of references.
func (s *replaceState) reach(refs uint8) uint8 {
	for {
		all := refs
		for i := range s.obj {
			if refs>>i&1 == 1 {
				all |= s.obj[i].covers
			}
		}
		if all == refs {
			return all
		}
		refs = all
	}
}

// there returns the set of existing names.
func (s *replaceState) there() (set uint8) {
	for i := range s.obj {
		if s.obj[i].there {
			set |= 1 << i
		}
	}
	return set
}

// version returns that of checkpoint_latest; 0 = it does not exist.
func (s *replaceState) version() uint8 {
	if s.head == 0 {
		return 0
	}
	return s.c[s.head].tag
}

// wrong returns the name of a violated invariant; "" = none.
func (m *replaceModel) wrong(s *replaceState) string {
	past := s.lineage(s.head, 0)
	switch {
	case s.acked&^past != 0:
		return "I1: an acknowledged commit is not in the history"
	case s.failed&past != 0:
		return "I2: a commit that was reported failed is in the history"
	}
	turns := uint8(0)
	for id := s.head; id != 0; id = s.c[id].parent {
		c := &s.c[id]
		switch bit := uint8(1) << c.turn; {
		case c.turn != 0 && turns&bit != 0:
			return "a turn stands in the history twice"
		case c.parent != 0 && c.epoch < s.c[c.parent].epoch && c.epoch != 0:
			return "I8: an epoch fell"
		case id != s.head && c.tomb:
			return "a deleted session went on"
		default:
			turns |= bit
		}
	}
	if h := &s.c[s.head]; s.head != 0 && !h.tomb {
		switch {
		case h.foreign:
			return "I4: the head names a segment with somebody else's content"
		case s.reach(h.refs)&^s.there() != 0:
			return "I3: the head refers to a segment or index object that is gone"
		case h.blobs&^s.blobs != 0:
			return "I3: the head names an image that is not there"
		}
	}
	return m.wrongSnapshot(s)
}

func (m *replaceModel) wrongSnapshot(s *replaceState) string {
	if s.c[s.head].tomb {
		return "" // deleted: they are removed with their session
	}
	for set := s.snaps; set != 0; set &= set - 1 {
		c := &s.c[bits.TrailingZeros8(set)]
		switch {
		case c.blobs&^s.blobs != 0:
			return "I9: a snapshot names an image that is not there"
		case m.snapshotsName && s.reach(c.refs)&^s.there() != 0:
			return "I9: a snapshot names a segment that is gone"
		}
	}
	return ""
}
