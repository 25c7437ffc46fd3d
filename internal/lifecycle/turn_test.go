package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// carrying returns a turn with one user message for each text, based on the commit base, with the state n.
func carrying(base string, n int, texts ...string) coppice.Turn {
	turn := coppice.Turn{State: state{Turns: n}, Base: base}
	for _, text := range texts {
		turn.Entries = append(turn.Entries, entry.User(text))
	}
	return turn
}

// The entries of a turn are stored with it: the parent of each is the one before it, of the first the head of Base,
// unless Draft.Parent is set. The receipt has their ids in order, and ids chosen by the caller are kept.
func TestTurnStoresItsEntries(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, nil)
		r.gate.open()
		before := s.Head()
		u1 := collect(t, s.Path(bg, ""))[1].ID
		turn := carrying(before.Commit, 2, "x", "y")
		turn.Entries[1].ID = "own"
		first := must(s.Commit(bg, turn))(t)
		same(t, "entries", first.Entries, 2)
		same(t, "ids", first.IDs[1:], []string{"own"})
		same(t, "head", first.Entry, "own")
		same(t, "path", texts(t, s), "u1 a1 x y")
		same(t, "stored path", ids(collect(t, r.fresh(t).Path(bg, ""))), []string{"own", first.IDs[0], before.Entry, u1})
		same(t, "stored state", stateOf(t, r.fresh(t)), state{Turns: 2})

		turn = carrying("", 3, "z")
		turn.Entries = append(turn.Entries, under(u1, "elsewhere"))
		second := must(s.Commit(bg, turn))(t)
		same(t, "ids", len(second.IDs), 2)
		same(t, "head", second.Entry, second.IDs[1])
		same(t, "path", texts(t, s), "u1 elsewhere")
		z := must(s.Entry(bg, second.IDs[0]))(t)
		same(t, "parent", z.ParentID, "own")
		r.agrees(t, s)
		ok(t, s.Close())

		another := create(t, r.store, "another", nil)
		must(another.Commit(bg, carrying("", 1, "x", "y")))(t)
		same(t, "a new session", texts(t, open(t, r.others, "another")), "x y")
	})
}

// Entries of a turn that was not applied are not in the store, nor in the handle's tree or context. The same drafts can
// be committed again, and are stored once.
func TestFailedTurnStoresNothing(t *testing.T) {
	drafts := carrying("", 2, "x", "y")
	drafts.Entries[0].ID, drafts.Entries[1].ID = "own-x", "own-y"
	for name, fail := range map[string]func(t *testing.T, r *rig, s *coppice.Session){
		"refused": func(t *testing.T, r *rig, s *coppice.Session) {
			c := following(bg, t, s, drafts)
			r.gate.next(t).refuse()
			if _, err := c.wait(t); !errors.Is(err, errRefused) {
				t.Errorf("commit: %v", err)
			}
		},
		"cancelled while it waited": func(t *testing.T, r *rig, s *coppice.Session) {
			leader := begin(func() (coppice.Receipt, error) { return s.Label(bg, s.Head().Entry, "moves nothing") })
			write := r.gate.next(t)
			ctx, cancel := context.WithCancel(bg)
			c := following(ctx, t, s, drafts)
			cancel()
			if _, err := c.wait(t); !errors.Is(err, context.Canceled) {
				t.Errorf("commit: %v", err)
			}
			write.pass()
			_, err := leader.wait(t)
			ok(t, err)
		},
		"cancelled before": func(t *testing.T, _ *rig, s *coppice.Session) {
			ctx, cancel := context.WithCancel(bg)
			cancel()
			if _, err := s.Commit(ctx, drafts); !errors.Is(err, context.Canceled) {
				t.Errorf("commit: %v", err)
			}
		},
		"an unknown base": func(t *testing.T, _ *rig, s *coppice.Session) {
			turn := drafts
			turn.Base = "0192f3a0-0000-7000-8000-000000000001"
			if _, err := s.Commit(bg, turn); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("commit: %v, want fs.ErrNotExist", err)
			}
		},
		"an id that is taken": func(t *testing.T, _ *rig, s *coppice.Session) {
			turn := drafts
			turn.Entries = append(slices.Clone(drafts.Entries), drafts.Entries[0])
			turn.Entries[2].ID = s.Head().Entry
			if _, err := s.Commit(bg, turn); !errors.Is(err, fs.ErrExist) {
				t.Errorf("commit: %v, want fs.ErrExist", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				fail(t, r, s)
				r.gate.open()
				same(t, "entries", everything(t, s), "u1 a1")
				same(t, "path", texts(t, s), "u1 a1")
				r.agrees(t, s)
				receipt := must(s.Commit(bg, drafts))(t)
				same(t, "ids", receipt.IDs, []string{"own-x", "own-y"})
				same(t, "stored", everything(t, r.fresh(t)), "u1 a1 x y")
				r.agrees(t, s)
				ok(t, s.Close())
			})
		})
	}
}

