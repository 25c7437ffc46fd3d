package coppice_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// twins begins two commits with one key, in line or in flight, and returns them with the request that holds the turn.
// Its entry "k" is part of the turn where that carries entries, else it is appended.
func (r *rig) twins(t *testing.T, s *coppice.Session, inLine bool, keyed coppice.Turn) (twins pair, write *request) {
	t.Helper()
	next := func(i int) {
		if i == 0 && keyed.Entries == nil {
			say(t, s, "k")
		}
		twins[i] = following(bg, t, s, keyed)
	}
	if !inLine {
		next(0)
		write = r.gate.next(t)
		next(1)
		return twins, write
	}
	leader := following(bg, t, s, coppice.Turn{})
	write = r.gate.next(t)
	next(0)
	next(1)
	write.pass()
	_, err := leader.wait(t)
	ok(t, err)
	return twins, r.gate.next(t)
}

// Two commits with one key that are in line or in flight together are one turn: they share its outcome, whatever that
// is, and no receipt names a commit that does not exist.
func TestTwinsShareTheirOutcome(t *testing.T) {
	places := map[string]bool{"in line": true, "in flight": false}
	turns := map[string]coppice.Turn{
		"appended": {State: state{Turns: 2}, Key: "job"},
		"carried":  {State: state{Turns: 2}, Key: "job", Entries: []transcript.Draft{entry.User("k")}},
	}
	outcomes := map[string]struct {
		decide func(write *request)
		want   error // of both; nil = both are stored
	}{
		"stored":           {(*request).pass, nil},
		"refused":          {(*request).refuse, errRefused},
		"lost, but stored": {func(write *request) { write.lose(len(write.body)) }, coppice.ErrCommitUnknown},
		"lost, not stored": {func(write *request) { write.lose(0) }, coppice.ErrCommitUnknown},
	}
	for where, inLine := range places {
		for what, keyed := range turns {
			for name, outcome := range outcomes {
				t.Run(what+"/"+where+"/"+name, func(t *testing.T) {
					onGates(t, func(t *testing.T, r *rig) {
						s := r.start(t, nil)
						twins, write := r.twins(t, s, inLine, keyed)
						outcome.decide(write)
						r.sharesOutcome(t, twins, outcome.want)
						r.storesOnce(t, s, keyed, outcome.want)
					})
				})
			}
		}
		t.Run("appended/"+where+"/another was first", func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				twins, write := r.twins(t, s, inLine, turns["appended"])
				r.wins(t, "w")
				write.pass()
				r.sharesOutcome(t, twins, coppice.ErrConflict)
				r.storesOnce(t, s, turns["appended"], coppice.ErrConflict)
			})
		})
	}
}

// sharesOutcome checks that both of two twins return what is wanted, and opens the gate.
func (r *rig) sharesOutcome(t *testing.T, twins pair, want error) {
	t.Helper()
	var receipts [2]coppice.Receipt
	for i, c := range twins {
		for want == nil && !c.ended(t) {
			r.gate.next(t).pass()
		}
		var err error
		if receipts[i], err = c.wait(t); !errors.Is(err, want) {
			t.Errorf("twin %d: %v, want %v", i, err, want)
		}
		if err == nil && want != nil {
			t.Errorf("twin %d has the receipt of seq %d", i, receipts[i].Seq)
		}
	}
	same(t, "receipts", receipts[0].Head, receipts[1].Head)
	r.gate.open()
}

// A commit whose key is that of a turn which the handle keeps for Rebase gets that turn's error, and adds nothing.
func TestTwinOfAKeptTurn(t *testing.T) {
	keyed := coppice.Turn{State: state{Turns: 2}, Key: "job"}
	for want, fail := range map[error]func(t *testing.T, r *rig, s *coppice.Session){
		coppice.ErrCommitUnknown: func(t *testing.T, r *rig, s *coppice.Session) { r.doubts(t, s, keyed, 0) },
		coppice.ErrConflict: func(t *testing.T, r *rig, s *coppice.Session) {
			r.wins(t, "w")
			loses(t, r, s, keyed)
		},
	} {
		t.Run(want.Error(), func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				say(t, s, "k")
				fail(t, r, s)
				if _, err := s.Commit(bg, keyed); !errors.Is(err, want) {
					t.Errorf("the twin: %v, want %v", err, want)
				}
				r.storesOnce(t, s, keyed, want)
			})
		})
	}
}

