package session

import (
	"context"
	"errors"
	"io/fs"

	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/transcript"
)

// Watch yields every commit with a seq above after, with its entries, until ctx is done or yield returns
// false.
func (h *Handle) Watch(ctx context.Context, after uint64, yield func(store.Batch, []transcript.Entry) bool) error {
	var seen *state.State
	for {
		if err := h.Ready(ctx); err != nil {
			return err
		}
		own, moved := h.moved()
		if seen == nil || own.Summary.Seq > seen.Summary.Seq {
			seen = own
		}
		if seen.Summary.Commit != "" && seen.Summary.Seq > after {
			more, err := h.changes(ctx, seen, after, yield)
			if !more || err != nil {
				return err
			}
			after = seen.Summary.Seq
		}
		woken, err := h.pause(ctx, moved)
		if err != nil {
			return err
		}
		if woken { // by a commit of this handle: no one has to be asked
			continue
		}
		now, err := h.newer(ctx, seen)
		if err != nil {
			return err
		}
		if now != seen && h.o.Journal.ReadOnly {
			h.j.Follow(now)
		}
		seen = now
	}
}

// newer returns the newest state that anyone acknowledged: seen itself where that is it.
func (h *Handle) newer(ctx context.Context, seen *state.State) (*state.State, error) {
	if seen.Summary.Commit != "" {
		changed, err := h.j.Changed(ctx, seen)
		if err != nil || !changed {
			return seen, err
		}
	}
	now, err := h.j.Latest(ctx)
	if errors.Is(err, fs.ErrNotExist) && seen.Summary.Commit == "" {
		return seen, nil // it does not exist yet
	}
	return now, err
}

// changes yields the commits after a seq; more = the consumer wants to go on.
func (h *Handle) changes(
	ctx context.Context, st *state.State, after uint64, yield func(store.Batch, []transcript.Entry) bool,
) (more bool, err error) {
	for b, err := range h.j.Since(ctx, st, int64(after)) {
		if err != nil {
			return false, err
		}
		var entries []transcript.Entry
		for _, l := range b.Lines {
			if l.Commit {
				continue
			}
			e, err := Stored(l)
			if err != nil {
				return false, err
			}
			if e.Raw, err = h.Images().Line(ctx, st, e.Raw); err != nil {
				return false, err
			}
			entries = append(entries, e)
		}
		if !yield(b, entries) {
			return false, nil
		}
	}
	return true, nil
}

// pause waits for the next poll, or for a commit of this handle: woken.
func (h *Handle) pause(ctx context.Context, moved <-chan struct{}) (woken bool, err error) {
	c, stop := context.WithCancel(ctx)
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		select {
		case <-moved:
			woken = true
			stop()
		case <-c.Done():
		}
	}()
	err = h.o.Journal.Sleep(c, h.o.Poll)
	stop()
	<-joined
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case woken:
		return true, nil
	}
	return false, err
}
