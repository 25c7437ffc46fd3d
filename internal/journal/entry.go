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
	Parent Place       // where it grows: given by its maker, asked for by At
	Blobs  []blob.Blob // images that left the line

	Aside    bool   // the head does not move to it
	Chosen   bool   // its parent was named by the caller: it may be anywhere in the tree
	Named    bool   // its id was chosen by the caller: the session may have it
	Ignore   bool   // if the session has its id it is not stored; else that is fs.ErrExist
	Instead  *Entry // with Ignore: stored in its place, if the session has its id; nil = nothing is
	Deferred bool   // a commit that was deferred took it; guarded by Journal.mu

	ord   atomic.Int64          // ordinal + 1; 0 = not durable
	at    atomic.Pointer[Place] // Parent, once the handle has the entry
	stage stage                 // guarded by Journal.mu
	skip  bool                  // the session has its id; set while a request is composed, under the lock
	pos   uint64                // its number in this handle's appends
}

// stage is where an entry is on its way.
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

// Position is the entry's number in the handle's appends.
func (e *Entry) Position() uint64 { return e.pos }

// At returns where the entry grows.
func (e *Entry) At() Place {
	if at := e.at.Load(); at != nil {
		return at.Settled()
	}
	return e.Parent.Settled()
}

// take makes the entry the handle's.
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

// store marks the entry as durable, after its parent; Journal.mu is held.
func (e *Entry) store(ord uint64) {
	at := e.At() // by its ordinal: else every entry would keep the one before it in memory
	e.at.Store(&at)
	e.ord.Store(int64(ord) + 1)
	e.stage = durable
}

// Place is where an entry can grow: an entry that is durable, by its ordinal, or one that is not. Ord -1 without an
// Entry is the place before every root.
type Place struct {
	ID    string
	Ord   int64
	Entry *Entry
}

// PlaceOf returns the head of a state.
func PlaceOf(st *state.State) Place { return Place{ID: st.Summary.Entry, Ord: st.HeadOrd} }

// PlaceAt returns the place of an entry.
func PlaceAt(e *Entry) Place { return Place{ID: e.ID, Ord: -1, Entry: e}.Settled() }

// Settled returns the place by its ordinal, if it has one by now.
func (p Place) Settled() Place {
	if p.Entry != nil {
		if ord, ok := p.Entry.Ordinal(); ok {
			return Place{ID: p.ID, Ord: int64(ord)}
		}
	}
	return p
}

// Is reports whether two places are one.
func (p Place) Is(q Place) bool {
	p, q = p.Settled(), q.Settled()
	return p.Entry == q.Entry && p.Ord == q.Ord && p.ID == q.ID
}

// Anchor returns the durable place at or before p.
func (p Place) Anchor() Place {
	for p = p.Settled(); p.Entry != nil; {
		p = p.Entry.At()
	}
	return p
}

// Sight is what the readers of a handle see: the acknowledged state, and after it what was appended and is not
// acknowledged. It is immutable.
type Sight struct {
	State   *state.State
	Tip     *state.State // the newest that is known: State, unless the handle is behind
	Open    []*Entry     // not acknowledged, in append order
	Head    Place        // from which the next entry grows
	Pos     uint64       // appends so far: a commit with Upto = Pos takes just these
	Version uint64       // grows with every change
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
		State: j.view, Tip: tip, Open: slices.Clip(j.list), Head: j.head.Settled(), Pos: j.pos, Version: j.version,
	}
}

// Build makes entries. It is called with the place from which the next one grows, and with a look-up of entries by id
// in the buffer. It must not call the handle.
type Build func(st *state.State, head Place, find func(id string) *Entry) ([]*Entry, error)

// Append adds the entries that build makes to the buffer, all or none, in memory only. A handle in doubt refuses it,
// and so does one that is behind, unless it keeps both: else a caller learns only at its next commit that the session
// has left the line that it works on.
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
	entries, err := build(j.view, j.head.Settled(), func(id string) *Entry { return j.ids[id] })
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

// Pending finds an entry of the list by its id; nil = it is not there.
func (j *Journal) Pending(id string) *Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ids[id]
}

// Defer marks what was appended before pos as taken by a commit that was deferred: Close does not count it as lost.
func (j *Journal) Defer(pos uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.list {
		e.Deferred = e.Deferred || e.pos < pos
	}
	j.version++
}

// prune takes entries that are durable or dropped off the list; j.mu is held. Views keep the list that they have.
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
