package lifecycle_test

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/testutil"
)

// lost returns a session whose turn lost against that of a winner, with the text w.
func lost(t *testing.T, store *coppice.Store, o *coppice.SessionOptions) (loser, winner *coppice.Session, err error) {
	t.Helper()
	loser = create(t, store, "s", o)
	say(t, loser, "u1", "a1")
	commit(t, loser, state{Turns: 1})
	winner = open(t, store, "s")
	say(t, winner, "w")
	commit(t, winner, state{Turns: 100})
	say(t, loser, "l")
	_, err = loser.Commit(bg, coppice.Turn{State: state{Turns: 2}})
	return loser, winner, err
}

// After ErrConflict nothing of the losing turn is stored, appended entries stay, and the error names the winner. The
// same turn with KeepBoth becomes a branch, and the head stays the winner's.
func TestConflictKept(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		loser, winner, err := lost(t, store, nil)
		var e *coppice.Error
		if !errors.Is(err, coppice.ErrConflict) || !errors.As(err, &e) {
			t.Fatalf("commit: %v", err)
		}
		same(t, "winner", e.Winner.Commit, winner.Head().Commit)
		if e.Hint == "" || e.Session != "s" || e.Op != "commit" {
			t.Errorf("error %+v", e)
		}
		same(t, "context", texts(t, loser), "u1 a1 l")
		same(t, "state", stateOf(t, loser), state{Turns: 1})
		same(t, "stored", texts(t, open(t, store, "s")), "u1 a1 w")
		if _, err := loser.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("a second commit: %v", err)
		}
		if _, err := loser.Append(bg, entry.User("more")); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("append: %v", err)
		}
		r := must(loser.Commit(bg, coppice.Turn{State: state{Turns: 2}, KeepBoth: true}))(t)
		if !strings.HasPrefix(r.Kept, "conflict-") {
			t.Errorf("kept %q", r.Kept)
		}
		same(t, "entries", r.Entries, 1)
		same(t, "context", texts(t, loser), "u1 a1")
		same(t, "state", stateOf(t, loser), state{Turns: 1})
		ok(t, loser.Reload(bg))
		same(t, "context after Reload", texts(t, loser), "u1 a1 w")
		same(t, "state after Reload", stateOf(t, loser), state{Turns: 100})
		again := open(t, store, "s")
		same(t, "context", texts(t, again), "u1 a1 w")
		must(again.Switch(bg, r.Kept))(t)
		same(t, "context", texts(t, again), "u1 a1 l")
		same(t, "state", stateOf(t, again), state{Turns: 2})
		tree := must(again.Tree(bg))(t)
		versions, _ := tree.Siblings(winner.Head().Entry)
		same(t, "versions", len(versions), 2)
	})
}

// Reload drops the turn.
func TestConflictReload(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		loser, _, err := lost(t, store, nil)
		if !errors.Is(err, coppice.ErrConflict) {
			t.Fatalf("commit: %v", err)
		}
		ok(t, loser.Reload(bg))
		same(t, "context", texts(t, loser), "u1 a1 w")
		same(t, "state", stateOf(t, loser), state{Turns: 100})
		say(t, loser, "u2")
		commit(t, loser, state{Turns: 101})
		same(t, "context", texts(t, open(t, store, "s")), "u1 a1 w u2")
		same(t, "entries", len(collect(t, loser.Entries(bg))), 4)
	})
}

// With KeepBoth Commit stores the losing turn as a branch. The handle continues after Reload.
func TestKeepBoth(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{KeepBoth: true})
		say(t, s, "u1")
		commit(t, s, state{Turns: 1})
		other := open(t, store, "s")
		say(t, other, "w")
		commit(t, other, nil)
		say(t, s, "l")
		r := commit(t, s, state{Turns: 2})
		if r.Kept == "" {
			t.Fatal("nothing was kept")
		}
		same(t, "context", texts(t, s), "u1")
		ok(t, s.Reload(bg))
		same(t, "context after Reload", texts(t, s), "u1 w")
		must(s.Switch(bg, r.Kept))(t)
		same(t, "context", texts(t, s), "u1 l")
		same(t, "state", stateOf(t, s), state{Turns: 2})
		same(t, "reopened", texts(t, open(t, store, "s")), "u1 l")
	})
}

