package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
)

// Plan returns the step to store on the state on, the newest one that the handle knows; nil = there is nothing to
// store. Write calls it again after each condition that was lost to another writer. It must not keep a reference to on.
// Write sets Key, Digest and Writer of the step.
type Plan func(ctx context.Context, on *state.State) (*Step, error)

// Held is a journal whose lock the caller holds, until Release.
type Held struct{ j *Journal }

// Hold takes the lock of the handle, in order of arrival. An error of ctx means that nothing was applied.
func (j *Journal) Hold(ctx context.Context, op string) (Held, error) {
	if err := j.lock.take(ctx); err != nil {
		return Held{}, j.notApplied(op, err)
	}
	return Held{j}, nil
}

// Release releases the lock.
func (h Held) Release() { h.j.lock.free() }

// Commit stores one step that does not depend on the state.
func (j *Journal) Commit(ctx context.Context, step *Step) (Outcome, error) {
	c := *step
	c.Based = step.Base != nil || step.Claim || step.Note
	return j.Write(ctx, c, func(context.Context, *state.State) (*Step, error) { return step, nil })
}

// Write is Held.Write under the lock.
func (j *Journal) Write(ctx context.Context, c Step, plan Plan) (Outcome, error) {
	h, err := j.Hold(ctx, "commit")
	if err != nil {
		return Outcome{}, err
	}
	defer h.Release()
	return h.Write(ctx, c, plan)
}

// Write stores one step: by one conditional PUT, or by one append and its sync. See Publish for the exceptions. It uses
// only Key, Digest, Writer and Based of c, which do not depend on the state: a known key is answered before plan is
// called. With an error:
//
//   - ErrUnknown: the step may be applied. The request is the doubt of the handle until Settle, Reload or Discard, or
//     until a later write ends it.
//   - All others: the step is not applied. Buffer and view are as before.
func (h Held) Write(ctx context.Context, c Step, plan Plan) (Outcome, error) {
	j := h.j
	if j.cfg.ReadOnly {
		return Outcome{}, &store.Failure{Err: ErrReadOnly}
	}
	ctx, done := j.interruptible(ctx)
	defer done()
	if err := j.endDoubt(ctx, c); err != nil {
		return Outcome{}, err
	}
	if err := j.begin(ctx); err != nil {
		return Outcome{}, err
	}
	j.complete(ctx)
	for range j.cfg.Limits.Attempts {
		r, err := j.try(ctx, c, plan)
		m, lost := errors.AsType[*recompose](err)
		if !lost {
			j.meets(err)
			return r, err
		}
		j.follow(m.now)
	}
	return Outcome{}, j.notApplied("commit",
		fmt.Errorf("the head moved %d times in a row: %w", j.cfg.Limits.Attempts, backend.ErrBusy))
}

// meets remembers an ErrDeleted of a write: Append refuses entries from then on.
func (j *Journal) meets(err error) {
	if errors.Is(err, store.ErrDeleted) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.deleted = err
	}
}

// recompose is the error of a write that stored nothing and has to be made again on the state now: another writer has
// committed, torn bytes at the end of the log were cut off, or the state that the handle knew was not durable.
type recompose struct{ now *state.State }

func (m *recompose) Error() string { return "the head moved" }

// try makes one request on the newest state that the handle knows, and sends it. A *recompose error: try again.
func (j *Journal) try(ctx context.Context, c Step, plan Plan) (Outcome, error) {
	tip := j.Tip()
	if tip.Summary.Tombstone {
		return Outcome{}, store.Deleted(tip.Object(false))
	}
	// 1. A known key is answered whatever the state is now.
	if rec, line, err := j.keyed(ctx, tip, c); err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, err)
	} else if rec != nil {
		return j.repeat(ctx, tip, c.Based, rec, line)
	}
	// 2. The caller plans what to store on this state.
	step, err := plan(ctx, tip)
	if err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, err)
	}
	if step == nil {
		return j.idle(ctx, tip, c.Based, nil)
	}
	step.Key, step.Digest, step.Writer = c.Key, c.Digest, c.Writer
	// 3. judge decides whether the step may be stored, and as a branch or not.
	claimant, err := j.claimedBy(ctx, tip, step)
	if err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, j.unsent(err))
	}
	if err := j.erasedSince(ctx, tip, step); err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, j.unsent(err))
	}
	kept, behind, err := j.judge(tip, step, claimant)
	if errors.Is(err, ErrConflict) { // entries that are all stored already are no conflict: they were sent again
		known, kerr := j.allKnown(ctx, tip, step)
		if kerr != nil {
			return Outcome{}, j.refused(ctx, tip, c.Key, j.unsent(kerr))
		}
		if known {
			r, err := j.idle(ctx, tip, c.Based, step)
			r.Behind = behind
			return r, err
		}
	}
	if err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, err)
	}
	if step.Nothing {
		r, err := j.idle(ctx, tip, c.Based, nil)
		r.Behind = behind
		return r, err
	}
	// 4. compose makes the base durable, and then the lines.
	r, err := j.compose(ctx, tip, step, kept)
	if err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, j.unsent(err))
	}
	if r == nil {
		return j.idle(ctx, tip, c.Based, step)
	}
	r.behind = behind && (kept || step.Note || step.Claim) // else judge found the base of the step in force
	// 5. send publishes the lines: the commit point.
	out, err := j.send(ctx, r)
	if err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, err)
	}
	return out, nil
}

