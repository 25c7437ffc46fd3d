package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// What becomes of a request that was not acknowledged: it lost to another writer, it was refused, or it is in doubt.

// giveBack returns the entries of a batch that was not stored to where they came from.
func (j *Journal) giveBack(b *batch) {
	if b == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	b.held(func(e *Entry) {
		if e.stage == inFlight {
			e.stage = pending
		}
	})
	for _, t := range b.turns {
		if t.line != nil {
			t.tried = t.line.rec.ID
		}
		t.twin, t.line, t.lost, t.known = nil, nil, nil, nil
	}
	j.returnChanges()
}

// outcome ends an operation whose batch was not acknowledged, by what its error says of the data.
func (j *Journal) outcome(op *operation, b *batch, p plan, err error) error {
	var f *store.Failure
	switch {
	case errors.As(err, &f) && errors.Is(f.Err, ErrUnknown):
		return j.doubt(b, f)
	case errors.As(err, &f) && errors.Is(f.Err, ErrFenced):
		j.giveBack(b)
		j.mu.Lock()
		j.fenced = true
		j.mu.Unlock()
		return j.lose(op.ctx, op, p.base, f)
	case errors.As(err, &f), backend.OutcomeOf(err) == backend.NotApplied:
		return j.refuse(op, b, err)
	}
	return j.doubt(b, &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err)})
}

// refuse ends an operation of which nothing was applied, for certain: its entries are pending again, and the queue goes
// on.
func (j *Journal) refuse(op *operation, b *batch, err error) error {
	if _, ok := errors.AsType[*store.Failure](err); !ok && backend.OutcomeOf(err) != backend.NotApplied {
		err = j.notApplied("commit", err)
	}
	own, misused := map[*turn]error{}, op.misused()
	if b != nil {
		for _, t := range b.turns {
			if t.lost != nil && !t.kept {
				own[t] = t.lost
			}
		}
	}
	j.giveBack(b)
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(misused) > 0 { // the handle is as broken as before, and what waited is answered as on any such handle
		j.forsake(misused)
		_ = j.turnAway(&operation{turns: op.turns})
		return err
	}
	for _, t := range j.decided(op) {
		switch cause := own[t]; {
		case t.kept: // still known to Rebase, and its caller has gone
		case cause != nil && !errors.Is(cause, ErrConflict):
			t.answer(Result{}, cause)
		default:
			t.answer(Result{}, j.twinError(t, err))
		}
	}
	return err
}

// twinError returns the error of the turn that Rebase knows under the same key: one key, one turn, one answer. Other
// content is refused.
func (j *Journal) twinError(t *turn, err error) error {
	switch o := j.limboOf(t.step.Key); {
	case o == nil:
		return err
	case o.step.Digest != t.step.Digest:
		return j.notApplied("commit", ErrKeyReused)
	default:
		return o.err
	}
}

// decided returns the turns that an operation took on, those aside that Rebase knew already; j.mu is held.
func (j *Journal) decided(op *operation) []*turn {
	list := append([]*turn(nil), op.turns...)
	if op.extra != nil {
		list = append(list, op.extra)
	}
	if op.move != nil {
		list = append(list, op.move)
	}
	return list
}

// doubt ends an operation of which no one knows what was applied. Its turns are kept for Rebase, which looks; what
// waits in the queue was never sent, and is refused.
func (j *Journal) doubt(b *batch, f *store.Failure) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	b.held(func(e *Entry) { e.stage = inDoubt })
	j.doubts = append(j.doubts, b)
	j.returnChanges()
	first := *f // what the operation's own caller gets, and who asks for the handle's state
	for _, t := range b.turns {
		f := *f
		if t.line != nil {
			if f.Commit = t.line.rec.ID; first.Commit == "" {
				first.Commit = f.Commit
			}
		}
		switch {
		case t.kept:
		case t.known != nil:
			t.answer(b.resultOf(t, b.base))
		case t.line == nil && (t.twin == nil || t.twin.line == nil):
			j.unsent(t)
		default:
			j.keep(t, &f)
			j.holdOwn(t)
		}
	}
	j.broken = &first
	j.refuseQueue()
	return &first
}

