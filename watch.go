package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Change is one commit as Watch yields it, with the entries that it made durable, as they were appended: an amendment
// is an entry of its own (transcript.Entry.Amendment). Or it is partial output, as WatchPartial yields it between
// commits.
type Change struct {
	Commit  checkpoint.Commit // its Commit is "" in a change of partial output
	Entries []transcript.Entry
	Partial json.RawMessage // what is streamed now; nil = nothing any more. Of a commit always nil

	s     *Session // nil of partial output
	batch store.Batch
}

// StatePatch returns the RFC 6902 patch from the agent's state before the commit to the one after it. It is [] where
// the state is the same: a commit that keeps a losing turn on a branch changes nothing of the session's state. It
// computes from what Watch has read; only for the first commit of a Watch it may read one segment. Partial output has
// none: nil.
// Until the Change is dropped it keeps in memory the changes of state of at most 64 commits.
func (c Change) StatePatch(ctx context.Context) (json.RawMessage, error) {
	if c.s == nil {
		return nil, nil
	}
	if c.batch.Before == c.batch.After {
		return json.RawMessage("[]"), nil
	}
	was, is, err := c.documents(ctx)
	if err != nil {
		return nil, c.s.fail("state patch", err)
	}
	patch, err := was.DiffState(is)
	return rawjson.ValidText(patch), c.s.fail("state patch", err)
}

// Docs returns the documents (Turn.Docs) that the commit changed, by name; null = it removed the document. It reads
// what StatePatch reads. nil = it changed none.
func (c Change) Docs(ctx context.Context) (map[string]json.RawMessage, error) {
	if c.s == nil {
		return nil, nil
	}
	was, is, err := c.documents(ctx)
	if err != nil {
		return nil, c.s.fail("documents of a commit", err)
	}
	var changed map[string]json.RawMessage
	set := func(name string, doc json.RawMessage) {
		if changed == nil {
			changed = map[string]json.RawMessage{}
		}
		changed[name] = doc
	}
	for name, doc := range is.Docs {
		if old, ok := was.Docs[name]; !ok || !bytes.Equal(old, doc) {
			set(name, rawjson.ValidText(doc))
		}
	}
	for name := range was.Docs {
		if _, ok := is.Docs[name]; !ok {
			set(name, json.RawMessage("null"))
		}
	}
	return changed, nil
}

// documents returns the session's document before the commit and after it, unless the commit changed nothing.
func (c Change) documents(ctx context.Context) (was, is checkpoint.Document, err error) {
	if c.batch.Before == c.batch.After {
		return was, is, nil
	}
	if was, err = documentOf(ctx, c.batch.Before); err == nil {
		is, err = documentOf(ctx, c.batch.After)
	}
	return was, is, err
}

// documentOf returns the document of a commit; the zero one = before the first commit.
func documentOf(ctx context.Context, p *store.Past) (checkpoint.Document, error) {
	raw, err := p.Document(ctx)
	if err != nil || len(raw) == 0 {
		return checkpoint.Document{}, err
	}
	return checkpoint.DecodeDocument(raw)
}

// Watch yields every commit with a seq above after, old ones first and new ones as they come, from
// any writer, with the entries that each made durable, until ctx is done. A call that continues at the seq
// where another ended misses nothing. Once it has begun, what any handle of the same Store commits, an import too,
// comes at once and without a read of the head; the commits of others are looked for once per Options.Poll, for one
// Stat. It moves a read-only handle forward. The end of ctx is not an error.
func (s *Session) Watch(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) { s.watch(ctx, after, yield, false) }
}

func (s *Session) watch(ctx context.Context, after uint64, yield func(Change, error) bool, partial bool) {
	w := &watch{s: s, yield: yield, partial: partial}
	s.store.watched.begin(s)
	defer s.store.watched.end(s)
	if err := w.run(ctx, after); err != nil && ctx.Err() == nil {
		yield(Change{}, s.fail("watch", err))
	}
}

// run yields every commit with a seq above after, until ctx is done or the consumer stops. Partial output comes
// whenever it has changed, after the commits that were found by then.
func (w *watch) run(ctx context.Context, after uint64) error {
	s := w.s
	if w.partial {
		if err := s.join(); err != nil {
			return err
		}
	}
	defer w.rest()
	var seen *state.State
	var was *store.Past // the document at after; nil = not known
	for {
		if err := s.ready(ctx); err != nil {
			return err
		}
		own, moved := s.moved()
		if seen == nil || own.Summary.Seq > seen.Summary.Seq {
			seen = own
			if s.cfg.ReadOnly {
				s.j.Follow(seen)
			}
		}
		if seen.Summary.Commit != "" && seen.Summary.Seq > after {
			more, err := w.changes(ctx, seen, after, was)
			if !more || err != nil {
				return err
			}
			after = seen.Summary.Seq
		}
		if seen.Summary.Commit != "" && seen.Summary.Seq == after {
			was = store.PastOf(seen.DocJSON)
		}
		var part sight
		if w.partial {
			part = s.sight()
		}
		// A commit of this process that ended partial output is looked for at once, so that it comes before the end.
		if part.ended <= max(seen.Summary.Seq, w.looked) {
			if !bytes.Equal(part.raw, w.shown) {
				w.shown = part.raw
				if !w.yield(Change{Partial: bytes.Clone(rawjson.ValidText(part.raw))}, nil) {
					return nil
				}
			}
			woken, err := w.pause(ctx, moved, part.changed)
			if err != nil {
				return err
			}
			if woken { // by this process: no one has to be asked
				continue
			}
		}
		w.looked = part.ended
		now, err := s.newer(ctx, seen)
		if err != nil {
			return err
		}
		if now != seen && s.cfg.ReadOnly {
			s.j.Follow(now)
		}
		seen = now
	}
}