// Tip returns the newest state that the handle knows. State returns the view, which may be older.
func (j *Journal) Tip() *state.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tip
}

// refused returns the error of a write that was not stored. If err could be different on the newest state (the step has
// a key, or an id or a commit was not found or exists already), and a newer state exists, it returns a *recompose in
// place of err.
func (j *Journal) refused(ctx context.Context, tip *state.State, key string, err error) error {
	if _, lost := errors.AsType[*recompose](err); lost {
		return err
	}
	if key == "" && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) || errors.Is(err, ErrUnknown) {
		return err
	}
	now, lerr := j.newest(ctx)
	switch {
	case errors.Is(lerr, store.ErrDeleted) && errors.Is(err, fs.ErrNotExist):
		return lerr
	case lerr == nil && now.Summary.Commit != tip.Summary.Commit:
		return &recompose{now: now}
	}
	return err
}

// newest returns the newest state; of a session that does not exist yet, the one that it begins with. It reads it
// only if anyone committed after the state that the handle knows.
func (j *Journal) newest(ctx context.Context) (*state.State, error) {
	tip := j.Tip()
	if tip.Summary.Tombstone {
		return nil, store.Deleted(tip.Object(false))
	}
	if tip.Summary.Commit != "" {
		if changed, err := j.strategy.Changed(ctx, tip); err == nil && !changed {
			return tip, nil
		}
	}
	now, err := j.strategy.Load(ctx)
	if tip.Summary.Commit == "" && errors.Is(err, fs.ErrNotExist) && !errors.Is(err, store.ErrDeleted) {
		return tip, nil
	}
	return now, err
}

// idle answers a write that has nothing to store, of the newest state, once all that it was read from is confirmed.
func (j *Journal) idle(ctx context.Context, tip *state.State, based bool, step *Step) (Outcome, error) {
	if !based { // the view is the tip, or the write is refused
		return j.confirmed(ctx, tip, step)
	}
	now, err := j.newest(ctx)
	if err != nil {
		return Outcome{}, j.unsent(err)
	}
	if now.Summary.Commit != tip.Summary.Commit {
		return Outcome{}, &recompose{now: now}
	}
	return j.confirmed(ctx, tip, step)
}

func (j *Journal) confirmed(ctx context.Context, tip *state.State, step *Step) (Outcome, error) {
	st, err := j.harden(ctx, tip)
	if err != nil {
		return Outcome{}, err
	}
	r := Outcome{State: st}
	r.Commit.Head = st.Head()
	if step != nil {
		r.IDs, r.Known, r.Repeated = step.ids(), step.ids(), step.brings()
	}
	return r, nil
}

// harden makes the state tip durable before it is acknowledged, for a call that stores nothing itself.
func (j *Journal) harden(ctx context.Context, tip *state.State) (*state.State, error) {
	if tip.Sure() || tip.Summary.Commit == "" {
		return tip, nil
	}
	st, err := j.strategy.Harden(ctx, tip)
	if err != nil {
		return nil, j.unsent(err)
	}
	if !st.Sure() { // another writer changed the log meanwhile
		now, err := j.newest(ctx)
		if err != nil {
			return nil, j.unsent(err)
		}
		return nil, &recompose{now: now}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.view == j.tip {
		j.view = st
	}
	j.tip = st
	return st, nil
}

// unsent returns the error of a write that failed before it was sent, with the outcome NotApplied.
func (j *Journal) unsent(err error) error {
	var m *recompose
	var f *store.Failure
	if errors.As(err, &m) || errors.As(err, &f) || backend.OutcomeOf(err) == backend.NotApplied {
		return err
	}
	return j.notApplied("commit", err)
}

// complete calls Config.Unfinished if the newest commit of the session is an erasure: its writer may have died before
// it removed the objects that the erasure replaced. A handle calls it once per erasure. After a failure the next writer
// completes the erasure.
func (j *Journal) complete(ctx context.Context) {
	tip := j.Tip()
	if j.cfg.Unfinished == nil || tip.Newest().Reason != state.ReasonErase || j.completed == tip.Summary.Commit {
		return
	}
	j.completed = tip.Summary.Commit
	_ = j.cfg.Unfinished(ctx, j.cfg)
}
