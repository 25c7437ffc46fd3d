package crash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/session"
	"github.com/coppice-go/coppice/transcript"
)

// caller is one of several that commit turns on one handle at the same time.
type caller struct {
	given Given
	entry string // its id, where the caller made it
	r     journal.Result
	err   error
	done  chan struct{}
}

// handle is what several callers commit on.
type handle struct {
	waiting func() int
	start   func(ctx context.Context, last bool) *caller
}

// group has n turns share a request of a live handle: they queue, in order, while the request of a first turn is on its
// way, and a last one is taken back meanwhile. One goroutine runs at a time. It returns the first turn, the n, and the
// last one; of a first turn that failed before it was sent, that alone.
func (w *World) group(ctx context.Context, h handle, n int) []*caller {
	var once sync.Once
	held, release := make(chan struct{}), make(chan struct{})
	w.watch.begins = func(context.Context) {
		once.Do(func() {
			close(held)
			<-release
		})
	}
	defer func() { w.watch.begins = nil }()
	first := h.start(ctx, false)
	all := []*caller{first}
	select {
	case <-held:
	case <-first.done:
		return all
	}
	last, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range n + 1 {
		waiting, of := h.waiting(), ctx
		if i == n {
			of = last
		}
		c := h.start(of, i == n)
		all = append(all, c)
		for h.waiting() == waiting && !c.over() {
			runtime.Gosched()
		}
	}
	cancel()
	<-all[n+1].done
	close(release)
	for _, c := range all {
		<-c.done
	}
	return all
}

// over reports whether the call has returned.
func (c *caller) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// caller starts a goroutine that commits a turn with one entry: one that was appended before, or one that the turn
// carries, which is withdrawn with it.
func (w *World) caller(ctx context.Context, h *session.Handle, carries bool) *caller {
	d, content := w.said(20)
	state := fmt.Sprintf(`{"made":%d}`, w.made)
	c := &caller{given: Given{Lines: [][]byte{content}, State: state}, done: make(chan struct{})}
	turn := session.Commit{Reason: "turn", Edit: &session.Edit{State: json.RawMessage(state)}, Turn: true}
	if carries {
		turn.Entries = []transcript.Draft{d}
	} else if _, c.err = h.Append(ctx, []transcript.Draft{d}); c.err != nil {
		close(c.done)
		return c
	}
	go func() {
		defer close(c.done)
		c.r, c.err = h.Commit(ctx, turn)
	}()
	return c
}

// Group commits turns that share a request, and books them: all were acknowledged but the one that was taken back.
func (w *World) Group(ctx context.Context, h *session.Handle, n int) error {
	start := func(ctx context.Context, last bool) *caller { return w.caller(ctx, h, last) }
	all := w.group(ctx, handle{h.Waiting, start}, n)
	for i, c := range all {
		switch {
		case i == n+1 && !errors.Is(c.err, context.Canceled):
			return fmt.Errorf("the turn that was taken back got %w", c.err)
		case i == n+1:
			w.refused = append(w.refused, c.given.Lines...)
		case c.err != nil:
			return fmt.Errorf("turn %d of a group: %w", i, c.err)
		default:
			c.given.Seq = c.r.Commit.Seq
			w.given = append(w.given, c.given)
			w.Acked(c.r.Commit.Seq)
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
