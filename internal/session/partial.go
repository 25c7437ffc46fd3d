package session

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Streams is the partial output of a store's sessions, in memory: for each session at most one, of at most
// checkpoint.MaxPartial bytes, while a handle that sets or watches it is open. The newest counts; there is no queue.
// Safe for concurrent use.
type Streams struct {
	used atomic.Int64 // streams in by: a commit looks no further where there are none
	mu   sync.Mutex
	by   map[string]*stream // by session id
}

// stream is the partial output of one session. Guarded by Streams.mu.
type stream struct {
	users int             // handles that set or watch it
	raw   json.RawMessage // never changed in place; nil = none
	owner *Handle         // that set raw
	// version numbers what was set. What was set up to cut belongs to a turn that was begun since: it is not written
	// any more, whatever becomes of the turn.
	version, cut uint64
	ended        uint64        // seq of the newest turn that ended a partial: documents up to it do not count
	since        time.Time     // of the newest write, or of the first partial of this answer
	wake         chan struct{} // closed when anything changes; nil = no one waits
}

// NewStreams makes the streams of a store.
func NewStreams() *Streams { return &Streams{by: map[string]*stream{}} }

// find returns the stream of a session, if any handle uses it; s.mu is held.
func (s *Streams) find(id string) *stream { return s.by[id] }

// changed wakes those who watch; Streams.mu is held.
func (st *stream) changed() {
	if st.wake != nil {
		close(st.wake)
		st.wake = nil
	}
}

// clear removes what is there; Streams.mu is held.
func (st *stream) clear() {
	st.raw, st.owner = nil, nil
	st.version++
	st.changed()
}

// join makes the handle one of the users of its session's stream, until Close.
func (h *Handle) join() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return backend.ErrClosed
	}
	if h.joined {
		return nil
	}
	s := h.o.Streams
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.by[h.o.Journal.Session]
	if st == nil {
		st = &stream{}
		s.by[h.o.Journal.Session] = st
		s.used.Add(1)
	}
	st.users++
	h.joined = true
	return nil
}

// leave ends what join began, once; the handle is closed. What it streamed and did not write is gone.
func (h *Handle) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.joined {
		return
	}
	h.joined = false
	h.dropPartial()
	s := h.o.Streams
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.find(h.o.Journal.Session)
	if st.users--; st.users == 0 {
		delete(s.by, h.o.Journal.Session)
		s.used.Add(-1)
	}
}

// stream calls f with the stream of the session, if any handle uses it.
func (h *Handle) stream(f func(st *stream)) {
	if !h.streams() {
		return
	}
	s := h.o.Streams
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.find(h.o.Journal.Session); st != nil {
		f(st)
	}
}

// Partial sets the partial output of the session; nil or null clears it. If it is due, it is written in the background.
func (h *Handle) Partial(ctx context.Context, p json.RawMessage) error {
	if err := h.Writable(ctx); err != nil {
		return err
	}
	if p = bytes.TrimSpace(p); len(p) == 0 || string(p) == "null" {
		return h.clearPartial(ctx)
	}
	if err := rawjson.CheckText("partial", []byte(p)); err != nil {
		return err
	}
	raw, err := checkpoint.CompactPartial(p)
	if err != nil {
		return err
	}
	if err := h.join(); err != nil {
		return err
	}
	due, every, now := false, h.o.PartialEvery, time.Time{}
	if every > 0 {
		now = h.o.Journal.Now()
	}
	h.stream(func(st *stream) {
		if !bytes.Equal(st.raw, raw) || st.owner != h || st.version <= st.cut {
			begins := st.raw == nil || st.version <= st.cut
			st.raw, st.owner = raw, h
			st.version++
			st.changed()
			if begins {
				st.since = now
			}
		}
		due = every > 0 && now.Sub(st.since) >= every
	})
	if due && h.j.PartialLater(h.partialToWrite, func() { h.look(func(*view) {}) }) {
		h.stream(func(st *stream) { st.since = now })
	}
	return nil
}

// partialToWrite returns the handle's newest partial output; nil where a turn was begun since, or another handle's is
// newer.
func (h *Handle) partialToWrite() (raw json.RawMessage) {
	h.stream(func(st *stream) {
		if st.owner == h && st.version > st.cut {
			raw = st.raw
		}
	})
	return raw
}

// clearPartial ends the session's partial output, in memory and in the document.
func (h *Handle) clearPartial(ctx context.Context) error {
	seq := h.State().Summary.Seq
	h.stream(func(st *stream) {
		st.ended = max(st.ended, seq)
		st.clear()
	})
	err := h.j.ClearPartial(ctx)
	h.look(func(*view) {}) // wakes those who watch
	return err
}

// beginTurn returns a mark of what was streamed so far. begun: a turn that holds it is about to be committed.
func (h *Handle) beginTurn(begun bool) (mark uint64) {
	h.stream(func(st *stream) {
		if mark = st.version; begun {
			st.cut = mark
		}
	})
	return mark
}

// endPartial clears what was streamed up to a mark: a commit with a seq has ended it.
func (h *Handle) endPartial(mark, seq uint64) {
	h.stream(func(st *stream) {
		st.ended = max(st.ended, seq)
		if st.raw != nil && st.version <= mark {
			st.clear()
		}
		st.changed()
	})
}

// endBegun clears what belongs to turns that were begun, and were stored by Rebase or Claim now.
func (h *Handle) endBegun(seq uint64) {
	h.stream(func(st *stream) {
		if st.raw != nil && st.owner == h && st.version <= st.cut {
			st.ended = max(st.ended, seq)
			st.clear()
		}
	})
}

// dropPartial forgets what the handle streams. What is in the document stays.
func (h *Handle) dropPartial() {
	h.stream(func(st *stream) {
		if st.owner == h {
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

// sight returns the partial output of now: what is streamed in this process, else that of the newest document that the
// watcher has seen, unless a turn of this process has ended that.
func (h *Handle) sight(doc json.RawMessage, seq uint64) (s sight) {
	s.raw = doc
	h.stream(func(st *stream) {
		if st.wake == nil {
			st.wake = make(chan struct{})
		}
		s.changed, s.ended = st.wake, st.ended
		switch {
		case st.raw != nil:
			s.raw = st.raw
		case seq <= st.ended && st.ended > 0:
			s.raw = nil
		}
	})
	return s
}