// A commit that moved neither head nor document causes no conflict.
func TestFoldedCommits(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		id := say(t, s, "u1", "a1")
		commit(t, s, nil)
		other := open(t, store, "s")
		must(other.Label(bg, id[0], "one"))(t)
		say(t, s, "u2")
		commit(t, s, nil)
		same(t, "context", texts(t, s), "u1 a1 u2")
		n, _ := must(s.Tree(bg))(t).Node(id[0])
		same(t, "label", n.Label, "one")
		same(t, "reopened", texts(t, open(t, store, "s")), "u1 a1 u2")
	})
}

// Claim fences older writers. KeepBoth then keeps the turn without taking the session; Claim takes it back.
func TestClaim(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		commit(t, s, nil)
		other := open(t, store, "s")
		r := must(other.Claim(bg))(t)
		same(t, "kept", r.Kept, "")
		say(t, s, "l")
		_, err := s.Commit(bg, coppice.Turn{})
		if !errors.Is(err, coppice.ErrFenced) || errors.Is(err, coppice.ErrConflict) {
			t.Fatalf("commit: %v", err)
		}
		r = must(s.Commit(bg, coppice.Turn{KeepBoth: true}))(t)
		if r.Kept == "" {
			t.Error("nothing was kept")
		}
		say(t, other, "w")
		commit(t, other, nil)
		must(s.Claim(bg))(t)
		same(t, "the other goes on", texts(t, open(t, store, "s")), "u1 w")
		say(t, other, "w2")
		if _, err := other.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrFenced) {
			t.Errorf("the other: %v", err)
		}
	})
}

// The first commit of a new session whose id is taken fails, and changes nothing.
func TestTakenID(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		a, b := create(t, store, "s", nil), create(t, store, "s", nil)
		say(t, a, "a")
		say(t, b, "b")
		commit(t, a, nil)
		if _, err := b.Commit(bg, coppice.Turn{}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("commit: %v", err)
		}
		same(t, "context", texts(t, open(t, store, "s")), "a")
	})
}

// If an answer is lost the outcome is determined if possible; otherwise the error is ErrCommitUnknown, and Settle first
// reads and then sends only the missing part.
func TestUnknownOutcome(t *testing.T) {
	for name, kindOf := range map[string]fault.Kind{"applied": fault.After, "not applied": fault.Before} {
		for _, kind := range []string{"replace", "append"} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				store, b := faulty(t, kind)
				ctx, cancel := context.WithCancel(bg)
				setSleep(store, func(context.Context) error { cancel(); return context.Canceled })
				s := create(t, store, "s", nil)
				say(t, s, "u1")
				commit(t, s, state{Turns: 1})
				say(t, s, "a1")
				b.Add(fault.Rule{When: writes, Count: 1, Kind: kindOf}, fault.Rule{Count: -1})
				_, err := s.Commit(ctx, coppice.Turn{State: state{Turns: 2}})
				if !errors.Is(err, coppice.ErrCommitUnknown) {
					t.Fatalf("commit: %v", err)
				}
				b.Clear()
				_, err = s.Commit(bg, coppice.Turn{})
				if !errors.Is(err, coppice.ErrInDoubt) || errors.Is(err, coppice.ErrCommitUnknown) {
					t.Errorf("a handle in doubt: %v", err)
				}
				same(t, "context", texts(t, s), "u1 a1")
				same(t, "state", stateOf(t, s), state{Turns: 1})
				r := must(s.Settle(bg, ""))(t)
				same(t, "kept", r.Kept, "")
				same(t, "entries", r.Entries, 1)
				same(t, "state", stateOf(t, s), state{Turns: 2})
				say(t, s, "u2")
				commit(t, s, nil)
				again := open(t, store, "s")
				same(t, "reopened", texts(t, again), "u1 a1 u2")
				same(t, "entries", len(collect(t, again.Entries(bg))), 3)
			})
		}
	}
}

