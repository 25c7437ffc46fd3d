package lifecycle_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// torn returns a session in which the write of a kept losing turn "l" stopped after the first of its two commit lines;
// the winner's turn is "w".
func (r *rig) torn(t *testing.T) (loser, winner *coppice.Session) {
	t.Helper()
	s := r.start(t, nil)
	winner, _ = r.wins(t, "w")
	say(t, s, "l")
	loses(t, r, s, turnsTo(2))
	r.gate.close()
	turn := turnsTo(2)
	turn.KeepBoth = true
	keeps := committing(bg, s, turn)
	write := r.gate.next(t)
	commits := bytes.Count(write.body, []byte(`"coppice.commit"`))
	if commits < 2 {
		t.Fatalf("a kept turn and the way back are %d commit lines", commits)
	}
	first := bytes.Index(write.body, []byte(`"coppice.commit"`))
	write.lose(first + bytes.IndexByte(write.body[first:], '\n') + 1)
	if _, err := keeps.wait(t); !errors.Is(err, coppice.ErrCommitUnknown) {
		t.Fatalf("commit: %v, want ErrCommitUnknown", err)
	}
	r.gate.open()
	return s, winner
}

// A kept turn never moves the session: if the write stops after its line, every reader stays at the winner's head and
// document, and every writer continues from there. The kept turn itself is stored once.
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
			commit(t, reader, state{Turns: 100, Note: "again"}) // writes the checkpoint again
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
		"a turn that was made on the kept one": func(t *testing.T, r *rig, _, _ *coppice.Session) {
			next := r.fresh(t)
			kept := history(t, next)[0]
			turn := coppice.Turn{Base: kept.Commit, Entries: []transcript.Draft{entry.User("n")}}
			got := must(next.Commit(bg, turn))(t)
			same(t, "branch", got.Kept, kept.Branch)
			check(t, r.fresh(t), "u1 a1 w", "u1 a1 w l n")
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
			must(loser.Settle(bg, ""))(t)
			ok(t, loser.Reload(bg))
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

// A fenced handle stays fenced after one of its turns was kept: later turns are ErrFenced, or kept, until the handle
// claims the session or reloads it.
func TestKeepingDoesNotLiftAFence(t *testing.T) {
	for name, lift := range map[string]func(t *testing.T, s *coppice.Session){
		"claim": func(t *testing.T, s *coppice.Session) {
			must(s.Claim(bg))(t)
			if _, err := s.Commit(bg, turnsTo(3)); !errors.Is(err, coppice.ErrConflict) {
				t.Errorf("a turn on the line that the session left: %v, want ErrConflict", err)
			}
			ok(t, s.Reload(bg))
		},
		"reload": func(t *testing.T, s *coppice.Session) { ok(t, s.Reload(bg)) },
	} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				r.gate.open()
				other := r.fresh(t)
				must(other.Claim(bg))(t)
				say(t, s, "l")
				for i := range 2 {
					turn := turnsTo(2 + i)
					_, err := s.Commit(bg, turn)
					if !errors.Is(err, coppice.ErrFenced) || errors.Is(err, coppice.ErrConflict) {
						t.Fatalf("commit %d: %v, want ErrFenced", i, err)
					}
					turn.KeepBoth = true
					kept := must(s.Commit(bg, turn))(t)
					view := must(r.fresh(t).At(bg, coppice.Target{Commit: kept.Commit}))(t)
					same(t, "the kept line", texts(t, view), []string{"u1 a1 l", "u1 a1"}[i])
					same(t, "its state", stateOf(t, view), state{Turns: 2 + i})
					same(t, "the handle's state", stateOf(t, s), state{Turns: 1})
				}
				say(t, other, "w")
				commit(t, other, nil)
				lift(t, s)
				same(t, "path", texts(t, s), "u1 a1 w")
				say(t, s, "n")
				commit(t, s, nil)
				same(t, "stored path", texts(t, r.fresh(t)), "u1 a1 w n")
				r.agrees(t, s)
			})
		})
	}
}

// A handle that knows of its conflict refuses Append on the path that the session has left: its caller learns it before
// it calls a model. Reload ends that; Claim does only after a fence.
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
	keeps := func(t *testing.T, s *coppice.Session) {
		t.Helper()
		kept := must(s.Commit(bg, coppice.Turn{KeepBoth: true}))(t).Kept
		same(t, "kept", kept != "", true)
	}
	t.Run("conflict", func(t *testing.T) {
		onGates(t, func(t *testing.T, r *rig) {
			s := r.start(t, nil)
			r.gate.open()
			r.wins(t, "w")
			say(t, s, "l") // the handle does not know of the conflict yet
			loses(t, r, s, turnsTo(2))
			refused(t, s, coppice.ErrConflict)
			keeps(t, s)
			refused(t, s, coppice.ErrConflict)
			ok(t, s.Reload(bg))
			say(t, s, "n")
			commit(t, s, nil)
			same(t, "stored", everything(t, r.fresh(t)), "u1 a1 w l n")
			r.agrees(t, s)
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
			keeps(t, s)
			refused(t, s, coppice.ErrFenced)
			must(s.Claim(bg))(t)
			say(t, s, "n")
			commit(t, s, nil)
			same(t, "stored", everything(t, r.fresh(t)), "u1 a1 l n")
			r.agrees(t, s)
		})
	})
}

// With KeepBoth, turns with different parents are kept on separate branches, each with its own last entry and document.
// The handle stays where it was.
func TestKeepBothNamesEachLine(t *testing.T) {
	onGates(t, func(t *testing.T, r *rig) {
		s := r.start(t, &coppice.SessionOptions{KeepBoth: true})
		r.gate.open()
		u1 := collect(t, s.Path(bg, ""))[1].ID
		r.wins(t, "w")
		turns := []coppice.Turn{carrying("", 2, "x"), turnsTo(3), turnsTo(4)}
		turns[1].Entries = append(turns[1].Entries, under(u1, "y"))
		turns[2].Entries = append(turns[2].Entries, under(u1, "z"))
		lines := []string{"u1 a1 x", "u1 y", "u1 z"}
		names := map[string]bool{}
		for i, turn := range turns {
			kept := must(s.Commit(bg, turn))(t).Kept
			names[kept] = true
			fresh := r.fresh(t)
			same(t, "the winner's line", texts(t, fresh), "u1 a1 w")
			path, doc := line(t, fresh, kept)
			same(t, "line "+kept, path, lines[i])
			same(t, "its state", doc, state{Turns: 2 + i})
			same(t, "the handle's line", texts(t, s), "u1 a1")
		}
		same(t, "names", len(names), 3)
		ok(t, s.Reload(bg))
		r.agrees(t, s)
	})
}

// Reload drops everything that is not stored, including a commit in doubt.
func TestReloadDropsWhatIsNotStored(t *testing.T) {
	for name, n := range map[string]int{"doubtful and stored": all, "doubtful and not stored": 0} {
		t.Run(name, func(t *testing.T) {
			onGates(t, func(t *testing.T, r *rig) {
				s := r.start(t, nil)
				say(t, s, "l")
				r.doubts(t, s, turnsTo(2), n)
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
