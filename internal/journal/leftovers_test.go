package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// What a writer left that died before its first commit can be deleted, and its id is never used again. Of an
// id of which nothing is there nothing is written.
func TestDeleteWhatNeverCameToBe(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		if _, err := w.create("dead").PutBlob(t.Context(), []byte("an image")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := Delete(t.Context(), w.config("dead")); err != nil {
				t.Fatal(err)
			}
		}
		if err := Delete(t.Context(), w.config("never")); err != nil {
			t.Fatal(err)
		}
		var left []string
		for info, err := range b.List(t.Context(), backend.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, info.Key)
		}
		if len(left) != 1 || left[0] != layout.CheckpointKey("dead") {
			t.Errorf("left: %v", left)
		}
		if _, err := Open(t.Context(), w.config("dead")); !errors.Is(err, store.ErrDeleted) {
			t.Errorf("open: %v", err)
		}
		j := w.create("dead")
		if _, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j, "e", "x")}}); err == nil || !errors.Is(err, fs.ErrExist) && !errors.Is(err, store.ErrDeleted) {
			t.Errorf("the id is used again: %v", err)
		}
	})
}

// A handle that another writer has overtaken settles as far as it can, and its error shows no internal state.
func TestSettleOvertaken(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		first := w.create("s1")
		w.turn(first, "a", `1`)
		rival := w.open("s1")
		for _, id := range []string{"b", "c", "d"} {
			w.turn(rival, id, `2`)
		}
		if err := rival.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := first.Tidy(t.Context())
		if err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrFenced) {
			t.Errorf("settle: %v", err)
		}
		again := w.open("s1")
		if ids := w.ids(again); len(ids) != 4 {
			t.Errorf("entries %v", ids)
		}
	})
}

// takenNames refuses to create transcript objects, as a proxy does that answers its own second try.
type takenNames struct{ backend.Backend }

func (b takenNames) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if strings.Contains(key, "/transcript/") {
		return backend.Info{}, &backend.Error{Op: "put", Key: key, Outcome: backend.NotApplied, Err: backend.ErrPrecondition}
	}
	return b.Backend.Put(ctx, key, p, c)
}

// A deletion that could not write its commit is not taken for one of a session that never was.
func TestDeleteThatMeetsAnotherMissingObject(t *testing.T) {
	b := memory.New()
	w := newWorld(t, b)
	w.lim.SealEntries = 2
	cfg := w.config("s1")
	j := w.create("s1")
	for _, id := range []string{"a", "b"} {
		w.turn(j, id, `1`)
	}
	bad := cfg
	bad.Backend = takenNames{b}
	if err := Delete(t.Context(), bad); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the deletion ended with %v", err)
	}
	if got := w.ids(w.open("s1")); len(got) != 2 {
		t.Errorf("after it the session holds %v", got)
	}
	if err := Delete(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), cfg); !errors.Is(err, store.ErrDeleted) {
		t.Errorf("deleted again without the fault: open: %v", err)
	}
}

// The commit of a deletion is the last one, also where it fills the active segment: no other segment follows it.
func TestDeleteThatFillsASegment(t *testing.T) {
	backends(t, func(t *testing.T, b backend.Backend) {
		w := newWorld(t, b)
		w.lim.RollEntries = 3
		for turns := range 4 {
			id := fmt.Sprintf("s%d", turns)
			j := w.create(id)
			for n := range turns + 1 {
				w.turn(j, fmt.Sprintf("%s-%d", id, n), `1`)
			}
			if err := Delete(t.Context(), w.config(id)); err != nil {
				t.Errorf("after %d turns: %v", turns+1, err)
			}
			if _, err := Open(t.Context(), w.config(id)); !errors.Is(err, store.ErrDeleted) {
				t.Errorf("after %d turns: open: %v", turns+1, err)
			}
		}
	})
}

// A process dies after a sync of the sealed form of a segment failed: the sealed form that the next one finds may be
// visible and not durable. It is put once more before the checkpoint names it and the plain form goes, so that a
// loss of power leaves one of them (I13).
func TestSealedFormThatWasFoundIsMadeDurable(t *testing.T) {
	b := memory.NewAppender()
	w := newWorld(t, b)
	w.inline, w.lim = true, Limits{RollEntries: 6, PublishCommits: 1 << 20, Attempts: 2}
	b.SetHook(func(s memory.Step) error {
		if s.Stage == memory.Visible && strings.HasSuffix(s.Key, ".zst") {
			return errors.New("sync failed")
		}
		return nil
	})
	dead := Create(w.config("s1"), state.Genesis{Header: header("s1")})
	sealed := func() bool {
		return slices.ContainsFunc(w.keys(layout.Transcript), func(key string) bool { return strings.HasSuffix(key, ".zst") })
	}
	var want []string
	for i := 0; !sealed() && i < 8; i++ { // it dies after the first try
		want = append(want, fmt.Sprintf("e%d", i))
		w.turn(dead, want[i], `0`)
	}
	if !sealed() || len(w.keys(layout.Transcript)) != 3 {
		t.Fatalf("one segment has both forms, and one is active: %v", w.keys(layout.Transcript))
	}
	b.SetHook(nil)
	next := w.open("s1")
	w.turn(next, "next", `1`)
	if err := next.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want = append(want, "next")
	if n := len(w.keys(layout.Transcript)); n != 2 {
		t.Fatalf("the plain form is there still: %v", w.keys(layout.Transcript))
	}
	for seed := range uint64(16) {
		left := *w
		left.b = b.Crash(seed)
		j, err := Open(t.Context(), left.config("s1"))
		if err != nil {
			t.Fatalf("after a loss of power, seed %d: %v", seed, err)
		}
		for l, err := range j.Lines(t.Context(), j.State(), nil) {
			if err != nil {
				t.Fatalf("a sealed form that was found was not durable: seed %d, line %d: %v", seed, l.Ord, err)
			}
		}
		if got := left.ids(j); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
	}
}
