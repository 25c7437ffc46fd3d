package main

import (
	"context"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
)

// Each turn goes on where the one before ended; what a crash in mid-tool left is answered.
func TestTurns(t *testing.T) {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 3; i++ {
		st, err := run(ctx, store, "s", "go on")
		if err != nil || st.Turns != i || st.Tools != i {
			t.Fatalf("turn %d: %+v, %v", i, st, err)
		}
	}
	s, err := store.Open(ctx, "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(ctx, entry.User("x"), entry.Assistant("", entry.Call("c", "bash", map[string]string{}))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{Reason: "intent"}); err != nil { // and here the host dies
		t.Fatal(err)
	}
	if _, err := run(ctx, store, "s", "go on"); err != nil {
		t.Fatal(err)
	}
	again, err := store.Open(ctx, "s", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := again.Context(ctx); err != nil || len(c.OpenCalls) != 0 {
		t.Errorf("open calls %v, %v", c.OpenCalls, err)
	}
}
