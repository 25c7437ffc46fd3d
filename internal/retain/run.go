package retain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/seam"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/snapshot"
)

// Run is a run of the policy of a store. One that dies, or meets its bound, is continued by the next one.
type Run struct {
	Store *coppice.Store
	Now   func() time.Time

	Remove func(ctx context.Context, r Removal) error // of Apply
	// Prune is package function Prune on the store, recorded as callers record it.
	Prune func(ctx context.Context, id string, keep snapshot.Retention) ([]snapshot.Info, error)
	Show  func(*Result) error // is called before the first session is removed; nil = nothing is

	Dry   bool          // nothing is removed, and another run does not matter
	Every time.Duration // nothing is removed if the last run ended within this time; 0 = it does not matter
	Most  int           // requests after which no other session is begun with, once one was; 0 = no bound
}

// Result is what a run did.
type Result struct {
	Policy   Policy
	Thinned  []Thinned
	Decision Decision
	Applied
	More     bool          // it met its bound, and the next run continues
	Requests int           // all, those of the survey too
	Wait     time.Duration // above 0: nothing was done, and a run with Every may have something to do after this time
}

// halt ends a run before a removal: it has met its bound, or there is a cause.
type halt struct{ cause error }

func (h halt) Error() string { return "the run ends" }

// Do runs the policy. One run has a store at a time: ErrRunning, or with Every a Wait. Two of them, as a claim ends two
// minutes after its runner has died, or by clocks that differ, would do no harm: each removal is conditional.
func (r *Run) Do(ctx context.Context) (res Result, err error) {
	ctx, spent := trace.Count(ctx)
	defer func() { res.Requests = spent() }()
	c := &claim{b: seam.Config(r.Store).Backend, now: r.Now}
	if res.Policy, err = Load(ctx, r.Store); err != nil {
		return res, err
	}
	if err = c.read(ctx); err != nil {
		return res, err
	}
	if r.Dry {
		_, err = r.decide(ctx, c, &res, spent)
		return res, err
	}
	under := c.under()
	switch {
	case r.Every == 0 && under > 0:
		return res, ErrRunning
	case r.Every > 0:
		res.Wait = max(under, c.due(r.Every))
		if res.Policy.Empty() && len(c.Left) == 0 {
			res.Wait = r.Every
		}
		if res.Wait > 0 {
			return res, nil
		}
	}
	switch err = c.take(ctx, seam.Config(r.Store).Rand); {
	case errors.Is(err, ErrRunning) && r.Every > 0: // it was faster
		res.Wait = claimFor
		return res, nil
	case err != nil:
		return res, err
	}
	err = r.finish(ctx, c)
	decided, derr := r.decide(ctx, c, &res, spent)
	err = errors.Join(err, derr)
	if decided {
		err = errors.Join(err, r.apply(ctx, c, &res, spent))
	}
	res.More = c.After != nil
	if errors.Is(err, ErrRunning) { // its claim was taken from it
		return res, err
	}
	return res, errors.Join(err, c.release(ctx))
}

// finish completes the deletions that an earlier run has begun.
func (r *Run) finish(ctx context.Context, c *claim) (err error) {
	for _, id := range c.Left {
		rerr := r.Remove(ctx, Removal{Session: Session{ID: id}, Root: id})
		if rerr == nil || stays(rerr) || errors.Is(rerr, coppice.ErrDeleted) || errors.Is(rerr, fs.ErrNotExist) {
			c.ended(id) // a session that has the id is another one, or was never deleted
			continue
		}
		err = errors.Join(err, rerr)
	}
	return err
}

// decide looks at the store, removes snapshots, and decides which sessions go: false if it did not come so far.
func (r *Run) decide(ctx context.Context, c *claim, res *Result, spent func() int) (decided bool, err error) {
	sessions, err := Survey(ctx, r.Store, res.Policy)
	if err != nil {
		return false, err
	}
	decided, err = r.thin(ctx, c, res, sessions, spent)
	if !decided {
		return false, err
	}
	res.Decision = Decide(res.Policy, sessions, r.Now())
	res.Decision.from(c.After)
	if r.Show != nil {
		serr := r.Show(res)
		return serr == nil, errors.Join(err, serr)
	}
	return true, err
}