// The entries of a turn with an unknown outcome are shown once it is known; Settle stores them once, whether the store
// has them or not, and Reload drops them unless they are stored.
func TestTurnInDoubt(t *testing.T) {
	for name, n := range map[string]int{"stored": all, "not stored": 0} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				r.doubts(t, s, carrying(s.Head().Commit, 2, "x", "y"), n)
				same(t, "path in doubt", texts(t, s), "u1 a1")
				same(t, "state in doubt", stateOf(t, s), state{Turns: 1})
				first := must(s.Settle(bg, ""))(t)
				same(t, "ids", len(first.IDs), 2)
				same(t, "settled again", must(s.Settle(bg, first.Commit))(t).Head, first.Head)
				same(t, "path", texts(t, s), "u1 a1 x y")
				same(t, "state", stateOf(t, s), state{Turns: 2})
				same(t, "stored", everything(t, r.fresh(t)), "u1 a1 x y")
				r.agrees(t, s)

				r.doubts(t, s, carrying(s.Head().Commit, 3, "z"), n)
				ok(t, s.Reload(bg))
				r.agrees(t, s)
				ok(t, s.Close())
			})
		})
	}
}

// meeting commits two turns with the same base, and returns them in the order in which they were committed.
type meeting func(t *testing.T, r *rig, s *coppice.Session, first, second coppice.Turn) pair

// meetings are the ways in which two turns can meet.
var meetings = map[string]meeting{
	"one after the other": func(t *testing.T, r *rig, s *coppice.Session, first, second coppice.Turn) (calls pair) {
		r.gate.open()
		calls[0] = following(bg, t, s, first)
		calls[1] = following(bg, t, s, second)
		return calls
	},
	"one in line": func(t *testing.T, r *rig, s *coppice.Session, first, second coppice.Turn) (calls pair) {
		calls[0] = following(bg, t, s, first)
		write := r.gate.next(t)
		calls[1] = following(bg, t, s, second)
		write.pass()
		r.gate.open()
		return calls
	},
	"both in line": func(t *testing.T, r *rig, s *coppice.Session, first, second coppice.Turn) (calls pair) {
		label := begin(func() (coppice.Receipt, error) { return s.Label(bg, s.Head().Entry, "moves nothing") })
		write := r.gate.next(t)
		calls[0] = following(bg, t, s, first)
		calls[1] = following(bg, t, s, second)
		write.pass()
		r.gate.open()
		_, err := label.wait(t)
		ok(t, err)
		return calls
	},
	"on two handles": func(t *testing.T, r *rig, s *coppice.Session, first, second coppice.Turn) (calls pair) {
		r.gate.open()
		calls[0] = following(bg, t, r.fresh(t), first)
		calls[1] = following(bg, t, s, second)
		return calls
	},
}

// Of two turns with the same base the first wins. The other gets ErrConflict: nothing of it is kept, and the handle
// stays usable for all other callers.
func TestTurnsOnOneBaseConflict(t *testing.T) {
	for name, meet := range meetings {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				base := s.Head()
				calls := meet(t, r, s, carrying(base.Commit, 2, "x"), carrying(base.Commit, 3, "y"))
				won, err := calls[0].wait(t)
				ok(t, err)
				_, err = calls[1].wait(t)
				if e, is := errors.AsType[*coppice.Error](err); !errors.Is(err, coppice.ErrConflict) || !is || e.Winner == nil {
					t.Fatalf("the second turn: %v, want ErrConflict and who won", err)
				} else if e.Winner.Commit != won.Commit {
					t.Errorf("the winner is %q, want %q", e.Winner.Commit, won.Commit)
				}
				fresh := r.fresh(t)
				same(t, "stored", everything(t, fresh), "u1 a1 x")
				same(t, "state", stateOf(t, fresh), state{Turns: 2})
				next := must(s.Commit(bg, carrying(won.Commit, 4, "z")))(t)
				same(t, "kept", next.Kept, "")
				same(t, "entries", everything(t, s), everything(t, r.fresh(t)))
				same(t, "path", texts(t, r.fresh(t)), "u1 a1 x z")
				ok(t, s.Reload(bg))
				r.agrees(t, s)
				ok(t, s.Close())
			})
		})
	}
}

