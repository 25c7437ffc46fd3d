package coppice_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// "A turn with a key that is known is not applied again; its receipt comes back", also where its entries have ids of
// their own, which are in the session since the first time: on the handle that committed it, on a new one, and on
// one that is behind.
func TestRepeatedTurnWithOwnIDs(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		d := entry.User("x")
		d.ID = "own-x"
		keyed := coppice.Turn{Key: "job", State: state{Turns: 2}, Entries: []transcript.Draft{d}}
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		commit(t, s, state{Turns: 1})
		behind, treed := open(t, store, "s"), open(t, store, "s")
		must(treed.Tree(bg))(t)
		first := must(s.Commit(bg, keyed))(t)
		fresh := open(t, store, "s")
		for name, h := range map[string]*coppice.Session{"same": s, "new": fresh, "behind": behind, "behind, with a tree": treed} {
			r, err := h.Commit(bg, keyed)
			if err != nil || !r.Repeated || r.Commit != first.Commit {
				t.Errorf("%s: %+v %v", name, r, err)
			}
			if errors.Is(err, fs.ErrExist) {
				_, err := h.Commit(bg, keyed)
				t.Logf("%s, once more: %v", name, err)
			}
		}
		if _, err := open(t, store, "s").Commit(bg, coppice.Turn{Key: "other", Entries: []transcript.Draft{d}}); !errors.Is(err, fs.ErrExist) {
			t.Errorf("another key: %v", err)
		}
	})
}
