package cli

import (
	"context"
	"net/url"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/cli/clitest"
)

// careless is a store that takes every write, whatever its condition; a command that closes it leaves it to the
// next one.
type careless struct{ backend.Backend }

func (c careless) Put(ctx context.Context, key string, p []byte, _ backend.Cond) (backend.Info, error) {
	return c.Backend.Put(ctx, key, p, backend.Cond{})
}

func (careless) Close() error { return nil }

// registerCareless makes stores of this kind known, each under the host of its URL.
var registerCareless = sync.OnceFunc(func() {
	var mu sync.Mutex
	stores := map[string]backend.Backend{}
	backend.Register("careless", func(_ context.Context, u *url.URL) (backend.Backend, error) {
		mu.Lock()
		defer mu.Unlock()
		if stores[u.Host] == nil {
			stores[u.Host] = careless{memory.New()}
		}
		return stores[u.Host], nil
	})
})

// No command keeps a session on a store that ignores conditional writes, and none writes to one that is there,
// except with --single-writer; to look at one needs no option.
func TestSingleWriter(t *testing.T) {
	t.Parallel()
	registerCareless()
	const store = "careless://single-writer"
	const hello = `{"role":"user","content":"hello"}`
	refused := func(stdin string, args ...string) {
		t.Helper()
		stdout, _, code := call(t, store, stdin, append([]string{"--json"}, args...)...)
		doc, err := clitest.Decode([]byte(stdout))
		if err != nil {
			t.Fatal(err)
		}
		if code != 1 || value(t, doc, "error.code") != "no-cas" {
			t.Errorf("%v: exit code %d\n%s", args, code, stdout)
		}
	}
	refused("", "create", "--session", "s")
	if got := value(t, must(t, store, "", "list"), "sessions.len"); got != "0" {
		t.Errorf("%s sessions on a store that was refused", got)
	}
	must(t, store, "", "create", "--single-writer", "--session", "s")
	must(t, store, hello, "append", "--single-writer", "s")
	refused(hello, "append", "s")
	refused("", "label", "s", value(t, must(t, store, "", "resume", "s"), "head"), "x")
	doc := must(t, store, "", "resume", "s")
	if value(t, doc, "seq") != "1" || value(t, doc, "context.0.content") != "hello" {
		t.Errorf("resumed: %v", doc)
	}
	must(t, store, hello, "--single-writer", "append", "s")
	if got := value(t, must(t, store, "", "resume", "s"), "seq"); got != "2" {
		t.Errorf("seq %s", got)
	}
}
