package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
)

// keptAs checks that a turn is on the branch that its receipt names, with its state, and not at the head.
func keptAs(t *testing.T, store *coppice.Store, r coppice.Receipt, context, note string) {
	t.Helper()
	if !strings.HasPrefix(r.Kept, "conflict-") {
		t.Fatalf("kept %q", r.Kept)
	}
	v := must(open(t, store, "s").At(bg, coppice.Target{Commit: r.Commit}))(t)
	same(t, "kept context", texts(t, v), context)
	same(t, "kept state", stateOf(t, v).Note, note)
}

// Turn.KeepBoth keeps a turn on an outdated base, and one that lost to another host; the handle's own turns without it
// get the conflict, and the handle stays usable.
func TestTurnKeepsBoth(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		first := commit(t, s, nil).Commit
		must(s.Commit(bg, onBase(first, "w", false)))(t)
		if _, err := s.Commit(bg, onBase(first, "x", false)); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("a stale base without KeepBoth: %v", err)
		}
		keptAs(t, store, must(s.Commit(bg, onBase(first, "l", true)))(t), "u1 l", "l")
		same(t, "the session's line", texts(t, s), "u1 w")

		host := open(t, store, "s")
		base := s.Head().Commit
		say(t, host, "h")
		commit(t, host, nil)
		if _, err := s.Commit(bg, onBase(base, "y", false)); !errors.Is(err, coppice.ErrConflict) {
			t.Errorf("lost to another host without KeepBoth: %v", err)
		}
		say(t, host, "h2")
		commit(t, host, nil)
		keptAs(t, store, must(s.Commit(bg, onBase(base, "m", true)))(t), "u1 w m", "m")
		same(t, "reopened", texts(t, open(t, store, "s")), "u1 w h h2")
	})
}

// A turn without entries and base keeps what was appended before it.
func TestTurnKeepsPending(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		commit(t, s, nil)
		other := open(t, store, "s")
		say(t, other, "w")
		commit(t, other, nil)
		say(t, s, "l")
		r := must(s.Commit(bg, coppice.Turn{State: state{Note: "l"}, KeepBoth: true}))(t)
		keptAs(t, store, r, "u1 l", "l")
		same(t, "the handle's line", texts(t, s), "u1")
		ok(t, s.Reload(bg))
		same(t, "the session's line", texts(t, s), "u1 w")
	})
}
