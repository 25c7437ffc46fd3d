package coppice_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
)

// all is more bytes than a request has.
const all = 1 << 30

// A request that is given up decides for its own commit alone. What was never sent is not in doubt: those commits are
// not applied, their entries stay pending, and the error names the way on. Rebase stores everything once, whether
// the store made the request or not.
func TestGivenUpRequestLeavesOthersCertain(t *testing.T) {
	for name, lands := range map[string]bool{"made": true, "not made": false} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				ctx, cancel := context.WithCancel(bg)
				say(t, s, "l")
				leader := following(ctx, t, s, turnsTo(2))
				write := r.gate.next(t)
				say(t, s, "m")
				queued := following(bg, t, s, turnsTo(3))
				cancel()
				if _, err := leader.wait(t); !errors.Is(err, coppice.ErrCommitUnknown) {
					t.Errorf("the cancelled commit: %v, want ErrCommitUnknown", err)
				}
				_, err := queued.wait(t)
				neverSent(t, "the commit in line", err)
				r.gate.open()
				_, err = s.Commit(bg, turnsTo(4))
				neverSent(t, "a later commit", err)
				if lands {
					ok(t, write.late())
				}
				must(s.Rebase(bg))(t)
				r.agrees(t, s)
				same(t, "stored", everything(t, r.fresh(t)), "u1 a1 l m")
				same(t, "state", stateOf(t, s), state{Turns: 2})
				say(t, s, "n")
				commit(t, s, state{Turns: 5})
				r.agrees(t, s)
				ok(t, s.Close())
			})
		})
	}
}

// Turns of the queue that are kept with the one before them share its request: it is no longer given up when the first
// caller alone is cancelled.
func TestKeptWithACancelledCaller(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, &coppice.SessionOptions{KeepBoth: true})
		ctx, cancel := context.WithCancel(bg)
		leader := following(ctx, t, s, turnsTo(2))
		write := r.gate.next(t)
		queued := following(bg, t, s, turnsTo(3))
		r.wins(t, "w")
		write.pass()
		both := r.gate.next(t)
		cancel()
		if leader.ended(t) || queued.ended(t) {
			t.Error("the request was given up")
		}
		both.pass()
		r.gate.open()
		for _, c := range []*call[coppice.Receipt]{leader, queued} {
			if receipt, err := c.wait(t); err != nil || receipt.Kept == "" {
				t.Errorf("a turn that is kept: branch %q, %v", receipt.Kept, err)
			}
		}
		r.agrees(t, s)
	})
}

// neverSent checks the error of a commit that was refused because another's outcome is unknown.
func neverSent(t *testing.T, what string, err error) {
	t.Helper()
	switch {
	case err == nil || isAny(err, coppice.ErrCommitUnknown, coppice.ErrConflict, coppice.ErrFenced):
		t.Errorf("%s, which was never sent: %v", what, err)
	case !strings.Contains(hint(err), "Rebase"):
		t.Errorf("%s: the hint %q does not name Rebase", what, hint(err))
	}
}

// A request that commits share is given up only when all of them are cancelled. A commit that is cancelled while its
// request is in flight waits for the outcome; if it led the request, it hands the lead on.
func TestSharedRequestOutlivesACancelledCaller(t *testing.T) {
	share := func(t *testing.T, r *rig) (s *coppice.Session, calls pair, cancel [2]func()) {
		t.Helper()
		s = r.start(t, nil)
		leader := following(bg, t, s, coppice.Turn{})
		write := r.gate.next(t)
		for i, text := range []string{"l", "m"} {
			ctx, stop := context.WithCancel(bg)
			say(t, s, text)
			calls[i], cancel[i] = following(ctx, t, s, turnsTo(2+i)), stop
		}
		write.pass()
		_, err := leader.wait(t)
		ok(t, err)
		return s, calls, cancel
	}
	for i, who := range []string{"who leads", "who follows"} {
		t.Run(who, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s, calls, cancel := share(t, r)
				write := r.gate.next(t)
				say(t, s, "n")
				next := following(bg, t, s, turnsTo(4))
				cancel[i]()
				if calls[i].ended(t) {
					t.Errorf("the cancelled commit did not wait: %v", calls[i].err)
				}
				if held, _, _ := r.gate.count(); held != 1 {
					t.Fatal("the request was given up")
				}
				write.pass()
				r.gate.open()
				for _, c := range append(calls[:], next) {
					_, err := c.wait(t)
					ok(t, err)
				}
				r.agrees(t, s)
				same(t, "path", texts(t, s), "u1 a1 l m n")
				cancel[1-i]()
			})
		})
	}
	t.Run("all", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s, calls, cancel := share(t, r)
			r.gate.next(t)
			say(t, s, "n")
			next := following(bg, t, s, turnsTo(4))
			cancel[0]()
			cancel[1]()
			for i, c := range calls {
				if _, err := c.wait(t); !errors.Is(err, coppice.ErrCommitUnknown) {
					t.Errorf("cancelled commit %d: %v, want ErrCommitUnknown", i, err)
				}
			}
			_, err := next.wait(t)
			neverSent(t, "the commit in line", err)
			r.gate.open()
			must(s.Rebase(bg))(t)
			r.agrees(t, s)
			same(t, "path", texts(t, s), "u1 a1 l m n")
			same(t, "state", stateOf(t, s), state{Turns: 3})
		})
	})
}

// A call that needs the handle to itself waits for the request in flight only as long as its context lasts. When it
// is cancelled nothing has happened.
func TestWaitingForTheLeadIsCancelled(t *testing.T) {
	calls := map[string]func(ctx context.Context, s *coppice.Session) error{
		"rebase": func(ctx context.Context, s *coppice.Session) error { _, err := s.Rebase(ctx); return err },
		"claim":  func(ctx context.Context, s *coppice.Session) error { _, err := s.Claim(ctx); return err },
		"reload": func(ctx context.Context, s *coppice.Session) error { return s.Reload(ctx) },
		"branch": func(ctx context.Context, s *coppice.Session) error {
			_, err := s.Branch(ctx, "", nil)
			return err
		},
	}
	for name, do := range calls {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				say(t, s, "l")
				leader := following(bg, t, s, turnsTo(2))
				write := r.gate.next(t)
				say(t, s, "m")
				ctx, cancel := context.WithCancel(bg)
				waiting := begin(func() (struct{}, error) { return struct{}{}, do(ctx, s) })
				if waiting.ended(t) {
					t.Fatalf("it did not wait for the request in flight: %v", waiting.err)
				}
				cancel()
				if _, err := waiting.wait(t); !errors.Is(err, context.Canceled) || errors.Is(err, coppice.ErrCommitUnknown) {
					t.Errorf("it returned %v", err)
				}
				write.pass()
				r.gate.open()
				_, err := leader.wait(t)
				ok(t, err)
				same(t, "path", texts(t, s), "u1 a1 l m")
				commit(t, s, nil)
				r.agrees(t, s)
			})
		})
	}
}
