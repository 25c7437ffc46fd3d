package hostile

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

func message(id, parent string) string {
	p := "null"
	if parent != "" {
		p = `"` + parent + `"`
	}
	return `{"type":"message","id":"` + id + `","parentId":` + p + `,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"of ` + id + `"}}`
}

// oddTrees imports trees that are none, walks them every way there is, and appends to them.
func oddTrees(a *attack) {
	for name, tree := range map[string]struct {
		lines []string
		kind  string // of the diagnostic; "" = none is due
	}{
		"a cycle of two":                           {[]string{message("a", "b"), message("b", "a")}, "cycle"},
		"a cycle of three and a leaf":              {[]string{message("a", "c"), message("b", "a"), message("c", "b"), message("d", "c")}, "cycle"},
		"a self parent":                            {[]string{message("a", "a"), message("b", "a")}, ""},
		"a missing parent":                         {[]string{message("a", "gone"), message("b", "a")}, ""},
		"an id twice":                              {[]string{message("a", ""), message("a", "a"), message("b", "a")}, ""},
		"a parent that comes later":                {[]string{message("b", "a"), message("a", "")}, ""},
		"a label on itself":                        {[]string{message("a", ""), `{"type":"label","id":"l","parentId":"a","targetId":"l","label":"x"}`}, "-"},
		"a leaf that points at itself":             {[]string{message("a", ""), `{"type":"leaf","id":"l","parentId":"l","targetId":"l"}`}, "-"},
		"a compaction that keeps itself":           {[]string{message("a", ""), `{"type":"compaction","id":"c","parentId":"a","summary":"s","firstKeptEntryId":"c","tokensBefore":1}`}, "-"},
		"a compaction that keeps what comes later": {[]string{message("a", ""), `{"type":"compaction","id":"c","parentId":"a","summary":"s","firstKeptEntryId":"z","tokensBefore":1}`, message("z", "c")}, "-"},
	} {
		a.soon(name, func() {
			st := a.store(memory.New())
			s, err := st.Import(a.Context(), drafts(append([]string{head}, tree.lines...)), &coppice.SessionOptions{ID: "s"})
			if err != nil {
				a.broken("%s: %v", name, err)
				return
			}
			t, err := s.Tree(a.Context())
			a.must(err)
			if found := t.Diagnostics(); tree.kind != "-" && name != "a parent that comes later" && len(found) == 0 {
				a.broken("%s: no diagnostic", name)
			}
			walk(a, name, s, len(tree.lines))
			refuseLive(a, name, s)
		})
		a.try(1)
	}
}

// walk goes every way through a session; no walk is longer than the session.
func walk(a *attack, name string, s *coppice.Session, entries int) {
	t, err := s.Tree(a.Context())
	a.must(err)
	for n := range t.Nodes(transcript.FilterAll) {
		steps := 0
		var path []transcript.Entry
		for e, err := range s.Path(a.Context(), n.ID) {
			path = append([]transcript.Entry{e}, path...)
			if steps++; err != nil || steps > entries+1 {
				a.broken("%s: the path from %s: %d steps, %v", name, n.ID, steps, err)
				break
			}
		}
		t.Siblings(n.ID)
		t.Children(n.ID)
		t.Newest(n.ID)
		if _, err := s.Switch(a.Context(), n.ID); err != nil && !typed(err) {
			a.broken("%s: switch to %s: %v", name, n.ID, err)
		}
		view, err := s.At(a.Context(), coppice.Target{Entry: n.ID})
		if err == nil {
			_, err = view.Context(a.Context())
		}
		if err != nil {
			a.broken("%s: the context at %s: %v", name, n.ID, err)
		}
		for _, p := range []transcript.Profile{transcript.Pi, transcript.OMP, transcript.Atomic, transcript.Operator} {
			transcript.BuildContext(path, p)
		}
	}
}

// refuseLive appends what only an import may hold.
func refuseLive(a *attack, name string, s *coppice.Session) {
	before, err := s.Tree(a.Context())
	a.must(err)
	for what, d := range map[string]transcript.Draft{
		"an id that exists": {Type: "custom", ID: "a", Body: []byte(`{"customType":"x"}`)}, "a parent that does not": {Type: "custom", Parent: "nowhere", Body: []byte(`{"customType":"x"}`)},
		"a line whose id exists": entry.Line([]byte(message("a", ""))), "a line under nothing": entry.Line([]byte(message("new", "nowhere"))), "a line under itself": entry.Line([]byte(message("new", "new"))),
	} {
		_, err := s.Append(a.Context(), d)
		if err == nil || !typed(err) || strings.Contains(what, "exists") && !errors.Is(err, fs.ErrExist) {
			a.broken("%s: %s: %v", name, what, err)
		}
	}
	if after, err := s.Tree(a.Context()); err != nil || after.Len() != before.Len() {
		a.broken("%s: what was refused is in the tree: %v", name, err)
	}
}

// hugeTrees: as deep and as wide as a file can make a tree.
func hugeTrees(a *attack) {
	n := a.size(3_000, 150_000, 1_000_000)
	for name, parent := range map[string]func(i int) string{
		"a chain": func(i int) string { return fmt.Sprintf("m%d", i-1) },
		"a fan":   func(int) string { return "m0" },
		"roots":   func(int) string { return "" },
	} {
		lines := make([]string, 0, n+1)
		lines = append(lines, head, message("m0", ""))
		for i := 1; i < n; i++ {
			lines = append(lines, message(fmt.Sprintf("m%d", i), parent(i)))
		}
		a.soon(name, func() {
			s, err := a.store(memory.New()).Import(a.Context(), drafts(lines), &coppice.SessionOptions{ID: "s"})
			a.must(err)
			t, err := s.Tree(a.Context())
			a.must(err)
			last := fmt.Sprintf("m%d", n-1)
			versions, at := t.Siblings(last)
			path := len(slices.Collect(t.Path(last)))
			want := map[string][3]int{"a chain": {1, 0, n}, "a fan": {n - 1, n - 2, 2}, "roots": {n, n - 1, 1}}[name]
			if got := [3]int{len(versions), at, path}; got != want {
				a.broken("%s of %d: versions, place and path are %v, want %v", name, n, got, want)
			}
			if _, err := s.Context(a.Context()); err != nil {
				a.broken("%s: %v", name, err)
			}
			if _, err := s.Branch(a.Context(), "m0", nil); err != nil {
				a.broken("%s: %v", name, err)
			}
			a.must(s.Close())
		})
		a.try(1)
	}
}
