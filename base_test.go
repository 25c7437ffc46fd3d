package coppice_test

import (
	"errors"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// "A commit takes what was appended before it was called": a nil error of a turn that names its base, on a handle that
// keeps both, says that what was pending is stored too.
func TestBaseTakesPending(t *testing.T) {
	for what, turn := range map[string]coppice.Turn{
		"nothing else": {}, "state": {State: state{Turns: 2}},
		"entries": {Entries: []transcript.Draft{entry.User("own")}},
	} {
		t.Run(what, func(t *testing.T) {
			onEach(t, func(t *testing.T, store *coppice.Store) {
				s := create(t, store, "s", &coppice.SessionOptions{KeepBoth: true})
				say(t, s, "u1")
				turn := turn
				turn.Base = commit(t, s, state{Turns: 1}).Commit
				id := say(t, s, "p")
				if _, err := s.Commit(bg, turn); err != nil {
					return
				}
				if _, err := open(t, store, "s").Entry(bg, id[0]); err != nil {
					t.Errorf("the commit is acknowledged, what was pending before it is not stored: %v", err)
				}
			})
		})
	}
}

// A turn that fails leaves the handle where it was, also one that names its base: else the next turn, which was
// computed from the state before, replaces the winner's, and no caller of the handle gets an error.
func TestFailedBaseLeavesTheState(t *testing.T) {
	onEach(t, func(t *testing.T, st *coppice.Store) {
		a := create(t, st, "s", nil)
		first := must(a.Commit(t.Context(), coppice.Turn{Entries: []transcript.Draft{entry.User("0")}, State: 1}))(t)
		b := must(st.Open(t.Context(), "s", nil))(t)
		won := must(b.Commit(t.Context(), coppice.Turn{State: 100}))(t)
		for _, base := range []string{first.Commit, "no-such"} {
			_, err := a.Commit(t.Context(), coppice.Turn{Base: base, State: 7})
			if err == nil {
				t.Fatalf("base %s: stored", base)
			}
			n := 0
			ok(t, a.State(&n))
			same(t, "state after a failed turn", n, 1)
			same(t, "head after a failed turn", a.Head().Seq, first.Seq)
		}
		_, err := a.Commit(t.Context(), coppice.Turn{State: 2})
		if !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("a turn on the old state: %v, want ErrConflict", err)
		}
		f, n := must(st.Open(t.Context(), "s", nil))(t), 0
		ok(t, f.State(&n))
		same(t, "the winner's state", n, 100)
		same(t, "the newest commit", f.Head().Commit, won.Commit)
	})
}
