// Package erase removes the content of entries from every object of a session, for good, and proves it.
//
// What has to go is written again without it, under the same ordinals and ids: a stub takes the place of each
// entry. The steps, each of which may be repeated after a death at any moment:
//
//  1. The pending object is written: the ids, and no content. A repeated call, a repair, a collection, and the
//     next writer after the commit of step 3 complete it.
//  2. Everything is read once. Segments that have an entry, or a line of one in a preview or a title, are written
//     again under new names, and so are the index objects that lead to them; then the imported file and snapshots.
//  3. One commit of the reason "erase" puts that in force (journal.Rewrite): readers see the old objects or the new.
//  4. What was replaced is removed, with images that nothing else shows, then the pending object.
//
// Content is gone when Run has returned, and not before. Reading it again after that finds stubs.
package erase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// MaxReason bounds the reason of an erasure, in bytes, and MaxEntries the entries of one.
const (
	MaxReason  = 256
	MaxEntries = 10_000
)

// Result is what an erasure did.
type Result struct {
	Entries []string        // ids that are erased now, in the order of the log, and those of a call before
	States  []string        // pointers into states that led to a value
	Docs    []string        // names of small documents that were there
	Already []string        // ids of the call that were erased before
	Commit  checkpoint.Head // the commit that records it; zero = nothing was to be done
	Written []string        // keys of objects that were written again, under new names or in place
	Removed []string        // keys of objects that were removed
	Bytes   int64           // written
	Images  int             // images that were removed
	// Hex SHA-256 of the imported file that is kept, before and after; After "" = it is not kept any more.
	Before, After string
}

// Calls are of the caller; each may be nil.
type Calls struct {
	// Window makes the working context at the head of a state that refers to what an erasure wrote, from its path: for
	// contexts of which a part is cut off, since where that begins depends on the sizes of the entries. nil = readers
	// read the path.
	Window func(ctx context.Context, j *journal.Journal, st *state.State) (*transcript.WorkingContext, error)
	// Elsewhere is called once with the entries of the target, while the content of those that are not erased yet is in
	// the log, and with all of the target and the reason: it finds what other sessions have of it, and with Everywhere
	// erases it there.
	Elsewhere func(ctx context.Context, gone []Gone, what Target, reason string) error
}

// Gone is an entry that is erased. In memory it has what its line in an imported file is found by.
type Gone struct {
	ID string
	erased
}

// uniqueID is the length in bytes from which an id is taken for one that no other entry has: those of UUIDs, not the
// eight digits of pi.
const uniqueID = 20

// Is reports whether an entry of any session with the same id is a copy of the one that goes.
func (g *Gone) Is(e *transcript.Entry) bool { return SameEntry(g.ID, g.time, e.Time) }

// SameEntry reports whether two entries of any two sessions with one id are copies of one entry.
func SameEntry(id string, a, b time.Time) bool { return len(id) >= uniqueID || a.Equal(b) }

// Run erases a target in cfg's session. Without one it completes what an earlier call began.
func Run(
	ctx context.Context, cfg journal.Config, what Target, reason string, calls Calls,
) (Result, error) {
	if len(reason) > MaxReason {
		return Result{}, layout.TooLarge("reason", MaxReason, len(reason))
	}
	if err := what.check(); err != nil {
		return Result{}, fmt.Errorf("erase in session %s: %w", cfg.Session, err)
	}
	what.States, what.Docs = union(what.States, nil), union(what.Docs, nil)
	cfg.ReadOnly, cfg.Unfinished, cfg.KeepBoth = false, nil, false
	j, err := journal.Open(ctx, cfg)
	if err != nil {
		return Result{}, err
	}
	cfg.Since = j.State().Since
	e := &eraser{
		cfg: cfg, j: j, calls: calls, reason: reason, at: cfg.Now().UTC(), facts: map[string]*facts{}, what: what,
		ids: map[string]bool{}, bare: map[string]bool{}, states: map[string]bool{}, docs: map[string]bool{},
	}
	e.store, e.past = journal.Tools(cfg)
	err = errors.Join(e.run(ctx), j.Close(context.WithoutCancel(ctx)))
	if err != nil {
		err = fmt.Errorf("erase entries of session %s: %w", cfg.Session, err)
	}
	return e.res, err
}