// The same for the first commit of a session.
func TestUnknownFirstCommit(t *testing.T) {
	for name, kindOf := range map[string]fault.Kind{"applied": fault.After, "not applied": fault.Before} {
		for _, kind := range []string{"replace", "append"} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				store, b := faulty(t, kind)
				ctx, cancel := context.WithCancel(bg)
				setSleep(store, func(context.Context) error { cancel(); return context.Canceled })
				s := create(t, store, "s", nil)
				say(t, s, "u1")
				wrote := false // the reads before it succeed
				b.Add(fault.Rule{Count: 1, Kind: kindOf, When: func(c fault.Call) bool {
					wrote = wrote || writes(c) && !strings.HasPrefix(c.Key, "cas/")
					return wrote
				}}, fault.Rule{Count: -1, When: func(fault.Call) bool { return wrote }})
				if _, err := s.Commit(ctx, coppice.Turn{State: state{Turns: 2}}); err == nil {
					t.Fatal("it went through")
				}
				b.Clear()
				must(s.Settle(bg, ""))(t)
				again := open(t, store, "s")
				same(t, "reopened", texts(t, again), "u1")
				same(t, "state", stateOf(t, again), state{Turns: 2})
			})
		}
	}
}

// A first commit whose answer was lost is in doubt, also if the next read fails and the retry is refused: it may be
// stored.
func TestFirstCommitRefusedAfterALostAnswer(t *testing.T) {
	for _, kind := range []string{"replace", "append"} {
		t.Run(kind, func(t *testing.T) {
			store, b := faulty(t, kind)
			setSleep(store, func(context.Context) error { return nil })
			s := create(t, store, "s", nil)
			say(t, s, "u1")
			sent := false
			b.Add(fault.Rule{Kind: fault.After, When: func(c fault.Call) bool {
				sent = writes(c) && !strings.HasPrefix(c.Key, "cas/")
				return sent
			}}, fault.Rule{When: func(c fault.Call) bool { return sent && c.Op == "get" }}, fault.Rule{
				Count: -1, Outcome: backend.NotApplied, Err: errors.New("no permission"),
				When: func(c fault.Call) bool { return sent && writes(c) },
			})
			r, err := s.Commit(bg, coppice.Turn{State: state{Turns: 2}})
			if err != nil && !errors.Is(err, coppice.ErrCommitUnknown) {
				t.Errorf("the commit is stored, and its error is %v", err)
			}
			b.Clear()
			must(s.Settle(bg, r.Commit))(t)
			same(t, "stored", texts(t, open(t, store, "s")), "u1")
		})
	}
}

// A certain failure changes nothing: the entries are pending, the state is as it was, and Commit may be called again.
func TestPlainFailure(t *testing.T) {
	for _, kind := range []string{"replace", "append"} {
		t.Run(kind, func(t *testing.T) {
			store, b := faulty(t, kind)
			s := create(t, store, "s", nil)
			say(t, s, "u1")
			commit(t, s, state{Turns: 1})
			id := say(t, s, "a1")
			b.Add(fault.Rule{When: writes, Count: -1, Outcome: backend.NotApplied, Err: errors.New("no permission")})
			_, err := s.Commit(bg, coppice.Turn{State: state{Turns: 2}})
			var e *coppice.Error
			if !errors.As(err, &e) || errors.Is(err, coppice.ErrCommitUnknown) || !strings.Contains(err.Error(), "no permission") {
				t.Fatalf("commit: %v", err)
			}
			if _, err := s.Edit(bg, id[0], entry.User("a1b")); err == nil {
				t.Fatal("the move went through")
			}
			b.Clear()
			same(t, "context", texts(t, s), "u1 a1")
			same(t, "state", stateOf(t, s), state{Turns: 1})
			same(t, "entries", commit(t, s, state{Turns: 2}).Entries, 1)
			same(t, "reopened", texts(t, open(t, store, "s")), "u1 a1")
		})
	}
}

