package genkit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/firebase/genkit/go/core/x/session"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/adapters/genkit"
	"github.com/coppice-go/coppice/backend/memory"
)

// taste is the state of a session.
type taste struct {
	Theme string
	Big   json.Number
}

var _ session.Store[taste] = genkit.Store[taste]{}

// A session is loaded by another process, on another host.
func Example() {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil) // or coppice.Open with a folder or s3://bucket/prefix
	if err != nil {
		panic(err)
	}
	defer store.Close()
	s, err := session.New(ctx, session.WithID[taste]("ann/1"), session.WithStore[taste](genkit.New[taste](store)))
	if err != nil {
		panic(err)
	}
	if err := s.UpdateState(ctx, taste{"dark", "9007199254740993"}); err != nil {
		panic(err)
	}
	again, err := session.Load(ctx, genkit.New[taste](store), "ann/1")
	if err != nil {
		panic(err)
	}
	fmt.Println(again.State())
	// Output:
	// {dark 9007199254740993}
}

// What is saved again makes no version; every other state does. A session is saved again after it was deleted.
func TestVersions(t *testing.T) {
	ctx := t.Context()
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	g := genkit.New[taste](st)
	if d, err := g.Get(ctx, "ann"); d != nil || err != nil {
		t.Fatal(d, err)
	}
	save := func(theme string) (id string, seq uint64) {
		t.Helper()
		if err := g.Save(ctx, "ann", &session.Data[taste]{ID: "ann", State: taste{theme, "1"}}); err != nil {
			t.Fatal(err)
		}
		if d, err := g.Get(ctx, "ann"); err != nil || d.State.Theme != theme {
			t.Fatalf("%+v, %v", d, err)
		}
		for s, err := range st.List(ctx, coppice.ListOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			id, seq = s.ID, s.Seq
		}
		return id, seq
	}
	_, first := save("dark")
	if _, again := save("dark"); again != first {
		t.Errorf("saved again it is commit %d, not %d", again, first)
	}
	id, second := save("light")
	if second == first {
		t.Error("another state made no commit")
	}
	if err := st.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
	if d, err := g.Get(ctx, "ann"); d != nil || err != nil {
		t.Fatal(d, err)
	}
	save("blue")
}
