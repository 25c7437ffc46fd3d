package coppice

import (
	"context"
	"errors"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// This file has what a caller does after a commit failed: Settle a doubt, Reload or Discard after a conflict, Claim
// after a fence.

// Claim takes over the session: commits of every older writer return ErrFenced from then on, and this handle is no
// longer fenced. Claim changes neither the head nor the document of the session, and it does not move the handle: call
// Reload to continue at the newest head.
func (s *Session) Claim(ctx context.Context, opts ...MoveOption) (Receipt, error) {
	k := optionsOf(opts, "claim")
	plan := func(context.Context, *state.State) (*journal.Step, error) { return &journal.Step{Claim: true}, nil }
	return s.note(ctx, "claim", k, state.ReasonClaim, plan)
}

// Settle finds out whether a commit of unknown outcome is stored, and returns its receipt. commit is Error.Commit of
// the failed call; "" = the newest doubt of the handle. If no other writer has committed since, Settle sends the same
// request again. If the commit was not stored and cannot be any more, the error is ErrConflict or ErrFenced if another
// writer was first, else backend.ErrBusy; the appended entries are in the buffer again. If the store cannot answer, the
// error is ErrCommitUnknown.
func (s *Session) Settle(ctx context.Context, commit string) (Receipt, error) {
	if err := s.writable(context.WithoutCancel(ctx)); err != nil { // a doubt stays unknown, also if ctx is done
		return Receipt{}, s.fail("settle", err)
	}
	before := s.IO()
	r, err := s.j.Settle(ctx, commit)
	s.ended()
	return s.receipt("settle", before, r, err)
}

// keyed returns the receipt of the commit with an idempotency key. If no commit has the key the receipt is not
// Repeated. It stores nothing.
func (s *Session) keyed(ctx context.Context, key string) (Receipt, error) {
	if err := errors.Join(checkName("idempotency key", key), s.writable(ctx)); err != nil {
		return Receipt{}, s.fail("run", err)
	}
	r, err := s.j.Write(ctx, journal.Step{Key: key, Based: true},
		func(context.Context, *state.State) (*journal.Step, error) { return nil, nil })
	return receiptOf(r), s.fail("run", err)
}

// Discard drops the appended entries and a doubt, without I/O. The handle stays on its commit. The request in doubt may
// be stored nevertheless; the handle then treats its commit as one of another writer.
func (s *Session) Discard(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return s.fail("discard", err)
	}
	if err := s.j.Discard(ctx); err != nil {
		return s.fail("discard", err)
	}
	s.dropBuffer()
	return nil
}

// Reload is Discard, and then moves the handle to the newest commit of the session; the handle is no longer fenced.
func (s *Session) Reload(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return s.fail("reload", err)
	}
	if err := s.j.Reload(ctx); err != nil {
		return s.fail("reload", err)
	}
	s.j.ForgetIDs()
	s.dropPartial()
	s.dropBuffer()
	return nil
}