// With KeepBoth the second of two turns with the same base becomes a branch from that base's head, with its own
// document; neither turn is the other's parent.
func TestTurnsOnOneBaseAreSiblings(t *testing.T) {
	for name, meet := range meetings {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, &coppice.SessionOptions{KeepBoth: true})
				base := s.Head()
				calls := meet(t, r, s, carrying(base.Commit, 2, "x"), carrying(base.Commit, 3, "y"))
				won := must(calls[0].wait(t))(t)
				lost := must(calls[1].wait(t))(t)
				same(t, "the winner is kept as", won.Kept, "")
				fresh := r.fresh(t)
				for _, id := range []string{won.IDs[0], lost.IDs[0]} {
					same(t, "parent", must(fresh.Entry(bg, id))(t).ParentID, base.Entry)
				}
				path, doc := line(t, fresh, lost.Kept)
				same(t, "the kept line", path, "u1 a1 y")
				same(t, "its state", doc, state{Turns: 3})
				same(t, "path", texts(t, fresh), "u1 a1 x")
				same(t, "state", stateOf(t, fresh), state{Turns: 2})
				ok(t, s.Reload(bg))
				commit(t, s, state{Turns: 4})
				r.agrees(t, s)
				ok(t, s.Close())
			})
		})
	}
}

// Base may be any commit of the session: a later commit is a conflict only if it moved the head or the document.
func TestBaseOfAnOlderCommit(t *testing.T) {
	const labels = 100 // more commits than a checkpoint lists
	for name, c := range map[string]struct {
		between  func(t *testing.T, s *coppice.Session)
		conflict bool
	}{
		"nothing": {func(*testing.T, *coppice.Session) {}, false},
		"labels": {func(t *testing.T, s *coppice.Session) {
			for i := range labels {
				must(s.Label(bg, s.Head().Entry, fmt.Sprint(i)))(t)
			}
		}, false},
		"an entry": {func(t *testing.T, s *coppice.Session) { say(t, s, "w"); commit(t, s, nil) }, true},
		"a state":  {func(t *testing.T, s *coppice.Session) { commit(t, s, state{Turns: 2}) }, true},
		"a move": {func(t *testing.T, s *coppice.Session) {
			must(s.Branch(bg, collect(t, s.Path(bg, ""))[1].ID, nil))(t)
		}, true},
	} {
		for _, both := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/KeepBoth=%v", name, both), func(t *testing.T) {
				onGates(t, func(t *testing.T, r *rig) {
					s := r.start(t, &coppice.SessionOptions{KeepBoth: both})
					r.gate.open()
					base := s.Head()
					c.between(t, s)
					ok(t, s.Close())
					h := must(r.store.Open(bg, "s", &coppice.SessionOptions{KeepBoth: both}))(t)
					before := texts(t, h)
					receipt, err := h.Commit(bg, carrying(base.Commit, 9, "y"))
					switch {
					case c.conflict && !both:
						if !errors.Is(err, coppice.ErrConflict) {
							t.Errorf("commit: %v, want ErrConflict", err)
						}
						same(t, "path", texts(t, r.fresh(t)), before)
					case c.conflict:
						ok(t, err)
						path, _ := line(t, r.fresh(t), receipt.Kept)
						same(t, "the kept line", path, "u1 a1 y")
						same(t, "path", texts(t, r.fresh(t)), before)
					default:
						ok(t, err)
						same(t, "kept", receipt.Kept, "")
						same(t, "path", texts(t, r.fresh(t)), "u1 a1 y")
					}
					r.agrees(t, h)
				})
			})
		}
	}
}

// An unknown Base is fs.ErrNotExist: no request is sent, nothing is applied, and the handle stays usable.
func TestUnknownBase(t *testing.T) {
	for _, both := range []bool{false, true} {
		t.Run(fmt.Sprintf("KeepBoth=%v", both), func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, &coppice.SessionOptions{KeepBoth: both})
				r.gate.open()
				_, before, _ := r.gate.count()
				for _, base := range []string{"0192f3a0-0000-7000-8000-000000000001", "nowhere", s.Head().Entry} {
					if _, err := s.Commit(bg, carrying(base, 2, "x")); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("base %q: %v, want fs.ErrNotExist", base, err)
					}
				}
				_, after, _ := r.gate.count()
				same(t, "requests", after-before, 0)
				r.agrees(t, s)
				commit(t, s, state{Turns: 2})
				r.agrees(t, s)
			})
		})
	}
}
