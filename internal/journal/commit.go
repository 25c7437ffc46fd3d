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

// Plan returns the step to store on the newest state that is known, nil if there is nothing to do. It is called again
// after each condition that was lost to another writer, and must not keep on. Key, Digest and Writer of the step are
// those of the call.
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

// Write stores one step: by one conditional PUT, or by one append and its sync. Of c only Key, Digest, Writer and Based
// count, which are known before the state that the step is made on: a key comes first. The errors report what happened
// to the data:
//
//   - ErrUnknown: perhaps applied. The request is the handle's doubt until Settle, Reload or Discard, or until a later
//     write ends it.
//   - all others: not applied. Buffer and view are as before.
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
		m, lost := errors.AsType[*moved](err)
		if !lost {
			j.meets(err)
			return r, err
		}
		j.follow(m.now)
	}
	return Outcome{}, j.notApplied("commit",
		fmt.Errorf("the head moved %d times in a row: %w", j.cfg.Limits.Attempts, backend.ErrBusy))
}

// meets notes that a write met the deletion of the session: Append refuses entries from then on.
func (j *Journal) meets(err error) {
	if errors.Is(err, store.ErrDeleted) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.deleted = err
	}
}

// moved means that nothing was stored, and that now is newer than the state that the write was composed on.
type moved struct{ now *state.State }

func (m *moved) Error() string { return "the head moved" }

// try makes one request on the newest state that the handle knows, and sends it. A *moved error: again.
func (j *Journal) try(ctx context.Context, c Step, plan Plan) (Outcome, error) {
	tip := j.Tip()
	if tip.Summary.Tombstone {
		return Outcome{}, store.Deleted(tip.Object(false))
	}
	// 1. A key that is known is answered before anything is judged.
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
	// 3. The rules decide whether it may be stored, and on which line.
	claimant, err := j.claimedBy(ctx, tip, step)
	if err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, j.unsent(err))
	}
	if err := j.erasedSince(ctx, tip, step); err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, j.unsent(err))
	}
	kept, behind, err := j.judge(tip, step, claimant)
	if errors.Is(err, ErrConflict) { // a batch that is sent again is answered, whatever it was made on
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
	// 4. Its bytes are composed; what they build upon is confirmed.
	r, err := j.compose(ctx, tip, step, kept)
	if err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, j.unsent(err))
	}
	if r == nil {
		return j.idle(ctx, tip, c.Based, step)
	}
	r.behind = behind && (kept || step.Note || step.Claim) // else its line follows what it was made on
	// 5. They are sent, once.
	out, err := j.send(ctx, r)
	if err != nil {
		return Outcome{}, j.refused(ctx, tip, c.Key, err)
	}
	return out, nil
}

// Tip returns the newest state that the handle knows. The view may be older: see State.
func (j *Journal) Tip() *state.State {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tip
}

// refused returns the error of a write that was not sent. One that the newest state may see in another light is judged
// again on it: with a key, or where an id or a commit was looked for.
func (j *Journal) refused(ctx context.Context, tip *state.State, key string, err error) error {
	if _, lost := errors.AsType[*moved](err); lost {
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
		return &moved{now: now}
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
		return Outcome{}, &moved{now: now}
	}
	return j.confirmed(ctx, tip, step)
}

func (j *Journal) confirmed(ctx context.Context, tip *state.State, step *Step) (Outcome, error) {
	st, err := j.confirm(ctx, tip)
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

// confirm makes sure that all of a state that the handle knows survives power loss, before it is acknowledged.
func (j *Journal) confirm(ctx context.Context, tip *state.State) (*state.State, error) {
	if tip.Sure() || tip.Summary.Commit == "" {
		return tip, nil
	}
	st, err := j.strategy.Confirm(ctx, tip)
	if err != nil {
		return nil, j.unsent(err)
	}
	if !st.Sure() { // another process changed the log meanwhile
		now, err := j.newest(ctx)
		if err != nil {
			return nil, j.unsent(err)
		}
		return nil, &moved{now: now}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.view == j.tip {
		j.view = st
	}
	j.tip = st
	return st, nil
}

// unsent returns the error of a write that was not sent: whatever failed, nothing of it was applied.
func (j *Journal) unsent(err error) error {
	var m *moved
	var f *store.Failure
	if errors.As(err, &m) || errors.As(err, &f) || backend.OutcomeOf(err) == backend.NotApplied {
		return err
	}
	return j.notApplied("commit", err)
}

// complete has an erasure completed that is the newest commit of the session: its writer may have died before it
// removed what it replaced. It is asked for once by a handle; if it fails, the erasure stays for the next writer.
func (j *Journal) complete(ctx context.Context) {
	tip := j.Tip()
	if j.cfg.Unfinished == nil || tip.Newest().Reason != state.ReasonErase || j.completed == tip.Summary.Commit {
		return
	}
	j.completed = tip.Summary.Commit
	_ = j.cfg.Unfinished(ctx, j.cfg)
}
