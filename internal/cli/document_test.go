package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/cli/clitest"
	"github.com/coppice-go/coppice/internal/testutil"
)

// chapter is the part of docs/cli-json.md about one command.
type chapter struct {
	shape    any
	optional map[string]bool
}

var (
	heading  = regexp.MustCompile(`^## (.+)$`)
	optional = regexp.MustCompile("`([a-zA-Z]+)`")
)

// chapters reads the contract: below each heading the first block of JSON, and the line that names the
// fields that may be left out.
func chapters(t *testing.T) map[string]chapter {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]chapter{}
	name, block, in := "", "", false
	var ch chapter
	flush := func() {
		if block == "" {
			return
		}
		v, err := clitest.Decode([]byte(block))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ch.shape = v
		out[name] = ch
	}
	for line := range strings.Lines(string(page)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case heading.MatchString(line):
			flush()
			name, block, ch = heading.FindStringSubmatch(line)[1], "", chapter{optional: map[string]bool{}}
		case line == "```json":
			in = true
		case line == "```":
			in = false
		case in:
			block += line + "\n"
		case strings.HasPrefix(line, "Only where it applies:"):
			for _, m := range optional.FindAllStringSubmatch(line, -1) {
				ch.optional[m[1]] = true
			}
		}
	}
	flush()
	return out
}

// opaque are the fields that hold what agents and providers wrote: any JSON.
var opaque = map[string]bool{
	"state": true, "manager": true, "context": true, "messages": true, "onlyA": true, "onlyB": true, "entries": true,
	"arguments": true,
}

// compare holds a document against the contract.
func compare(t *testing.T, where string, got, want any, ch chapter) {
	t.Helper()
	if got == nil || want == nil {
		return // not there this time, or in the example
	}
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %T, want an object", where, got)
			return
		}
		for name, v := range got {
			w, documented := want[name]
			if !documented {
				t.Errorf("%s.%s is not documented", where, name)
				continue
			}
			if _, list := v.([]any); list && opaque[name] && name != "messages" {
				continue
			}
			if opaque[name] && name != "messages" && name != "entries" {
				continue
			}
			compare(t, where+"."+name, v, w, ch)
		}
		for name := range want {
			if _, there := got[name]; !there && !ch.optional[name] && got["error"] == nil {
				t.Errorf("%s.%s is documented and not there", where, name)
			}
		}
	case []any:
		got, ok := got.([]any)
		if !ok {
			t.Errorf("%s: %T, want a list", where, got)
			return
		}
		if strings.HasSuffix(where, "messages") || len(want) == 0 {
			return
		}
		for i, v := range got {
			compare(t, where, v, want[min(i, len(want)-1)], ch)
		}
	default:
		if clitest.Shape(got) != clitest.Shape(want) {
			t.Errorf("%s: %s, want %s", where, clitest.Shape(got), clitest.Shape(want))
		}
	}
}

