// Package working is what one handle sees of its session, as a working copy is what one sees of a
// repository: the acknowledged state, the entries behind it that are not committed yet, and, read when
// they are first asked for, tree, bodies and working context. It guarantees:
//
//   - Read-your-writes. What was inserted is in every answer from then on, also while a commit flies.
//   - One picture. An answer is made of one state and the entries pending behind it (Moment).
//   - A step takes entries of which every parent is committed, in the step, or in one before it.
//
// A Copy makes steps (Take) and is told what became of them (Settle); it commits nothing itself. No I/O
// is done under its lock.
package working

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/images"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/blob"
)

// Options of a Copy.
type Options struct {
	Profile  transcript.Profile // of the working context; "" = the session's own
	Bound    int                // of its bytes; 0 = the session's own, < 0 = none
	KeepBoth bool               // in every step but a claim
	Now      func() time.Time
	Rand     io.Reader // safe for concurrent use
}

// Copy is the working copy of one handle. Safe for concurrent use.
type Copy struct {
	j *journal.Journal
	o Options

	mu     sync.Mutex
	w      work
	closed bool
	wake   chan struct{} // closed and replaced whenever the acknowledged state moves

	trees  trees
	images *images.Cache
}

// New makes the working copy of a handle.
func New(j *journal.Journal, o Options) *Copy {
	c := &Copy{j: j, o: o, images: images.New(j), wake: make(chan struct{})}
	c.w.ids, c.w.wish = map[string]*Pending{}, o
	c.w.reset(j.State())
	return c
}

// sync brings the working view up to what is acknowledged; mu is held.
func (c *Copy) sync() *work {
	c.j.Peek(func(st *journal.State) {
		if st != c.w.st {
			c.w.adopt(st)
			close(c.wake)
			c.wake = make(chan struct{})
		}
	})
	return &c.w
}

// look gives what the working view is now.
func (c *Copy) look(f func(w *work)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.sync())
}

// State is the acknowledged state.
func (c *Copy) State() (st *journal.State) {
	c.look(func(w *work) { st = w.st })
	return st
}

// Head is the id of the entry from which the next one grows, pending ones included.
func (c *Copy) Head() (id string) {
	c.look(func(w *work) { id = w.head.ID })
	return id
}

// Document is the acknowledged one, with what deferred commits said.
func (c *Copy) Document() (doc checkpoint.Document) {
	c.look(func(w *work) {
		if doc = w.st.Doc; w.held != nil {
			doc = w.held.apply(doc)
		}
	})
	return doc
}

// Moved gives the acknowledged state, and a channel that is closed when it moves or the copy is closed.
func (c *Copy) Moved() (st *journal.State, moved <-chan struct{}) {
	c.look(func(w *work) { st, moved = w.st, c.wake })
	return st, moved
}

// Ready refuses a closed copy, and a done context.
func (c *Copy) Ready(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return backend.ErrClosed
	}
	return ctx.Err()
}

// Close ends the copy; left counts the entries that were never committed. first: it was open.
func (c *Copy) Close() (left int, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return 0, false
	}
	c.closed = true
	for _, p := range c.sync().open {
		if !p.held {
			left++
		}
	}
	close(c.wake)
	c.wake = make(chan struct{})
	return left, true
}

// Flying counts the steps on their way.
func (c *Copy) Flying() (n int) { c.look(func(w *work) { n = w.flying }); return n }

// Reset forgets what is pending and stands at the acknowledged head.
func (c *Copy) Reset() { c.look(func(w *work) { w.reset(w.st) }) }

// Drop forgets pending entries, unless others hang on them: then they stay pending.
func (c *Copy) Drop(list []*Pending) { c.look(func(w *work) { w.drop(list) }) }

// Defer takes a deferred commit, if the session is one of pi's manners and has nothing yet that is worth
// a file: the entries stay pending, and the edit goes with the first real commit.
func (c *Copy) Defer(e *Edit) (deferred bool) {
	c.look(func(w *work) {
		if deferred = w.deferrable(); deferred {
			w.hold(w.free(), e)
		}
	})
	return deferred
}

// Waiting gives the entries that a step would take, and reports whether there is anything else that a
// commit would save: a deferred edit, or a context that was set.
func (c *Copy) Waiting() (list []*Pending, more bool) {
	c.look(func(w *work) { list, more = w.free(), w.held != nil || w.unsaved })
	return list, more
}

// Images are those of the session.
func (c *Copy) Images() *images.Cache { return c.images }

// Store stores the images of entries that are about to be committed, and of the explicit context.
func (c *Copy) Store(ctx context.Context, list []*Pending) error {
	var sums []string
	for _, p := range list {
		for _, b := range p.blobs {
			sums = append(sums, b.Sum)
		}
	}
	c.look(func(w *work) {
		for _, it := range w.items {
			for _, ref := range blob.Refs(it.Message) {
				sums = append(sums, ref.Sum)
			}
		}
	})
	return c.images.Save(ctx, sums)
}
