package coppice_test

import (
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
