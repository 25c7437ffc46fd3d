package coppice_test

import (
	"slices"
	"testing"

	"github.com/coppice-go/coppice"
)

// A new process finds what the one before committed: messages, state, head (WANTED 9).
func TestResume(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{Title: "t", Cwd: "/w"})
		same(t, "a new session's context", texts(t, s), "")
		same(t, "a new session's seq", s.Head().Seq, 0)
		say(t, s, "u1", "a1")
		r := commit(t, s, state{Turns: 1})
		same(t, "entries", r.Entries, 2)
		say(t, s, "u2")
		r2 := commit(t, s, state{Turns: 2})
		same(t, "head", s.Head(), r2.Head)
		ok(t, s.Close())

		again := open(t, store, "s")
		same(t, "context", texts(t, again), "u1 a1 u2")
		same(t, "state", stateOf(t, again), state{Turns: 2})
		same(t, "head", again.Head(), r2.Head)
		same(t, "title", again.Info().Title+again.Info().Cwd, "t/w")
		tree := must(again.Tree(bg))(t)
		same(t, "path", len(slices.Collect(tree.Path(tree.Head()))), 3)
		ok(t, again.Close())
	})
}
