package coppice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/trace"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// A Session is a handle on one conversation tree and its state: one writer. Safe for concurrent use.
//
// Locks, in the order in which they are taken: gate, order, mu. No I/O is done under mu, and no lock is
// held while a hook runs.
type Session struct {
	store *Store
	id    string
	o     SessionOptions
	b     trace.Backend
	j     *journal.Journal

	gate  sync.RWMutex // commits share it; a move, Claim, Rebase and Reload have it alone
	order sync.Mutex   // steps enter the journal's queue in the order in which they were made

	mu     sync.Mutex
	w      work
	closed bool
	wake   chan struct{} // closed and replaced whenever the acknowledged state moves

	trees     trees
	snapshots snapshots
	images    images
}

// sync brings the working view up to what is acknowledged; mu is held.
func (s *Session) sync() *work {
	s.j.Peek(func(st *journal.State) {
		if st != s.w.st {
			s.w.adopt(st)
			close(s.wake)
			s.wake = make(chan struct{})
		}
	})
	return &s.w
}

// view gives what the working view is now.
func (s *Session) look(f func(w *work)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.sync())
}

// ready refuses a closed handle, and a done context.
func (s *Session) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return backend.ErrClosed
	}
	return ctx.Err()
}

// writable refuses a handle that may not write.
func (s *Session) writable(ctx context.Context) error {
	if s.o.ReadOnly {
		return journal.ErrReadOnly
	}
	return s.ready(ctx)
}

// fail makes the error of an operation on this session.
func (s *Session) fail(op string, err error) error { return fail(op, s.id, err) }

// ID is the session's id.
func (s *Session) ID() string { return s.id }

// Info is the summary of the last acknowledged commit.
func (s *Session) Info() (sum checkpoint.Summary) {
	s.look(func(w *work) { sum = w.st.Summary })
	return sum
}

// Head gives seq, commit and epoch of the last acknowledged commit, and entry and branch with what is
// pending.
func (s *Session) Head() (h checkpoint.Head) {
	s.look(func(w *work) { h = w.st.Head(); h.Entry = w.head.id })
	return h
}

// State decodes the agent's state, as of the last acknowledged commit, into v. A session without state
// leaves v alone.
func (s *Session) State(v any) error {
	var state json.RawMessage
	s.look(func(w *work) {
		doc := w.st.Doc
		if w.held != nil {
			doc = w.held.apply(doc)
		}
		state = doc.State
	})
	err := s.ready(context.Background())
	if err == nil && len(state) > 0 {
		err = json.Unmarshal(state, v)
	}
	return s.fail("state", err)
}

// IO is all that this handle asked of the backend: after Open, what the resume cost.
func (s *Session) IO() backend.IO { return s.b.IO() }

// closeWithin bounds how long Close waits for background work.
const closeWithin = 10 * time.Second

// Close joins background work (for at most 10 s), on disk writes the checkpoint behind the log, and
// returns an error that counts the entries that were never committed. It keeps no promise that Commit
// did not make. After it every method that can fail gives fs.ErrClosed. Idempotent.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	w := s.sync()
	s.closed = true
	left := 0
	for _, p := range w.open {
		if !p.held {
			left++
		}
	}
	close(s.wake)
	s.wake = make(chan struct{})
	s.mu.Unlock()
	s.store.mu.Lock()
	delete(s.store.open, s)
	s.store.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	err := s.j.Close(ctx)
	if left > 0 {
		err = errors.Join(fmt.Errorf("%d entries were never committed and are gone", left), err)
	}
	return s.fail("close", err)
}

// Context gives the messages that the model sees next, what is pending included: derived from the path
// to the head by the session's profile, unless SetContext made it explicit. It is bounded by ContextBytes
// (Window says what was cut; View.Context of the head gives all) and it is a copy. Only images that it
// refers to are read, in parallel; one that is gone is a diagnostic, its reference stays.
func (s *Session) Context(ctx context.Context) (transcript.Context, error) {
	if err := s.ready(ctx); err != nil {
		return transcript.Context{}, s.fail("context", err)
	}
	win, items, err := s.window(ctx)
	if err != nil {
		return transcript.Context{}, s.fail("context", err)
	}
	c := win.Context()
	if items != nil {
		if c, err = s.explicit(ctx, c, win, items); err != nil {
			return transcript.Context{}, s.fail("context", err)
		}
	}
	return c, s.fail("context", s.images.putBack(ctx, s, &c))
}
