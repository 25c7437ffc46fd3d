package journal

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

const (
	batchMax = 1024 // steps that share one request or append; who comes later goes with the next
	limboMax = 4096 // failed steps that a broken handle keeps for Rebase
)

// Commit makes a step durable: one conditional PUT, or one append. Steps that meet share it, each with
// its own record and seq. Whoever finds nobody publishing does it for all that wait (no goroutine is
// owned by the queue); the others wait for their result.
//
// With ErrConflict, ErrFenced and ErrUnknown the step stays in the handle until Rebase or Reload; with
// any other error it was not applied and is forgotten.
func (j *Journal) Commit(ctx context.Context, step *Step) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, &backend.Error{Op: "commit", Key: j.cfg.Session, Outcome: backend.NotApplied, Err: err}
	}
	r := &request{step: step, ctx: ctx, done: make(chan struct{}), lead: make(chan struct{}, 1)}
	j.mu.Lock()
	if err := j.refuses(); err != nil {
		if j.broken != nil && len(j.limbo) < limboMax {
			j.limbo = append(j.limbo, r)
		}
		j.mu.Unlock()
		queued(step)
		return Result{}, err
	}
	j.queue = append(j.queue, r)
	follows := j.leading
	j.leading = true
	j.mu.Unlock()
	queued(step)
	if follows {
		return j.wait(ctx, r)
	}
	j.leadUntil(r)
	return r.result, r.err
}

// refuses tells why the handle takes no commit; j.mu is held.
func (j *Journal) refuses() error {
	switch {
	case j.closed:
		return &backend.Error{Op: "commit", Key: j.cfg.Session, Outcome: backend.NotApplied, Err: backend.ErrClosed}
	case j.cfg.ReadOnly:
		return &store.Failure{Err: ErrReadOnly}
	}
	return j.broken
}

// Broken is nil, or what makes the handle refuse commits until Rebase or Reload (I11).
func (j *Journal) Broken() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

// wait waits for a leader to publish r, or to hand the lead over.
func (j *Journal) wait(ctx context.Context, r *request) (Result, error) {
	select {
	case <-r.done:
	case <-r.lead:
		j.leadUntil(r)
	case <-ctx.Done():
		if j.withdraw(r) {
			return Result{}, &backend.Error{Op: "commit", Key: j.cfg.Session, Outcome: backend.NotApplied, Err: ctx.Err()}
		}
		select { // it is being published, or it was just made the leader
		case <-r.done:
		case <-r.lead:
			j.leadUntil(r)
		}
	}
	return r.result, r.err
}

// withdraw takes r out of the queue; false where it is no longer there.
func (j *Journal) withdraw(r *request) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, q := range j.queue {
		if q == r && len(r.lead) == 0 {
			j.queue = append(j.queue[:i:i], j.queue[i+1:]...)
			return true
		}
	}
	return false
}

// leadUntil publishes what is queued until r is done, then hands the lead on.
func (j *Journal) leadUntil(r *request) {
	for {
		select {
		case <-r.done:
			j.dropLead()
			return
		default:
		}
		reqs := j.gather()
		ctx, stop := joint(reqs)
		j.publish(ctx, reqs)
		stop()
		for _, q := range reqs {
			close(q.done)
		}
	}
}

// gather takes what is queued, once nobody more comes who could: those whose commits were just acknowledged
// often have the next one at hand, and it may share the request.
func (j *Journal) gather() []*request {
	for before := 0; ; runtime.Gosched() {
		j.mu.Lock()
		if n := min(len(j.queue), batchMax); n <= before || n == batchMax {
			reqs := append([]*request(nil), j.queue[:n]...)
			j.queue = append([]*request(nil), j.queue[n:]...)
			j.mu.Unlock()
			return reqs
		}
		before = len(j.queue)
		j.mu.Unlock()
	}
}

