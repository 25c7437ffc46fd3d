package cli

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/cli/clitest"
	"github.com/coppice-go/coppice/internal/testutil"
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
	if out, _, _ := call(t, store, "", "list"); !strings.Contains(out, "damaged   corrupt: checkpoint_latest/lost-1 at byte 0: it is not there") {
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

// Reading a log that lost acknowledged commits shows what is left, and reports what is not.
func TestLostCommits(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	must(t, store, "", "create", "--session", "s")
	for range 4 {
		must(t, store, `{"role":"user","content":"hello"}`, "append", "s")
	}
	logs, err := filepath.Glob(filepath.Join(store, "sessions", "s", "transcript", "*.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("%v, %v", logs, err)
	}
	info, err := os.Stat(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(logs[0], info.Size()/2); err != nil {
		t.Fatal(err)
	}
	const lost = "session s is damaged: commits 2 to 4 were stored and are lost"
	home := t.TempDir()
	for _, tt := range []struct {
		command, json string // json: a path that is in the document, and its value
		code          int
	}{
		{"list", "sessions.0.missing 4", 0},
		{"resume --terminal none s", "missing 4", 0},
		{"tree s", "missing 4", 0},
		{"tree --view s", "missing 4", 0},
		{"log s", "missing 4", 0},
		{"show s", "error.code corrupt", 5},
		{"export s --force -o " + filepath.Join(home, "x.md"), "", 5},
		{"handoff s pi", "error.code corrupt", 5},
		{"handoff --force s pi", "session s", 0},
	} {
		args := append([]string{"--store", store, "--json"}, strings.Fields(tt.command)...)
		c, stdout, stderr := with(map[string]string{homeVariable(): home}, "")
		if code := c.run(t.Context(), args); code != tt.code {
			t.Errorf("%s: exit code %d, want %d: %s%s", tt.command, code, tt.code, stdout, stderr)
		}
		if !strings.Contains(stdout.String()+stderr.String(), lost) {
			t.Errorf("%s does not report the loss: %s%s", tt.command, stdout, stderr)
		}
		if path, want, ok := strings.Cut(tt.json, " "); ok {
			doc, err := clitest.Decode(stdout.Bytes())
			if err != nil {
				t.Fatalf("%s: %v", tt.command, err)
			}
			if got := value(t, doc, path); got != want {
				t.Errorf("%s: %s is %s, want %s", tt.command, path, got, want)
			}
		}
	}
}

// A damaged log hides nothing that is intact: tree, show and log have what is before and after the damage, report it,
// and exit with 5. So they do where the session cannot be opened.
func TestReadsPastDamage(t *testing.T) {
	testutil.SkipLong(t)
	t.Parallel()
	for name, tt := range map[string]struct {
		lost int
		open bool
	}{"middle": {2, true}, "mended": {0, true}, "without an opening": {2, false}} {
		t.Run(name, func(t *testing.T) {
			store := filepath.Join(t.TempDir(), "store")
			must(t, store, "", "create", "--session", "s")
			for i := range 20 {
				must(t, store, fmt.Sprintf(`{"role":"user","content":"hello %d"}`, i), "append", "s")
			}
			logs, err := filepath.Glob(filepath.Join(store, "sessions", "s", "transcript", "*.jsonl"))
			testutil.OK(t, err)
			p := testutil.Must(os.ReadFile(logs[0]))(t)
			at := len(p) / 2
			p[at] ^= 8
			if tt.lost > 0 {
				p[at+1], p[at+9] = 1, 2
			}
			testutil.OK(t, os.WriteFile(logs[0], p, 0o600))
			if !tt.open {
				testutil.OK(t, os.Remove(filepath.Join(store, "checkpoint_latest", "s")))
				p[40] ^= 1
				testutil.OK(t, os.WriteFile(logs[0], p, 0o600))
			}
			if _, _, code := call(t, store, "", "resume", "s"); (code == 0) != tt.open {
				t.Fatalf("resume: exit code %d", code)
			}
			for command, list := range map[string]string{
				"tree s": "nodes", "tree --view s": "nodes", "show s": "entries", "show --all s": "entries",
				"show --last 30 s": "entries", "log s": "commits",
			} {
				out, errs, code := call(t, store, "", append([]string{"--json"}, strings.Fields(command)...)...)
				doc, err := clitest.Decode([]byte(out))
				testutil.OK(t, err)
				n, err := strconv.Atoi(value(t, doc, list+".len"))
				testutil.OK(t, err)
				if n < 20-tt.lost || n > 21 {
					t.Errorf("%s: %d %s", command, n, list)
				}
				openable := command == "log s" && tt.open // its commits are in the checkpoint
				if !openable && (code != 5 || value(t, doc, "error.code") != "corrupt") {
					t.Errorf("%s: exit code %d: %s", command, code, errs)
				}
				text, errs, code := call(t, store, "", strings.Fields(command)...)
				if openable || command == "tree --view s" {
					continue
				}
				if code != 5 || text == "" || !strings.Contains(errs, logs[0][len(store)+1:]) {
					t.Errorf("%s: exit code %d: %s%s", command, code, text, errs)
				}
			}
			out, _, code := call(t, store, "", "--json", "search", "--no-index", "--limit", "0", "hello")
			doc, err := clitest.Decode([]byte(out))
			testutil.OK(t, err)
			n, err := strconv.Atoi(value(t, doc, "matches.len"))
			testutil.OK(t, err)
			if code != 5 || n < 20-tt.lost || value(t, doc, "error.code") != "corrupt" {
				t.Errorf("search --no-index: exit code %d, %d matches: %s", code, n, out)
			}
			c, indexed, _ := with(map[string]string{homeVariable(): t.TempDir()}, "")
			code = c.run(t.Context(), []string{"--store", store, "--json", "search", "--limit", "0", "hello"})
			if n := strings.Count(indexed.String(), `"snippet"`); code != 5 || tt.open && n < 20-tt.lost {
				t.Errorf("search: exit code %d, %d matches: %s", code, n, indexed)
			}
			out, _, code = call(t, store, "", "tree", "--search", "hello 18", "s")
			if code != 5 || tt.lost == 0 && !strings.Contains(out, "hello 18") {
				t.Errorf("tree --search: exit code %d: %s", code, out)
			}
		})
	}
}

// Without a checkpoint a later commit line proves that commits are missing: the session is not shown as a whole one.
func TestLostCommitsWithoutCheckpoint(t *testing.T) {
	t.Parallel()
	store := filepath.Join(t.TempDir(), "store")
	must(t, store, "", "create", "--session", "s")
	for range 20 {
		must(t, store, `{"role":"user","content":"hello"}`, "append", "s")
	}
	logs := testutil.Must(filepath.Glob(filepath.Join(store, "sessions", "s", "transcript", "*.jsonl")))(t)
	p := testutil.Must(os.ReadFile(logs[0]))(t)
	p[len(p)/2] ^= 8
	testutil.OK(t, os.WriteFile(logs[0], p, 0o600))
	testutil.OK(t, os.Remove(filepath.Join(store, "checkpoint_latest", "s")))
	for command, path := range map[string]string{"list": "sessions.0.missing", "resume s": "missing"} {
		if got := value(t, must(t, store, "", strings.Fields(command)...), path); got != "20" {
			t.Errorf("%s: missing is %s", command, got)
		}
	}
	if out, _, code := call(t, store, "", "show", "s"); code != 5 {
		t.Errorf("show: exit code %d: %s", code, out)
	}
}
