package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// Rebase keeps the turns of failed commits. It looks first: what was in doubt and is in the history is
// settled with its own receipt and not repeated. The rest, then extra (which may be nil), is committed
// plainly if neither head nor document moved, and else as a branch of its own beside the winner's line,
// which Result.Kept names; the head stays the winner's. It serves ErrConflict, ErrFenced (the session is
// not taken) and ErrUnknown alike. Results stand in the order of the failed steps, then extra.
//
// When it fails, the turns stay in the handle, and Rebase or Reload can be called again.
func (j *Journal) Rebase(ctx context.Context, extra *Step) ([]Result, error) {
	if err := j.takeLead(ctx); err != nil {
		return nil, err
	}
	defer j.dropLead()
	j.mu.Lock()
	from, reqs := j.st, append([]*request(nil), j.limbo...)
	j.mu.Unlock()
	now, err := j.confirmed(ctx)
	if unborn(from, err) {
		now, err = from, nil
	}
	if err != nil {
		return nil, err
	}
	if extra != nil {
		reqs = append(reqs, &request{step: extra, ctx: ctx})
	}
	if err := j.commitAgain(ctx, reqs, from, now); err != nil {
		return nil, err
	}
	results := make([]Result, len(reqs))
	for i, r := range reqs {
		results[i] = r.result
	}
	return results, nil
}

// unborn tells whether the session does not exist because its first commit never came to be.
func unborn(from *state.State, err error) bool {
	return from.Summary.Commit == "" && errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrDeleted)
}

// confirmed reads the newest state, of which all survives power loss: what is found in it is acknowledged.
func (j *Journal) confirmed(ctx context.Context) (*state.State, error) {
	for range j.cfg.Limits.Attempts {
		now, err := j.strategy.Load(ctx)
		if err == nil {
			now, err = j.strategy.Confirm(ctx, now)
		}
		if err != nil {
			return nil, err
		}
		if now.Sure() {
			return now, nil
		}
	}
	return nil, &backend.Error{
		Op: "rebase", Key: j.cfg.Session, Outcome: backend.NotApplied,
		Err: fmt.Errorf("the log changed %d times in a row", j.cfg.Limits.Attempts),
	}
}

// lookFor settles the requests of which an attempt is in the history of now, and returns the others with
// the state on which they stand.
func (j *Journal) lookFor(ctx context.Context, reqs []*request, from, now *state.State) ([]*request, *state.State, error) {
	left := reqs
	for len(left) > 0 {
		r := left[0]
		found, err := j.inHistory(ctx, now, r)
		if err != nil {
			return nil, nil, err
		}
		if found == nil {
			break
		}
		r.rec, r.after, r.result = found.rec, found.after, found.result
		r.result.State, r.err, r.doubts = now, nil, []attempted{*found}
		j.mu.Lock()
		for i, e := range r.step.Entries {
			e.Ord, e.Done, e.Parent, e.ParentOrd = r.after.Next-1-uint64(len(r.step.Entries)-i), true, nil, -1
		}
		j.mu.Unlock()
		from, left = r.after, left[1:]
	}
	return left, from, nil
}

// inHistory gives the attempt of the request whose commit is one of now's history; nil = none is.
func (j *Journal) inHistory(ctx context.Context, now *state.State, r *request) (*attempted, error) {
	for i := range r.doubts {
		d := &r.doubts[i]
		if now.Has(d.rec.ID) {
			return d, nil
		}
		if oldest := now.Lineage; len(oldest) == 0 || oldest[0].Seq <= d.rec.Seq {
			continue
		}
		for c, err := range j.past.Log(ctx, now, d.rec.Seq) {
			if err != nil {
				return nil, err
			}
			if c.Commit == d.rec.ID {
				return d, nil
			}
			break
		}
	}
	return nil, nil
}

