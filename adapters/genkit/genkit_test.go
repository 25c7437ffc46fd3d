package genkit_test

import (
	"testing"

	"github.com/firebase/genkit/go/core/x/session"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/adapters/genkit"
	"github.com/coppice-go/coppice/backend/memory"
)

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
