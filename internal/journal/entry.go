package journal

import (
	"slices"
	"sync/atomic"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript"
)

// Entry is an entry from Append until it is durable.
type Entry struct {
	Raw    []byte          // the stored line, without its newline
	Head   transcript.Line // of Raw, where it was read already
	ID     string
	Parent Place       // the place of its parent, set by the caller; read it with At
	Blobs  []blob.Blob // images that left the line

	Aside    bool   // the head does not move to the entry
	Chosen   bool   // the caller chose the parent: it may be anywhere in the tree
	Named    bool   // the caller chose the id: the session may have it already
	Ignore   bool   // if the session has the id, do not store the entry; false = that is fs.ErrExist
	Instead  *Entry // with Ignore: store this entry instead if the session has the id; nil = none
	Deferred bool   // a deferred commit took the entry; guarded by Journal.mu

	ord   atomic.Int64          // ordinal + 1; 0 = not durable
	at    atomic.Pointer[Place] // Parent, after the handle has taken the entry
	stage stage                 // guarded by Journal.mu
	skip  bool                  // the session has the id; set while a request is composed, under the lock
	pos   uint64                // number of the entry among those appended to this handle
}

// stage is the state of an entry.
type stage uint8

const (
	pending stage = iota // in the buffer
	durable
	dropped // by Reload, Discard, Close, or with a turn that was repeated
)

// Ordinal returns the entry's ordinal; false while it is not durable.
func (e *Entry) Ordinal() (uint64, bool) {
	ord := e.ord.Load()
	return uint64(ord - 1), ord > 0
}

// Position returns the number of the entry among those appended to its handle.
func (e *Entry) Position() uint64 { return e.pos }

// At returns the place of the parent.
func (e *Entry) At() Place {
	if at := e.at.Load(); at != nil {
		return at.ByOrdinal()
	}
	return e.Parent.ByOrdinal()
}

// take moves Parent to the field that may be read concurrently: the handle has the entry from now on.
func (e *Entry) take() {
	if e.at.Load() == nil {
		at := e.Parent
		e.at.Store(&at)
		e.Parent = Place{}
	}
	if e.Instead != nil {
		e.Instead.take()
	}
}

// store marks the entry as durable under an ordinal. Its parent must be marked before. The caller holds Journal.mu.
func (e *Entry) store(ord uint64) {
	at := e.At() // by ordinal: a pointer would keep all earlier entries in memory
	e.at.Store(&at)
	e.ord.Store(int64(ord) + 1)
	e.stage = durable
}

// Place is a possible parent: a durable entry by its ordinal, or an entry of the buffer by its pointer. Ord -1 without
// an Entry is the place above the roots.
type Place struct {
	ID    string
	Ord   int64
	Entry *Entry
}

// PlaceOf returns the head of a state.
func PlaceOf(st *state.State) Place { return Place{ID: st.Summary.Entry, Ord: st.HeadOrd} }

// PlaceAt returns the place of an entry.
func PlaceAt(e *Entry) Place { return Place{ID: e.ID, Ord: -1, Entry: e}.ByOrdinal() }

// ByOrdinal returns the place with its ordinal in place of the Entry, if the entry is durable by now. Else it returns
// p.
func (p Place) ByOrdinal() Place {
	if p.Entry != nil {
		if ord, ok := p.Entry.Ordinal(); ok {
			return Place{ID: p.ID, Ord: int64(ord)}
		}
	}
	return p
}

// Is reports whether p and q are the same place.
func (p Place) Is(q Place) bool {
	p, q = p.ByOrdinal(), q.ByOrdinal()
	return p.Entry == q.Entry && p.Ord == q.Ord && p.ID == q.ID
}

// Anchor returns p, or its nearest ancestor, that is durable.
func (p Place) Anchor() Place {
	for p = p.ByOrdinal(); p.Entry != nil; {
		p = p.Entry.At()
	}
	return p
}

// Sight is what the readers of a handle see: the acknowledged state, and the entries of the buffer. It is immutable.
type Sight struct {
	State   *state.State
	Tip     *state.State // the newest state that is known: State, unless the handle is behind
	Open    []*Entry     // entries of the buffer, in append order
	Head    Place        // the parent of the next entry
	Pos     uint64       // number of entries appended so far
	Version uint64       // incremented by every change
}

// Sight returns what readers see now.
func (j *Journal) Sight() Sight {
	j.mu.Lock()
	defer j.mu.Unlock()
	tip := j.tip
	if tip.Summary.Tombstone { // it has no lines: readers have the earlier ones
		tip = j.view
	}
	return Sight{
		State: j.view, Tip: tip, Open: slices.Clip(j.list), Head: j.head.ByOrdinal(), Pos: j.pos, Version: j.version,
	}
}

// Build returns entries to append. head is the parent of the next entry; find returns an entry of the buffer by its id,
// or nil. Build must not call methods of the handle.
type Build func(st *state.State, head Place, find func(id string) *Entry) ([]*Entry, error)

// Append adds the entries that build returns to the buffer, all or none, in memory only. It returns an error if the
// handle has a doubt (ErrInDoubt), or is fenced or behind the session (ErrFenced, ErrConflict), so that the caller
// learns before its next commit that the head has moved. With Config.KeepBoth a handle may be behind.
func (h Held) Append(build Build) error {
	j := h.j
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.deleted != nil:
		return j.deleted
	case j.doubt != nil:
		return j.notApplied("append", ErrInDoubt)
	case j.fences(j.tip, j.view.Summary.Seq):
		return fenced(j.tip)
	case !sameHead(j.view, j.tip) && !j.cfg.KeepBoth:
		return conflict(j.tip)
	}
	entries, err := build(j.view, j.head.ByOrdinal(), func(id string) *Entry { return j.ids[id] })
	if err != nil {
		return err
	}
	for _, e := range entries {
		e.take()
		e.pos, e.stage = j.pos, pending
		j.pos++
		j.list = append(j.list[:len(j.list):len(j.list)], e)
		j.ids[e.ID] = e
		j.holdBlobs(e.Blobs)
		if !e.Aside {
			j.head = PlaceAt(e)
		}
	}
	j.version++
	return nil
}

// Pending returns the entry of the buffer with an id; nil = none.
func (j *Journal) Pending(id string) *Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ids[id]
}

// Defer marks the entries appended before pos as taken by a deferred commit: Close does not count them as lost.
func (j *Journal) Defer(pos uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.list {
		e.Deferred = e.Deferred || e.pos < pos
	}
	j.version++
}

// prune removes durable and dropped entries from the buffer. It makes a new list, because a Sight shares the old one.
// The caller holds j.mu.
func (j *Journal) prune() {
	left := make([]*Entry, 0, len(j.list))
	for _, e := range j.list {
		if e.stage == durable || e.stage == dropped {
			delete(j.ids, e.ID)
			continue
		}
		left = append(left, e)
	}
	j.list = left
	j.version++
}