// joint is a context that is done once the contexts of all requests are: nobody's cancellation takes
// another's commit along.
func joint(reqs []*request) (context.Context, func()) {
	if len(reqs) == 1 {
		return reqs[0].ctx, func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(reqs[0].ctx))
	left := make(chan struct{}, len(reqs))
	for range len(reqs) - 1 {
		left <- struct{}{}
	}
	stops := make([]func() bool, len(reqs))
	for i, r := range reqs {
		stops[i] = context.AfterFunc(r.ctx, func() {
			select {
			case <-left:
			default:
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// publish makes the requests durable, in order and together, and settles each. The caller leads.
func (j *Journal) publish(ctx context.Context, reqs []*request) {
	j.mu.Lock()
	base, fresh, err := j.st, j.fresh, j.broken
	j.mu.Unlock()
	if err != nil {
		j.mu.Lock()
		j.limbo = append(j.limbo, reqs...)
		j.mu.Unlock()
		failAll(reqs, err)
		return
	}
	j.attempt(ctx, reqs, base, base, fresh)
}

// attempt publishes the requests, which were made on from, on top of base. Where the head moves
// meanwhile it folds in what changed neither head nor document, keeps both where that is wished, and
// else breaks the handle with a conflict.
func (j *Journal) attempt(ctx context.Context, reqs []*request, from, base *state.State, fresh bool) {
	for range j.cfg.Limits.Attempts {
		c := j.compose(base, fresh)
		c.Settle = slices.ContainsFunc(reqs, func(r *request) bool { return r.step.Settles() })
		err := j.strategy.Prepare(ctx, c.Composer)
		if err == nil {
			if reqs = c.addAll(j.cfg.Session, reqs, from, base); len(c.reqs) == 0 {
				j.acceptNothing(base)
				return
			}
			var next *state.State
			if next, err = j.strategy.Publish(ctx, base, c.Composer); err == nil {
				j.accept(c, next)
				return
			}
		}
		var m *Moved
		if !errors.As(err, &m) {
			j.settle(reqs, base, err)
			return
		}
		base, fresh = m.Now, true
		j.mu.Lock()
		j.forget()
		j.mu.Unlock()
		if lost := lostTo(from, base); lost != nil && (errors.Is(lost.Err, ErrFenced) || !keepsBoth(reqs)) {
			lost.Commit = reqs[0].rec.ID
			j.breakWith(lost, reqs)
			return
		}
	}
	j.settle(reqs, base, &backend.Error{
		Op: "commit", Key: j.cfg.Session, Outcome: backend.NotApplied,
		Err: fmt.Errorf("the head moved %d times in a row", j.cfg.Limits.Attempts),
	})
}

// lostTo tells whether somebody else's state now is a conflict for commits made on from: nil where
// neither head nor document moved.
func lostTo(from, now *state.State) *store.Failure {
	winner := now.Newest()
	switch {
	case now.Summary.Tombstone:
		return &store.Failure{Err: ErrFenced, Winner: &winner}
	case now.Claimed > from.Summary.Seq && from.Summary.Commit != "":
		return &store.Failure{Err: ErrFenced, Winner: &winner}
	case sameHead(from, now):
		return nil
	}
	return &store.Failure{Err: ErrConflict, Winner: &winner}
}

func sameHead(a, b *state.State) bool {
	return a.HeadOrd == b.HeadOrd && a.Summary.Branch == b.Summary.Branch && string(a.DocJSON) == string(b.DocJSON)
}

func keepsBoth(reqs []*request) bool {
	for _, r := range reqs {
		if !r.step.KeepBoth {
			return false
		}
	}
	return true
}

// accept makes next the handle's state and settles the requests of the batch.
func (j *Journal) accept(c *draft, next *state.State) {
	j.mu.Lock()
	j.st, j.fresh, j.broken, j.limbo = next, false, nil, nil
	j.bg.taken = nil
	for e, ord := range c.Ords {
		e.Ord, e.Done, e.Parent, e.ParentOrd = ord, true, nil, -1
	}
	j.mu.Unlock()
	for _, r := range c.reqs {
		r.result.State, r.result.Bytes, r.result.Warnings = next, c.Size, c.Warnings
		r.err = nil
	}
	if !next.Summary.Tombstone { // of a session that is being removed nothing more is made
		j.strategy.Acknowledged(next)
	}
}

// acceptNothing is accept for a batch in which every key was known already.
func (j *Journal) acceptNothing(base *state.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.giveBack()
	if base != j.st {
		j.stand(base)
	}
}

// settle gives the requests an error that is no conflict. Only a certain outcome leaves the handle alive.
func (j *Journal) settle(reqs []*request, base *state.State, err error) {
	var f *store.Failure
	switch {
	case errors.As(err, &f):
		if errors.Is(f.Err, ErrUnknown) {
			inDoubt(reqs)
		}
		j.breakWith(f, reqs)
	case backend.OutcomeOf(err) == backend.NotApplied:
		j.mu.Lock()
		j.giveBack()
		if base != j.st && sameHead(base, j.st) {
			j.stand(base)
		}
		j.mu.Unlock()
		failAll(reqs, err)
	default:
		id := ""
		if len(reqs) > 0 {
			id = reqs[0].rec.ID
		}
		inDoubt(reqs)
		j.breakWith(&store.Failure{Err: fmt.Errorf("%w: %w", ErrUnknown, err), Commit: id}, reqs)
	}
}

// breakWith makes the handle refuse commits; the requests stay in it.
func (j *Journal) breakWith(f *store.Failure, reqs []*request) {
	j.mu.Lock()
	j.broken = f
	j.limbo = append(j.limbo, reqs...)
	j.mu.Unlock()
	failAll(reqs, f)
}

func failAll(reqs []*request, err error) {
	for _, r := range reqs {
		r.err = err
	}
}
