package scenarios_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
)

// mover moves a head; ids are those of a, b and c.
type mover func(s *coppice.Session, ids []string, o ...coppice.MoveOption) (coppice.Receipt, error)

// moves are the ways to move a head, from a session with three entries a, b, c on one path, and the branch "side" at a.
var moves = map[string]mover{
	"branch": func(s *coppice.Session, ids []string, o ...coppice.MoveOption) (coppice.Receipt, error) {
		return s.Branch(bg, ids[1], &coppice.BranchOptions{Name: "new", Summary: "so far"}, o...)
	},
	"switch": func(s *coppice.Session, _ []string, o ...coppice.MoveOption) (coppice.Receipt, error) {
		return s.Switch(bg, "side", o...)
	},
	"edit": func(s *coppice.Session, ids []string, o ...coppice.MoveOption) (coppice.Receipt, error) {
		return s.Edit(bg, ids[1], entry.User("b2"), o...)
	},
	"rollback": func(s *coppice.Session, _ []string, o ...coppice.MoveOption) (coppice.Receipt, error) {
		return s.Rollback(bg, coppice.Target{Seq: 2}, o...)
	},
}

// forked makes the session of moves.
func forked(t *testing.T, st *coppice.Store) (*coppice.Session, []string) {
	t.Helper()
	s := create(t, st, "s", nil)
	ids := say(t, s, "a")
	commit(t, s, nil)
	must(s.Branch(t.Context(), ids[0], &coppice.BranchOptions{Name: "side"}))(t)
	must(s.Switch(t.Context(), "main"))(t)
	ids = append(ids, say(t, s, "b")...)
	commit(t, s, state{Turns: 1})
	ids = append(ids, say(t, s, "c")...)
	commit(t, s, state{Turns: 2})
	return s, ids
}

// A move with a key is made once: a repeat returns the first receipt, also after later commits, through this handle,
// through a reloaded one, and through one that was opened later. Another move with the key is ErrKeyReused.
func TestMovesWithKeys(t *testing.T) {
	t.Parallel()
	for name, move := range moves {
		onEachPair(t, name, func(t *testing.T, a, b *coppice.Store) {
			s, ids := forked(t, a)
			stale := open(t, b, "s")
			first := must(move(s, ids, coppice.WithKey("once")))(t)
			if first.Repeated {
				t.Fatal("the first one counts as a repeat")
			}
			repeats := func(h *coppice.Session) {
				t.Helper()
				before := h.Head()
				again := must(move(h, ids, coppice.WithKey("once")))(t)
				if !again.Repeated || again.Head != first.Head || again.Kept != first.Kept ||
					!slices.Equal(again.IDs, first.IDs) {
					t.Errorf("the repeat is %+v, was %+v", again, first)
				}
				if now := h.Head(); now.Seq < before.Seq || now.Seq > first.Seq && now.Seq != s.Head().Seq {
					t.Errorf("the repeat made the head %v of %v", now, before)
				}
			}
			repeats(s)
			repeats(stale) // the key is checked before the conflict
			ok(t, stale.Reload(t.Context()))
			repeats(stale)
			say(t, s, "later")
			commit(t, s, state{Turns: 9})
			last := s.Head()
			repeats(s)
			repeats(open(t, b, "s"))
			same(t, "head", s.Head(), last)

			for other, f := range moves {
				_, err := f(s, ids, coppice.WithKey("once"))
				if other != name && !errors.Is(err, coppice.ErrKeyReused) {
					t.Errorf("a %s with the key of a %s: %v", other, name, err)
				}
			}
			if _, err := s.Commit(t.Context(), coppice.Turn{Key: "once"}); !errors.Is(err, coppice.ErrKeyReused) {
				t.Errorf("a turn with the key of a move: %v", err)
			}
		})
	}
}

// A key belongs to one move: another one is ErrKeyReused, also if the concatenated arguments of both are equal.
func TestKeyOfAnotherBranch(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s, ids := forked(t, store)
		must(s.Branch(bg, ids[0], nil, coppice.WithKey("k")))(t)
		_, err := s.Branch(bg, "", &coppice.BranchOptions{Name: ids[0]}, coppice.WithKey("k"))
		isErr(t, "another branch", err, coppice.ErrKeyReused)
	})
}

// onEachPair runs a test on two stores of one backend, of each kind.
func onEachPair(t *testing.T, name string, f func(t *testing.T, a, b *coppice.Store)) {
	t.Helper()
	for kind, made := range backends {
		t.Run(name+"/"+kind, func(t *testing.T) {
			t.Parallel()
			b := made(t)
			f(t, newStore(t, b, &coppice.Options{Writer: "a"}), newStore(t, b, &coppice.Options{Writer: "b"}))
		})
	}
}
