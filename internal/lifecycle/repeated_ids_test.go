package lifecycle_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// "A turn with a key that is known is not applied again; its receipt comes back", also if its entries have ids chosen
// by the caller, which are stored since the first time: on the handle that committed it, on a new one, and on one that
// is behind.
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

// The receipt of a repeated turn names the ids of the first time, in the order of the drafts, whether drafts with known
// ids were left out, amended, or stored.
func TestRepeatedTurnWithKnownIDs(t *testing.T) {
	for name, policy := range map[string]transcript.KnownID{
		"ignore": transcript.KnownIgnore, "amend": transcript.KnownAmend,
	} {
		for _, text := range []string{"a", "changed"} {
			for _, more := range []string{"alone", "before another", "after another"} {
				t.Run(fmt.Sprint(name, " ", text, " ", more), func(t *testing.T) {
					onEach(t, func(t *testing.T, store *coppice.Store) {
						s := create(t, store, "s", nil)
						old, again := entry.User("a"), entry.User(text)
						old.ID, again.ID = "id-a", "id-a"
						must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{old}}))(t)
						turn := coppice.Turn{Key: "job", State: 1}
						switch turn.Entries = known(policy, again); more {
						case "before another":
							turn.Entries = append(turn.Entries, entry.User("b"))
						case "after another":
							turn.Entries = append([]transcript.Draft{entry.User("b")}, turn.Entries...)
						}
						first := must(s.Commit(bg, turn))(t)
						same(t, "ids", len(first.IDs), len(turn.Entries))
						for _, h := range []*coppice.Session{s, open(t, store, "s")} {
							r := must(h.Commit(bg, turn))(t)
							same(t, "ids", r.IDs, first.IDs)
							same(t, "entries", r.Entries, first.Entries)
						}
					})
				})
			}
		}
	}
}
