package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// storeOf makes a store on disk with a session s of these lines.
func storeOf(t *testing.T, lines ...string) (url string) {
	t.Helper()
	url = t.TempDir()
	st, err := coppice.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	drafts := func(yield func(transcript.Draft, error) bool) {
		const header = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}`
		for _, raw := range append([]string{header}, lines...) {
			if !yield(transcript.Draft{Raw: []byte(raw)}, nil) {
				return
			}
		}
	}
	s, err := st.Import(t.Context(), drafts, &coppice.SessionOptions{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return url
}

// shownTree is the JSON of a tree, as far as these tests look.
type shownTree struct {
	Head     string
	HeadAt   string
	Branches []struct{ Name, Head, At string }
	Selected string
	Nodes    []struct{ ID string }
}

func (s shownTree) ids() string {
	var out []string
	for _, n := range s.Nodes {
		out = append(out, n.ID)
	}
	return strings.Join(out, " ")
}

// drawTree runs the command on the session s.
func drawTree(t *testing.T, url string, args ...string) (stdout, stderr string) {
	t.Helper()
	stdout, stderr, code := call(t, url, "", append([]string{"tree", "s"}, args...)...)
	if code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr)
	}
	return stdout, stderr
}

func treeJSON(t *testing.T, url string, args ...string) (tree shownTree) {
	t.Helper()
	stdout, _ := drawTree(t, url, append([]string{"--json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &tree); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, stdout)
	}
	return tree
}

func messageLine(id, parent, role, text string) string {
	if parent != "null" {
		parent = `"` + parent + `"`
	}
	return fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-02T03:04:05.000Z","message":{"role":%q,"content":%q}}`, id, parent, role, text)
}

// A search looks at all that an entry shows, whichever way the tree is asked for; a search that finds nothing reports
// it.
func TestSearchOverWholeTexts(t *testing.T) {
	url := storeOf(t,
		messageLine("u1", "null", "user", strings.Repeat("語", 60)+"針"),
		messageLine("a1", "u1", "assistant", strings.Repeat("x", 90)+" needle"),
		messageLine("u2", "a1", "user", "needle"), messageLine("a2", "u2", "assistant", "done"))
	for text, want := range map[string]string{"針": "u1", "needle": "a1 u2", "user NEEDLE": "u2", "nowhere": ""} {
		for _, more := range [][]string{nil, {"--view"}, {"--fold", "u2"}} {
			if got := treeJSON(t, url, append([]string{"--search", text}, more...)...).ids(); got != want {
				t.Errorf("%q %v: %q, want %q", text, more, got, want)
			}
		}
		stdout, stderr := drawTree(t, url, "--search", text)
		if n := strings.Count(stdout, "\n") - 1; n != len(strings.Fields(want)) {
			t.Errorf("%q: %d lines drawn", text, n)
		}
		if said := strings.Contains(stderr, "nothing found"); said != (want == "") {
			t.Errorf("%q: %q", text, stderr)
		}
	}
	if stdout, _ := drawTree(t, url, "--json", "--search", "nowhere"); !strings.Contains(stdout, `"nodes":[]`) {
		t.Errorf("an empty list: %s", stdout)
	}
	if _, stderr := drawTree(t, url, "--filter", "labeled-only"); !strings.Contains(stderr, "labeled-only") {
		t.Errorf("an empty filter: %q", stderr)
	}
}

// A search goes over the log once: its requests grow with the segments and not with the entries.
func TestSearchReadsTheLogOnce(t *testing.T) {
	testutil.SkipLong(t)
	const entries, requests = 12_000, 12
	lines := make([]string, entries)
	parent := "null"
	for i := range lines {
		id := fmt.Sprintf("%08x", i)
		lines[i] = messageLine(id, parent, "user", strings.Repeat("word ", 150)+fmt.Sprintf("needle%d.", i))
		parent = id
	}
	url := storeOf(t, lines...)
	st, err := coppice.Open(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Open(t.Context(), "s", &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	tree, err := s.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []treeOptions{{}, {view: true}, {folded: []string{"00000001"}}} {
		o.filter, o.search = "default", "needle11000."
		before := s.IO()
		hits := searched(t, s, tree, o)
		after := s.IO()
		if len(hits) != 1 || hits[0] != fmt.Sprintf("%08x", 11000) {
			t.Errorf("%+v: found %v", o, hits)
		}
		got := after.Get + after.Stat + after.List - before.Get - before.Stat - before.List
		t.Logf("%d requests, %d bytes", got, after.BytesRead-before.BytesRead)
		if got > requests {
			t.Errorf("%+v: %d requests for %d entries, want at most %d", o, got, entries, requests)
		}
	}
}

// searched returns the ids of what a search finds, by the rows of a view or by what a drawing keeps.
func searched(t *testing.T, s *coppice.Session, tree *transcript.Tree, o treeOptions) (hits []string) {
	t.Helper()
	if !o.view {
		_, found, err := textOptions(t.Context(), s, tree, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, ord := range found {
			hits = append(hits, tree.ID(ord))
		}
		return hits
	}
	ro, _, err := api.RowOptions(t.Context(), s, tree, o.query())
	if err != nil {
		t.Fatal(err)
	}
	r, err := rows.New(tree, ro)
	if err != nil {
		t.Fatal(err)
	}
	for row := range r.At(0, r.Len()) {
		hits = append(hits, tree.ID(row.Ordinal))
	}
	return hits
}

// If the head is an entry that is not shown, the nearest one above it is marked.
func TestHeadOnWhatIsNotShown(t *testing.T) {
	url := storeOf(t, messageLine("u1", "null", "user", "one"), messageLine("a1", "u1", "assistant", "two"),
		`{"type":"custom","id":"k1","parentId":"a1","timestamp":"2026-01-02T03:04:06.000Z","customType":"mark"}`)
	for _, tt := range []struct{ filter, at string }{{"default", "a1"}, {"user-only", "u1"}, {"all", ""}, {"labeled-only", ""}} {
		for _, more := range [][]string{nil, {"--view"}} {
			got := treeJSON(t, url, append([]string{"--filter", tt.filter}, more...)...)
			if got.Head != "k1" || got.HeadAt != tt.at || got.Branches[0].Head != "k1" || got.Branches[0].At != tt.at {
				t.Errorf("%s %v: %+v, want it at %q", tt.filter, more, got, tt.at)
			}
			if want := cmp.Or(tt.at, got.Head); more != nil && len(got.Nodes) > 0 && got.Selected != want {
				t.Errorf("%s: %s is selected, want %s", tt.filter, got.Selected, want)
			}
		}
	}
	if got := treeJSON(t, url, "--view", "--fold", "u1"); got.HeadAt != "u1" || got.Selected != "u1" {
		t.Errorf("folded: %+v", got)
	}
}
