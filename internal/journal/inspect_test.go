package journal

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
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
	a := j.strategy.(*appendStrategy)
	if _, _, err := a.tidy(t.Context(), left, true); err != nil {
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

// A reader gets damage in the middle of the active segment as corruption with its offset, not as a session with fewer
// entries.
func TestReadBesideDamage(t *testing.T) {
	b := memory.NewAppender()
	w := newWorld(t, b)
	j := w.create("s1")
	for _, id := range []string{"a", "b", "c"} {
		w.turn(j, id, `1`)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := activeKey(j)
	p, _, err := b.Get(t.Context(), key, backend.Range{})
	if err != nil {
		t.Fatal(err)
	}
	at := strings.Index(string(p), "text of b")
	p[at] ^= 1
	if _, err := b.Put(t.Context(), key, p, backend.Cond{}); err != nil {
		t.Fatal(err)
	}
	hurt := w.open("s1")
	var f *store.Failure
	for _, err = range hurt.Lines(t.Context(), hurt.State(), nil) {
		if err != nil {
			break
		}
	}
	if !errors.As(err, &f) || !errors.Is(err, store.ErrCorrupt) || f.Object != key || f.Offset <= 0 || f.Offset > int64(at) {
		t.Errorf("got %v", err)
	}
}

// A log that rolls over to a segment which is lost is damaged; it is not a session that does not exist.
func TestLostActiveSegment(t *testing.T) {
	b := memory.NewAppender()
	w := newWorld(t, b)
	w.lim = Limits{RollEntries: 4}
	j := w.create("s1")
	for _, id := range []string{"a", "b", "c", "d"} {
		w.turn(j, id, `1`)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{activeKey(j), "checkpoint_latest/s1"} {
		if err := b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), w.config("s1")); !errors.Is(err, store.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// activeKey is the object that the next append goes to.
func activeKey(j *Journal) string {
	seg, _ := layout.ParseSegment(j.State().Active().Name)
	return seg.PlainKey(j.cfg.Session)
}