// storesOnce checks that a keyed turn is stored once, after what its error asks for.
func (r *rig) storesOnce(t *testing.T, s *coppice.Session, keyed coppice.Turn, err error) {
	t.Helper()
	switch {
	case errors.Is(err, errRefused):
		same(t, "repeated", must(s.Commit(bg, keyed))(t).Repeated, false)
	case err != nil:
		must(s.Rebase(bg))(t)
	}
	again := must(s.Commit(bg, keyed))(t)
	same(t, "repeated", again.Repeated, true)
	var found []string
	fresh := r.fresh(t)
	for _, c := range history(t, fresh) {
		if c.Key == keyed.Key {
			found = append(found, c.Commit)
		}
	}
	same(t, "commits with the key", found, []string{again.Commit})
	same(t, "entries of the turn", strings.Count(everything(t, fresh), "k"), 1)
	r.agrees(t, s)
}

// A turn whose key is in what the winner committed gets that receipt instead of ErrConflict, and nothing of it is
// applied.
func TestKeyInTheWinnersHistory(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.gate.open()
		keyed := coppice.Turn{State: state{Turns: 2}, Key: "job"}
		other := r.fresh(t)
		say(t, other, "k")
		first := must(other.Commit(bg, keyed))(t)
		again := must(s.Commit(bg, keyed))(t)
		same(t, "receipt", again.Head, first.Head)
		same(t, "repeated", again.Repeated, true)
		same(t, "commits", r.fresh(t).Head(), first.Head)
		if _, err := s.Commit(bg, coppice.Turn{State: state{Turns: 3}, Key: "job"}); !errors.Is(err, coppice.ErrKeyReused) {
			t.Errorf("another turn with the key: %v, want ErrKeyReused", err)
		}
		ok(t, s.Reload(bg))
		r.agrees(t, s)
	})
}

// Of two commits with one key and other content that lose together the handle keeps the first. The other is
// ErrKeyReused, as it is wherever it comes second, so that Rebase can store what is kept.
func TestOneKeyIsKeptForOneTurn(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		leader := following(bg, t, s, turnsTo(2))
		write := r.gate.next(t)
		first := following(bg, t, s, coppice.Turn{State: state{Turns: 3}, Key: "job"})
		second := following(bg, t, s, coppice.Turn{State: state{Turns: 4}, Key: "job"})
		r.wins(t, "w")
		write.pass()
		r.gate.open()
		for _, c := range []*call[coppice.Receipt]{leader, first} {
			if _, err := c.wait(t); !errors.Is(err, coppice.ErrConflict) {
				t.Errorf("a turn that is kept: %v, want ErrConflict", err)
			}
		}
		if _, err := second.wait(t); !errors.Is(err, coppice.ErrKeyReused) {
			t.Errorf("the other turn with the key: %v, want ErrKeyReused", err)
		}
		must(s.Rebase(bg))(t)
		r.agrees(t, s)
		same(t, "repeated", must(s.Commit(bg, coppice.Turn{State: state{Turns: 3}, Key: "job"}))(t).Repeated, true)
	})
}

// Another writer uses the key of a kept turn for something else. No one but its caller can choose another key, so
// Rebase says ErrKeyReused once, stores nothing and drops that turn; the next one stores all else, and the handle works
// on.
func TestKeyOfAKeptTurnIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(t *testing.T, r *rig, s *coppice.Session)
		want string // all that is stored in the end
	}{
		"it had lost": {func(t *testing.T, r *rig, s *coppice.Session) {
			say(t, s, "k")
			r.wins(t, "v")
			loses(t, r, s, coppice.Turn{State: state{Turns: 2}, Key: "job"})
		}, "u1 a1 v w k"},
		"it was in doubt": {func(t *testing.T, r *rig, s *coppice.Session) {
			say(t, s, "k")
			r.doubts(t, s, coppice.Turn{State: state{Turns: 2}, Key: "job"}, 0)
		}, "u1 a1 w k"},
		"it was in doubt with its entries": {func(t *testing.T, r *rig, s *coppice.Session) {
			turn := carrying("", 2, "x")
			turn.Key = "job"
			r.doubts(t, s, turn, 0)
		}, "u1 a1 w"},
		"something grew from its entries": {func(t *testing.T, r *rig, s *coppice.Session) {
			turn := carrying("", 2, "x")
			turn.Key = "job"
			r.doubts(t, s, turn, 0)
			say(t, s, "y")
		}, "u1 a1 w x y"},
	} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				c.fail(t, r, s)
				other := r.fresh(t)
				say(t, other, "w")
				winner := must(other.Commit(bg, coppice.Turn{State: state{Turns: 7}, Key: "job"}))(t)
				if _, err := s.Rebase(bg); !errors.Is(err, coppice.ErrKeyReused) {
					t.Errorf("Rebase: %v, want ErrKeyReused", err)
				}
				same(t, "newest commit", r.fresh(t).Head(), winner.Head)
				must(s.Rebase(bg))(t)
				same(t, "stored", everything(t, r.fresh(t)), c.want)
				same(t, "state", stateOf(t, s), state{Turns: 7})
				r.agrees(t, s)
				say(t, s, "n")
				commit(t, s, state{Turns: 8})
				r.agrees(t, s)
				ok(t, s.Close())
			})
		})
	}
}

