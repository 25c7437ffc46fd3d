package cli

import (
	"strings"
	"testing"
)

// Arguments and flags that are not UTF-8 are a usage error that names the place, before anything is looked for or
// stored. Names of files are not text.
func TestArgumentsAreText(t *testing.T) {
	const bad = "caf\xe9"
	store := t.TempDir()
	must(t, store, "", "create", "--session", "s", "--title", "Fine")
	must(t, store, `{"role":"user","content":"hi"}`, "append", "s")
	before := must(t, store, "", "log", "s")
	for _, args := range [][]string{
		{"create", "--title", bad},
		{"create", "--cwd", bad},
		{"create", "--meta", "k=" + bad},
		{"create", "--parent", bad},
		{"set", "s", "--title", bad},
		{"label", "s", "head", bad},
		{"snapshot", "create", "s", bad},
		{"snapshot", "create", "s", "--tag", bad},
		{"branch", "s", "head", "--name", bad},
		{"branch", "s", "head", "--summary", bad},
		{"append", "s", "--key", bad},
		{"append", "s", "--reason", bad},
		{"context", "compact", "s", "--summary", bad},
		{"search", bad},
		{"search", "--prompts", bad},
		{"pick", bad},
		{"tree", "s", "--search", bad},
		{"show", "s", bad},
		{"switch", "s", bad},
		{"rollback", "s", bad},
		{"resume", bad},
		{"list", "--cwd", bad},
		{"fork", "s", "--title", bad},
		{"snapshot", "prune", "s", "--keep-tag", bad},
		{"diff", "s", "head", bad},
	} {
		out, errs, code := call(t, store, "", append([]string{"--json"}, args...)...)
		if code != 2 || !strings.Contains(out, "is not valid UTF-8") || !strings.Contains(out, `"usage"`) {
			t.Errorf("%q: exit code %d, %s%s", args, code, out, errs)
		}
	}
	if after := must(t, store, "", "log", "s"); value(t, after, "commits.len") != value(t, before, "commits.len") {
		t.Error("something was stored")
	}
	if _, errs, code := call(t, store, "", "import", bad+".jsonl"); code == 2 {
		t.Errorf("a file of this name: exit code %d, %s", code, errs)
	}
}
