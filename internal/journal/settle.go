package journal

import (
	"context"
	"errors"
)

// Settle brings a session that was written in bulk to the shape in which a long life would have left it:
// everything sealed, the references folded into one, and a lineage that begins here, so that what a resume
// reads does not depend on how much was imported. It commits nothing that a reader sees.
func (j *Journal) Settle(ctx context.Context) error {
	st := j.State()
	refs := 0
	if len(st.Segments.Levels) > 0 {
		refs = len(st.Segments.Levels[0])
	}
	small := st.tailSize < j.cfg.Limits.SealBytes && len(st.Tail) < j.cfg.Limits.SealEntries
	if len(st.Plain) == 0 && small && refs == 0 {
		return nil
	}
	if a, ok := j.strategy.(*appendLog); ok {
		return a.settle(ctx)
	}
	_, err := j.Commit(ctx, &Step{Reason: reasonImport, settle: true})
	return err
}

// settle writes a checkpoint of the settled state: the log itself stays as it is.
func (a *appendLog) settle(ctx context.Context) error {
	j := a.j
	if err := j.takeLead(ctx); err != nil {
		return err
	}
	defer j.dropLead()
	if _, err := a.rollNow(ctx, j.takeIn(j.State())); err != nil {
		return err
	}
	j.work.Wait() // nobody else tidies from here on
	st, err := j.takeIn(j.State()), error(nil)
	if st, _, err = a.tidy(ctx, st); err != nil {
		return err
	}
	if st, err = j.past.foldAll(ctx, st); err != nil {
		return err
	}
	j.mu.Lock()
	j.st = st
	j.mu.Unlock()
	return a.save(ctx, st)
}

// rollNow closes the active segment, so that it can be sealed. The handle leads. Where another writer was
// there meanwhile, nothing is done.
func (a *appendLog) rollNow(ctx context.Context, st *State) (*State, error) {
	j := a.j
	j.mu.Lock()
	fresh := j.fresh
	j.mu.Unlock()
	c := j.compose(st, fresh)
	c.mustRoll = true
	err := a.prepare(ctx, c)
	var next *State
	if err == nil {
		next, err = a.publish(ctx, st, c)
	}
	var m *moved
	if errors.As(err, &m) {
		return st, nil
	}
	if err != nil {
		return st, err
	}
	j.accept(c, next)
	return next, nil
}