// Read-only handles refuse only writes.
func TestReadOnly(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, _ := grown(t, store, "s", 2, nil)
		id := s.Head().Entry
		ok(t, s.Close())
		ro := must(store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
		same(t, "context", texts(t, ro), "u1 a1 u2 a2")
		errs := map[string]error{}
		_, errs["append"] = ro.Append(bg, entry.User("x"))
		_, errs["commit"] = ro.Commit(bg, coppice.Turn{})
		_, errs["claim"] = ro.Claim(bg)
		_, errs["settle"] = ro.Settle(bg, "")
		_, errs["branch"] = ro.Branch(bg, id, nil)
		_, errs["switch"] = ro.Switch(bg, id)
		_, errs["edit"] = ro.Edit(bg, id, entry.User("x"))
		_, errs["label"] = ro.Label(bg, id, "x")
		_, errs["rollback"] = ro.Rollback(bg, coppice.Target{Seq: 1})
		_, errs["snapshot"] = ro.Snapshot(bg, "")
		errs["set context"] = ro.SetContext(bg)
		for op, err := range errs {
			if !errors.Is(err, coppice.ErrReadOnly) {
				t.Errorf("%s: %v", op, err)
			}
		}
		ok(t, ro.Close())
	})
}

// Limit errors name the value that is too large, the limit and the size.
func TestLimits(t *testing.T) {
	testutil.SkipLong(t)
	store := newStore(t, memory.New(), nil)
	s := create(t, store, "s", nil)
	big := strings.Repeat("x", 5<<20)
	_, err := s.Append(bg, entry.User(big))
	_, err2 := s.Commit(bg, coppice.Turn{State: big})
	err3 := s.SetContext(bg, itemOf(`{"role":"user","content":"`+big+`"}`))
	for _, err := range []error{err, err2, err3} {
		var e *coppice.Error
		if !errors.Is(err, backend.ErrTooLarge) || !errors.As(err, &e) || e.Object == "" || e.Hint == "" {
			t.Errorf("%v", err)
		}
	}
	same(t, "context", texts(t, s), "")
}

// A deleted session is deleted for its open handles too, and its id is never used again.
func TestDelete(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, _ := grown(t, store, "s", 2, nil)
		grown(t, store, "s2", 1, nil)
		ok(t, store.Delete(bg, "s"))
		ok(t, store.Delete(bg, "s"))
		ok(t, store.Delete(bg, "never"))
		say(t, s, "u3")
		if _, err := s.Commit(bg, coppice.Turn{}); !errors.Is(err, coppice.ErrDeleted) {
			t.Errorf("an open handle: %v", err)
		}
		ok(t, s.Discard(bg))
		same(t, "tree of an open handle", must(s.Tree(bg))(t).Head(), s.Head().Entry)
		if _, err := s.Branch(bg, s.Head().Entry, &coppice.BranchOptions{Name: "b"}); !errors.Is(err, coppice.ErrDeleted) {
			t.Errorf("a move of an open handle: %v", err)
		}
		if _, err := store.Open(bg, "s", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("open: %v", err)
		}
		if _, err := store.OpenOrCreate(bg, "s", nil); err == nil {
			t.Error("a deleted id was used again")
		}
		fresh := create(t, store, "s", nil)
		say(t, fresh, "u")
		if _, err := fresh.Commit(bg, coppice.Turn{}); err == nil {
			t.Error("a deleted id was used again")
		}
		same(t, "the other", texts(t, open(t, store, "s2")), "u1 a1")
		same(t, "listed", len(collect(t, store.List(bg, coppice.ListOptions{}))), 1)
	})
}
