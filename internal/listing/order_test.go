package listing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/testutil"
)

// counted is a store that counts the keys that its listings yield, and its reads.
type counted struct {
	backend.Backend
	keys, lists, reads *atomic.Int64
}

func (b counted) List(ctx context.Context, o backend.ListOptions) iter.Seq2[backend.Info, error] {
	b.lists.Add(1)
	return func(yield func(backend.Info, error) bool) {
		for info, err := range b.Backend.List(ctx, o) {
			b.keys.Add(1)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (b counted) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	b.reads.Add(1)
	return b.Backend.Get(ctx, key, r)
}

// put writes a session of the memory store: with a checkpoint, a segment, or both.
func put(t *testing.T, b backend.Backend, id string, checkpointed, segment bool) {
	t.Helper()
	objects := map[string][]byte{}
	if checkpointed {
		o := &checkpoint.Object{HeadOrd: -1, Document: []byte("{}")}
		o.Summary = checkpoint.Summary{ID: id, Updated: time.UnixMilli(1), Created: time.UnixMilli(1)}
		p, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		objects[layout.CheckpointKey(id)] = p
	}
	if segment {
		objects[layout.Segment{Rnd: layout.FirstRandom}.PlainKey(id)] = []byte("x")
	}
	for key, p := range objects {
		if _, err := b.Put(t.Context(), key, p, backend.Cond{}); err != nil {
			t.Fatal(err)
		}
	}
}

// A page by id has each session after the cursor once, in the order of the stored names, whichever of its objects are
// there, and however many checkpoints one run has. Folders are listed in another order than the names: "a-a/", "a/",
// "a__/".
func TestNamesComeInOrder(t *testing.T) {
	testutil.SkipLong(t)
	ids := []string{"a", "a-a", "a-a.a", "a_", "b"}
	const kinds = 4 // nothing, a checkpoint, a segment, both
	for c := range kinds * kinds * kinds * kinds * kinds {
		b, all, has := memory.New(), []string(nil), map[string]int{}
		for i, rest := 0, c; i < len(ids); i, rest = i+1, rest/kinds {
			name := layout.Escape(ids[i])
			if has[name] = rest % kinds; has[name] > 0 {
				all = append(all, name)
				put(t, b, ids[i], has[name]&1 != 0, has[name]&2 != 0)
			}
		}
		if _, err := b.Put(t.Context(), layout.Sessions+"_/x", nil, backend.Cond{}); err != nil { // of no session
			t.Fatal(err)
		}
		for _, from := range []string{"", "a", "a-a", "a-b"} {
			for run := range 4 { // 0 = no limit
				inOrder(t, b, from, run, all, has)
			}
		}
	}
}

func inOrder(t *testing.T, b backend.Backend, from string, run int, all []string, has map[string]int) {
	t.Helper()
	var want, got []string
	for _, name := range all {
		if name > from {
			want = append(want, name)
		}
	}
	l := &lister{b: b, o: Options{Limit: min(run, 1)}, run: run}
	for s, err := range l.names(t.Context(), from) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.name())
		if kind := has[s.name()]; s.lost != (kind&1 == 0) || s.bare != (kind&2 == 0) {
			t.Errorf("%s has %b, but lost: %v, bare: %v", s.name(), kind, s.lost, s.bare)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v after %q in runs of %d: got %q, want %q", has, from, run, got, want)
	}
}

// A page by id lists and reads what it needs, and not the store.
func TestPageByIDIsCheap(t *testing.T) {
	var keys, lists, reads atomic.Int64
	b := counted{memory.New(), &keys, &lists, &reads}
	const sessions = 3 * runSize
	for i := range sessions {
		put(t, b.Backend, fmt.Sprintf("s-%06d", i), true, false)
	}
	after, got := position{name: fmt.Sprintf("s-%06d", runSize)}.cursor(ByID), ""
	for sum, err := range uncached.Sessions(t.Context(), b, Options{Order: ByID, Limit: 3, After: after}, today, nil) {
		if err != nil {
			t.Fatal(err)
		}
		got += " " + sum.ID
	}
	if got != " s-001001 s-001002 s-001003" || reads.Load() != 3 || lists.Load() > 4 || keys.Load() > runSize {
		t.Errorf("%s by %d reads, %d listings of %d keys", got, reads.Load(), lists.Load(), keys.Load())
	}
}

// A cursor is of one order, and of no other form than Cursor returns: else the page would begin anywhere.
func TestCursors(t *testing.T) {
	ahead := position{1700000000123, 7, layout.Escape("A_b.c")}
	for order, want := range map[string]string{
		"": "a1700000000123.7.A_b.c", ByActivity: "a1700000000123.7.A_b.c", ByCreated: "c1700000000123.7.A_b.c",
	} {
		cursor := ahead.cursor(order)
		if p, err := parseCursor(order, cursor); cursor != want || p != ahead || err != nil {
			t.Errorf("order %q: %q, %+v, %v", order, cursor, p, err)
		}
	}
	for _, c := range []struct{ order, cursor string }{
		{"", "s"},
		{"", "a"},
		{"", "a1"},
		{"", "a1.0"},
		{"", "a1.0."},
		{"", "a1.s"},
		{"", "a1.0.b/c"},
		{"", "a01.0.s"},
		{"", "a+1.0.s"},
		{"", "a1.00.s"},
		{"", "a99999999999999999999.0.s"},
		{"", " a1.0.s"},
		{"", "c1.0.s"},
		{ByCreated, "a1.0.s"},
		{ByID, "c1.0.s"},
		{ByID, "s"},
		{"size", ""},
		{"ID", ""},
		{"", "\xff1.0.s"},
		{"", "a1.0.\xff"},
		{"", strings.Repeat("a", 1000)},
	} {
		n := 0
		o := Options{Order: c.order, After: c.cursor}
		for _, err := range uncached.Sessions(t.Context(), memory.New(), o, today, nil) {
			if n++; !errors.Is(err, layout.ErrInput) {
				t.Errorf("%q by %q: %v", c.cursor, c.order, err)
			}
		}
		if n != 1 {
			t.Errorf("%q by %q: %d results", c.cursor, c.order, n)
		}
	}
}
