package retain

import (
	"context"
	"errors"
	"fmt"

	coppice "github.com/coppice-go/coppice"
)

// Survey returns what a decision by a policy needs of every session of a store. It costs an exact list.
func Survey(ctx context.Context, st *coppice.Store, p Policy) ([]Session, error) {
	var all []Session
	for sum, err := range st.List(ctx, coppice.ListOptions{Exact: true}) {
		if err != nil {
			return nil, err
		}
		all = append(all, p.Of(&sum))
	}
	return all, nil
}

// failuresMost bounds how many removals in a row may fail before the others are not tried any more.
const failuresMost = 16

// Stay is a session that a decision removes, and that stayed.
type Stay struct {
	Session string
	Err     error // coppice.ErrConflict, coppice.ErrHeld, or that of the session it belongs with
}

// Apply carries removals out, in their order. remove removes a session if its newest commit is Removal.Commit, and else
// returns coppice.ErrConflict or coppice.ErrHeld: then it stays, and with it what is left of its family. One that is
// deleted by now (coppice.ErrDeleted) is no error. Other errors are joined; the family of the session stays too, and
// the others are tried.
func Apply(
	ctx context.Context, removals []Removal, remove func(ctx context.Context, r Removal) error,
) (removed []string, stayed []Stay, err error) {
	kept := map[string]error{} // by root: why a session of it stayed
	row := 0
	for i, r := range removals {
		if ctx.Err() != nil {
			return removed, stayed, errors.Join(err, context.Cause(ctx))
		}
		if why := kept[r.Root]; why != nil {
			stayed = append(stayed, Stay{r.ID, why})
			continue
		}
		rerr := remove(ctx, r)
		switch {
		case rerr == nil:
			removed, row = append(removed, r.ID), 0
			continue
		case errors.Is(rerr, coppice.ErrDeleted):
			row = 0
			continue
		case errors.Is(rerr, coppice.ErrConflict), errors.Is(rerr, coppice.ErrHeld):
			row = 0
			stayed = append(stayed, Stay{r.ID, rerr})
		default:
			err = errors.Join(err, rerr)
			row++
		}
		kept[r.Root] = fmt.Errorf("session %s of its family stayed: %w", r.ID, rerr)
		if row == failuresMost {
			left := len(removals) - i - 1
			return removed, stayed, errors.Join(err, fmt.Errorf("the other %d removals were not tried", left))
		}
	}
	return removed, stayed, err
}
