package model

// The events of the replace model.
const (
	evOpen uint8 = iota
	evCrash
	evSeal
	evFold
	evImage
	evCommit
	evRollback
	evRestore
	evCompact
	evDelete
	evRemove
	evSnapshot
	evDrop
	evRetry
	evGiveUp
	evLook
	evRebase
	evFound
	evAgain
	evLost
	evTwice
	evApplied
	evAcked
	evRefused
	evBusy
	evHeadGone
	evList
	evRead
	evReadSnaps
	evCollect
)

// replaceEvents describes each event; %d are its a and b.
var replaceEvents = map[uint8]string{
	evOpen:      "a writer opens at commit %d",
	evCrash:     "a writer that stands on commit %d dies",
	evSeal:      "a writer uploads segment %d under epoch %d",
	evFold:      "a writer uploads index object %d under epoch %d",
	evImage:     "a writer that stands on commit %d uploads image %d",
	evCommit:    "a writer PUTs commit %d on commit %d",
	evRollback:  "a writer PUTs commit %d: back to what commit %d was",
	evRestore:   "a writer PUTs commit %d: what the snapshot of commit %d holds",
	evCompact:   "a writer PUTs commit %d on commit %d: one new segment for all",
	evDelete:    "a writer PUTs commit %d on commit %d: the tombstone",
	evRemove:    "the objects of the deleted session are removed (tombstone %d)",
	evSnapshot:  "a snapshot of commit %d is taken",
	evDrop:      "the snapshot of commit %d is removed",
	evRetry:     "no answer: commit %d is sent again",
	evGiveUp:    "the writer of commit %d gives up: unknown",
	evLook:      "the writer of commit %d reads the head, which is %d",
	evRebase:    "a writer rebases: PUTs commit %d on commit %d",
	evFound:     "a writer rebases, and finds commit %d in the history of %d",
	evAgain:     "commit %d lost to another: its turn goes on as commit %d",
	evLost:      "the network drops the request of commit %d",
	evTwice:     "the network sends the request of commit %d twice",
	evApplied:   "the store applies commit %d, the answer is lost",
	evAcked:     "the store applies commit %d, its writer is told",
	evRefused:   "the store answers 412 to commit %d; the head is %d",
	evBusy:      "the store is busy: commit %d is not applied, its writer is told",
	evHeadGone:  "checkpoint_latest is deleted (tombstone %d)",
	evList:      "the collector lists: set %04b",
	evRead:      "the collector reads the head, commit %d",
	evReadSnaps: "the collector reads the snapshots: set %07b",
	evCollect:   "the collector deletes: set %04b",
}

// step emits what a writer, or the environment, may do next.
type step struct {
	m    *replaceModel
	s    *replaceState
	emit func(t *replaceState, e event)
}

func (m *replaceModel) next(s *replaceState, emit func(t *replaceState, e event)) {
	x := &step{m, s, emit}
	for i := range m.writers {
		if i > 0 && s.w[i] == s.w[i-1] {
			continue // identical writers act identically
		}
		x.writer(i)
	}
	for i := range s.fl {
		if s.fl[i].id != 0 {
			x.deliver(i)
		}
	}
	for id := uint8(1); id <= s.made; id++ {
		if s.left.drops > 0 && s.snaps>>id&1 == 1 {
			t := *s
			t.left.drops--
			t.snaps &^= 1 << id
			emit(&t, event{evDrop, id, 0})
		}
	}
	x.collect()
}

func (x *step) writer(i int) {
	s, w := x.s, &x.s.w[i]
	if w.st != ready && w.st != waiting && s.left.opens > 0 {
		x.opens(i)
	}
	if (w.st == ready || w.st == waiting) && s.left.crashes > 0 {
		t := *s
		t.left.crashes--
		t.w[i] = writer{}
		x.emit(&t, event{evCrash, w.view, 0})
	}
	switch w.st {
	case ready:
		x.uploads(i)
		x.commits(i)
		if past := s.lineage(s.head, 0); s.left.snapshots > 0 && past>>w.view&1 == 1 && s.snaps>>w.view&1 == 0 && !s.c[w.view].tomb {
			t := *s
			t.left.snapshots--
			t.snaps |= 1 << w.view
			x.emit(&t, event{evSnapshot, w.view, 0})
		}
		if s.c[w.view].tomb {
			x.removes(i)
		}
	case waiting:
		x.waits(i)
	case conflicted, doubtful:
		x.rebase(i)
	}
}

// opens creates a handle, or reloads one: its view is the head.
func (x *step) opens(i int) {
	s := x.s
	if s.c[s.head].tomb {
		return // a deleted id is never used again
	}
	t := *s
	t.left.opens--
	t.w[i] = writer{st: ready, view: s.head, fresh: true}
	x.emit(&t, event{evOpen, s.head, 0})
}

// uploads are sent before the commit that names them, under the epoch of the commit in the handle's view; before its
// own first commit that is another writer's.
func (x *step) uploads(i int) {
	s, w := x.s, &x.s.w[i]
	v := &s.c[w.view]
	if s.made == uint8(x.m.commits) || v.tomb {
		return // no commit could name it
	}
	if x.m.seals && w.seg == 0 && w.view != 0 {
		x.seals(i)
	}
	if s.left.blobs > 0 && w.blobs == 0 {
		for b := range uint8(blobsMax) {
			t := *s
			t.left.blobs--
			t.w[i].blobs = 1 << b
			if !x.m.blobLate {
				t.blobs |= 1 << b
			}
			x.emit(&t, event{evImage, w.view, b})
		}
	}
}

