package lifecycle_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/snapshot"
	"github.com/coppice-go/coppice/transcript"
)

// Two concurrent commits with one key are one turn: the second waits for the first, finds it, and nothing is stored
// twice. If the first was refused the second stores the turn; if its outcome is unknown both are in doubt.
func TestOneKeyTwiceAtOnce(t *testing.T) {
	keyed := coppice.Turn{State: state{Turns: 2}, Key: "job", Entries: []transcript.Draft{entry.User("k")}}
	for name, c := range map[string]struct {
		decide        func(write *request)
		first, second error // nil = stored
	}{
		"stored":  {(*request).pass, nil, nil},
		"refused": {(*request).refuse, errRefused, nil},
		"lost, but stored": {
			func(w *request) { w.lose(len(w.body)) }, coppice.ErrCommitUnknown, coppice.ErrCommitUnknown,
		},
		"lost, not stored": {
			func(write *request) { write.lose(0) }, coppice.ErrCommitUnknown, coppice.ErrCommitUnknown,
		},
		"another was first": {(*request).pass, coppice.ErrConflict, coppice.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				first := following(bg, t, s, keyed)
				write := r.gate.next(t)
				second := following(bg, t, s, keyed)
				if errors.Is(c.first, coppice.ErrConflict) {
					r.wins(t, "w")
				}
				c.decide(write)
				one, err := first.wait(t)
				if !errors.Is(err, c.first) {
					t.Errorf("the first: %v, want %v", err, c.first)
				}
				if name == "refused" {
					r.gate.next(t).pass()
				}
				two, err := second.wait(t)
				if !errors.Is(err, c.second) {
					t.Errorf("the second: %v, want %v", err, c.second)
				}
				if c.first == nil {
					same(t, "receipts", two.Head, one.Head)
					same(t, "repeated", []bool{one.Repeated, two.Repeated}, []bool{false, true})
				}
				r.gate.open()
				r.storesOnce(t, s, keyed)
			})
		})
	}
}

// A turn with a key and an unknown outcome can be repeated without the drafts that it took from the buffer: it is the
// same turn, also after another call has ended the doubt, until more is appended.
func TestDoubtTookTheDrafts(t *testing.T) {
	keyed := coppice.Turn{State: state{Turns: 2}, Key: "job"}
	for name, n := range map[string]int{"stored": all, "not stored": 0} {
		for who, ends := range map[string]func(t *testing.T, s *coppice.Session, root string){
			"the turn again": func(*testing.T, *coppice.Session, string) {},
			"another call":   func(t *testing.T, s *coppice.Session, root string) { must(s.Label(bg, root, "x"))(t) },
			"settle":         func(t *testing.T, s *coppice.Session, _ string) { must(s.Settle(bg, ""))(t) },
		} {
			t.Run(name+"/"+who, func(t *testing.T) {
				onGates(t, func(t *testing.T, r *rig) {
					s := r.start(t, nil)
					root := s.Head().Entry
					say(t, s, "k")
					r.doubts(t, s, keyed, n)
					ends(t, s, root)
					same(t, "repeated", must(s.Commit(bg, keyed))(t).Repeated, true)
					say(t, s, "more")
					if _, err := s.Commit(bg, keyed); !errors.Is(err, coppice.ErrKeyReused) {
						t.Errorf("with another draft: %v, want ErrKeyReused", err)
					}
					ok(t, s.Discard(bg))
					r.agrees(t, s)
					same(t, "stored", everything(t, s), "u1 a1 k")
				})
			})
		}
	}
}

