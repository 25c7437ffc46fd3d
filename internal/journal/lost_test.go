package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/trace"
)

// wire is a store whose answers to some PUTs of the checkpoint are lost or changed.
type wire struct {
	backend.Backend
	answers []func(ctx context.Context, put func() (backend.Info, error)) (backend.Info, error)
}

func (w *wire) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	late := context.WithoutCancel(ctx) // an answer may put after the call is over
	call := func() (backend.Info, error) { return w.Backend.Put(late, key, p, c) }
	if len(w.answers) == 0 {
		return call()
	}
	answer := w.answers[0]
	w.answers = w.answers[1:]
	return answer(ctx, call)
}

func unknown() (backend.Info, error) {
	return backend.Info{}, &backend.Error{Op: "put", Key: "k", Err: errors.New("connection reset")}
}

func throttled() (backend.Info, error) {
	return backend.Info{}, &backend.Error{Op: "put", Key: "k", Outcome: backend.NotApplied, Err: backend.ErrBusy}
}

// The outcome of a PUT whose answer was lost is found out, whatever happened to the PUT and after it.
func TestLostAnswers(t *testing.T) {
	testutil.SkipLong(t)
	type answer = func(ctx context.Context, put func() (backend.Info, error)) (backend.Info, error)
	lost := func(_ context.Context, put func() (backend.Info, error)) (backend.Info, error) {
		_, _ = put()
		return unknown()
	}
	dropped := func(context.Context, func() (backend.Info, error)) (backend.Info, error) { return unknown() }
	busy := func(context.Context, func() (backend.Info, error)) (backend.Info, error) { return throttled() }
	for _, tc := range []struct {
		name    string
		answers func(other func(id string)) []answer
		want    error
		history []string
	}{
		{"applied, answer lost", func(func(string)) []answer { return []answer{lost} }, nil, []string{"a", "b"}},
		{"not applied, answer lost", func(func(string)) []answer { return []answer{dropped} }, nil, []string{"a", "b"}},
		{"lost three times", func(func(string)) []answer { return []answer{dropped, lost, dropped} }, nil, []string{"a", "b"}},
		{"throttled", func(func(string)) []answer { return []answer{busy, busy} }, nil, []string{"a", "b"}},
		{"applied, then another committed on top", func(other func(string)) []answer {
			return []answer{func(_ context.Context, put func() (backend.Info, error)) (backend.Info, error) {
				_, _ = put()
				other("z")
				return unknown()
			}}
		}, nil, []string{"a", "b", "z"}},
		{"applied, then a hundred commits on top", func(other func(string)) []answer {
			return []answer{func(_ context.Context, put func() (backend.Info, error)) (backend.Info, error) {
				_, _ = put()
				for i := range 100 {
					other(fmt.Sprintf("z%d", i))
				}
				return unknown()
			}}
		}, nil, nil},
		{"lost before, and another was first", func(other func(string)) []answer {
			return []answer{func(context.Context, func() (backend.Info, error)) (backend.Info, error) {
				other("z")
				return unknown()
			}}
		}, ErrConflict, []string{"a", "z"}},
		{"no answer at all", func(func(string)) []answer {
			return []answer{dropped, dropped, dropped, dropped}
		}, ErrUnknown, []string{"a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inner := memory.New()
			w := newWorld(t, inner)
			w.lim = Limits{Attempts: 4, SealEntries: 20}
			w.turn(w.create("s1"), "a", `1`)
			link := &wire{Backend: inner}
			over := *w
			over.b = link
			j := over.open("s1")
			link.answers = tc.answers(func(id string) { w.turn(w.open("s1"), id, `9`) })
			_, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j, "b", "b")}, Edit: setState(`2`)})
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			got := w.ids(w.open("s1"))
			if tc.history != nil {
				if diff := cmp.Diff(tc.history, got); diff != "" {
					t.Error(diff)
				}
			} else if len(got) != 102 || got[1] != "b" {
				t.Errorf("history of %d entries, the second %s", len(got), got[1])
			}
			if err == nil {
				return
			}
			want := []string{"a", "b"}
			if errors.Is(err, ErrConflict) {
				want = []string{"a", "z"}
			}
			if _, err := j.Settle(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, w.ids(w.open("s1"))); diff != "" {
				t.Errorf("after Settle: %s", diff)
			}
		})
	}
}

// A PUT that was given up and arrives later finds its condition gone once anyone has committed.
func TestDelayedPutNeverOverwrites(t *testing.T) {
	inner := memory.New()
	w := newWorld(t, inner)
	w.lim = Limits{Attempts: 2}
	w.turn(w.create("s1"), "a", `1`)
	link := &wire{Backend: inner}
	var late []func() (backend.Info, error)
	hold := func(_ context.Context, put func() (backend.Info, error)) (backend.Info, error) {
		late = append(late, put)
		return unknown()
	}
	link.answers = append(link.answers, hold, hold)
	over := *w
	over.b = link
	j := over.open("s1")
	if _, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j, "b", "b")}}); !errors.Is(err, ErrUnknown) {
		t.Fatalf("got %v", err)
	}
	w.turn(w.open("s1"), "c", `2`)
	for _, put := range late {
		if _, err := put(); !errors.Is(err, backend.ErrPrecondition) {
			t.Errorf("the delayed write got %v", err)
		}
	}
	if diff := cmp.Diff([]string{"a", "c"}, w.ids(w.open("s1"))); diff != "" {
		t.Error(diff)
	}
}