// Every document that docs/cli-json.md promises is the one that the program writes.
func TestDocumentedJSON(t *testing.T) {
	testutil.SkipLong(t)
	t.Parallel()
	store, file := t.TempDir(), example(t)
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	if err := os.WriteFile(bad, []byte("prose\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	docs, bin := chapters(t), t.TempDir()
	env := map[string]string{"COPPICE_STATE": t.TempDir(), "HOME": t.TempDir(), "CODEX_HOME": t.TempDir()}
	steps := []struct {
		name, stdin string
		args        []string
		fails       bool
	}{
		{name: "import", args: []string{"import", file, bad}, fails: true},
		{name: "create", args: []string{"create", "--session", "s"}},
		{name: "append", args: []string{"append", "s", "--key", "k"}, stdin: `{"role":"user","content":"one"}`},
		{name: "append", args: []string{"append", "s", "--key", "k"}, stdin: `{"role":"user","content":"one"}`},
		{name: "append", args: []string{"append", "s", "--state", "-"}, stdin: `{"n":1}`},
		{name: "append", args: []string{"append", "s"}, stdin: `{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"bash","arguments":{}}]}`},
		{name: "list", args: []string{"list"}},
		{name: "resume", args: []string{"resume", "s"}},
		{name: "context", args: []string{"context", "s"}},
		{name: "context", args: []string{"context", "--provider", "anthropic", "s"}},
		{name: "context set", args: []string{"context", "set", "019cadab"}, stdin: `{"role":"user","content":"x"}`},
		{name: "context set", args: []string{"context", "set", "019cadab", "--derived"}},
		{name: "tree", args: []string{"tree", "019cadab"}},
		{name: "show", args: []string{"show", "s"}},
		{name: "log", args: []string{"log", "s"}},
		{name: "search", args: []string{"search", "harbour"}},
		{name: "search", args: []string{"search", "--no-index", "harbour"}},
		{name: "search --prompts", args: []string{"search", "--prompts", "harbour"}},
		{name: "search --rebuild", args: []string{"search", "--rebuild"}},
		{name: "export", args: []string{"export", "s", "-o", filepath.Join(t.TempDir(), "out.jsonl")}},
		{name: "handoff", args: []string{"handoff", "s", "pi"}},
		{name: "snapshot create", args: []string{"snapshot", "create", "s", "--tag", "green"}},
		{name: "snapshot list", args: []string{"snapshot", "list", "s"}},
		{name: "rollback", args: []string{"rollback", "s", "seq:1"}},
		{name: "switch", args: []string{"switch", "s", "main"}},
		{name: "branch", args: []string{"branch", "s", "--root"}},
		{name: "diff", args: []string{"diff", "s", "seq:1", "seq:3"}},
		{name: "fork", args: []string{"fork", "s", "--at", "seq:3"}},
		{name: "label", args: []string{"label", "019cadab", "9f36cd82", "x"}},
		{name: "amend", args: []string{"amend", "019cadab", "9f36cd82"}, stdin: `{"role":"user","content":"y"}`},
		{name: "amend", args: []string{"amend", "--restore", "019cadab", "9f36cd82"}},
		{name: "snapshot prune", args: []string{"snapshot", "prune", "s", "--keep-last", "1", "--dry-run"}},
		{name: "verify", args: []string{"verify", "--deep"}},
		{name: "repair", args: []string{"repair", "s", "--dry-run"}},
		{name: "gc", args: []string{"gc", "--dry-run"}},
		{name: "secrets", args: []string{"secrets", "s"}},
		{name: "audit verify", args: []string{"audit", "verify", damagedLog(t)}, fails: true},
		{name: "continue", args: []string{"continue", "--cwd", "/w", "--terminal", "none"}},
		{name: "set", args: []string{"set", "s", "--title", "title", "--cwd", "/elsewhere"}},
		{name: "pick", args: []string{"pick", "title"}},
		{name: "pick --pin", args: []string{"pick", "--pin", "s"}},
		{name: "label SESSION", args: []string{"label", "019cadab"}},
		{name: "usage", args: []string{"usage", "019cadab"}},
		{name: "context --settings", args: []string{"context", "--settings", "s"}},
		{name: "tree", args: []string{"tree", "019cadab", "--view", "--fold", "9f36cd82"}},
		{name: "branch --edit", args: []string{"branch", "--edit", "019cadab", "9f36cd82"}},
		{name: "switch", args: []string{"switch", "019cadab", "9f36cd82"}},
		{name: "context compact", args: []string{"context", "compact", "019cadab", "--summary", "x", "--keep", "1"}},
		{name: "erase", args: []string{"erase", "019cadab", "9f36cd82"}},
		{name: "erase", args: []string{"erase", "019cadab", "9f36cd82", "--everywhere", "--yes"}},
		{name: "erase --prove", args: []string{"erase", "--prove", "zorbalonquist"}},
		{name: "retain set", args: []string{"retain", "set", "--keep-within", "1h", "--max-bytes", "1"}},
		{name: "retain set", args: []string{"retain", "show"}},
		{name: "retain run", args: []string{"retain", "run", "--dry-run"}},
		{name: "delete", args: []string{"delete", "s", "--trash", "--trash-dir", bin}},
		{name: "trash", args: []string{"trash", "--dir", bin}},
		{name: "trash restore", args: []string{"trash", "restore", "s", "--dir", bin}},
		{name: "trash empty", args: []string{"trash", "empty", "--dir", bin}},
		{name: "delete --purge", args: []string{"delete", "--yes", "--purge", "019cadab"}},
		{name: "create", args: []string{"create", "--session", "last"}},
		{name: "delete", args: []string{"delete", "--yes", "last"}},
		{name: "backend verify", args: []string{"backend", "verify"}},
		{name: "--version", args: []string{"--version"}},
		{name: "man", args: []string{"man", filepath.Join(t.TempDir(), "man1")}},
		{name: "Errors and exit codes", args: []string{"resume", "nosuch"}, fails: true},
	}
	seen := map[string]bool{"demo": true} // TestDemo holds its document against the page
	for _, step := range steps {
		seen[step.name] = true
		stdout, stderr, code := callWith(t, env, store, step.stdin, append([]string{"--json"}, step.args...)...)
		if (code != 0) != step.fails {
			t.Errorf("%v: exit code %d\n%s%s", step.args, code, stdout, stderr)
			continue
		}
		ch, ok := docs[step.name]
		if !ok {
			t.Errorf("%s is not documented", step.name)
			continue
		}
		got, err := clitest.Decode([]byte(stdout))
		if err != nil {
			t.Errorf("%v: %v", step.args, err)
			continue
		}
		compare(t, step.name, got, ch.shape, ch)
	}
	for name := range docs {
		if !seen[name] {
			t.Errorf("%s is documented and not held against the program", name)
		}
	}
}

// damagedLog returns a file that is no audit log.
func damagedLog(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	line := `{"prev":"` + strings.Repeat("0", 64) + `","act":"delete","result":"done"}` + "\n"
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Every command that writes a document has a chapter on the page.
func TestEveryCommandHasItsPage(t *testing.T) {
	t.Parallel()
	if len(commands) > 39 {
		t.Errorf("%d commands; 39 are enough to learn: one verb for each thing", len(commands))
	}
	var documented []string
	for heading := range chapters(t) {
		documented = append(documented, strings.Fields(heading)[0]) // "snapshot create" documents snapshot
	}
	var missing []string
	for _, cmd := range commands {
		// These run until they are ended, and write no document.
		runs := cmd.name == "tui" || cmd.name == "serve" || cmd.name == "mcp"
		if !runs && !slices.Contains(documented, cmd.name) {
			missing = append(missing, cmd.name)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		t.Errorf("not in docs/cli-json.md: %v", missing)
	}
}

// The demo prints its story within seconds, restores exactly, and its document is as documented.
func TestDemo(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	must(t, store, "", "demo")
	doc := must(t, store, "", "demo") // where one was already
	ch := chapters(t)["demo"]
	compare(t, "demo", doc, ch.shape, chapter{shape: ch.shape, optional: map[string]bool{}})
	for path, want := range map[string]string{
		"entries": "305", "restored.stateEqual": "true", "restored.contextEqual": "true", "restored.headEqual": "true",
		"problems": "0", "steps.1.io.put": "0", "steps.1.io.append": "0", "steps.3.io.append": "1", "steps.3.io.put": "0",
	} {
		if got := value(t, doc, path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// An error in the middle of a long list completes the document and is in it.
func TestHalfAList(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	must(t, store, "", "import", example(t), "--session", "s")
	damage(t, store)
	stdout, stderr, code := call(t, store, "", "--json", "show", "--all", "s")
	doc, err := clitest.Decode([]byte(stdout))
	if err != nil {
		t.Fatal(err)
	}
	if code == 0 || stderr != "" {
		t.Fatalf("exit code %d, %q", code, stderr)
	}
	if _, ok := doc.(map[string]any)["error"]; !ok {
		t.Errorf("no error in the document: %.300s", stdout)
	}
	if _, err := json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
}