// from begins the removals with the first family after a place, so that some which fail each time do not use up every
// run.
func (d *Decision) from(after *place) {
	if after == nil || !after.Thinned {
		return
	}
	n := slices.IndexFunc(d.Removals, func(r Removal) bool {
		at := r.place()
		return at.Active > after.Active || at.Active == after.Active && at.Session > after.Session
	})
	if n > 0 {
		d.Removals = slices.Concat(d.Removals[n:], d.Removals[:n])
	}
}

func (r Removal) place() place {
	return place{Thinned: true, Active: r.active.UnixMilli(), Session: r.Root}
}

// apply carries the decision out, and leaves the place from which the next run continues.
func (r *Run) apply(ctx context.Context, c *claim, res *Result, spent func() int) (err error) {
	root := ""
	res.Applied, err = Apply(ctx, res.Decision.Removals, func(ctx context.Context, rem Removal) error {
		if rem.Root != root {
			if r.Most > 0 && root != "" && spent() >= r.Most {
				return halt{}
			}
			at := rem.place()
			root, c.After = rem.Root, &at
		}
		if err := c.begin(ctx, rem.ID); err != nil {
			return halt{err}
		}
		err := r.Remove(ctx, rem)
		if !errors.Is(err, coppice.ErrDeleteUnfinished) {
			c.ended(rem.ID)
		}
		return err
	})
	if res.Rest == 0 {
		c.After = nil
	}
	return err
}

// failuresMost bounds how many removals in a row may fail before the others are not tried any more.
const failuresMost = 16

// Stay is a session that a decision removes, and that stayed.
type Stay struct {
	Session string
	Err     error // coppice.ErrConflict, coppice.ErrHeld, or that of the session it belongs with
}

// stays reports whether a removal was refused because the session was changed or is held.
func stays(err error) bool {
	return errors.Is(err, coppice.ErrConflict) || errors.Is(err, coppice.ErrHeld)
}

// Applied is what was done to removals.
type Applied struct {
	Removed []string
	Stayed  []Stay
	Rest    int // removals that were not tried
}

// Apply carries removals out, in their order. remove removes a session if its newest commit is Removal.Commit, and else
// returns coppice.ErrConflict or coppice.ErrHeld: then it stays, and with it what is left of its family. One that is
// deleted by now (coppice.ErrDeleted) is no error. Other errors are joined; the family of the session stays too, and
// the others are tried.
func Apply(
	ctx context.Context, removals []Removal, remove func(ctx context.Context, r Removal) error,
) (a Applied, err error) {
	kept := map[string]error{} // by root: why a session of it stayed
	row := 0
	for i, r := range removals {
		a.Rest = len(removals) - i
		if ctx.Err() != nil {
			return a, errors.Join(err, context.Cause(ctx))
		}
		if why := kept[r.Root]; why != nil {
			a.Stayed = append(a.Stayed, Stay{r.ID, why})
			continue
		}
		rerr := remove(ctx, r)
		if h, ok := errors.AsType[halt](rerr); ok {
			return a, errors.Join(err, h.cause)
		}
		switch {
		case rerr == nil:
			a.Removed, row = append(a.Removed, r.ID), 0
			continue
		case errors.Is(rerr, coppice.ErrDeleted):
			row = 0
			continue
		case stays(rerr):
			row = 0
			a.Stayed = append(a.Stayed, Stay{r.ID, rerr})
		default:
			err = errors.Join(err, rerr)
			row++
		}
		kept[r.Root] = fmt.Errorf("session %s of its family stayed: %w", r.ID, rerr)
		if row == failuresMost {
			a.Rest--
			return a, errors.Join(err, fmt.Errorf("the other %d removals were not tried", a.Rest))
		}
	}
	a.Rest = 0
	return a, err
}
