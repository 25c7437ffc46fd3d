package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// deletable is a store with one session of several segments, with a blob and a snapshot.
func deletable(t *testing.T, b backend.Backend) (w *world, commit string) {
	t.Helper()
	w = newWorld(t, b)
	w.inline, w.lim = true, Limits{RollEntries: 4, SealEntries: 4}
	j := w.create("s")
	for i := range 4 {
		w.turn(j, fmt.Sprintf("e%d", i), fmt.Sprint(i))
	}
	if _, err := j.PutBlob(t.Context(), []byte("an image")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := layout.SessionPrefix("s") + layout.Snapshots + "x"
	if _, err := b.Put(t.Context(), key, []byte("x"), backend.Cond{}); err != nil {
		t.Fatal(err)
	}
	return w, j.State().Summary.Commit
}

// objects lists the keys of a store.
func (w *world) objects(prefix string) (keys []string) {
	w.t.Helper()
	for info, err := range w.b.List(context.Background(), backend.ListOptions{Prefix: prefix}) {
		if err != nil {
			w.t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

// deleteFault is a way in which the calls of a deletion fail, from one of them on.
type deleteFault struct {
	name   string
	rule   fault.Rule
	cancel bool // the context ends then, and the call itself continues
}

var deleteFaults = []deleteFault{
	{name: "full once", rule: fault.Rule{Outcome: backend.NotApplied, Err: syscall.ENOSPC}},
	{name: "full", rule: fault.Rule{Outcome: backend.NotApplied, Err: syscall.ENOSPC, Count: -1}},
	{name: "failed", rule: fault.Rule{Err: syscall.EIO}},
	{name: "failing", rule: fault.Rule{Err: syscall.EIO, Count: -1}},
	{name: "answer lost", rule: fault.Rule{Kind: fault.After}},
	{name: "answers lost", rule: fault.Rule{Kind: fault.After, Count: -1}},
	{name: "cancelled", cancel: true},
}

// A deletion fails at any of its calls. Its error is true: nothing was deleted and every object is there, or the
// session is deleted. A repeated call finishes it, and one after that finds that nothing is left to do.
func TestDeleteFailsAtEveryCall(t *testing.T) {
	for _, open := range []func() backend.Backend{
		func() backend.Backend { return memory.New() }, func() backend.Backend { return memory.NewAppender() },
	} {
		for _, f := range deleteFaults {
			for at, more := 1, true; more; at++ {
				more = deleteFails(t, open(), f, at)
			}
		}
	}
}

// deleteFails has call number at of a deletion fail; false if the deletion has fewer calls.
func deleteFails(t *testing.T, b backend.Backend, f deleteFault, at int) bool {
	t.Helper()
	w, commit := deletable(t, b)
	before := w.objects("")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	calls, where := 0, ""
	rule := f.rule
	rule.When = func(c fault.Call) bool {
		calls++
		if calls == at {
			where = fmt.Sprintf("%T: %s at call %d, %s %s", b, f.name, at, c.Op, c.Key)
			if f.cancel {
				cancel()
			}
		}
		writes := c.Op != "get" && c.Op != "stat" && c.Op != "list"
		return !f.cancel && calls >= at && (writes || !errors.Is(f.rule.Err, syscall.ENOSPC))
	}
	cfg := w.config("s")
	cfg.Backend = fault.New(b, 1, rule)
	err := DeleteAt(ctx, cfg, commit)
	if where == "" {
		if err != nil {
			t.Errorf("without a fault: %v", err)
		}
		return false
	}
	_, oerr := Open(t.Context(), w.config("s"))
	gone := errors.Is(oerr, store.ErrDeleted)
	switch {
	case err == nil:
		if left := w.objects(layout.SessionPrefix("s")); !gone || len(left) > 0 {
			t.Errorf("%s: no error, but open: %v, left: %v", where, oerr, left)
		}
	case errors.Is(err, ErrUnfinished) && errors.Is(err, ErrUnknown):
	case errors.Is(err, ErrUnfinished):
		if !gone {
			t.Errorf("%s: %v, but open: %v", where, err, oerr)
		}
	default:
		if backend.OutcomeOf(err) != backend.NotApplied || oerr != nil || !slices.Equal(w.objects(""), before) {
			t.Errorf("%s: %v (%v), but open: %v, objects: %v", where, err, backend.OutcomeOf(err), oerr, w.objects(""))
		}
	}
	if rerr := DeleteAt(t.Context(), w.config("s"), commit); rerr != nil && !errors.Is(rerr, store.ErrDeleted) {
		t.Errorf("%s: %v; repeated: %v", where, err, rerr)
	}
	if left := w.objects(layout.SessionPrefix("s")); len(left) > 0 {
		t.Errorf("%s: left after a repeated deletion: %v", where, left)
	}
	if err := DeleteAt(t.Context(), w.config("s"), commit); !errors.Is(err, store.ErrDeleted) {
		t.Errorf("%s: repeated once more: %v", where, err)
	}
	return true
}

// fullDisk is a store on which objects can be put only once something was removed; logs can be appended to.
type fullDisk struct {
	*memory.Appender
	room bool
}

func (b *fullDisk) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if !b.room {
		return backend.Info{}, &backend.Error{Op: "put", Key: key, Outcome: backend.NotApplied, Err: syscall.ENOSPC}
	}
	return b.Appender.Put(ctx, key, p, c)
}

func (b *fullDisk) Delete(ctx context.Context, key string) error {
	if !b.room && strings.Contains(key, layout.Transcript) {
		return errors.New("a segment goes before the tombstone is written")
	}
	b.room = true
	return b.Appender.Delete(ctx, key)
}

// On a full disk a deletion that is in the log makes room for its tombstone.
func TestDeleteMakesRoom(t *testing.T) {
	b := memory.NewAppender()
	w, commit := deletable(t, b)
	cfg := w.config("s")
	cfg.Backend = &fullDisk{Appender: b}
	if err := DeleteAt(t.Context(), cfg, commit); err != nil {
		t.Fatal(err)
	}
	if left := w.objects(""); !slices.Equal(left, []string{layout.CheckpointKey("s")}) {
		t.Errorf("left: %v", left)
	}
}

// A process dies after the sync of the tombstone failed. The next deletion makes the tombstone durable before it
// removes an object: whatever a loss of power leaves, the session is deleted or whole (I13).
func TestRepeatedDeleteHardensTheTombstone(t *testing.T) {
	b := memory.NewAppender()
	w, _ := deletable(t, b)
	power := errors.New("sync failed")
	b.SetHook(func(s memory.Step) error {
		if s.Stage == memory.Visible && s.Key == layout.CheckpointKey("s") {
			return power
		}
		return nil
	})
	if err := Delete(t.Context(), w.config("s")); !errors.Is(err, ErrUnfinished) || !errors.Is(err, power) {
		t.Fatalf("the tombstone was not synced: %v", err)
	}
	whole := len(w.objects(layout.SessionPrefix("s")))
	removed := 0
	b.SetHook(func(s memory.Step) error {
		if s.Op != "delete" {
			return nil
		}
		removed++
		afterPowerLoss(t, w, fmt.Sprintf("deletion %d", removed), b)
		return nil
	})
	if err := Delete(t.Context(), w.config("s")); err != nil {
		t.Fatal(err)
	}
	afterPowerLoss(t, w, "the end", b)
	if removed < whole {
		t.Errorf("%d of %d objects were removed", removed, whole)
	}
}

// afterPowerLoss opens the session on what a loss of power may leave: it is deleted.
func afterPowerLoss(t *testing.T, w *world, when string, b *memory.Appender) {
	t.Helper()
	for seed := range uint64(16) {
		left := *w
		left.b = b.Crash(seed)
		if _, err := Open(t.Context(), left.config("s")); !errors.Is(err, store.ErrDeleted) {
			t.Fatalf("power is lost at %s, seed %d: open: %v", when, seed, err)
		}
	}
}