// eraser is one erasure.
type eraser struct {
	cfg    journal.Config
	j      *journal.Journal
	store  *store.Store
	past   *store.History
	calls  Calls
	told   bool   // Calls.Elsewhere was called
	gone   []Gone // entries that go, and were erased in this session before
	reason string
	at     time.Time
	res    Result

	what   Target          // as it was asked for, and by an earlier call that it completes
	ids    map[string]bool // of the entries that go
	bare   map[string]bool // of entries that stay, whose amendment goes
	states map[string]bool // pointers that led to a value, and names of documents that were there
	docs   map[string]bool

	imported []string // ids of entries of other sessions that the imported file has
	resumed  bool     // an earlier call began it
	before   []string // hex SHA-256 of imported files that are kept no longer
	shown    []string // sums of images that only entries which go show
	facts    map[string]*facts
	found    findings
	made     map[string]*segmentCopy // by the name of the segment that each replaces
	own      []string                // keys of segments and index objects that were written for a try
	rename   string                  // hex SHA-256 of the imported file without what goes; "" = it stays as it is
	epoch    uint64                  // of what is written
	last     uint64                  // seq of the erasure before
}

// run is the erasure.
func (e *eraser) run(ctx context.Context) error {
	if err := e.target(ctx); err != nil {
		return err
	}
	if e.nothing() {
		pending := e.pends()
		if err := e.elsewhere(ctx); err != nil || !pending {
			return err
		}
		return e.end(ctx)
	}
	out, err := e.j.Rewrite(ctx, e.rewrite)
	switch {
	case err != nil && out.Commit.Commit == "" && !errors.Is(err, journal.ErrUnknown):
		return errors.Join(err, e.forget(context.WithoutCancel(ctx)))
	case err != nil:
		return err
	case out.Commit.Commit == "": // another call was first
		if err := e.forget(ctx); err != nil {
			return err
		}
		return e.end(ctx)
	}
	e.res.Commit = out.Commit.Head
	return e.done(ctx, out.State)
}

// nothing reports whether there is nothing to erase.
func (e *eraser) nothing() bool { return len(e.ids)+len(e.what.States)+len(e.what.Docs) == 0 }

// pends reports whether there is something to complete after a death.
func (e *eraser) pends() bool { return !e.nothing() || e.what.Everywhere && len(e.gone) > 0 }

// target finds out which entries go, and writes the pending object.
func (e *eraser) target(ctx context.Context) error {
	st, entries := e.j.State(), e.what.Entries
	if !e.what.empty() && st.Summary.Held() {
		return journal.ErrHeld
	}
	known, err := e.j.Known(ctx, st, entries)
	if err != nil {
		return err
	}
	for i := range e.what.Imported {
		e.ids[e.what.Imported[i].ID] = true
	}
	ords := []uint64{} // nil would be all lines
	for _, id := range entries {
		l, ok := known[id]
		switch {
		case !ok:
			return fmt.Errorf("entry %s: %w", id, fs.ErrNotExist)
		case l.Commit:
			return fmt.Errorf("%s is a commit: %w", id, transcript.ErrNotErasable)
		}
		ords = append(ords, l.Ord)
	}
	err = e.each(ctx, ords, func(entry *transcript.Entry) error {
		if _, ok := entry.Erased(); ok {
			e.res.Already = append(e.res.Already, entry.ID)
			e.gone = append(e.gone, Gone{entry.ID, erased{id: entry.ID, time: entry.Time}})
			return nil
		}
		_, err := entry.Erase(e.reason, e.at)
		e.ids[entry.ID] = true
		return err
	})
	if err != nil {
		return err
	}
	return e.begin(ctx)
}

// each calls visit with the entries of some ordinals.
func (e *eraser) each(ctx context.Context, ords []uint64, visit func(*transcript.Entry) error) error {
	slices.Sort(ords)
	for l, err := range e.j.Lines(ctx, e.j.State(), slices.Compact(ords)) {
		if err != nil {
			return err
		}
		head, err := transcript.ParseLine(l.Raw)
		if err != nil {
			return err
		}
		entry := head.Entry(l.Ord)
		if err := visit(&entry); err != nil {
			return err
		}
	}
	return nil
}

