package session

import (
	"context"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// Claim takes the session. The view stays.
func (h *Handle) Claim(ctx context.Context, k MoveOptions) (journal.Result, error) {
	return h.note(ctx, k.of("claim"), state.ReasonClaim, func(context.Context, *state.State) (*journal.Step, error) {
		return &journal.Step{Claim: true}, nil
	})
}

// Settle finds out what happened to a commit of unknown outcome: see journal.Journal.Settle.
func (h *Handle) Settle(ctx context.Context, commit string) (journal.Result, error) {
	if err := h.Writable(context.WithoutCancel(ctx)); err != nil { // a doubt stays unknown, also if ctx is done
		return journal.Result{}, err
	}
	before := h.IO()
	r, err := h.j.Settle(ctx, commit)
	h.ended()
	if err != nil {
		return journal.Result{}, err
	}
	r.IO = h.IO().Sub(before)
	h.after(r)
	return r, nil
}

// Keyed returns the receipt of the commit that has an idempotency key. If no commit has it, nothing is done, and the
// receipt is not Repeated.
func (h *Handle) Keyed(ctx context.Context, key string) (journal.Result, error) {
	if err := CheckName("idempotency key", key); err != nil {
		return journal.Result{}, err
	}
	if err := h.Writable(ctx); err != nil {
		return journal.Result{}, err
	}
	return h.j.Write(ctx, journal.Call{Key: key, Based: true},
		func(context.Context, *state.State) (*journal.Step, error) { return nil, nil })
}

// Discard drops the buffer and the doubt, without I/O.
func (h *Handle) Discard(ctx context.Context) error {
	if err := h.Ready(ctx); err != nil {
		return err
	}
	if err := h.j.Discard(ctx); err != nil {
		return err
	}
	h.dropBuffer()
	return nil
}

// Reload drops the buffer and the doubt, and takes the newest state.
func (h *Handle) Reload(ctx context.Context) error {
	if err := h.Ready(ctx); err != nil {
		return err
	}
	if err := h.j.Reload(ctx); err != nil {
		return err
	}
	h.j.ForgetIDs()
	h.dropPartial()
	h.dropBuffer()
	return nil
}
