package coppice

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Partial sets what the assistant has streamed of its answer so far, any JSON of at most 256 KiB without white space
// (backend.ErrTooLarge). It replaces what was there; nil or null clears it. It is in memory alone, is not an entry, and
// is in no context: WatchPartial yields it, on any handle of this session that was opened on the same Store, read-only
// or not. Partial does no I/O.
//
// The next turn ends it: a Commit clears what was set before the call, once it is acknowledged. So does every commit
// that moves the head: Branch, Switch, Edit and Rollback, and a Claim. Reload and Close
// forget what this handle set.
func (s *Session) Partial(ctx context.Context, p json.RawMessage) error {
	return s.fail("partial", s.setPartial(ctx, p))
}

// WatchPartial yields what Watch yields, and partial output (Session.Partial): a Change without a commit, whose Partial
// is the newest, or nil once there is none any more. It is what handles of the same Store set. There is no queue: a
// slow caller gets the newest. A commit that ended partial output comes before the Change that reports the end.
func (s *Session) WatchPartial(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) { s.watch(ctx, after, yield, true) }
}

// streams is the partial output of a store's sessions, in memory: for each session at most one, of at most
// checkpoint.MaxPartial bytes, while a handle that sets or watches it is open. The newest counts; there is no queue.
// Safe for concurrent use.
type streams struct {
	used atomic.Int64 // streams in by: a commit looks no further where there are none
	mu   sync.Mutex
	by   map[string]*stream // by session id
}

// stream is the partial output of one session. Guarded by streams.mu.
type stream struct {
	users   int             // handles that set or watch it
	raw     json.RawMessage // never changed in place; nil = none
	owner   *Session        // that set raw
	version uint64          // grows with every value that is set
	ended   uint64          // seq of the newest turn that ended a partial
	wake    chan struct{}   // closed when anything changes; nil = no one waits
}

// changed wakes those who watch; streams.mu is held.
func (st *stream) changed() {
	if st.wake != nil {
		close(st.wake)
		st.wake = nil
	}
}

// clear removes what is there; streams.mu is held.
func (st *stream) clear() {
	st.raw, st.owner = nil, nil
	st.version++
	st.changed()
}

// join makes the handle one of the users of its session's stream, until Close.
func (s *Session) join() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backend.ErrClosed
	}
	if s.joined {
		return nil
	}
	all := &s.store.streams
	all.mu.Lock()
	defer all.mu.Unlock()
	st := all.by[s.ID()]
	if st == nil {
		st = &stream{}
		all.by[s.ID()] = st
		all.used.Add(1)
	}
	st.users++
	s.joined = true
	return nil
}

// leave ends what join began, once; the handle is closed. What it streamed is gone.
func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.joined {
		return
	}
	s.joined = false
	s.dropPartial()
	all := &s.store.streams
	all.mu.Lock()
	defer all.mu.Unlock()
	st := all.by[s.ID()]
	if st.users--; st.users == 0 {
		delete(all.by, s.ID())
		all.used.Add(-1)
	}
}

// streaming reports whether any handle of the store sets or watches partial output.
func (s *Session) streaming() bool { return s.store.streams.used.Load() > 0 }

// stream calls f with the stream of the session, if any handle uses it.
func (s *Session) stream(f func(st *stream)) {
	if !s.streaming() {
		return
	}
	all := &s.store.streams
	all.mu.Lock()
	defer all.mu.Unlock()
	if st := all.by[s.ID()]; st != nil {
		f(st)
	}
}

func (s *Session) setPartial(ctx context.Context, p json.RawMessage) error {
	if err := s.writable(ctx); err != nil {
		return err
	}
	if p = bytes.TrimSpace(p); len(p) == 0 || string(p) == "null" {
		s.stream(func(st *stream) { st.clear() })
		return nil
	}
	raw, err := compactPartial(p)
	if err != nil {
		return err
	}
	if err := s.join(); err != nil {
		return err
	}
	s.stream(func(st *stream) {
		if st.version++; !bytes.Equal(st.raw, raw) || st.owner != s {
			st.raw, st.owner = raw, s
			st.changed()
		}
	})
	return nil
}

// compactPartial returns partial output without white space.
func compactPartial(p json.RawMessage) (json.RawMessage, error) {
	if err := rawjson.CheckText("partial", []byte(p)); err != nil {
		return nil, err
	}
	if !json.Valid(p) {
		return nil, layout.BadInput("partial: want JSON")
	}
	if err := checkpoint.CheckState("partial", p); err != nil {
		return nil, err
	}
	raw := rawjson.AppendCompact(nil, p)
	if len(raw) > checkpoint.MaxPartial {
		return nil, layout.TooLarge("partial", checkpoint.MaxPartial, len(raw))
	}
	return raw, nil
}

// streamed returns a mark of what was streamed so far.
func (s *Session) streamed() (mark uint64) {
	s.stream(func(st *stream) { mark = st.version })
	return mark
}

// endPartial clears what was streamed up to a mark: a commit with a seq has ended it.
func (s *Session) endPartial(mark, seq uint64) {
	s.stream(func(st *stream) {
		st.ended = max(st.ended, seq)
		if st.raw != nil && st.version <= mark {
			st.clear()
		}
		st.changed()
	})
}

// dropPartial forgets what the handle streams.
func (s *Session) dropPartial() {
	s.stream(func(st *stream) {
		if st.owner == s {
			st.clear()
		}
	})
}

// sight is what a watcher sees of partial output.
type sight struct {
	raw     json.RawMessage
	changed <-chan struct{} // closed when it changes
	ended   uint64          // seq of the newest commit that is known to have ended one
}

// sight returns the partial output of now.
func (s *Session) sight() (now sight) {
	s.stream(func(st *stream) {
		if st.wake == nil {
			st.wake = make(chan struct{})
		}
		now = sight{raw: st.raw, changed: st.wake, ended: st.ended}
	})
	return now
}
