package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/transcript"
)

// caller is one of several that commit turns on one handle at the same time.
type caller struct {
	given Given
	entry string // its id, if the caller made it
	r     journal.Outcome
	err   error
	done  chan struct{}
}

// queued is the context of a call that waits for the lock of its handle. No call calls Done before it is queued.
type queued struct {
	context.Context
	once  sync.Once
	waits chan struct{} // closed when the call waits
}

func (q *queued) Done() <-chan struct{} {
	q.once.Do(func() { close(q.waits) })
	return q.Context.Done()
}

// group makes n calls wait for a live handle, in order, while the request of a first one is under way, and makes a last
// one leave the queue meanwhile. cancel: the first one is cancelled after its request was sent. One goroutine runs at a
// time. It returns the first call, the n, and the last one; if the first call failed before it sent anything, only
// that.
func (w *World) group(ctx context.Context, start func(ctx context.Context) *caller, n int, cancel bool) []*caller {
	var once sync.Once
	held, release := make(chan struct{}), make(chan struct{})
	sent, stop := context.WithCancel(ctx)
	defer stop()
	w.watch.begins = func(of context.Context) {
		once.Do(func() {
			close(held)
			<-release
			if cancel {
				<-of.Done()
			}
		})
	}
	defer func() { w.watch.begins = nil }()
	first := start(sent)
	all := []*caller{first}
	select {
	case <-held:
	case <-first.done:
		return all
	}
	last, leave := context.WithCancel(ctx)
	defer leave()
	for i := range n + 1 {
		q := &queued{Context: ctx, waits: make(chan struct{})}
		if i == n {
			q.Context = last
		}
		c := start(q)
		all = append(all, c)
		select {
		case <-q.waits:
		case <-c.done:
		}
	}
	leave()
	<-all[n+1].done
	if cancel {
		stop()
	}
	close(release)
	for _, c := range all {
		<-c.done
	}
	return all
}

// caller starts a goroutine that commits a turn with one entry.
func (w *World) caller(ctx context.Context, h *coppice.Session) *caller {
	d, content := w.said(20)
	state := fmt.Sprintf(`{"made":%d}`, w.made)
	c := &caller{given: Given{Lines: [][]byte{content}, State: state}, done: make(chan struct{})}
	turn := coppice.Turn{Reason: "turn", State: json.RawMessage(state), Entries: []transcript.Draft{d}}
	go func() {
		defer close(c.done)
		r, err := h.Commit(ctx, turn)
		c.r.Commit.Head, c.err = r.Head, err
	}()
	return c
}

// Group commits turns that wait for each other, and records them: all are acknowledged, in order, except the one that
// left the queue, and a first one that was cancelled.
func (w *World) Group(ctx context.Context, h *coppice.Session, n int) error {
	start := func(ctx context.Context) *caller { return w.caller(ctx, h) }
	cancel, seq := w.Rng.IntN(3) == 0, uint64(0)
	all := w.group(ctx, start, n, cancel)
	for i, c := range all {
		gone := i == n+1 || i == 0 && cancel
		if i == 0 && errors.Is(c.err, journal.ErrUnknown) {
			return fmt.Errorf("a cancelled turn: %w", c.err)
		}
		switch {
		case i == n+1 && !errors.Is(c.err, context.Canceled):
			return fmt.Errorf("the turn that left the line got %w", c.err)
		case gone && errors.Is(c.err, context.Canceled), errors.Is(c.err, journal.ErrConflict):
			w.refused = append(w.refused, c.given.Lines...)
			if errors.Is(c.err, journal.ErrConflict) {
				return c.err
			}
		case c.err != nil:
			return fmt.Errorf("turn %d of a group: %w", i, c.err)
		case c.r.Commit.Seq <= seq:
			return fmt.Errorf("turn %d of a group is commit %d, the one before it %d", i, c.r.Commit.Seq, seq)
		default:
			seq = c.r.Commit.Seq
			c.given.Seq = seq
			w.given = append(w.given, c.given)
			w.Acked(seq)
		}
	}
	if len(all) != n+2 {
		return fmt.Errorf("a group of %d turns, not %d", len(all), n+2)
	}
	return nil
}

func playGroup(ctx context.Context, w *World) error {
	w.watch = &watch{}
	h, err := w.Open()
	for i := 0; i < 2 && err == nil; i++ {
		err = w.Group(ctx, h, 2+w.Rng.IntN(3))
	}
	if err != nil {
		return err
	}
	return h.Close()
}
