package journal

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
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
	Instead  *Entry // of a step with Ignore: stored in its place, if the session has its id; nil = nothing is
	Deferred bool   // a commit that was deferred took it; guarded by Journal.mu

	ord   atomic.Int64          // ordinal + 1; 0 = not durable
	at    atomic.Pointer[Place] // Parent, once the handle has the entry
	stage stage                 // guarded by Journal.mu
	skip  bool                  // the session has its id: the leader's, while it composes
	own   bool                  // it is in the list for readers only: its turn carries it
	pos   uint64                // its number in this handle's appends
}

// stage is where an entry is on its way.
type stage uint8

const (
	pending  stage = iota // the next commit takes it
	inFlight              // a request holds it
	inDoubt               // a request held it whose outcome is unknown
	durable
	dropped // by Reload, Close, or with the turn that it belonged to
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

// View is what the readers of a handle see: the acknowledged state, and after it what was appended and is not
// acknowledged. It is immutable.
type View struct {
	State   *state.State
	Open    []*Entry // not acknowledged, in append order
	Head    Place    // from which the next entry grows
	Pos     uint64   // appends so far: a commit with Upto = Pos takes just these
	Version uint64   // grows with every change
}

// View returns what readers see now.
func (j *Journal) View() View {
	j.mu.Lock()
	defer j.mu.Unlock()
	return View{State: j.st, Open: slices.Clip(j.list), Head: j.head.Settled(), Pos: j.pos, Version: j.version}
}

// Append adds the entries that build makes to the list of what is not durable, all or none, in memory only. build is
// called with the place from which the next entry grows, and with a look-up of entries by id in the list; it runs under
// the handle's lock and must not call the handle.
//
// Append waits only while a request is on its way that puts the head elsewhere: a navigation, kept turns, or turns that
// carry their entries. Cancelled meanwhile, it has appended nothing.
//
// On a handle that lost to another writer it appends nothing either, unless aside is set, and returns ErrConflict or
// ErrFenced: else a caller learns only at its next commit that it works on a line that the session has left.
func (j *Journal) Append(
	ctx context.Context, aside bool,
	build func(st *state.State, head Place, find func(id string) *Entry) ([]*Entry, error),
) error {
	for {
		j.mu.Lock()
		if j.closed {
			j.mu.Unlock()
			return j.notApplied("append", backend.ErrClosed)
		}
		if f := j.lostAppend(); f != nil && !aside {
			j.mu.Unlock()
			return f
		}
		hold := j.hold
		if hold == nil {
			break
		}
		j.mu.Unlock()
		select {
		case <-hold:
		case <-ctx.Done():
			return j.notApplied("append", ctx.Err())
		}
	}
	defer j.mu.Unlock()
	entries, err := build(j.st, j.head.Settled(), func(id string) *Entry { return j.ids[id] })
	if err != nil {
		return err
	}
	for _, e := range entries {
		e.take()
		e.pos, e.stage = j.pos, pending
		j.pos++
		j.list = append(j.list, e)
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

// dropAll forgets everything that is not durable; j.mu is held.
func (j *Journal) dropAll() {
	for _, e := range j.list {
		e.stage = dropped
	}
	j.list, j.ids = nil, map[string]*Entry{}
	j.version++
}

// waitingEntries returns the entries that no request holds, in order; j.mu is held.
func (j *Journal) waitingEntries() (list []*Entry) {
	for _, e := range j.list {
		if e.stage == pending && !e.own {
			list = append(list, e)
		}
	}
	return list
}
