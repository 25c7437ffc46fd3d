package lifecycle_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// all is more bytes than a request has.
const all = 1 << 30

// A request that is cancelled after it was sent is in doubt for its own caller. A call that waited for it, and a later
// one, is not applied, and its error has a hint. Settle stores the cancelled turn once, whether the store applied the
// request or not.
func TestCancelledRequestIsInDoubt(t *testing.T) {
	for name, lands := range map[string]bool{"made": true, "not made": false} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				ctx, cancel := context.WithCancel(bg)
				say(t, s, "l")
				sent := following(ctx, t, s, turnsTo(2))
				write := r.gate.next(t)
				waiting := following(bg, t, s, carrying("", 3, "m"))
				cancel()
				if _, err := sent.wait(t); !errors.Is(err, coppice.ErrCommitUnknown) {
					t.Errorf("the cancelled commit: %v, want ErrCommitUnknown", err)
				}
				_, err := waiting.wait(t)
				neverSent(t, "the commit that waited", err)
				r.gate.open()
				_, err = s.Commit(bg, turnsTo(4))
				neverSent(t, "a later commit", err)
				_, err = s.Append(bg, entry.User("n"))
				neverSent(t, "a later append", err)
				if lands {
					ok(t, write.late())
				}
				must(s.Settle(bg, ""))(t)
				r.agrees(t, s)
				same(t, "stored", everything(t, r.fresh(t)), "u1 a1 l")
				same(t, "state", stateOf(t, s), state{Turns: 2})
				must(s.Commit(bg, carrying("", 3, "m")))(t)
				r.agrees(t, s)
				ok(t, s.Close())
			})
		})
	}
}

// neverSent checks the error of a call that was refused because the outcome of an earlier commit is unknown.
func neverSent(t *testing.T, what string, err error) {
	t.Helper()
	switch {
	case !errors.Is(err, coppice.ErrInDoubt):
		t.Errorf("%s: %v, want ErrInDoubt", what, err)
	case isAny(err, coppice.ErrCommitUnknown, coppice.ErrConflict, coppice.ErrFenced):
		t.Errorf("%s, which was never sent: %v", what, err)
	case !strings.Contains(hint(err), "Settle"):
		t.Errorf("%s: the hint %q does not name Settle", what, hint(err))
	}
}

// A call waits for the request under way only as long as its context lasts. A cancelled call has no effect, and the
// next call in line proceeds.
func TestWaitingForTheLockIsCancelled(t *testing.T) {
	receipt := func(_ coppice.Receipt, err error) error { return err }
	calls := map[string]func(ctx context.Context, s *coppice.Session) error{
		"append": func(ctx context.Context, s *coppice.Session) error {
			_, err := s.Append(ctx, entry.User("m"))
			return err
		},
		"set context": func(ctx context.Context, s *coppice.Session) error {
			return s.SetContext(ctx, itemFor(s.Head().Entry))
		},
		"commit": func(ctx context.Context, s *coppice.Session) error {
			return receipt(s.Commit(ctx, turnsTo(3)))
		},
		"settle": func(ctx context.Context, s *coppice.Session) error { return receipt(s.Settle(ctx, "")) },
		"claim":  func(ctx context.Context, s *coppice.Session) error { return receipt(s.Claim(ctx)) },
		"label": func(ctx context.Context, s *coppice.Session) error {
			return receipt(s.Label(ctx, s.Head().Entry, "x"))
		},
		"reload":  func(ctx context.Context, s *coppice.Session) error { return s.Reload(ctx) },
		"discard": func(ctx context.Context, s *coppice.Session) error { return s.Discard(ctx) },
		"branch":  func(ctx context.Context, s *coppice.Session) error { return receipt(s.Branch(ctx, "", nil)) },
	}
	for name, do := range calls {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				sent := following(bg, t, s, carrying(s.Head().Commit, 2, "l"))
				write := r.gate.next(t)
				ctx, cancel := context.WithCancel(bg)
				waiting := begin(func() (struct{}, error) { return struct{}{}, do(ctx, s) })
				if waiting.ended(t) {
					t.Fatalf("it did not wait for the request on its way: %v", waiting.err)
				}
				after := following(bg, t, s, carrying("", 4, "n"))
				cancel()
				_, err := waiting.wait(t)
				if !errors.Is(err, context.Canceled) || errors.Is(err, coppice.ErrCommitUnknown) {
					t.Errorf("it returned %v", err)
				}
				write.pass()
				r.gate.open()
				for _, c := range []*call[coppice.Receipt]{sent, after} {
					_, err := c.wait(t)
					ok(t, err)
				}
				same(t, "path", texts(t, s), "u1 a1 l n")
				r.agrees(t, s)
			})
		})
	}
}
