package journal

import (
	"context"
	"errors"

	"github.com/coppice-go/coppice/internal/journal/state"
)

// Reindex writes the id index of cfg's session again, and publishes it: where objects are only replaced with a commit
// of the reason "repair", on a disk with a checkpoint of the newest commit.
func Reindex(ctx context.Context, cfg Config) (err error) {
	j, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close(ctx)) }()
	was := j.State().IDs
	a, appends := j.strategy.(*appendStrategy)
	if !appends {
		if _, err := j.Commit(ctx, &Step{Reason: "repair", rebuildIDs: true}); err != nil {
			return err
		}
		j.store.DropRuns(ctx, state.Superseded(was, j.State().IDs))
		return nil
	}
	h, err := j.Hold(ctx, "reindex")
	if err != nil {
		return err
	}
	defer h.Release()
	st, err := a.Harden(ctx, j.State())
	if err != nil {
		return err
	}
	if !st.Sure() {
		return conflict(st)
	}
	a.rebuildIDs = true
	_, _, err = a.tidy(ctx, st, false)
	return err
}
