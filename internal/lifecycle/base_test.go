package lifecycle_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// A turn that names its base ignores the buffer: appended entries are neither stored nor dropped, and the state that
// the caller sees does not change while there are any.
func TestBaseLeavesTheBufferAlone(t *testing.T) {
	for what, turn := range map[string]coppice.Turn{
		"nothing else": {}, "state": {State: state{Turns: 2}},
		"entries": {Entries: []transcript.Draft{entry.User("own")}},
	} {
		t.Run(what, func(t *testing.T) {
			onEach(t, func(t *testing.T, store *coppice.Store) {
				s := create(t, store, "s", nil)
				say(t, s, "u1")
				turn := turn
				turn.Base = commit(t, s, state{Turns: 1}).Commit
				id := say(t, s, "p")
				must(s.Commit(bg, turn))(t)
				if _, err := open(t, store, "s").Entry(bg, id[0]); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("what was appended is stored: %v", err)
				}
				same(t, "context", texts(t, s), "u1 p")
				same(t, "state", stateOf(t, s), state{Turns: 1})
				r := must(s.Commit(bg, coppice.Turn{KeepBoth: true}))(t)
				same(t, "kept", r.Kept != "", what != "nothing else")
				must(open(t, store, "s").Entry(bg, id[0]))(t)
			})
		})
	}
}

// A turn that fails leaves the handle unchanged, also one that names its base: otherwise the next turn, computed from
// the old state, would replace the winner's without an error.
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

// A base is found by the index of ids, however long the session is, and so is its absence: no caller waits for a scan
// of the history.
func TestBaseIsFoundWithoutAWalk(t *testing.T) {
	inMemory(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		long := strings.Repeat("x", 100_000)
		var first coppice.Receipt
		for i := range 80 {
			r := must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User(long)}, State: i}))(t)
			if i == 0 {
				first = r
			}
		}
		ok(t, s.Close())
		for base, want := range map[string]error{
			first.Commit: coppice.ErrConflict, "0192f3a0-0000-7000-8000-000000000001": fs.ErrNotExist,
		} {
			s := open(t, store, "s")
			before := s.IO()
			_, err := s.Commit(bg, coppice.Turn{Base: base, State: "late"})
			isErr(t, base, err, want)
			if io := s.IO().Sub(before); io.Get > 5 { // three runs of the index, the log, one line
				t.Errorf("base %s: %s", base, cost(io))
			}
		}
	})
}
