package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// Partial output is best effort. A write of it that meets another writer's turn or claim, or fails, is dropped and
// leaves the handle as it was: the next turn gets the answer that it would have got anyway. One whose outcome is
// unknown is found by the condition of the handle's next write, as another writer's commit is, and folded in.

// PartialLater writes what next returns as the document's partial output, in the background: one commit without
// entries. next runs once nothing else is on its way, so it has the newest; nil = there is nothing to write any more.
// done runs at the end. false: one is being written already, or the handle cannot write; next and done are not called.
// Close waits for it.
func (j *Journal) PartialLater(next func() json.RawMessage, done func()) bool {
	j.mu.Lock()
	if j.bg.streaming || j.closed || j.unfit() != nil {
		j.mu.Unlock()
		return false
	}
	j.bg.streaming = true
	ctx := j.backgroundContext()
	j.streams.Add(1)
	var w *waiter // nil = it leads from here on, so that a Close that comes next waits for it
	if j.leading {
		w = &waiter{ready: make(chan error, 1)}
		j.waiters = append(j.waiters, w)
	}
	j.leading = true
	j.mu.Unlock()
	j.start(func() {
		defer j.streams.Done()
		if w == nil || <-w.ready == nil {
			_ = j.streamed(ctx, next) // dropped: the next one that is due tries again
		}
		j.mu.Lock()
		j.bg.streaming = false
		j.mu.Unlock()
		done()
	})
	return true
}

// ClearPartial takes partial output out of the document, if it is there: one commit without entries. It does nothing
// where another writer's turn did so already.
func (j *Journal) ClearPartial(ctx context.Context) error {
	j.mu.Lock()
	none := j.st.Doc.Partial == nil && !j.bg.streaming
	j.mu.Unlock()
	if none {
		return nil
	}
	if err := j.takeLead(ctx, "partial"); err != nil {
		return err
	}
	defer j.dropLead()
	return j.writePartial(ctx, nil)
}

// streamed writes partial output, and hands the lead on, which the caller has. A turn that waits supersedes it.
func (j *Journal) streamed(ctx context.Context, next func() json.RawMessage) error {
	defer j.dropLead()
	j.mu.Lock()
	superseded := len(j.queue) > 0
	j.mu.Unlock()
	if superseded {
		return nil
	}
	if raw := next(); raw != nil {
		return j.writePartial(ctx, raw)
	}
	return nil
}

// unfit returns why the handle writes no partial output; nil where it can. A session that does not exist yet begins
// with a turn. j.mu is held.
func (j *Journal) unfit() error {
	switch {
	case j.cfg.ReadOnly:
		return &store.Failure{Err: ErrReadOnly}
	case j.st.Summary.Commit == "":
		return errUnborn
	case j.fenced:
		return fenced(j.st)
	case j.broken != nil && j.lostTo() == nil:
		return j.notApplied("partial", ErrInDoubt)
	}
	return j.broken
}

var errUnborn = errors.New("the session has no commit yet")

// writePartial makes one commit that sets the document's partial output, nil for none. The caller leads.
func (j *Journal) writePartial(ctx context.Context, raw json.RawMessage) error {
	j.mu.Lock()
	err := j.unfit()
	p := plan{base: j.st, from: j.st, fresh: j.fresh}
	j.mu.Unlock()
	if err != nil || bytes.Equal(p.base.Doc.Partial, raw) {
		return err
	}
	op := &operation{ctx: ctx, partial: &Step{
		Reason: state.ReasonPartial,
		Edit: func(d checkpoint.Document) checkpoint.Document {
			d.Partial = raw
			return d
		},
	}}
	ctx, land := j.takeOff(op)
	defer land()
	for range j.cfg.Limits.Attempts {
		b, err := j.compose(ctx, op, p)
		var next *state.State
		if err == nil {
			next, err = j.send(ctx, b)
		}
		if err == nil {
			return j.accept(op, b, p, next)
		}
		j.giveBack(b)
		m, isMoved := errors.AsType[*moved](err)
		if !isMoved {
			return j.dropped(err)
		}
		if p, err = j.foldPartial(p, m.now); err != nil {
			if errors.Is(err, ErrConflict) {
				err = nil // the winner's turn has ended it
			}
			return err
		}
	}
	return j.notApplied("partial", fmt.Errorf("the head moved %d times in a row", j.cfg.Limits.Attempts))
}

// foldPartial decides how partial output goes on after others committed. Unlike replan it leaves the handle as it is
// where it does not go on.
func (j *Journal) foldPartial(p plan, now *state.State) (plan, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case now.Summary.Tombstone || now.Claimed > j.claimSeen:
		return p, fenced(now)
	case !sameHead(p.from, now):
		return p, conflict(now)
	}
	j.forget()
	return plan{base: now, from: p.from, fresh: true}, nil
}

// dropped is the error of partial output that was not acknowledged. Where it may be in the log, and the store does not
// honour conditions, the next write looks first.
func (j *Journal) dropped(err error) error {
	var f *store.Failure
	switch {
	case errors.As(err, &f) && !errors.Is(f.Err, ErrUnknown), backend.OutcomeOf(err) == backend.NotApplied:
		return err
	case !errors.As(err, &f):
		err = &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err)}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.strayed = true
	return err
}

// lookAfterStray reads the newest state before a write on a store that does not honour conditions, if a commit of
// partial output may be in it. On any other store the condition of the write finds it.
func (j *Journal) lookAfterStray(ctx context.Context, op *operation, p plan) (plan, *store.Failure, error) {
	j.mu.Lock()
	look := j.strayed && !p.base.CAS && p.base.Active() == nil
	j.mu.Unlock()
	if !look || op.mends {
		return p, nil, nil
	}
	now, err := j.strategy.Load(ctx)
	if err != nil {
		return p, nil, err
	}
	p, f := j.replan(op, p, now)
	return p, f, nil
}
