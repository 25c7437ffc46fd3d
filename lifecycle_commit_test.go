package coppice_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// A commit that returns nil has stored everything that was appended to the handle before it, also entries that an
// earlier commit took and did not store: that commit was refused, or it was cancelled while it waited in line.
func TestCommitStoresAllThatWasAppendedBefore(t *testing.T) {
	later := map[string]func(t *testing.T, s *coppice.Session, root string) *call[coppice.Receipt]{
		"an entry below": func(t *testing.T, s *coppice.Session, _ string) *call[coppice.Receipt] {
			say(t, s, "m")
			return following(bg, t, s, turnsTo(3))
		},
		"an entry elsewhere": func(t *testing.T, s *coppice.Session, root string) *call[coppice.Receipt] {
			must(s.Append(bg, under(root, "m")))(t)
			return following(bg, t, s, turnsTo(3))
		},
		"a label": func(t *testing.T, s *coppice.Session, root string) *call[coppice.Receipt] {
			c := begin(func() (coppice.Receipt, error) { return s.Label(bg, root, "m") })
			quiet(t)
			return c
		},
	}
	for name, after := range later {
		t.Run("refused/"+name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				root := s.Head().Entry
				say(t, s, "c")
				first := following(bg, t, s, turnsTo(2))
				write := r.gate.next(t)
				second := after(t, s, root)
				write.refuse()
				r.storesBoth(t, s, first, second, errRefused)
			})
		})
		t.Run("cancelled/"+name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				root := s.Head().Entry
				leader := following(bg, t, s, coppice.Turn{})
				write := r.gate.next(t)
				ctx, cancel := context.WithCancel(bg)
				say(t, s, "c")
				first := following(ctx, t, s, turnsTo(2))
				second := after(t, s, root)
				cancel()
				quiet(t)
				write.pass()
				_, err := leader.wait(t)
				ok(t, err)
				r.storesBoth(t, s, first, second, context.Canceled)
			})
		})
	}
}

// storesBoth checks that the second of two commits stored the entry of the first, which failed, but not its state.
func (r *rig) storesBoth(t *testing.T, s *coppice.Session, first, second *call[coppice.Receipt], cause error) {
	t.Helper()
	r.gate.open()
	_, err := first.wait(t)
	if !errors.Is(err, cause) || errors.Is(err, coppice.ErrCommitUnknown) {
		t.Errorf("the first commit: %v, want %v", err, cause)
	}
	_, err = second.wait(t)
	ok(t, err)
	fresh := r.fresh(t)
	if all := everything(t, fresh); !strings.HasPrefix(all, "u1 a1 c") {
		t.Errorf("the second commit returned nil, stored is %q", all)
	}
	if got := stateOf(t, fresh); got.Turns == 2 {
		t.Error("the state of a failed commit is in force")
	}
	r.agrees(t, s)
	ok(t, s.Close())
}

// After a conflict Rebase and Claim keep every entry, whatever became of the commit that took it first.
func TestFailedCommitDoesNotStopRebase(t *testing.T) {
	mends := map[string]func(s *coppice.Session) (coppice.Receipt, error){
		"rebase": func(s *coppice.Session) (coppice.Receipt, error) { return s.Rebase(bg) },
		"claim":  func(s *coppice.Session) (coppice.Receipt, error) { return s.Claim(bg) },
	}
	for name, mend := range mends {
		t.Run("cancelled/"+name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				say(t, s, "l")
				leader := following(bg, t, s, turnsTo(2))
				write := r.gate.next(t)
				ctx, cancel := context.WithCancel(bg)
				say(t, s, "c")
				cancelled := following(ctx, t, s, turnsTo(3))
				say(t, s, "m")
				queued := following(bg, t, s, turnsTo(4))
				cancel()
				if _, err := cancelled.wait(t); !errors.Is(err, context.Canceled) {
					t.Errorf("the cancelled commit: %v", err)
				}
				r.wins(t, "w")
				write.pass()
				r.keepsBeside(t, s, mend, "u1 a1 l c m", leader, queued)
			})
		})
		t.Run("refused/"+name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				say(t, s, "c")
				refused := following(bg, t, s, turnsTo(3))
				write := r.gate.next(t)
				say(t, s, "m")
				queued := following(bg, t, s, turnsTo(4))
				r.wins(t, "w")
				write.refuse()
				r.gate.open()
				if _, err := refused.wait(t); !errors.Is(err, errRefused) {
					t.Errorf("the refused commit: %v", err)
				}
				r.keepsBeside(t, s, mend, "u1 a1 c m", queued)
			})
		})
	}
}

// keepsBeside checks that commits lost to the winner "w", and that mend keeps all of their line beside it.
func (r *rig) keepsBeside(
	t *testing.T, s *coppice.Session, mend func(*coppice.Session) (coppice.Receipt, error), line string,
	losers ...*call[coppice.Receipt],
) {
	t.Helper()
	r.gate.open()
	for i, c := range losers {
		if _, err := c.wait(t); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("loser %d: %v, want ErrConflict", i, err)
		}
	}
	kept := must(mend(s))(t).Kept
	r.agrees(t, s)
	same(t, "the winner's line", texts(t, s), "u1 a1 w")
	same(t, "the winner's state", stateOf(t, s), state{Turns: 100})
	fresh := r.fresh(t)
	must(fresh.Switch(bg, kept))(t)
	same(t, "the kept line", texts(t, fresh), line)
	same(t, "its state", stateOf(t, fresh), state{Turns: 4})
}

