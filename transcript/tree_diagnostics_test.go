package transcript

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/codec"
)

// What an import cut is told as what it was, also after the rows were packed: a circle, an entry that is its own
// parent, a parent that is nowhere.
func TestCutParentsAreTold(t *testing.T) {
	line := func(id, parent, rest string) string {
		return fmt.Sprintf(`{"type":%s,"id":%q,"parentId":%q}`, rest, id, parent)
	}
	const message = `"message","message":{"role":"user","content":"x"}`
	lines := []string{
		line("a", "", message), line("x", "z", message), line("y", "x", message), line("z", "y", `"model_change","modelId":"m"`),
		line("o", "nowhere", message), line("s", "s", message), line("k", "gone", `"compaction","firstKeptEntryId":"a"`),
		line("l", "l", `"label","targetId":"a","label":"kept"`), line("m", "n", `"model_change"`), line("n", "m", `"branch_summary","fromId":"a"`),
	}
	var parsed []Line
	for _, raw := range lines {
		l, err := ParseLine([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, l)
	}
	parents, _ := ResolveParents(parsed)
	var rows []codec.Row
	for i, l := range parsed {
		r := RowOf(l, parents[i])
		if parents[i] < 0 && l.ParentID != "" {
			r.Flags |= codec.FlagOrphan // as its writer reports
		}
		rows = append(rows, r)
	}
	for _, packed := range []int{0, len(rows)} {
		tree := treeOf(t, "a", rows, packed, 0)
		var got []string
		for _, d := range tree.Diagnostics() {
			got = append(got, d.Entry+":"+d.Kind)
			if (d.Kind == DiagOrphan) != strings.Contains(d.Detail, "not there") {
				t.Errorf("%s: %s: %s", d.Entry, d.Kind, d.Detail)
			}
		}
		if s, want := strings.Join(got, " "), "x:cycle o:orphan s:self-parent k:orphan l:orphan m:cycle"; s != want {
			t.Errorf("got %s, want %s", s, want)
		}
		if n, _ := tree.Node("a"); n.Label != "kept" {
			t.Errorf("label %q: the label's target is no longer its own", n.Label)
		}
	}
}
