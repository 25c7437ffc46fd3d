package cli

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
)

// lasting is a store in memory that a command leaves to the next one.
type lasting struct{ backend.Backend }

func (lasting) Close() error { return nil }

// lastingStores are the stores of this kind, by the host of their URL: "disk" appends, every other one only replaces.
var lastingStores = sync.OnceValue(func() func(host string) backend.Backend {
	var mu sync.Mutex
	stores := map[string]backend.Backend{}
	of := func(host string) backend.Backend {
		mu.Lock()
		defer mu.Unlock()
		if stores[host] == nil {
			stores[host] = lasting{memory.New()}
		}
		return stores[host]
	}
	backend.Register("lasting", func(_ context.Context, u *url.URL) (backend.Backend, error) { return of(u.Host), nil })
	return of
})

// In an object store, a session of which only checkpoint_latest is lost is listed and marked, found by its id and by a
// prefix of it, verified and repaired; nothing begins a new session over what is left of it.
func TestLostCheckpoint(t *testing.T) {
	t.Parallel()
	const store, hello = "lasting://lost-checkpoint", `{"role":"user","content":"hello"}`
	b := lastingStores()("lost-checkpoint")
	file := example(t)
	must(t, store, "", "import", file, "--session", "lost-1")
	must(t, store, "", "import", file, "--session", "whole", "--again")
	want := value(t, must(t, store, "", "resume", "lost-1"), "head")
	if err := b.Delete(t.Context(), "checkpoint_latest/lost-1"); err != nil {
		t.Fatal(err)
	}
	list := must(t, store, "", "list")
	for path, want := range map[string]string{
		"sessions.len": "2", "sessions.1.id": "lost-1", "sessions.1.damaged": "true", "sessions.1.entries": "0",
	} {
		if got := value(t, list, path); got != want {
			t.Errorf("list: %s is %s, want %s", path, got, want)
		}
	}
	if out, _, _ := call(t, store, "", "list"); !strings.Contains(out, "damaged   `coppice verify lost-1` says what is wrong") {
		t.Errorf("the list does not mark it:\n%s", out)
	}
	for _, args := range [][]string{{"append", "lost-1"}, {"resume", "lost"}, {"create", "--session", "lost-1"}, {"import", file, "--session", "lost-1"}} {
		out, _, code := call(t, store, hello, append([]string{"--json"}, args...)...)
		if code == 0 {
			t.Errorf("%v on a session without its checkpoint: exit code 0\n%s", args, out)
		}
	}
	for _, id := range []string{"lost-1", "lost"} {
		out, _, code := call(t, store, "", "verify", id)
		if code != 5 || !strings.Contains(out, "checkpoint_latest/lost-1") {
			t.Errorf("verify %s: exit code %d\n%s", id, code, out)
		}
	}
	must(t, store, "", "repair") // every session
	if got := value(t, must(t, store, "", "verify", "--deep"), "sessions"); got != "2" {
		t.Errorf("%s sessions verified", got)
	}
	if got := value(t, must(t, store, "", "resume", "lost-1"), "head"); got != want {
		t.Errorf("the head is %s, and was %s", got, want)
	}
	must(t, store, hello, "append", "lost-1")
}
