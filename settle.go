package coppice

import (
	"context"
	"errors"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/state"
)

// Claim takes over the session: commits of every older writer return ErrFenced from then on, and this handle is no
// longer fenced. Head and document stay the session's newest, and the handle stays where it is: Reload takes the
// newest.
func (s *Session) Claim(ctx context.Context, opts ...MoveOption) (Receipt, error) {
	k := optionsOf(opts, "claim")
	plan := func(context.Context, *state.State) (*journal.Step, error) { return &journal.Step{Claim: true}, nil }
	return s.note(ctx, "claim", k, state.ReasonClaim, plan)
}

// Settle finds out whether a commit of unknown outcome is stored (Error.Commit; "" = the handle's newest one), and
// returns its receipt. If no other writer committed it sends the same request again. A commit that is lost was not
// stored: ErrConflict or ErrFenced where another writer was first, else backend.ErrBusy; what was appended is in the
// buffer again. While it cannot be found out the error is ErrCommitUnknown.
func (s *Session) Settle(ctx context.Context, commit string) (Receipt, error) {
	if err := s.writable(context.WithoutCancel(ctx)); err != nil { // a doubt stays unknown, also if ctx is done
		return Receipt{}, s.fail("settle", err)
	}
	before := s.IO()
	r, err := s.j.Settle(ctx, commit)
	s.ended()
	return s.receipt("settle", before, r, err)
}

// keyed returns the receipt of the commit that has an idempotency key. If no commit has it, nothing is done, and the
// receipt is not Repeated.
func (s *Session) keyed(ctx context.Context, key string) (Receipt, error) {
	if err := errors.Join(checkName("idempotency key", key), s.writable(ctx)); err != nil {
		return Receipt{}, s.fail("run", err)
	}
	r, err := s.j.Write(ctx, journal.Step{Key: key, Based: true},
		func(context.Context, *state.State) (*journal.Step, error) { return nil, nil })
	return receiptOf(r), s.fail("run", err)
}

// Discard drops what was appended, and a commit in doubt, without I/O. The handle stays where it is. A request that was
// in doubt may still be stored: it is another writer's then.
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

// Reload drops what was appended, and a commit in doubt, takes the newest head, and lifts a fence. A request that was
// in doubt may still be stored: it is another writer's then.
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