// watch is a call of Watch or WatchPartial.
type watch struct {
	s       *Session
	yield   func(Change, error) bool
	partial bool            // it wants partial output
	shown   json.RawMessage // what was yielded last
	looked  uint64          // the commit that was looked for last because it ended partial output, by its seq
	slept   chan error      // of the sleep until the next poll; nil = it has not begun
	stop    context.CancelFunc
}

// pause waits for the next poll, for a commit of this handle, or for partial output: woken. Partial output does not put
// the poll off. A nil stream never changes.
func (w *watch) pause(ctx context.Context, moved, stream <-chan struct{}) (woken bool, err error) {
	if w.slept == nil {
		c, stop := context.WithCancel(ctx)
		slept := make(chan error, 1)
		w.slept, w.stop = slept, stop
		go func() { slept <- w.s.cfg.Sleep(c, w.s.store.o.Poll) }()
	}
	select {
	case <-moved:
		w.rest()
		return true, ctx.Err()
	case <-stream:
		return true, ctx.Err()
	case err := <-w.slept:
		w.stop()
		w.slept = nil
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, err
	}
}

// rest ends the sleep, and joins its goroutine.
func (w *watch) rest() {
	if w.slept != nil {
		w.stop()
		<-w.slept
		w.slept = nil
	}
}

// newer returns the newest state that anyone acknowledged: seen itself where that is it.
func (s *Session) newer(ctx context.Context, seen *state.State) (*state.State, error) {
	if seen.Summary.Commit != "" {
		changed, err := s.j.Changed(ctx, seen)
		if err != nil || !changed {
			return seen, err
		}
	}
	now, err := s.j.Latest(ctx)
	if errors.Is(err, fs.ErrNotExist) && seen.Summary.Commit == "" {
		return seen, nil // it does not exist yet
	}
	return now, err
}

// changes yields the commits after a seq, at which the session's document is was (nil = not known); more = the consumer
// wants to continue.
func (w *watch) changes(ctx context.Context, st *state.State, after uint64, was *store.Past) (more bool, err error) {
	s := w.s
	for b, err := range s.j.Since(ctx, st, int64(after), was) {
		if err != nil {
			return false, err
		}
		c := Change{Commit: b.Commit, s: s, batch: b}
		for _, l := range b.Lines {
			if l.Commit {
				continue
			}
			e, err := stored(l)
			if err != nil {
				return false, err
			}
			if e.Raw, err = s.images.text(ctx, st, e.Raw); err != nil {
				return false, err
			}
			c.Entries = append(c.Entries, e)
		}
		if !w.yield(c, nil) {
			return false, nil
		}
	}
	return true, nil
}

// watchers is the registry of the handles of a store on which Watch is running, by session. A commit of another handle
// of the store passes them its state at once, so they read nothing to find it. Safe for concurrent use.
type watchers struct {
	calls atomic.Int64 // of Watch: a commit looks no further where there are none
	mu    sync.Mutex
	by    map[string]map[*Session]int // calls of Watch on each
}

// begin registers a call of Watch on a handle.
func (w *watchers) begin(s *Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := s.ID()
	if w.by[id] == nil {
		w.by[id] = map[*Session]int{}
	}
	w.by[id][s]++
	w.calls.Add(1)
}

// end removes what begin registered.
func (w *watchers) end(s *Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls.Add(-1)
	id := s.ID()
	if w.by[id][s]--; w.by[id][s] > 0 {
		return
	}
	if delete(w.by[id], s); len(w.by[id]) == 0 {
		delete(w.by, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = nil
}

// pass hands an acknowledged state to every registered handle of the session. No lock of a journal or of a handle may
// be held.
func (w *watchers) tell(id string, st *state.State) {
	w.mu.Lock()
	list := slices.Collect(maps.Keys(w.by[id]))
	w.mu.Unlock()
	for _, s := range list {
		s.tell(st)
	}
}

// pass wakes the calls of Watch on the handle, unless it has st or a newer state.
func (s *Session) tell(st *state.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if newest := newer(s.sync().State, s.told); newer(newest, st) == newest {
		return
	}
	s.told = st
	close(s.wake)
	s.wake = make(chan struct{})
}

// newer returns the newer of two states of a session: a where they are the same; b may be nil.
func newer(a, b *state.State) *state.State {
	if b == nil || a.Summary.Commit != "" && a.Summary.Seq >= b.Summary.Seq {
		return a
	}
	return b
}