// commitAgain looks for what is in doubt and publishes what is left, beside the winner's line where there is
// one; again for each state that somebody else puts in between.
func (j *Journal) commitAgain(ctx context.Context, left []*request, from, base *state.State) error {
	for range j.cfg.Limits.Attempts {
		left, now, err := j.lookFor(ctx, left, from, base)
		if err != nil {
			return err
		}
		from = now
		if len(left) == 0 {
			j.rest(base)
			return nil
		}
		moved, err := j.publishAgain(ctx, left, from, base)
		if moved == nil {
			return err
		}
		if moved.Now.Summary.Tombstone {
			return fmt.Errorf("session %s: %w: %w", j.cfg.Session, store.ErrDeleted, fs.ErrNotExist)
		}
		// What was in doubt may have come to be just now, and then never can again. What is found is
		// acknowledged, so it has to be sure.
		if base = moved.Now; inQuestion(left) {
			if base, err = j.confirmed(ctx); err != nil {
				return err
			}
		}
	}
	return &backend.Error{
		Op: "rebase", Key: j.cfg.Session, Outcome: backend.NotApplied,
		Err: fmt.Errorf("the head moved %d times in a row", j.cfg.Limits.Attempts),
	}
}

// rest makes the handle stand at a state with nothing left to repeat.
func (j *Journal) rest(st *state.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stand(st)
	j.broken, j.limbo = nil, nil
}

// publishAgain is one try of commitAgain. It returns what moved the head where somebody else did.
func (j *Journal) publishAgain(ctx context.Context, left []*request, from, base *state.State) (*Moved, error) {
	j.mu.Lock()
	j.forget()
	j.mu.Unlock()
	var moved *Moved
	c := j.compose(base, true)
	c.Settle = slices.ContainsFunc(left, func(r *request) bool { return r.step.Settles() })
	if err := j.strategy.Prepare(ctx, c.Composer); err != nil {
		errors.As(err, &moved)
		return moved, err
	}
	reqs := c.addAll(j.cfg.Session, left, from, base)
	for _, r := range left {
		if r.err != nil && backend.OutcomeOf(r.err) == backend.NotApplied && !composed(reqs, r) {
			return nil, r.err
		}
	}
	if len(reqs) == 0 {
		j.rest(base)
		return nil, nil
	}
	next, err := j.strategy.Publish(ctx, base, c.Composer)
	switch {
	case err == nil:
		j.accept(c, next)
	case errors.As(err, &moved):
	case backend.OutcomeOf(err) != backend.NotApplied:
		inDoubt(reqs)
		j.mu.Lock()
		j.st, j.limbo = from, left
		j.broken = &store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: left[0].rec.ID}
		err = j.broken
		j.mu.Unlock()
	}
	return moved, err
}

func composed(reqs []*request, r *request) bool {
	if slices.Contains(reqs, r) {
		return true
	}
	return r.result.Repeated
}

// Reload drops the turns of failed commits and stands at the newest head.
func (j *Journal) Reload(ctx context.Context) error {
	if err := j.takeLead(ctx); err != nil {
		return err
	}
	defer j.dropLead()
	now, err := j.strategy.Load(ctx)
	if from := j.State(); unborn(from, err) {
		now, err = from, nil
	}
	if err != nil {
		return err
	}
	j.mu.Lock()
	j.stand(now)
	j.broken, j.limbo = nil, nil
	j.mu.Unlock()
	return nil
}

// takeLead waits until nobody publishes and becomes the one who does.
func (j *Journal) takeLead(ctx context.Context) error {
	r := &request{ctx: ctx, done: make(chan struct{}), lead: make(chan struct{}, 1)}
	j.mu.Lock()
	switch {
	case j.closed:
		j.mu.Unlock()
		return &backend.Error{Op: "reload", Key: j.cfg.Session, Outcome: backend.NotApplied, Err: backend.ErrClosed}
	case !j.leading:
		j.leading = true
		j.mu.Unlock()
		return nil
	}
	j.turns = append(j.turns, r)
	j.mu.Unlock()
	select {
	case <-r.lead:
		return nil
	case <-ctx.Done():
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, q := range j.turns {
		if q == r {
			j.turns = append(j.turns[:i:i], j.turns[i+1:]...)
			return ctx.Err()
		}
	}
	return nil // it was handed over just now
}

// dropLead hands the lead to whoever waits for it: exclusive work first, then the queue.
func (j *Journal) dropLead() {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case len(j.turns) > 0:
		j.turns[0].lead <- struct{}{}
		j.turns = j.turns[1:]
	case len(j.queue) > 0:
		j.queue[0].lead <- struct{}{}
	default:
		j.leading = false
	}
}
