package lifecycle_test

import (
	"errors"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/transcript"
)

// Receipt: "IDs of Turn.Entries, in order", also where commits are deferred until the assistant speaks.
func TestDeferredTurnHasIDs(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{DeferUntilAssistant: true})
		r := must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.User("u1")}}))(t)
		same(t, "ids of a deferred turn", len(r.IDs), 1)
		r = must(s.Commit(bg, coppice.Turn{Entries: []transcript.Draft{entry.Assistant("a1"), entry.User("u2")}}))(t)
		same(t, "ids of the first turn that is written", len(r.IDs), 2)
		same(t, "path", texts(t, open(t, store, "s")), "u1 a1 u2")
	})
}

// "Key: a turn with a key that is known is not applied again", also where commits are deferred.
func TestDeferredKeys(t *testing.T) {
	onEach(t, func(t *testing.T, store *coppice.Store) {
		s := create(t, store, "s", &coppice.SessionOptions{DeferUntilAssistant: true})
		ask := coppice.Turn{Key: "ask", State: state{Turns: 1}, Entries: []transcript.Draft{entry.User("u1")}}
		answer := coppice.Turn{Key: "answer", State: state{Turns: 2}, Entries: []transcript.Draft{entry.Assistant("a1")}}
		must(s.Commit(bg, ask))(t)
		must(s.Commit(bg, ask))(t)
		same(t, "path of the handle", texts(t, s), "u1")
		must(s.Commit(bg, answer))(t)
		must(s.Commit(bg, answer))(t)
		must(s.Commit(bg, ask))(t)
		same(t, "path", texts(t, open(t, store, "s")), "u1 a1")
	})
}

// Turn.Entries "are stored with it or withdrawn with it", also where commits are deferred: the turn that is refused can
// be committed again, and is stored once. What was deferred before it stays.
func TestDeferredTurnIsWithdrawn(t *testing.T) {
	for kind, open := range backends {
		t.Run(kind, func(t *testing.T) {
			b := fault.New(open(t), 1)
			s := create(t, newStore(t, b, nil), "s", &coppice.SessionOptions{DeferUntilAssistant: true})
			must(s.Commit(bg, coppice.Turn{State: state{Turns: 1}, Entries: []transcript.Draft{entry.User("u1")}}))(t)
			answer := coppice.Turn{State: state{Turns: 2}, Entries: []transcript.Draft{entry.Assistant("a1")}}
			b.Add(fault.Rule{Kind: fault.Before, Outcome: backend.NotApplied, Count: -1})
			if _, err := s.Commit(bg, answer); err == nil || errors.Is(err, coppice.ErrCommitUnknown) {
				t.Fatalf("commit: %v", err)
			}
			b.Clear()
			same(t, "path", texts(t, s), "u1")
			same(t, "state", stateOf(t, s), state{Turns: 1})
			must(s.Commit(bg, answer))(t)
			same(t, "path", texts(t, s), "u1 a1")
		})
	}
}
