package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/compose"
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
	unknown := errors.Is(j.broken, ErrUnknown)
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
	left, from, err := j.lookFor(ctx, reqs, from, now, unknown)
	if err != nil {
		return nil, err
	}
	if err := j.commitAgain(ctx, left, from, now); err != nil {
		return nil, err
	}
	results := make([]Result, len(reqs))
	for i, r := range reqs {
		results[i] = r.result
	}
	return results, nil
}

// unborn tells whether the session does not exist because its first commit never came to be.
func unborn(from *State, err error) bool {
	return from.Summary.Commit == "" && errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrDeleted)
}

// confirmed reads the newest state, of which all survives power loss: what is found in it is acknowledged.
func (j *Journal) confirmed(ctx context.Context) (*State, error) {
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

// lookFor settles the requests whose commit is in the history of now, and returns the others with the
// state on which they stand.
func (j *Journal) lookFor(ctx context.Context, reqs []*request, from, now *State, unknown bool) ([]*request, *State, error) {
	left := reqs
	if !unknown {
		return left, from, nil
	}
	for len(left) > 0 && left[0].rec.ID != "" {
		r := left[0]
		found, err := j.inHistory(ctx, now, r)
		if err != nil {
			return nil, nil, err
		}
		if !found {
			break
		}
		r.result.State, r.err = now, nil
		j.mu.Lock()
		for i, e := range r.step.Entries {
			e.Ord, e.Done, e.Parent, e.ParentOrd = r.after.Next-1-uint64(len(r.step.Entries)-i), true, nil, -1
		}
		j.mu.Unlock()
		from, left = r.after, left[1:]
	}
	return left, from, nil
}

// inHistory tells whether the request's commit is one of now's history.
func (j *Journal) inHistory(ctx context.Context, now *State, r *request) (bool, error) {
	if now.Has(r.rec.ID) {
		return true, nil
	}
	if oldest := now.Lineage; len(oldest) == 0 || oldest[0].Seq <= r.rec.Seq {
		return false, nil
	}
	for c, err := range j.past.Log(ctx, now, r.rec.Seq) {
		if err != nil {
			return false, err
		}
		return c.Commit == r.rec.ID, nil
	}
	return false, nil
}

// commitAgain publishes what is left, beside the winner's line where there is one.
func (j *Journal) commitAgain(ctx context.Context, left []*request, from, now *State) error {
	if len(left) == 0 {
		j.mu.Lock()
		j.stand(now)
		j.broken, j.limbo = nil, nil
		j.mu.Unlock()
		return nil
	}
	base := now
	j.mu.Lock()
	j.forget()
	j.mu.Unlock()
	for range j.cfg.Limits.Attempts {
		c := j.compose(base, true)
		if err := j.strategy.Prepare(ctx, c.Composer); err != nil {
			var m *compose.Moved
			if !errors.As(err, &m) {
				return err
			}
			base = m.Now
			continue
		}
		reqs := c.addAll(j.cfg.Session, left, from, base)
		for _, r := range left {
			if r.err != nil && backend.OutcomeOf(r.err) == backend.NotApplied && !composed(reqs, r) {
				return r.err
			}
		}
		if len(reqs) == 0 {
			j.mu.Lock()
			j.stand(base)
			j.broken, j.limbo = nil, nil
			j.mu.Unlock()
			return nil
		}
		next, err := j.strategy.Publish(ctx, base, c.Composer)
		if err == nil {
			j.accept(c, next)
			return nil
		}
		var m *compose.Moved
		if !errors.As(err, &m) {
			if backend.OutcomeOf(err) != backend.NotApplied {
				j.mu.Lock()
				j.st, j.limbo = from, left
				j.broken = &Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: left[0].rec.ID}
				err = j.broken
				j.mu.Unlock()
			}
			return err
		}
		base = m.Now
		j.mu.Lock()
		j.forget()
		j.mu.Unlock()
	}
	return &backend.Error{
		Op: "rebase", Key: j.cfg.Session, Outcome: backend.NotApplied,
		Err: fmt.Errorf("the head moved %d times in a row", j.cfg.Limits.Attempts),
	}
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
