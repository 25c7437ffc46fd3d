package session

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
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
	users   int             // handles that set or watch it
	raw     json.RawMessage // never changed in place; nil = none
	owner   *Handle         // that set raw
	version uint64          // grows with every value that is set
	ended   uint64          // seq of the newest turn that ended a partial
	wake    chan struct{}   // closed when anything changes; nil = no one waits
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

// leave ends what join began, once; the handle is closed. What it streamed is gone.
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

// Partial sets the partial output of the session; nil or null clears it. It does no I/O.
func (h *Handle) Partial(ctx context.Context, p json.RawMessage) error {
	if err := h.Writable(ctx); err != nil {
		return err
	}
	if p = bytes.TrimSpace(p); len(p) == 0 || string(p) == "null" {
		h.stream(func(st *stream) { st.clear() })
		return nil
	}
	raw, err := compactPartial(p)
	if err != nil {
		return err
	}
	if err := h.join(); err != nil {
		return err
	}
	h.stream(func(st *stream) {
		if st.version++; !bytes.Equal(st.raw, raw) || st.owner != h {
			st.raw, st.owner = raw, h
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
		return nil, LimitError("partial", checkpoint.MaxPartial, len(raw))
	}
	return raw, nil
}

// streamed returns a mark of what was streamed so far.
func (h *Handle) streamed() (mark uint64) {
	h.stream(func(st *stream) { mark = st.version })
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

// dropPartial forgets what the handle streams.
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

// sight returns the partial output of now.
func (h *Handle) sight() (s sight) {
	h.stream(func(st *stream) {
		if st.wake == nil {
			st.wake = make(chan struct{})
		}
		s = sight{raw: st.raw, changed: st.wake, ended: st.ended}
	})
	return s
}
