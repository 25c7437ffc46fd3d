package cli

import (
	"testing"

	"github.com/coppice-go/coppice/internal/cli/clitest"
)

// A session that cannot be read takes nothing from the others, and the answer reports that it is not whole.
func TestSearchBesideDamage(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	must(t, store, "", "import", example(t), "--session", "broken")
	damage(t, store)
	must(t, store, "", "create", "--session", "sound")
	must(t, store, `{"role":"user","content":"a harbour, safe and sound"}`, "append", "sound")
	for _, args := range [][]string{{"search", "safe and sound"}, {"search", "--prompts", "safe and sound"}} {
		stdout, _, code := call(t, store, "", append([]string{"--json"}, args...)...)
		doc, err := clitest.Decode([]byte(stdout))
		if err != nil {
			t.Fatal(err)
		}
		name := map[int]string{2: "matches", 3: "prompts"}[len(args)]
		if code != 5 || value(t, doc, name+".0.session") != "sound" || value(t, doc, "error.code") != "corrupt" {
			t.Errorf("%v: exit code %d\n%s", args, code, stdout)
		}
	}
	if doc := must(t, store, "", "search", "--session", "sound", "safe"); value(t, doc, "matches.len") != "1" {
		t.Error("a search in one session fails for another one")
	}
	stdout, _, code := call(t, store, "", "--json", "search", "--rebuild")
	doc, err := clitest.Decode([]byte(stdout))
	if err != nil {
		t.Fatal(err)
	}
	if code != 5 || value(t, doc, "problems.0.code") != "corrupt" || value(t, doc, "file") != "null" {
		t.Errorf("rebuild: exit code %d\n%s", code, stdout)
	}
}
