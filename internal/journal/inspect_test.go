package journal

import (
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/journal/appendlog"
)

// Background work of a state that has been left behind never puts an older checkpoint in force, not even
// where the handle has seen the newer one since.
func TestCheckpointOnlyGoesForward(t *testing.T) {
	w := newWorld(t, memory.NewAppender())
	w.lim = Limits{PublishCommits: 1}
	j := w.create("s1")
	w.turn(j, "a", `1`)
	left := j.State()
	other := w.open("s1")
	w.turn(other, "b", `2`)
	if err := other.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Reload(t.Context()); err != nil { // it sees the version in force
		t.Fatal(err)
	}
	a := j.strategy.(*appendlog.Strategy)
	if _, _, err := a.Tidy(t.Context(), left); err != nil {
		t.Fatal(err)
	}
	o, _, err := j.store.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := other.State().Summary.Seq; o.Summary.Seq != want {
		t.Errorf("checkpoint_latest is of commit %d, and was of %d", o.Summary.Seq, want)
	}
}
