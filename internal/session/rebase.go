package session

import (
	"context"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// Claim takes the session. What is pending is committed first, or kept as Rebase keeps it.
func (h *Handle) Claim(ctx context.Context) (journal.Result, error) {
	return h.mend(ctx, func(extra *journal.Step) ([]journal.Result, error) {
		return h.j.Claim(ctx, &journal.Step{Reason: state.ReasonClaim, Claim: true}, extra)
	})
}

// Rebase stores the turns of failed commits, and what is pending: see journal.Journal.Rebase.
func (h *Handle) Rebase(ctx context.Context) (journal.Result, error) {
	return h.mend(ctx, func(extra *journal.Step) ([]journal.Result, error) { return h.j.Rebase(ctx, extra) })
}

// mend runs Rebase or Claim, and makes one result of all: the last one's, with what all of them stored.
func (h *Handle) mend(
	ctx context.Context, run func(extra *journal.Step) ([]journal.Result, error),
) (journal.Result, error) {
	if err := h.Writable(ctx); err != nil {
		return journal.Result{}, err
	}
	before, head, mark := h.IO(), h.State().HeadOrd, h.streamed()
	var results []journal.Result
	err := h.with(ctx, func(extra *journal.Step) (committed bool, err error) {
		results, err = run(extra)
		return true, err
	})
	if err != nil {
		return journal.Result{}, err
	}
	r := journal.Result{Commit: checkpoint.Commit{Head: h.State().Head()}}
	for _, res := range results {
		res.Commit.Entries += r.Commit.Entries
		if res.Kept == "" {
			res.Kept = r.Kept
		}
		r = res
	}
	if len(results) > 0 && (h.State().HeadOrd != head || r.Kept != "") {
		h.endPartial(mark, r.Commit.Seq) // what was pending, or in doubt, has become a turn
	}
	r.IO = h.IO().Sub(before)
	return r, h.after(r, nil)
}

// Reload drops what is pending, the turns of failed commits too, and takes the newest state.
func (h *Handle) Reload(ctx context.Context) error {
	if err := h.Ready(ctx); err != nil {
		return err
	}
	if err := h.j.Reload(ctx); err != nil {
		return err
	}
	h.j.ForgetIDs()
	h.dropPartial()
	h.look(func(v *view) {
		v.held, v.unsaved = nil, false
		v.settle()
	})
	return nil
}