// holdOwn shows readers the entries that an anchored turn in doubt carries; j.mu is held. They stay the turn's.
func (j *Journal) holdOwn(t *turn) {
	if a := t.step.Anchor; a == nil || t.line == nil || t.line.kept() {
		return
	}
	for _, e := range t.step.Entries {
		if _, known := t.skipped[e]; known {
			continue
		}
		e.pos, e.stage, e.own = j.pos, inDoubt, true
		j.pos++
		j.list = append(j.list, e)
		j.ids[e.ID] = e
		if !e.Aside {
			j.head = PlaceAt(e)
		}
	}
	j.version++
}

// lostTo returns the conflict or the fence that broke the handle; nil where it works, or is in doubt. j.mu is held.
func (j *Journal) lostTo() *store.Failure {
	var f *store.Failure
	if !errors.As(j.broken, &f) || errors.Is(f.Err, ErrUnknown) {
		return nil
	}
	return f
}

// lostAppend returns why an append would go to a line that the session has left; nil while Rebase or Claim leads, which
// decide where it goes. j.mu is held.
func (j *Journal) lostAppend() *store.Failure {
	switch {
	case j.mending:
		return nil
	case j.fenced:
		return fenced(j.st)
	}
	return j.lostTo()
}

// turnAway ends the turns of an operation on a handle that is broken; j.mu is held.
func (j *Journal) turnAway(op *operation) error {
	lost := j.lostTo()
	for _, t := range j.decided(op) {
		switch {
		case lost == nil:
			j.unsent(t)
		case t.step.withdrawn():
			t.answer(Result{}, withdrawn(lost))
		default:
			j.keep(t, lost)
		}
	}
	return j.broken
}

// refuseQueue ends the turns that wait after a request in doubt; j.mu is held.
func (j *Journal) refuseQueue() {
	for _, t := range j.queue {
		j.unsent(t)
	}
	j.queue = nil
}

// unsent ends a turn that was never sent, on a handle that is in doubt; j.mu is held.
func (j *Journal) unsent(t *turn) {
	err := ErrInDoubt
	if j.closed {
		err = backend.ErrClosed
	}
	t.answer(Result{}, j.twinError(t, j.notApplied("commit", err)))
}

// keep remembers a failed turn for Rebase; j.mu is held. A twin's answer is its turn's. Of two turns with one key and
// other content the first is kept: Rebase could not store both.
func (j *Journal) keep(t *turn, f *store.Failure) {
	if o := j.limboOf(t.step.Key); o != nil && o.step.Digest != t.step.Digest {
		t.answer(Result{}, j.notApplied("commit", ErrKeyReused))
		return
	}
	if t.twin == nil && len(j.limbo) < limboMax {
		t.kept = true
		j.limbo = append(j.limbo, t)
	}
	t.answer(Result{}, f)
}

// lose ends what was made on a state that is no longer the newest: the turns of the operation and of the queue. One
// whose key is in the winner's history gets that receipt. The rest is kept for Rebase, but for what is withdrawn.
func (j *Journal) lose(ctx context.Context, op *operation, now *state.State, f *store.Failure) error {
	j.mu.Lock()
	turns := append(j.decided(op), j.queue...)
	j.queue = nil
	j.mu.Unlock()
	sure := now
	for _, t := range turns {
		if t.known, t.lost = nil, nil; t.step.Key == "" {
			continue
		}
		if at, err := j.strategy.Confirm(ctx, sure); err == nil && at.Sure() {
			if sure = at; j.lookUp(ctx, sure, t) != nil {
				t.known = nil // not found out: the turn is kept
			}
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	var out error = f
	for _, t := range turns {
		switch {
		case t.lost != nil:
			t.answer(Result{}, t.lost)
		case t.known != nil:
			t.answer(t.known.result(sure, j.pendingBefore(t.upto)), nil)
		case t.step.withdrawn():
			t.answer(Result{}, withdrawn(f))
		default:
			f := *f
			f.Commit = t.tried
			j.broken = &f
			j.keep(t, &f)
		}
	}
	return out
}
