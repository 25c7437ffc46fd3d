package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// An erasure replaces objects of a session by others with the same ordinals, and one commit puts them in force. On
// a store that only replaces, its PUT is that of the checkpoint that refers to them. On one that appends, its line
// is in force once it is in the log, as every commit is: it names the segments that take the place of others, and
// the checkpoint follows. A reader with an older checkpoint builds the state from the log (Load). No writer
// is fenced: a turn that meets the erasure is composed again.

// Rewriting makes the state that is to be in force in place of st, and the step that puts it in force; nil =
// nothing is to be done. It is called again if another writer commits meanwhile.
type Rewriting func(ctx context.Context, st *state.State) (*state.State, *Step, error)

// rewriteTries bounds how often a rewriting begins again because other writers commit.
const rewriteTries = 64

// Rewrite puts in force what a rewriting makes of the newest state. On a store that appends, the state that it is
// given has one plain segment, which holds no commit, and is durable. The view of the handle is the result. The
// outcome of a step that was nothing has no commit.
func (j *Journal) Rewrite(ctx context.Context, rewrite Rewriting) (Outcome, error) {
	h, err := j.Hold(ctx, "erase")
	if err != nil {
		return Outcome{}, err
	}
	defer h.Release()
	for range rewriteTries {
		st, err := j.closed(ctx)
		if err != nil {
			return Outcome{}, j.unsent(err)
		}
		next, step, err := rewrite(ctx, st)
		if err != nil && j.left(ctx, st) { // what it looked for may be gone since
			continue
		}
		if err != nil || step == nil {
			if err != nil {
				err = j.unsent(err)
			}
			return Outcome{State: st}, err
		}
		j.standOn(next)
		step.Reason, step.Note, step.Keyframe, step.erase = state.ReasonErase, true, true, true
		out, err := j.try(ctx, Step{Based: true}, func(context.Context, *state.State) (*Step, error) {
			return step, nil
		})
		if _, lost := errors.AsType[*recompose](err); lost {
			continue
		}
		if err != nil {
			return Outcome{}, err
		}
		out.State = out.State.Fresh()
		j.standOn(out.State)
		return out, j.inCheckpoint(ctx, out.State)
	}
	return Outcome{}, j.notApplied("erase",
		fmt.Errorf("other writers committed %d times meanwhile: %w", rewriteTries, backend.ErrBusy))
}

// left reports whether another writer has committed after a state.
func (j *Journal) left(ctx context.Context, st *state.State) bool {
	now, err := j.strategy.Load(ctx)
	return err == nil && now.Summary.Commit != st.Summary.Commit
}

func (j *Journal) standOn(st *state.State) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.adopt(st)
}

// closed reads the newest state. On a store that appends it closes the active segment first, if anything is
// committed to it, and seals what is closed.
func (j *Journal) closed(ctx context.Context) (*state.State, error) {
	st, err := j.strategy.Load(ctx)
	if err != nil {
		return nil, err
	}
	j.standOn(st)
	a, appends := j.strategy.(*appendStrategy)
	if !appends {
		return st, nil
	}
	for range j.cfg.Limits.Attempts {
		if st = j.Tip(); len(st.Plain) == 1 && st.Active().Count == 0 && st.Sure() {
			return st, nil
		}
		if st.Active().Count > 0 {
			if err := j.rollNow(ctx); err != nil {
				return nil, err
			}
		}
		if st, err = a.Harden(ctx, j.Tip()); err != nil {
			return nil, err
		}
		if st, _, err = a.tidy(ctx, st, false); err != nil {
			return nil, err
		}
		j.standOn(st)
	}
	return nil, j.notApplied("erase", fmt.Errorf("other writers committed meanwhile: %w", backend.ErrBusy))
}

// inCheckpoint writes the checkpoint of an erasure on a store that appends: what it replaced is removed after
// that. One of a later commit does as well.
func (j *Journal) inCheckpoint(ctx context.Context, st *state.State) error {
	a, appends := j.strategy.(*appendStrategy)
	if !appends {
		return nil
	}
	err := errRuns
	for n := 0; n < j.cfg.Limits.Attempts && errors.Is(err, errRuns); n++ {
		a.mu.Lock()
		inForce := a.runs
		a.mu.Unlock()
		err = a.save(ctx, st.Named(inForce), false)
	}
	if errors.Is(err, errOlder) {
		return nil
	}
	return err
}
