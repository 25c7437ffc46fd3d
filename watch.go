package coppice

import (
	"context"
	"iter"

	"github.com/coppice-go/coppice/internal/journal"
)

// Watch yields every commit with a seq above after, old ones first and new ones as they come, from
// anyone, with the entries that each made durable, until ctx is done. Nothing is missed between two
// calls of which one goes on where the other ended. Between commits it costs one Stat per Options.Poll.
// It moves a read-only handle along. The end of ctx is no error.
func (s *Session) Watch(ctx context.Context, after uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		err := s.watch(ctx, after, func(c Change) bool { return yield(c, nil) })
		if err != nil && ctx.Err() == nil {
			yield(Change{}, s.fail("watch", err))
		}
	}
}

func (s *Session) watch(ctx context.Context, after uint64, yield func(Change) bool) error {
	var seen *journal.State
	for {
		if err := s.ready(ctx); err != nil {
			return err
		}
		var own *journal.State
		var wake chan struct{}
		s.look(func(w *work) { own, wake = w.st, s.wake })
		if seen == nil || own.Summary.Seq > seen.Summary.Seq {
			seen = own
		}
		if seen.Summary.Commit != "" && seen.Summary.Seq > after {
			more, err := s.changes(ctx, seen, after, yield)
			if !more || err != nil {
				return err
			}
			after = seen.Summary.Seq
		}
		if err := s.pause(ctx, wake); err != nil {
			return err
		}
		changed := true
		if seen.Summary.Commit != "" {
			var err error
			if changed, err = s.j.Changed(ctx, seen); err != nil {
				return err
			}
		}
		if !changed {
			continue
		}
		now, err := s.j.Latest(ctx)
		switch {
		case isMissing(err) && seen.Summary.Commit == "": // it does not exist yet
			continue
		case err != nil:
			return err
		}
		if seen = now; s.o.ReadOnly {
			s.j.Follow(seen)
		}
	}
}

// changes yields the commits after a seq; more = the consumer wants to go on.
func (s *Session) changes(ctx context.Context, st *journal.State, after uint64, yield func(Change) bool) (more bool, err error) {
	for b, err := range s.j.Since(ctx, st, int64(after)) {
		if err != nil {
			return false, err
		}
		c := Change{Commit: b.Commit}
		for _, l := range b.Lines {
			if l.Commit {
				continue
			}
			e, err := stored(l)
			if err == nil {
				e.Raw, err = s.images.line(ctx, s, st, e.Raw)
			}
			if err != nil {
				return false, err
			}
			c.Entries = append(c.Entries, e)
		}
		if !yield(c) {
			return false, nil
		}
	}
	return true, nil
}

// pause waits for the next poll, or for a commit of this handle.
func (s *Session) pause(ctx context.Context, wake <-chan struct{}) error {
	c, stop := context.WithCancel(ctx)
	joined := make(chan struct{})
	go func() {
		defer close(joined)
		select {
		case <-wake:
			stop()
		case <-c.Done():
		}
	}()
	err := s.store.wait(c, s.store.o.Poll)
	woken := c.Err() != nil
	stop()
	<-joined
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if woken {
		return nil
	}
	return err
}