// storesOnce checks that a repeated turn with a key is stored once.
func (r *rig) storesOnce(t *testing.T, s *coppice.Session, keyed coppice.Turn) {
	t.Helper()
	if _, err := s.Commit(bg, keyed); errors.Is(err, coppice.ErrConflict) {
		keyed.KeepBoth = true
		same(t, "kept", must(s.Commit(bg, keyed))(t).Kept != "", true)
	} else {
		ok(t, err)
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
	ok(t, s.Reload(bg))
	r.agrees(t, s)
}

// A turn whose key was committed by the winner gets that receipt instead of ErrConflict, and nothing of it is applied.
func TestKeyInTheWinnersHistory(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.gate.open()
		keyed := carrying("", 2, "k")
		keyed.Key = "job"
		other := r.fresh(t)
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

// Another writer first commits something else with the key of a turn in doubt. The doubt ends as a conflict; the
// repeated turn is ErrKeyReused, and the handle stays usable.
func TestKeyOfADoubtIsTaken(t *testing.T) {
	keyed := carrying("", 2, "k")
	keyed.Key = "job"
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.doubts(t, s, keyed, 0)
		other := r.fresh(t)
		say(t, other, "w")
		winner := must(other.Commit(bg, coppice.Turn{State: state{Turns: 7}, Key: "job"}))(t)
		if _, err := s.Settle(bg, ""); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("settle: %v, want ErrConflict", err)
		}
		keyed.KeepBoth = true
		if _, err := s.Commit(bg, keyed); !errors.Is(err, coppice.ErrKeyReused) {
			t.Errorf("the turn again: %v, want ErrKeyReused", err)
		}
		same(t, "newest commit", r.fresh(t).Head(), winner.Head)
		ok(t, s.Reload(bg))
		say(t, s, "n")
		commit(t, s, state{Turns: 8})
		same(t, "stored", everything(t, r.fresh(t)), "u1 a1 w n")
		r.agrees(t, s)
		ok(t, s.Close())
	})
}

// keysKept is the number of commits with a key that a session remembers.
const keysKept = 1024

// The last 1,024 commits with a key are remembered on every kind of store, across restarts and writers. A repeated turn
// is not applied and returns the original receipt; another turn with a known key is ErrKeyReused; and an unknown key
// costs no read.
func TestKeysAreRemembered(t *testing.T) {
	testutil.SkipLong(t)
	onEach(t, func(t *testing.T, store *coppice.Store) {
		keyed := func(n int) coppice.Turn { return coppice.Turn{State: state{Turns: n}, Key: fmt.Sprintf("job-%d", n)} }
		s := must(store.Create("s", &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}))(t)
		say(t, s, "u1")
		commit(t, s, nil)
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
			fresh := must(store.Open(bg, "s", &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}))(t)
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
			s = must(store.Open(bg, "s", &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: -1}}))(t)
		}
		before := s.IO()
		must(s.Commit(bg, keyed(keysKept)))(t)
		if io := s.IO().Sub(before); io.Put+io.Append != 1 || io.Get+io.Stat+io.List > 0 {
			t.Errorf("a commit with an unknown key cost %s", cost(io))
		}
		same(t, "path", len(collect(t, open(t, store, "s").Path(bg, ""))), 1+(keysKept-1)/10)
	})
}

// The entries of a turn with a key are part of its identity, and so are appended entries: with others the key belongs
// to another turn. Nothing of a repeated turn is stored again. With a Base the buffer is ignored.
func TestRepeatedTurnStoresNothing(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.gate.open()
		base := s.Head().Commit
		keyed := func(n int, text ...string) coppice.Turn {
			turn := carrying(base, n, text...)
			turn.Key = "job"
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
			same(t, name+": ids", again.IDs, first.IDs)
			same(t, name+": path", texts(t, h), "u1 a1 x y p1 a-p2")
			taking := keyed(2, "x", "y")
			taking.Base = ""
			for other, turn := range map[string]coppice.Turn{
				"other entries": keyed(2, "x", "z"), "fewer entries": keyed(2, "x"), "no entries": keyed(2),
				"another state": keyed(3, "x", "y"), "what was appended": taking,
			} {
				if _, err := h.Commit(bg, turn); !errors.Is(err, coppice.ErrKeyReused) {
					t.Errorf("%s, %s: %v, want ErrKeyReused", name, other, err)
				}
			}
			same(t, name+": path", texts(t, h), "u1 a1 x y p1 a-p2")
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
