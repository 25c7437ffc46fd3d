package cli

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/cli/clitest"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/searchindex"
)

// A session that cannot be read takes nothing from the others, and the answer says that it is not whole.
func TestSearchBesideDamage(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	must(t, store, "", "import", example(t), "--session", "broken")
	damage(t, store)
	must(t, store, "", "create", "--session", "sound")
	must(t, store, `{"role":"user","content":"a harbour, safe and sound"}`, "append", "sound")
	for _, args := range [][]string{{"search", "safe and sound"}, {"history", "safe and sound"}} {
		stdout, _, code := call(t, store, "", append([]string{"--json"}, args...)...)
		doc, err := clitest.Decode([]byte(stdout))
		if err != nil {
			t.Fatal(err)
		}
		name := map[string]string{"search": "matches", "history": "prompts"}[args[0]]
		if code != 5 || value(t, doc, name+".0.session") != "sound" || value(t, doc, "error.code") != "corrupt" {
			t.Errorf("%v: exit code %d\n%s", args, code, stdout)
		}
	}
	if doc := must(t, store, "", "search", "--session", "sound", "safe"); value(t, doc, "matches.len") != "1" {
		t.Error("a search in one session fails for another one")
	}
	stdout, _, code := call(t, store, "", "--json", "history", "rebuild")
	doc, err := clitest.Decode([]byte(stdout))
	if err != nil {
		t.Fatal(err)
	}
	if code != 5 || value(t, doc, "problems.0.code") != "corrupt" || value(t, doc, "file") != "null" {
		t.Errorf("rebuild: exit code %d\n%s", code, stdout)
	}
}

// remembered gives the prompts that an index file has by itself, newest first.
func remembered(t *testing.T, file string) []string {
	t.Helper()
	x, err := searchindex.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	list, _, err := x.Recall(t.Context(), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, p := range list {
		out = append(out, p.Text)
	}
	return out
}

// What commands commit is in the index before history is called. What an import brings is not: history reads it then,
// and the import of a line that was added to a large file does not read the session twice.
func TestCommandsRemember(t *testing.T) {
	testutil.SkipSizes(t)
	t.Parallel()
	store, file := t.TempDir(), filepath.Join(t.TempDir(), "sub", "h.db")
	run := func(env map[string]string, stdin string, args ...string) {
		t.Helper()
		c, out, errs := with(env, stdin)
		c.rememberFor = time.Hour // however slow the machine is
		if code := c.run(t.Context(), append([]string{"--store", store}, args...)); code != 0 || errs.Len() > 0 {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
	env := map[string]string{"COPPICE_HISTORY": file}
	run(env, "", "create", "--session", "s")
	run(env, "", "list")
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an index although nothing was said: %v", err)
	}
	run(env, `{"role":"user","content":"the first"}`+"\n"+`{"role":"assistant","content":"answer"}`, "append", "s")
	run(map[string]string{"COPPICE_HISTORY": "off", "HOME": t.TempDir()}, `{"role":"user","content":"unheard"}`, "append", "s")
	run(env, `{"role":"user","content":"the second"}`, "append", "s")
	if got := remembered(t, file); !slices.Equal(got, []string{"the second", "the first"}) {
		t.Errorf("remembered %q", got)
	}
	run(env, "", "import", example(t))
	if got := remembered(t, file); len(got) != 2 {
		t.Errorf("after an import: %q", got)
	}
	run(env, "", "history")
	if got := remembered(t, file); len(got) < 5 {
		t.Errorf("the history has nothing of the import: %q", got)
	}
	run(env, "", "history", "rebuild")
	if got := remembered(t, file); !slices.Contains(got, "unheard") {
		t.Errorf("after a rebuild: %q", got)
	}
}

// An index that is locked, damaged, full or nowhere to be made changes neither what a command answers nor its
// exit code; the next history has all.
func TestCommandsThatCannotRemember(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(t *testing.T, file string) (undo func() error){
		"locked": func(t *testing.T, file string) func() error { return statement(t, file, "BEGIN EXCLUSIVE") },
		"full": func(t *testing.T, file string) func() error {
			end := statement(t, file, "CREATE TRIGGER full BEFORE INSERT ON entry BEGIN SELECT RAISE(ROLLBACK, 'no room'); END")
			return func() error {
				statement(t, file, "DROP TRIGGER full")
				return end()
			}
		},
		"damaged": func(_ *testing.T, file string) func() error {
			return func() error { return nil }
		},
		"no folder": func(t *testing.T, file string) func() error {
			dir := filepath.Dir(file)
			if err := errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
				t.Fatal(err)
			}
			return func() error { return os.Remove(dir) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, file := t.TempDir(), filepath.Join(t.TempDir(), "h", "h.db")
			env := map[string]string{"COPPICE_HISTORY": file}
			must(t, store, "", "create", "--session", "s")
			_ = remembered(t, file) // makes it
			if name == "damaged" {
				if err := os.WriteFile(file, []byte(strings.Repeat("no database ", 500)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			undo := spoil(t, file)
			out, stderr, code := callWith(t, env, store, `{"role":"user","content":"hello"}`, "append", "s")
			if code != 0 || out != "seq 1, 1 entry\n" || stderr != "" {
				t.Errorf("exit code %d\n%s%s", code, out, stderr)
			}
			if err := undo(); err != nil {
				t.Fatal(err)
			}
			if out, _, code := callWith(t, env, store, "", "history"); code != 0 || !strings.Contains(out, "hello") {
				t.Errorf("history afterwards: exit code %d\n%s", code, out)
			}
		})
	}
}

// statement runs one on an index file; the connection stays open until end.
func statement(t *testing.T, file, text string) (end func() error) {
	t.Helper()
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
	return func() error { return errors.Join(conn.Close(), db.Close()) }
}
