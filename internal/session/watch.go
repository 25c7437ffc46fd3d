package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Watch yields every commit with a seq above after, with its entries, until ctx is done or yield returns
// false. partial, unless it is nil, gets the newest partial output whenever that has changed, nil for none: after the
// commits that were found by then.
func (h *Handle) Watch(
	ctx context.Context, after uint64, yield func(store.Batch, []transcript.Entry) bool,
	partial func(json.RawMessage) bool,
) error {
	w := &watch{h: h}
	h.o.Watched.begin(h.o.Journal.Session, h)
	defer h.o.Watched.end(h.o.Journal.Session, h)
	if partial != nil {
		if err := h.join(); err != nil {
			return err
		}
		defer w.rest()
	}
	var seen *state.State
	var was *store.Past // the document at after; nil = not known
	for {
		if err := h.Ready(ctx); err != nil {
			return err
		}
		own, moved := h.moved()
		if seen == nil || own.Summary.Seq > seen.Summary.Seq {
			seen = own
			if h.o.Journal.ReadOnly {
				h.j.Follow(seen)
			}
		}
		if seen.Summary.Commit != "" && seen.Summary.Seq > after {
			more, err := h.changes(ctx, seen, after, was, yield)
			if !more || err != nil {
				return err
			}
			after = seen.Summary.Seq
		}
		if seen.Summary.Commit != "" && seen.Summary.Seq == after {
			was = store.PastOf(seen.DocJSON)
		}
		var s sight
		if partial != nil {
			s = h.sight()
		}
		// A commit of this process that ended partial output is looked for at once, so that it comes before the end.
		if s.ended <= max(seen.Summary.Seq, w.looked) {
			if !bytes.Equal(s.raw, w.shown) {
				if w.shown = s.raw; !partial(bytes.Clone(rawjson.ValidText(s.raw))) {
					return nil
				}
			}
			woken, err := w.pause(ctx, moved, s.changed)
			if err != nil {
				return err
			}
			if woken { // by this process: no one has to be asked
				continue
			}
		}
		w.looked = s.ended
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

// watch is what a call of Watch that wants partial output keeps of it.
type watch struct {
	h      *Handle
	shown  json.RawMessage // what was yielded last
	looked uint64          // the commit that was looked for last because it ended partial output, by its seq
	slept  chan error      // of the sleep until the next poll; nil = it has not begun
	stop   context.CancelFunc
}

// pause waits for the next poll, for a commit of this handle, or for partial output: woken. Partial output does not put
// the poll off. A nil stream never changes.
func (w *watch) pause(ctx context.Context, moved, stream <-chan struct{}) (woken bool, err error) {
	if stream == nil {
		return w.h.pause(ctx, moved)
	}
	if w.slept == nil {
		c, stop := context.WithCancel(ctx)
		slept := make(chan error, 1)
		w.slept, w.stop = slept, stop
		go func() { slept <- w.h.o.Journal.Sleep(c, w.h.o.Poll) }()
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

// changes yields the commits after a seq, at which the session's document is was (nil = not known); more = the consumer
// wants to go on.
func (h *Handle) changes(
	ctx context.Context, st *state.State, after uint64, was *store.Past,
	yield func(store.Batch, []transcript.Entry) bool,
) (more bool, err error) {
	for b, err := range h.j.Following(ctx, st, int64(after), was) {
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
			if e.Raw, err = h.Images().Text(ctx, st, e.Raw); err != nil {
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
