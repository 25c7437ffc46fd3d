package eino_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/adapters/eino"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/trace"
)

func open(t *testing.T) (eino.Store, *coppice.Store, trace.Backend) {
	t.Helper()
	b := trace.New(memory.New())
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return eino.New(st), st, b
}

func set(t *testing.T, s eino.Store, id, text string) {
	t.Helper()
	if err := s.Set(t.Context(), id, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s eino.Store, id, text string) {
	t.Helper()
	p, found, err := s.Get(t.Context(), id)
	if err != nil || string(p) != text || found != (text != "") {
		t.Errorf("%s: %q, %t, %v; want %q", id, p, found, err, text)
	}
}

// only returns the one session of a store.
func only(t *testing.T, st *coppice.Store) (id string, seq uint64) {
	t.Helper()
	for s, err := range st.List(t.Context(), coppice.ListOptions{}) {
		if err != nil || id != "" {
			t.Fatal(id, err)
		}
		id, seq = s.ID, s.Seq
	}
	return id, seq
}

// What is sent again makes no second version.
func TestSentAgain(t *testing.T) {
	s, st, _ := open(t)
	for _, text := range []string{"one", "one", `{"n":1}`, `{"n":1}`} {
		set(t, s, "run", text)
		_, before := only(t, st)
		set(t, s, "run", text)
		if _, after := only(t, st); after != before {
			t.Errorf("%s: commit %d after %d", text, after, before)
		}
		want(t, s, "run", text)
	}
}

// What two writers set is one of theirs, and every checkpoint of both is a commit.
func TestTwoWriters(t *testing.T) {
	one, st, b := open(t)
	other, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	two := eino.New(other)
	set(t, one, "run", "first")
	var both sync.WaitGroup
	for i, s := range []eino.Store{one, two} {
		both.Go(func() {
			for n := range 8 { // fewer than a writer may lose in a row
				if err := s.Set(t.Context(), "run", fmt.Appendf(nil, "%d-%d", i, n)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	id, _ := only(t, st)
	h, err := st.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	turns := 0
	for c, err := range h.Log(t.Context(), coppice.Target{}) {
		if err != nil {
			t.Fatal(err)
		}
		if c.Reason == "turn" || c.Reason == "" {
			turns++
		}
	}
	if turns < 17 {
		t.Errorf("%d commits of 17 checkpoints", turns)
	}
	p, _, err := one.Get(t.Context(), "run")
	if last := string(p); err != nil || last != "0-7" && last != "1-7" {
		t.Errorf("%s, %v", p, err)
	}
}

// A checkpoint is written again after it was deleted, and after its session was.
func TestAfterDelete(t *testing.T) {
	s, st, _ := open(t)
	set(t, s, "run", "one")
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	want(t, s, "run", "")
	set(t, s, "run", "two")
	want(t, s, "run", "two")
	id, _ := only(t, st)
	if err := st.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	want(t, s, "run", "")
	if err := s.Delete(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	set(t, s, "run", "three")
	want(t, s, "run", "three")
}

// A checkpoint costs the same requests after 10,000 of them.
func TestTenThousand(t *testing.T) {
	most := 10_000
	if testing.Short() {
		most = 50
	}
	s, _, b := open(t)
	cost := func(f func()) int64 {
		before := b.IO()
		f()
		after := b.IO()
		return int64(after.Get+after.Put+after.List) - int64(before.Get+before.Put+before.List)
	}
	set(t, s, "run", `{"n":-1}`)
	first := cost(func() { set(t, s, "run", `{"n":0}`) })
	for n := range most {
		set(t, s, "run", fmt.Sprintf(`{"n":%d}`, n+1))
	}
	last := cost(func() { set(t, s, "run", `{"n":0}`) })
	read := cost(func() { want(t, s, "run", `{"n":0}`) })
	if first != 2 || last != 2 || read != 1 {
		t.Errorf("a Set takes %d requests, then %d, and a Get %d; want 2, 2, 1", first, last, read)
	}
}