// keysKept is how many keyed commits a session remembers.
const keysKept = 1024

// The last 1,024 keyed commits are remembered on every kind of store, across restarts and writers. The same turn again
// is not applied and returns the receipt of then; another turn with a known key is ErrKeyReused; and a key that is not
// known costs no read.
func TestKeysAreRemembered(t *testing.T) {
	testutil.SkipSizes(t)
	onEach(t, func(t *testing.T, store *coppice.Store) {
		keyed := func(n int) coppice.Turn { return coppice.Turn{State: state{Turns: n}, Key: fmt.Sprintf("job-%d", n)} }
		s := must(store.Create("s", noSnapshots))(t)
		say(t, s, "u1")
		first := must(s.Commit(bg, keyed(0)))(t)
		for n := 1; n < keysKept; n++ {
			must(s.Commit(bg, keyed(n)))(t)
			if n%10 == 0 {
				say(t, s, "a")
				commit(t, s, nil) // without a key: it does not count
			}
			if n != 72 && n != 500 && n != keysKept-1 {
				continue
			}
			fresh := must(store.Open(bg, "s", noSnapshots))(t)
			for who, h := range map[string]*coppice.Session{"same handle": s, "new handle": fresh} {
				before := h.Head()
				r := must(h.Commit(bg, keyed(0)))(t)
				if !r.Repeated || r.Seq != first.Seq || r.Commit != first.Commit {
					t.Fatalf("%s, %d keys later: %+v, want the receipt of seq %d", who, n, r, first.Seq)
				}
				_, err := h.Commit(bg, coppice.Turn{State: state{Turns: -2}, Key: "job-0"})
				if !errors.Is(err, coppice.ErrKeyReused) {
					t.Fatalf("%s, %d keys later, another state: %v, want ErrKeyReused", who, n, err)
				}
				same(t, "head", h.Head(), before)
				same(t, "state", stateOf(t, h), state{Turns: n})
			}
			if n == 72 { // the process dies
				s = fresh
				continue
			}
			ok(t, s.Close()) // another one takes over
			ok(t, fresh.Close())
			s = must(store.Open(bg, "s", noSnapshots))(t)
		}
		before := s.IO()
		must(s.Commit(bg, keyed(keysKept)))(t)
		if io := s.IO().Sub(before); io.Put+io.Append != 1 || io.Get+io.Stat+io.List > 0 {
			t.Errorf("a commit with an unknown key cost %s", cost(io))
		}
		same(t, "path", len(collect(t, open(t, store, "s").Path(bg, ""))), 1+(keysKept-1)/10)
	})
}

// The entries of a keyed turn are part of it: with others the key belongs to another turn. A repeated turn drops its
// own entries. What Append added stays pending, and the receipt counts it.
func TestRepeatedTurnDropsItsEntries(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.gate.open()
		keyed := func(n int, text ...string) coppice.Turn {
			turn := coppice.Turn{State: state{Turns: n}, Key: "job"}
			for _, text := range text {
				turn.Entries = append(turn.Entries, entry.User(text))
			}
			return turn
		}
		first := must(s.Commit(bg, keyed(2, "x", "y")))(t)
		same(t, "ids", len(first.IDs), 2)
		ok(t, s.Close())
		for name, h := range map[string]*coppice.Session{"a handle": open(t, r.store, "s"), "another": r.fresh(t)} {
			say(t, h, "p1", "a-p2")
			again := must(h.Commit(bg, keyed(2, "x", "y")))(t)
			same(t, name+": receipt", again.Head, first.Head)
			same(t, name+": repeated", again.Repeated, true)
			same(t, name+": pending", again.Pending, 2)
			same(t, name+": path", texts(t, h), "u1 a1 x y p1 a-p2")
			for other, turn := range map[string]coppice.Turn{
				"other entries": keyed(2, "x", "z"), "fewer entries": keyed(2, "x"), "no entries": keyed(2),
				"another state": keyed(3, "x", "y"),
			} {
				if _, err := h.Commit(bg, turn); !errors.Is(err, coppice.ErrKeyReused) {
					t.Errorf("%s, %s: %v, want ErrKeyReused", name, other, err)
				}
			}
			same(t, name+": stored", r.fresh(t).Head(), first.Head)
		}
		last := r.fresh(t)
		say(t, last, "p1", "a-p2")
		must(last.Commit(bg, keyed(2, "x", "y")))(t)
		same(t, "entries", commit(t, last, nil).Entries, 2)
		same(t, "stored path", texts(t, r.fresh(t)), "u1 a1 x y p1 a-p2")
		r.agrees(t, last)
	})
}