// counting is a store whose versions count the writes of an object: equal bytes that are written again have another
// one.
type counting struct {
	backend.Backend
	writes map[string]int
}

func (c counting) version(key string) backend.Version {
	return backend.Version(fmt.Sprint(c.writes[key]))
}

func (c counting) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	p, info, err := c.Backend.Get(ctx, key, r)
	info.Version = c.version(key)
	return p, info, err
}

func (c counting) Put(ctx context.Context, key string, p []byte, cond backend.Cond) (backend.Info, error) {
	if v, set := cond.Match(); set && v != c.version(key) {
		return backend.Info{}, &backend.Error{
			Op: "put", Key: key, Outcome: backend.NotApplied, Err: backend.ErrPrecondition,
		}
	} else if set {
		cond = backend.Cond{}
	}
	info, err := c.Backend.Put(ctx, key, p, cond)
	if err == nil {
		c.writes[key]++
	}
	info.Version = c.version(key)
	return info, err
}

// A checkpoint that was copied over itself has another version and is the same commit: the next commit is no conflict.
func TestCheckpointUnderAnotherVersion(t *testing.T) {
	b := counting{memory.New(), map[string]int{}}
	w, key := newWorld(t, b), layout.CheckpointKey("s1")
	j := w.create("s1")
	w.turn(j, "a", `1`)
	p, _, err := b.Get(t.Context(), key, backend.Range{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), key, p, backend.Cond{}); err != nil {
		t.Fatal(err)
	}
	w.turn(j, "b", `2`)
	if diff := cmp.Diff([]string{"a", "b"}, w.ids(w.open("s1"))); diff != "" {
		t.Error(diff)
	}
}

// The costs that the design promises, in requests.
func TestCosts(t *testing.T) {
	for _, tc := range []struct {
		name           string
		b              backend.Backend
		commit, resume backend.IO
	}{
		{"replace", memory.New(), backend.IO{Put: 1}, backend.IO{Get: 1}},
		{"append", memory.NewAppender(), backend.IO{Append: 1}, backend.IO{Get: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := trace.New(tc.b)
			w := newWorld(t, tr)
			j := w.create("s1")
			w.turn(j, "first", `0`)
			for i := range 60 {
				before := tr.IO()
				w.turn(j, fmt.Sprintf("e%d", i), fmt.Sprint(i))
				got := tr.IO().Sub(before)
				got.BytesRead, got.BytesWritten = 0, 0
				if diff := cmp.Diff(tc.commit, got); diff != "" {
					t.Fatalf("commit %d: %s", i, diff)
				}
			}
			if err := j.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			before := tr.IO()
			w.open("s1")
			got := tr.IO().Sub(before)
			got.BytesRead = 0
			if diff := cmp.Diff(tc.resume, got); diff != "" {
				t.Errorf("resume: %s", diff)
			}
		})
	}
}

// All segments are gone and the checkpoint is intact: the session is damaged, and not one that never was.
func TestCheckpointWithoutSegments(t *testing.T) {
	w := newWorld(t, memory.NewAppender())
	j := w.create("s1")
	w.turn(j, "a", `1`)
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range w.keys(layout.Transcript) {
		if err := w.b.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(t.Context(), w.config("s1")); !errors.Is(err, store.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a session of which only the checkpoint is left: %v, want ErrCorrupt", err)
	}
	if err := Delete(t.Context(), w.config("s1")); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
	if _, err := Open(t.Context(), w.config("s1")); !errors.Is(err, store.ErrDeleted) {
		t.Errorf("after its deletion: %v", err)
	}
}

// between runs something before the first read of a part of an object.
type between struct {
	*memory.Appender
	key  string
	then func()
}

func (b *between) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	if then := b.then; then != nil && key == b.key && r != backend.Tail(0) {
		b.then = nil
		then()
	}
	return b.Appender.Get(ctx, key, r)
}

// A writer that is overtaken looks where its segment ends, then reads on from there. Where the other writer rolls over and
// seals the segment between the two looks, it is a conflict, and no missing file.
func TestSealedBetweenTwoLooks(t *testing.T) {
	b := &between{Appender: memory.NewAppender()}
	w := newWorld(t, b)
	w.inline, w.lim = true, Limits{RollEntries: 6, PublishCommits: 2}
	first := w.create("s1")
	w.turn(first, "a", `1`)
	other := w.open("s1")
	w.turn(other, "b", `2`)
	b.key = layout.SessionPrefix("s1") + layout.Transcript + first.State().Active().Name + ".jsonl"
	b.then = func() {
		for i := range 12 {
			w.turn(other, fmt.Sprint("c", i), `3`)
		}
	}
	_, err := first.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(first, "e", "x")}})
	if b.then != nil {
		t.Fatal("the writer did not read its segment")
	}
	if !errors.Is(err, ErrConflict) {
		t.Errorf("commit: %v, want ErrConflict", err)
	}
}
