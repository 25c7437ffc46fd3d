package session

import (
	"context"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/transcript/blob"
)

// sync brings the working view up to what is acknowledged; mu is held.
func (h *Handle) sync() *work {
	h.j.Peek(func(st *state.State) {
		if st != h.w.st {
			h.w.adopt(st)
			close(h.wake)
			h.wake = make(chan struct{})
		}
	})
	return &h.w
}

// look gives what the working view is now.
func (h *Handle) look(f func(w *work)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f(h.sync())
}

// State is the acknowledged state.
func (h *Handle) State() (st *state.State) {
	h.look(func(w *work) { st = w.st })
	return st
}

// Head is the id of the entry from which the next one grows, pending ones included.
func (h *Handle) Head() (id string) {
	h.look(func(w *work) { id = w.head.ID })
	return id
}

// Document is the acknowledged one, with what deferred commits said.
func (h *Handle) Document() (doc checkpoint.Document) {
	h.look(func(w *work) {
		if doc = w.st.Doc; w.held != nil {
			doc = w.held.apply(doc)
		}
	})
	return doc
}

// Moved gives the acknowledged state, and a channel that is closed when it moves or the copy is closed.
func (h *Handle) Moved() (st *state.State, moved <-chan struct{}) {
	h.look(func(w *work) { st, moved = w.st, h.wake })
	return st, moved
}

// Ready refuses a closed copy, and a done context.
func (h *Handle) Ready(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return backend.ErrClosed
	}
	return ctx.Err()
}

// shut ends the view; left counts the entries that were never committed. first: it was open.
func (h *Handle) shut() (left int, first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return 0, false
	}
	h.closed = true
	for _, p := range h.sync().open {
		if !p.held {
			left++
		}
	}
	close(h.wake)
	h.wake = make(chan struct{})
	return left, true
}

// Flying counts the steps on their way.
func (h *Handle) Flying() (n int) { h.look(func(w *work) { n = w.flying }); return n }

// Reset forgets what is pending and stands at the acknowledged head.
func (h *Handle) Reset() { h.look(func(w *work) { w.reset(w.st) }) }

// Drop forgets pending entries, unless others hang on them: then they stay pending.
func (h *Handle) Drop(list []*Pending) { h.look(func(w *work) { w.drop(list) }) }

// Defer takes a deferred commit, if the session is one of pi's manners and has nothing yet that is worth
// a file: the entries stay pending, and the edit goes with the first real commit.
func (h *Handle) Defer(e *Edit) (deferred bool) {
	h.look(func(w *work) {
		if deferred = w.deferrable(); deferred {
			w.hold(w.free(), e)
		}
	})
	return deferred
}

// Waiting gives the entries that a step would take, and reports whether there is anything else that a
// commit would save: a deferred edit, or a context that was set.
func (h *Handle) Waiting() (list []*Pending, more bool) {
	h.look(func(w *work) { list, more = w.free(), w.held != nil || w.unsaved })
	return list, more
}

// Images are those of the session.
func (h *Handle) Images() *Images { return h.images }

// Store stores the images of entries that are about to be committed, and of the explicit context.
func (h *Handle) Store(ctx context.Context, list []*Pending) error {
	var sums []string
	for _, p := range list {
		for _, b := range p.blobs {
			sums = append(sums, b.Sum)
		}
	}
	h.look(func(w *work) {
		for _, it := range w.items {
			for _, ref := range blob.Refs(it.Message) {
				sums = append(sums, ref.Sum)
			}
		}
	})
	return h.images.Save(ctx, sums)
}