// rewrite makes the state without the entries, and the step that records their erasure; nil = there is none to
// erase.
func (e *eraser) rewrite(ctx context.Context, st *state.State) (*state.State, *journal.Step, error) {
	e.last = st.Erased
	e.epoch, e.made = st.Summary.Epoch+1, keep(e.made, st.Summary.Epoch+1)
	if err := e.look(ctx, st); err != nil {
		return nil, nil, err
	}
	found := len(e.found.erased) > 0 || e.found.documents
	if found && st.Summary.Held() {
		return nil, nil, journal.ErrHeld
	}
	if err := e.elsewhere(ctx); err != nil {
		return nil, nil, err
	}
	if err := e.original(ctx, st); err != nil {
		return nil, nil, err
	}
	if !found && e.rename == "" && !e.resumed {
		return nil, nil, nil
	}
	if err := e.showing(ctx); err != nil {
		return nil, nil, err
	}
	next, err := e.log(ctx, st)
	if err != nil {
		return nil, nil, err
	}
	if w := next.Window; w == nil || w.Omitted() > 0 {
		next.Window = nil
		if e.calls.Window != nil {
			if next.Window, err = e.calls.Window(ctx, e.j, next); err != nil {
				return nil, nil, err
			}
		}
	}
	if err := e.snapshots(ctx, st.Summary.Seq+1); err != nil {
		return nil, nil, err
	}
	e.res.Entries = append(slices.Clone(e.found.order), e.imported...)
	for id := range maps.Keys(e.ids) { // of an erasure that was in force already
		if e.resumed && !slices.Contains(e.res.Entries, id) {
			e.res.Entries = append(e.res.Entries, id)
		}
	}
	slices.Sort(e.res.Entries[len(e.found.order):])
	entry, err := e.record(st)
	if err != nil {
		return nil, nil, err
	}
	return next, &journal.Step{Entries: []*journal.Entry{entry}, Original: e.rename}, nil
}

// elsewhere reports the target to the caller, once.
func (e *eraser) elsewhere(ctx context.Context) error {
	if e.calls.Elsewhere == nil || e.told || e.what.empty() && !e.what.Everywhere {
		return nil
	}
	e.told = true
	gone := e.gone
	for _, l := range e.found.erased {
		gone = append(gone, Gone{l.id, l})
	}
	if err := e.calls.Elsewhere(ctx, gone, e.what, e.reason); err != nil || !e.what.Everywhere {
		return err
	}
	e.what.Everywhere = false // it is done
	return e.put(ctx, false)
}

// keep returns the copies of segments that have an epoch: others would not be newer than what they replace.
func keep(made map[string]*segmentCopy, epoch uint64) map[string]*segmentCopy {
	out := map[string]*segmentCopy{}
	for name, m := range made {
		if m.seg.Epoch == epoch {
			out[name] = m
		}
	}
	return out
}

// record makes the entry that records what was erased.
func (e *eraser) record(st *state.State) (*journal.Entry, error) {
	e.res.States, e.res.Docs = sorted(e.states), sorted(e.docs)
	record := transcript.Erasure{
		Entries: e.res.Entries, States: e.res.States, Docs: e.res.Docs, Reason: e.reason,
	}
	for _, was := range slices.Sorted(maps.Keys(e.made)) {
		_, logged := e.cfg.Backend.(backend.Appender) // elsewhere only the checkpoint leads to segments
		if m := e.made[was]; logged && m.skeleton != nil {
			record.Segments = append(record.Segments, [2]string{was, m.seg.Name()})
		}
	}
	d, err := record.Draft()
	if err != nil {
		return nil, err
	}
	id, now, err := e.store.LineID()
	if err != nil {
		return nil, err
	}
	head, err := d.Parsed(id, st.Summary.Entry, now)
	if err != nil {
		return nil, err
	}
	return &journal.Entry{Raw: bytes.Clone(head.Raw), Head: head, ID: id, Parent: journal.PlaceOf(st), Aside: true}, nil
}

// forget removes the segments and index objects that were written for tries which came to nothing.
func (e *eraser) forget(ctx context.Context) (err error) {
	for _, key := range e.own {
		err = errors.Join(err, e.remove(ctx, key))
	}
	return err
}

// wrote notes an object that was written.
func (e *eraser) wrote(key string, n int) {
	e.res.Written = append(e.res.Written, key)
	e.res.Bytes += int64(n)
}

// remove deletes an object.
func (e *eraser) remove(ctx context.Context, key string) error {
	if err := e.cfg.Backend.Delete(ctx, key); err != nil {
		return err
	}
	e.res.Removed = append(e.res.Removed, key)
	return nil
}
