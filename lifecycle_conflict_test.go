package coppice_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
)

// torn is a session whose losing turn "l" was being kept beside the winner's "w" when the write stopped: of the two
// commit lines of that request, the log has the first.
func (r *rig) torn(t *testing.T) (loser, winner *coppice.Session) {
	t.Helper()
	s := r.start(t, nil)
	winner, _ = r.wins(t, "w")
	say(t, s, "l")
	loses(t, r, s, turnsTo(2))
	r.gate.close()
	rebase := begin(func() (coppice.Receipt, error) { return s.Rebase(bg) })
	write := r.gate.next(t)
	commits := bytes.Count(write.body, []byte(`"coppice.commit"`))
	if commits < 2 {
		t.Fatalf("a kept turn and the way back are %d commit lines", commits)
	}
	first := bytes.Index(write.body, []byte(`"coppice.commit"`))
	write.lose(first + bytes.IndexByte(write.body[first:], '\n') + 1)
	if _, err := rebase.wait(t); !errors.Is(err, coppice.ErrCommitUnknown) {
		t.Fatalf("rebase: %v, want ErrCommitUnknown", err)
	}
	r.gate.open()
	return s, winner
}

// A kept turn never moves the session: where the write stops after its line, every reader stays at the winner's head
// and document, and every writer continues from there. The kept turn itself is stored, once.
func TestTornKeptTurnDoesNotMoveTheSession(t *testing.T) {
	check := func(t *testing.T, s *coppice.Session, path, entries string) {
		t.Helper()
		same(t, "context", texts(t, s), path)
		same(t, "state", stateOf(t, s), state{Turns: 100})
		same(t, "branch", s.Head().Branch, "main")
		same(t, "head", s.Head().Entry, must(s.Tree(bg))(t).Head())
		same(t, "view of the head", texts(t, must(s.At(bg, coppice.Target{}))(t)), path)
		same(t, "entries", everything(t, s), entries)
	}
	for name, goOn := range map[string]func(t *testing.T, r *rig, loser, winner *coppice.Session){
		"readers": func(t *testing.T, r *rig, _, winner *coppice.Session) {
			check(t, r.fresh(t), "u1 a1 w", "u1 a1 w l")
			check(t, must(r.others.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t), "u1 a1 w", "u1 a1 w l")
			ok(t, winner.Reload(bg))
			check(t, winner, "u1 a1 w", "u1 a1 w l")
		},
		"a reader of the log alone": func(t *testing.T, r *rig, _, _ *coppice.Session) {
			ok(t, r.objects.Delete(bg, "checkpoint_latest/s"))
			reader := r.fresh(t)
			check(t, reader, "u1 a1 w", "u1 a1 w l")
			commit(t, reader, nil) // writes the checkpoint again
			ok(t, reader.Close())
		},
		"the next handle": func(t *testing.T, r *rig, _, _ *coppice.Session) {
			next := r.fresh(t)
			say(t, next, "n")
			commit(t, next, nil)
			check(t, next, "u1 a1 w n", "u1 a1 w l n")
			r.agrees(t, next)
			ok(t, next.Close())
			check(t, r.fresh(t), "u1 a1 w n", "u1 a1 w l n")
		},
		"a move to where the head is": func(t *testing.T, r *rig, _, _ *coppice.Session) {
			next := r.fresh(t)
			newest := next.Head()
			same(t, "receipt", must(next.Switch(bg, "main"))(t).Head, newest)
			same(t, "newest commit", r.fresh(t).Head(), newest)
			check(t, next, "u1 a1 w", "u1 a1 w l")
		},
		"the winner": func(t *testing.T, r *rig, _, winner *coppice.Session) {
			say(t, winner, "n")
			commit(t, winner, nil)
			check(t, winner, "u1 a1 w n", "u1 a1 w l n")
			r.agrees(t, winner)
		},
		"the loser": func(t *testing.T, r *rig, loser, _ *coppice.Session) {
			must(loser.Rebase(bg))(t)
			check(t, loser, "u1 a1 w", "u1 a1 w l")
			same(t, "branch of the last commit", history(t, r.fresh(t))[0].Branch, "main") // for older readers
			r.agrees(t, loser)
			say(t, loser, "n")
			commit(t, loser, nil)
			check(t, r.fresh(t), "u1 a1 w n", "u1 a1 w l n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			onGate(t, memory.NewAppender(), func(t *testing.T, r *rig) {
				loser, winner := r.torn(t)
				goOn(t, r, loser, winner)
				same(t, "problems", must(r.others.Verify(bg, "s", true))(t).Problems, []*coppice.Error(nil))
			})
		})
	}
}

