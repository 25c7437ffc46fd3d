package history

import (
	"context"
	"fmt"
	"testing"

	coppice "github.com/coppice-go/coppice"
)

// A recorder takes commits in by itself, and Close waits for what was noted.
func TestRecorder(t *testing.T) {
	t.Parallel()
	x := index(t)
	r := NewRecorder(x)
	st := store(t, coppice.Hooks{AfterCommit: r.AfterCommit})
	s := create(t, st, "early", "/a", "> before the start")
	r.Start(t.Context(), st)
	r.Start(t.Context(), st) // does nothing
	for i := range 8 {
		say(t, s, fmt.Sprintf("> prompt %d", i))
	}
	create(t, st, "late", "/a", "> a late one")
	ok(t, r.Close(t.Context()))
	ok(t, r.Close(t.Context()))
	if r.Dirty() {
		t.Error("dirty")
	}
	same(t, "prompts", len(must2(x.Recall(t.Context(), "", nil))(t)), 10)
	fresh := index(t)
	update(t, fresh, st)
	update(t, x, st)
	same(t, "the index", dump(t, x), dump(t, fresh))
	say(t, s, "> after the end")
	if !r.Dirty() {
		t.Error("a commit after Close is not noted as missed")
	}
}

// Nobody reads the queue: commits go on, the recorder says that it is behind, and Update makes up for it.
func TestQueueOverflow(t *testing.T) {
	t.Parallel()
	x := index(t)
	const most = 3
	r := newRecorder(x, most)
	st := store(t, coppice.Hooks{AfterCommit: r.AfterCommit})
	for i := range most + 2 {
		create(t, st, fmt.Sprintf("s%03d", i), "/a", "> hello")
		if r.Dirty() != (i >= most) {
			t.Fatalf("session %d: dirty is %v", i, r.Dirty())
		}
	}
	r.Start(t.Context(), st)
	ok(t, r.Close(t.Context()))
	same(t, "taken in", len(find(t, x, "hello", nil)), most)
	same(t, "missing", update(t, x, st).Entries, 2)
	same(t, "found", len(find(t, x, "hello", nil)), most+2)
}

// A recorder that is told to stop at once does.
func TestRecorderStops(t *testing.T) {
	t.Parallel()
	x := index(t)
	r := NewRecorder(x)
	st := store(t, coppice.Hooks{AfterCommit: r.AfterCommit})
	create(t, st, "s", "/a", "> hello")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Start(ctx, st)
	_ = r.Close(ctx)
	if !r.Dirty() {
		t.Error("what was not read is not said to be missing")
	}
	never := NewRecorder(x)
	never.Start(t.Context(), st)
	ok(t, never.Close(t.Context()))
}