// Entries that are appended while Rebase or Claim sends its request stay on the path to the head. Where the request
// keeps turns beside a winner, Append waits for its answer, and then appends to the winner's line.
func TestAppendDuringRebaseStaysOnThePath(t *testing.T) {
	mends := map[string]func(s *coppice.Session) (coppice.Receipt, error){
		"rebase": func(s *coppice.Session) (coppice.Receipt, error) { return s.Rebase(bg) },
		"claim":  func(s *coppice.Session) (coppice.Receipt, error) { return s.Claim(bg) },
	}
	// prepare leaves the entry "x" pending, and returns the line that "y" grows from.
	prepare := map[string]func(t *testing.T, r *rig, s *coppice.Session) (line string){
		"nothing failed": func(t *testing.T, _ *rig, s *coppice.Session) string {
			say(t, s, "x")
			return "u1 a1 x"
		},
		"a commit in doubt": func(t *testing.T, r *rig, s *coppice.Session) string {
			say(t, s, "x")
			r.doubts(t, s, coppice.Turn{}, 0)
			return "u1 a1 x"
		},
		"a conflict": func(t *testing.T, r *rig, s *coppice.Session) string {
			r.wins(t, "w")
			say(t, s, "x")
			loses(t, r, s, coppice.Turn{})
			return "u1 a1 w"
		},
	}
	for before, prepare := range prepare {
		for name, mend := range mends {
			t.Run(name+"/"+before, func(t *testing.T) {
				onGates(t, func(t *testing.T, r *rig) {
					s := r.start(t, nil)
					line := prepare(t, r, s)
					r.gate.close()
					mending := begin(func() (coppice.Receipt, error) { return mend(s) })
					write := r.gate.next(t)
					appending := begin(func() ([]string, error) { return s.Append(bg, entry.User("y")) })
					waits := line == "u1 a1 w"
					if ended := appending.ended(t); ended == waits {
						t.Errorf("Append has returned: %v, want %v", ended, !waits)
					}
					write.pass()
					r.gate.open()
					_, err := mending.wait(t)
					ok(t, err)
					y := must(appending.wait(t))(t)[0]
					same(t, "head", s.Head().Entry, y)
					same(t, "path", texts(t, s), line+" y")
					commit(t, s, nil)
					same(t, "stored path", texts(t, r.fresh(t)), line+" y")
					r.agrees(t, s)
				})
			})
		}
	}
}

// An Append that waits for the head returns when its context ends, and has appended nothing.
func TestWaitingAppendIsCancelled(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.wins(t, "w")
		say(t, s, "x")
		loses(t, r, s, coppice.Turn{})
		r.gate.close()
		rebase := begin(func() (coppice.Receipt, error) { return s.Rebase(bg) })
		write := r.gate.next(t)
		ctx, cancel := context.WithCancel(bg)
		appending := begin(func() ([]string, error) { return s.Append(ctx, entry.User("y")) })
		if appending.ended(t) {
			t.Error("Append did not wait for the head")
		}
		cancel()
		if _, err := appending.wait(t); !errors.Is(err, context.Canceled) {
			t.Errorf("append: %v", err)
		}
		write.pass()
		_, err := rebase.wait(t)
		ok(t, err)
		same(t, "path", texts(t, s), "u1 a1 w")
		r.agrees(t, s)
	})
}

// An Append during a navigation waits for it, and grows from the place that it goes to.
func TestAppendDuringNavigationGrowsFromItsTarget(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		u1 := collect(t, s.Path(bg, ""))[1].ID
		branch := begin(func() (coppice.Receipt, error) { return s.Branch(bg, u1, nil) })
		write := r.gate.next(t)
		appending := begin(func() ([]string, error) { return s.Append(bg, entry.User("y")) })
		if appending.ended(t) {
			t.Error("Append did not wait for the head")
		}
		write.pass()
		r.gate.open()
		_, err := branch.wait(t)
		ok(t, err)
		y := must(appending.wait(t))(t)[0]
		same(t, "head", s.Head().Entry, y)
		commit(t, s, nil)
		same(t, "path", texts(t, r.fresh(t)), "u1 y")
		r.agrees(t, s)
	})
}

// loses makes a commit meet a conflict.
func loses(t *testing.T, r *rig, s *coppice.Session, turn coppice.Turn) {
	t.Helper()
	r.gate.open()
	if _, err := s.Commit(bg, turn); !errors.Is(err, coppice.ErrConflict) {
		t.Fatalf("commit: %v, want ErrConflict", err)
	}
}

// doubts makes the outcome of a commit unknown: its request reaches the store with n bytes, and the answer is lost.
func (r *rig) doubts(t *testing.T, s *coppice.Session, turn coppice.Turn, n int) {
	t.Helper()
	r.gate.close()
	c := committing(bg, s, turn)
	write := r.gate.next(t)
	write.lose(min(n, len(write.body)))
	if _, err := c.wait(t); !errors.Is(err, coppice.ErrCommitUnknown) {
		t.Fatalf("commit: %v, want ErrCommitUnknown", err)
	}
	r.gate.open()
}