// A fenced handle stays fenced when Rebase has kept its turn: later commits are ErrFenced, and kept, until Claim takes
// the session back or Reload drops them.
func TestRebaseDoesNotLiftAFence(t *testing.T) {
	for name, lift := range map[string]func(t *testing.T, r *rig, s *coppice.Session){
		"claim": func(t *testing.T, r *rig, s *coppice.Session) {
			kept := must(s.Claim(bg))(t).Kept
			path, doc := line(t, r.fresh(t), kept)
			same(t, "the kept line", path, "u1 a1")
			same(t, "its state", doc, state{Turns: 3})
		},
		"reload": func(t *testing.T, r *rig, s *coppice.Session) {
			ok(t, s.Reload(bg))
			same(t, "entries", everything(t, r.fresh(t)), "u1 a1 l w")
		},
	} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				r.gate.open()
				other := r.fresh(t)
				must(other.Claim(bg))(t)
				say(t, s, "l")
				for i := range 2 {
					_, err := s.Commit(bg, turnsTo(2+i))
					if !errors.Is(err, coppice.ErrFenced) || errors.Is(err, coppice.ErrConflict) {
						t.Fatalf("commit %d: %v, want ErrFenced", i, err)
					}
					if i == 0 {
						kept := must(s.Rebase(bg))(t).Kept
						path, doc := line(t, r.fresh(t), kept)
						same(t, "the kept line", path, "u1 a1 l")
						same(t, "its state", doc, state{Turns: 2})
						r.agrees(t, s)
					}
				}
				say(t, other, "w")
				commit(t, other, nil)
				lift(t, r, s)
				same(t, "path", texts(t, s), "u1 a1 w")
				say(t, s, "n")
				commit(t, s, nil)
				same(t, "stored path", texts(t, r.fresh(t)), "u1 a1 w n")
				r.agrees(t, s)
			})
		})
	}
}

// A handle that knows that it lost appends nothing to the line that the session has left: its caller learns it before
// it asks a model. Rebase and Reload end that after a conflict, Claim and Reload after a fence.
func TestAppendOnAHandleThatLost(t *testing.T) {
	refused := func(t *testing.T, s *coppice.Session, want error) {
		t.Helper()
		before := texts(t, s)
		ids, err := s.Append(bg, entry.User("late"))
		if !errors.Is(err, want) || len(ids) > 0 {
			t.Errorf("append: %v, %v, want %v", ids, err, want)
		}
		if e, ok := errors.AsType[*coppice.Error](err); !ok || e.Winner == nil || e.Hint == "" {
			t.Errorf("the error lacks the winner or what to do: %#v", err)
		}
		same(t, "context", texts(t, s), before)
	}
	t.Run("conflict", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s := r.start(t, nil)
			r.gate.open()
			r.wins(t, "w")
			say(t, s, "l") // it does not know yet
			loses(t, r, s, turnsTo(2))
			refused(t, s, coppice.ErrConflict)
			must(s.Rebase(bg))(t)
			say(t, s, "n")
			commit(t, s, nil)
			same(t, "stored", everything(t, r.fresh(t)), "u1 a1 w l n")
			r.wins(t, "x")
			loses(t, r, s, turnsTo(3))
			refused(t, s, coppice.ErrConflict)
			ok(t, s.Reload(bg))
			say(t, s, "o")
		})
	})
	t.Run("fence", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s := r.start(t, nil)
			r.gate.open()
			must(r.fresh(t).Claim(bg))(t)
			say(t, s, "l")
			if _, err := s.Commit(bg, turnsTo(2)); !errors.Is(err, coppice.ErrFenced) {
				t.Fatalf("commit: %v, want ErrFenced", err)
			}
			refused(t, s, coppice.ErrFenced)
			must(s.Rebase(bg))(t)
			refused(t, s, coppice.ErrFenced)
			must(s.Claim(bg))(t)
			say(t, s, "n")
			commit(t, s, nil)
			same(t, "stored", everything(t, r.fresh(t)), "u1 a1 l n")
		})
	})
	t.Run("in doubt", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) { // who is in doubt has lost nothing
			s := r.start(t, nil)
			say(t, s, "d")
			r.doubts(t, s, turnsTo(2), 0)
			say(t, s, "e")
			must(s.Rebase(bg))(t)
			same(t, "stored", texts(t, r.fresh(t)), "u1 a1 d e")
		})
	})
}

// line returns the context and the state at the end of a branch.
func line(t *testing.T, s *coppice.Session, branch string) (string, state) {
	t.Helper()
	var at coppice.Target
	ok(t, at.UnmarshalText([]byte(branch)))
	view := must(s.At(bg, at))(t)
	return texts(t, view), stateOf(t, view)
}

