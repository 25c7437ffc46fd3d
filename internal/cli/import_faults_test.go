package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/fault"
)

// faultyStores are stores that can fail, by the host of their URL: "append..." appends, others only replace.
var faultyStores = sync.OnceValue(func() func(host string) fault.Backend {
	var mu sync.Mutex
	stores := map[string]fault.Backend{}
	of := func(host string) fault.Backend {
		mu.Lock()
		defer mu.Unlock()
		if stores[host] == nil && strings.HasPrefix(host, "append") {
			stores[host] = fault.New(memory.NewAppender(), 1)
		} else if stores[host] == nil {
			stores[host] = fault.New(memory.New(), 1)
		}
		return stores[host]
	}
	backend.Register("faulty", func(_ context.Context, u *url.URL) (backend.Backend, error) {
		if b, ok := of(u.Host).(backend.Appender); ok {
			return lastingAppender{b}, nil
		}
		return lasting{of(u.Host)}, nil
	})
	return of
})

// lastingAppender is a store that appends, and that a command leaves to the next one.
type lastingAppender struct{ backend.Appender }

func (lastingAppender) Close() error { return nil }

// onFaultyStores runs a test on a store of each kind, with a folder of session files.
func onFaultyStores(t *testing.T, files int, test func(t *testing.T, store, dir string, b fault.Backend)) {
	t.Helper()
	for _, kind := range []string{"append", "replace"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			host, dir := kind+"-"+strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), t.TempDir()
			for i := range files {
				id := fmt.Sprintf("019cadab-0000-7000-8000-%012d", i)
				add(t, filepath.Join(dir, "t_"+id+".jsonl"), strings.ReplaceAll(watchedPi, "pi-1", id))
			}
			test(t, "faulty://"+host, dir, faultyStores()(host))
		})
	}
}

// whole checks that a store has these many sessions, each under the id of its file, and no damage.
func whole(t *testing.T, store string, files int) {
	t.Helper()
	list := must(t, store, "", "list")
	if got := value(t, list, "sessions.len"); got != fmt.Sprint(files) {
		t.Errorf("%s sessions, want %d", got, files)
	}
	for i := range files {
		if id := value(t, list, fmt.Sprintf("sessions.%d.id", i)); !strings.HasPrefix(id, "019cadab-") {
			t.Errorf("session %s has not the id of its file", id)
		}
	}
	must(t, store, "", "verify", "--deep")
}

// A store that cannot be reached, or may not be read, when an import of known files begins fails these files, each with
// an error of its own: it makes no second session of them.
func TestImportWhileAStoreIsAway(t *testing.T) {
	t.Parallel()
	const files = 3
	for code, away := range map[string]error{
		"failed": errors.New("connection refused"), "permission": fs.ErrPermission,
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			onFaultyStores(t, files, func(t *testing.T, store, dir string, b fault.Backend) {
				must(t, store, "", "import", dir)
				b.Add(fault.Rule{Count: -1, Kind: fault.Before, Err: away})
				out, _, exit := call(t, store, "", "--json", "import", dir)
				if exit != api.ExitFailed || strings.Count(out, `"error":{"code":"`+code+`"`) != files {
					t.Errorf("exit code %d: %s", exit, out)
				}
				one := filepath.Join(dir, "t_019cadab-0000-7000-8000-000000000001.jsonl")
				_, text, exit := call(t, store, "", "import", one)
				if exit != api.ExitFailed || strings.Contains(text, "t_019cadab-0000.jsonl") {
					t.Errorf("exit code %d: %s", exit, text)
				}
				if n := len(b.Faults()); n > 4*files {
					t.Errorf("%d requests to a store that is away", n)
				}
				b.Clear()
				again := must(t, store, "", "import", dir)
				if got := value(t, again, "total.unchanged"); got != fmt.Sprint(files) {
					t.Errorf("%s files are known, want %d", got, files)
				}
				whole(t, store, files)
			})
		})
	}
}

// A store that goes away in the middle of an import ends the import, with an error for each file that is left; the next
// one imports these under their own ids.
func TestImportFromWhichAStoreGoes(t *testing.T) {
	t.Parallel()
	const files = 20
	onFaultyStores(t, files, func(t *testing.T, store, dir string, b fault.Backend) {
		must(t, store, "", "import", filepath.Join(dir, "t_019cadab-0000-7000-8000-000000000003.jsonl"))
		b.Add(fault.Rule{Skip: 50, Count: -1, Kind: fault.Before, Err: errors.New("connection refused")})
		out, _, exit := call(t, store, "", "--json", "import", dir)
		failed := strings.Count(out, `"error":{`)
		named := strings.Count(out, `"message":"`+dir)
		if exit != api.ExitFailed || failed == 0 || failed == files || named != failed {
			t.Fatalf("exit code %d, %d files failed: %s", exit, failed, out)
		}
		if n := len(b.Faults()); n > 8*files {
			t.Errorf("%d requests to a store that is away", n)
		}
		b.Clear()
		must(t, store, "", "import", dir)
		whole(t, store, files)
	})
}

// An interrupt in the middle of a file leaves no tombstone: the next import completes the session under the file's id.
func TestImportThatIsInterrupted(t *testing.T) {
	t.Parallel()
	onFaultyStores(t, 0, func(t *testing.T, store, dir string, b fault.Backend) {
		file := filepath.Join(dir, "t_019cadab-0000-7000-8000-000000000000.jsonl")
		text := strings.ReplaceAll(watchedPi, "pi-1", "019cadab-0000-7000-8000-000000000000")
		more := strings.Replace(watchedMore, "more", strings.Repeat("more ", 100_000), 1)
		for i := range 24 { // 12 MB: an import commits 4 MiB at a time
			more := strings.Replace(more, `"m2"`, fmt.Sprintf(`"m%d"`, i+2), 1)
			text += strings.Replace(more, `"parentId":"m1"`, fmt.Sprintf(`"parentId":"m%d"`, i+1), 1)
		}
		add(t, file, text)
		ctx, interrupt := context.WithCancel(t.Context())
		b.Add(fault.Rule{When: func(c fault.Call) bool {
			if strings.HasPrefix(c.Key, "sessions/") && (c.Op == "append" || c.Op == "put") {
				interrupt()
			}
			return false
		}, Skip: 1})
		c, _, errs := with(nil, "")
		if exit := c.run(ctx, []string{"--store", store, "import", file}); exit != api.ExitInterrupted {
			t.Fatalf("exit code %d: %s", exit, errs)
		}
		b.Clear()
		must(t, store, "", "import", file)
		whole(t, store, 1)
		if got, _, _ := call(t, store, "", "export", "--format", "original", "019cadab"); got != text {
			t.Errorf("%d bytes of the file are stored, want %d", len(got), len(text))
		}
	})
}