func (x *step) seals(i int) {
	s, w := x.s, &x.s.w[i]
	v := &s.c[w.view]
	if x.m.dense {
		name := uint8(0)
		for v.refs>>name&1 == 1 {
			name++
		}
		if int(name) < x.m.names {
			t := *s
			if o := &t.obj[name]; o.there {
				t.w[i].foreign = o.made != w.view
			} else {
				*o = object{there: true, epoch: v.epoch, made: w.view}
			}
			t.w[i].seg = name + 1
			x.emit(&t, event{evSeal, name, v.epoch})
		}
		return
	}
	if int(s.named) == x.m.names {
		return
	}
	t := *s
	t.named++
	t.w[i].seg = t.named
	t.obj[s.named] = object{there: true, epoch: v.epoch}
	x.emit(&t, event{evSeal, s.named, v.epoch})
	if s.left.rolls > 0 && v.refs&(v.refs-1) != 0 { // two references or more
		t.left.rolls--
		t.obj[s.named].covers = v.refs
		x.emit(&t, event{evFold, s.named, v.epoch})
	}
}

// commits emits the PUTs that a ready handle may begin.
func (x *step) commits(i int) {
	s, w := x.s, &x.s.w[i]
	if s.made == uint8(x.m.commits) || s.c[w.view].tomb {
		return
	}
	put := func(what, from uint8, change func(t *replaceState, c *commit)) {
		t := *s
		id, ok := x.put(&t, i, w.view, 0, change)
		if ok {
			x.emit(&t, event{what, id, from})
		}
	}
	put(evCommit, w.view, func(*replaceState, *commit) {})
	if w.view == 0 {
		return
	}
	if s.left.deletes > 0 && w.seg == 0 && w.blobs == 0 {
		put(evDelete, w.view, func(t *replaceState, c *commit) {
			t.left.deletes--
			c.tomb, c.refs, c.blobs = true, 0, 0
		})
	}
	if s.left.rolls == 0 {
		return
	}
	if w.seg != 0 && s.obj[w.seg-1].covers == 0 {
		put(evCompact, w.view, func(t *replaceState, c *commit) {
			t.left.rolls--
			c.refs = 1 << (w.seg - 1)
		})
		return
	}
	back := func(what, id uint8) {
		put(what, id, func(t *replaceState, c *commit) {
			t.left.rolls--
			c.blobs = t.c[id].blobs
			if x.m.snapshotsName {
				c.refs = t.c[id].refs
			}
			if x.m.sameBody {
				c.tag, c.refs = t.c[id].tag, t.c[id].refs
			}
		})
	}
	if s.snaps != 0 {
		for id := uint8(1); id <= s.made; id++ {
			if s.snaps>>id&1 == 1 && id != w.view {
				back(evRestore, id)
			}
		}
	} else if p := s.c[w.view].parent; p != 0 {
		back(evRollback, p)
	}
}

// put makes a commit on view and sends it. turn 0 = a new one.
func (x *step) put(t *replaceState, i int, view, turn uint8, change func(t *replaceState, c *commit)) (id uint8, ok bool) {
	if t.made == uint8(x.m.commits) {
		return 0, false
	}
	w, v := &t.w[i], &t.c[view]
	t.made++
	id = t.made
	c := commit{parent: view, epoch: v.epoch, refs: v.refs, blobs: v.blobs | w.blobs, turn: turn, tag: id}
	if turn == 0 {
		c.turn = id
	}
	if w.fresh {
		c.epoch++
	}
	if w.seg != 0 {
		c.refs = c.refs&^t.obj[w.seg-1].covers | 1<<(w.seg-1)
		c.foreign = w.foreign
	}
	change(t, &c)
	t.c[id] = c
	w.st, w.view, w.pending, w.turn, w.tries, w.lost = waiting, view, id, c.turn, 0, false
	return id, x.send(t, request{id: id, cond: tagOf(t, view)})
}

func tagOf(s *replaceState, id uint8) uint8 {
	if id == 0 {
		return 0
	}
	return s.c[id].tag
}

// send puts a request under way if there is room.
func (x *step) send(t *replaceState, r request) bool {
	for i := range x.m.flight {
		if t.fl[i].id == 0 {
			t.fl[i] = r
			return true
		}
	}
	return false
}

// removes deletes the objects after the tombstone, idempotently.
func (x *step) removes(i int) {
	t := *x.s
	for j := range t.obj {
		t.obj[j].there = false
	}
	t.blobs = 0
	id := t.w[i].view
	if x.m.deleteHead && !x.send(&t, request{id: id, del: true}) {
		return
	}
	if !x.m.deleteHead {
		t.w[i] = writer{} // after a failure the handle may repeat this, with the same effect
	} else if t.w[i].tries++; t.w[i].tries > 2 {
		return
	}
	x.emit(&t, event{evRemove, id, 0})
}