// With KeepBoth, turns of one request that grow from different places are kept under names of their own, each of
// which leads to its own last entry and document. Turns that wait in line are kept as well.
func TestKeepBothNamesEachLine(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, &coppice.SessionOptions{KeepBoth: true})
		u1 := collect(t, s.Path(bg, ""))[1].ID
		leader := following(bg, t, s, coppice.Turn{})
		write := r.gate.next(t)
		say(t, s, "x")
		first := following(bg, t, s, turnsTo(2))
		must(s.Append(bg, under(u1, "y")))(t)
		second := following(bg, t, s, turnsTo(3))
		write.pass()
		_, err := leader.wait(t)
		ok(t, err)
		write = r.gate.next(t)
		must(s.Append(bg, under(u1, "z")))(t)
		third := following(bg, t, s, turnsTo(4))
		r.wins(t, "w")
		write.pass()
		r.gate.open()
		lines := []string{"u1 a1 x", "u1 y", "u1 z"}
		names := map[string]bool{}
		for i, c := range []*call[coppice.Receipt]{first, second, third} {
			kept := must(c.wait(t))(t).Kept
			names[kept] = true
			fresh := r.fresh(t)
			same(t, "the winner's line", texts(t, fresh), "u1 a1 w")
			path, doc := line(t, fresh, kept)
			same(t, "line "+kept, path, lines[i])
			same(t, "its state", doc, state{Turns: 2 + i})
		}
		same(t, "names", len(names), 3)
		same(t, "path", texts(t, s), "u1 a1 w")
		r.agrees(t, s)
	})
}

// Switch first writes what is pending, on the branch where it was appended and without a change of the document, and
// then moves: two commits in one request, all or none.
func TestSwitchWritesPendingOnItsBranch(t *testing.T) {
	prepare := func(t *testing.T, r *rig) (s *coppice.Session, pending string) {
		t.Helper()
		s = r.start(t, nil)
		r.gate.open()
		u1 := collect(t, s.Path(bg, ""))[1].ID
		must(s.Branch(bg, u1, &coppice.BranchOptions{Name: "try"}))(t)
		say(t, s, "b")
		commit(t, s, state{Turns: 2})
		return s, say(t, s, "p")[0]
	}
	t.Run("stored", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s, pending := prepare(t, r)
			_, before, _ := r.gate.count()
			seq := s.Head().Seq
			must(s.Switch(bg, "main"))(t)
			_, after, _ := r.gate.count()
			same(t, "requests", after-before, 1)
			same(t, "commits", s.Head().Seq-seq, 2)
			first := must(s.At(bg, coppice.Target{Seq: seq + 1}))(t)
			same(t, "the first commit's head", first.Commit().Entry+" "+first.Commit().Branch, pending+" try")
			same(t, "its state", stateOf(t, first), state{Turns: 2})
			same(t, "path", texts(t, s), "u1 a1")
			same(t, "state", stateOf(t, s), state{Turns: 1})
			r.agrees(t, s)
			must(s.Switch(bg, "try"))(t)
			same(t, "the line that was left", texts(t, r.fresh(t)), "u1 b p")
			r.agrees(t, s)
		})
	})
	t.Run("refused", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s, _ := prepare(t, r)
			r.gate.close()
			move := begin(func() (coppice.Receipt, error) { return s.Switch(bg, "main") })
			r.gate.next(t).refuse()
			r.gate.open()
			if _, err := move.wait(t); !errors.Is(err, errRefused) {
				t.Errorf("switch: %v", err)
			}
			same(t, "path", texts(t, s), "u1 b p")
			same(t, "stored path", texts(t, r.fresh(t)), "u1 b")
			commit(t, s, nil)
			same(t, "stored path", texts(t, r.fresh(t)), "u1 b p")
			r.agrees(t, s)
		})
	})
}

// Reload drops what is not stored, and refuses commits that wait in line. The request in flight ends first.
func TestReloadDropsWhatIsNotStored(t *testing.T) {
	t.Run("waiting commits", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s := r.start(t, nil)
			say(t, s, "l")
			leader := following(bg, t, s, turnsTo(2))
			write := r.gate.next(t)
			say(t, s, "m")
			queued := following(bg, t, s, turnsTo(3))
			reload := begin(func() (struct{}, error) { return struct{}{}, s.Reload(bg) })
			if reload.ended(t) {
				t.Error("Reload did not wait for the request in flight")
			}
			write.pass()
			r.gate.open()
			_, err := leader.wait(t)
			ok(t, err)
			_, err = reload.wait(t)
			ok(t, err)
			_, err = queued.wait(t)
			if !errors.Is(err, backend.ErrBusy) || isAny(err, coppice.ErrCommitUnknown, coppice.ErrConflict) {
				t.Errorf("the commit in line: %v, want backend.ErrBusy: it can be made again", err)
			}
			same(t, "entries", everything(t, s), "u1 a1 l")
			r.agrees(t, s)
			say(t, s, "n")
			commit(t, s, state{Turns: 4})
			same(t, "stored path", texts(t, r.fresh(t)), "u1 a1 l n")
			ok(t, s.Close())
		})
	})
	for name, n := range map[string]int{"doubtful and stored": all, "doubtful and not stored": 0} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				say(t, s, "l")
				r.doubts(t, s, turnsTo(2), n)
				say(t, s, "m")
				ok(t, s.Reload(bg))
				r.agrees(t, s)
				say(t, s, "n")
				commit(t, s, state{Turns: 3})
				r.agrees(t, s)
				want := "u1 a1 n"
				if n > 0 {
					want = "u1 a1 l n"
				}
				same(t, "path", texts(t, s), want)
				ok(t, s.Close())
			})
		})
	}
}
