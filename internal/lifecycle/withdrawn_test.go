package lifecycle_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

// Nothing of a losing turn is stored or stays in the handle, the state is as it was, and the hint states this. Repeated
// after Reload it is stored.
func TestConflictWithdrawsTheCarriedTurn(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", nil)
		say(t, s, "u1")
		commit(t, s, state{Turns: 1})
		winner := open(t, store, "s")
		say(t, winner, "w")
		commit(t, winner, state{Turns: 100})
		turn := coppice.Turn{State: state{Turns: 7}, Entries: []transcript.Draft{entry.User("x")}}
		_, err := s.Commit(bg, turn)
		if !errors.Is(err, coppice.ErrConflict) || !strings.Contains(hint(err), "nothing was applied") {
			t.Fatalf("%v, with the hint %q", err, hint(err))
		}
		same(t, "state after the failed commit", stateOf(t, s), state{Turns: 1})
		same(t, "path after the failed commit", texts(t, s), "u1")
		same(t, "stored", everything(t, open(t, store, "s")), "u1 w")
		ok(t, s.Reload(bg))
		must(s.Commit(bg, turn))(t)
		same(t, "path", texts(t, open(t, store, "s")), "u1 w x")
		same(t, "state", stateOf(t, s), state{Turns: 7})
	})
}
