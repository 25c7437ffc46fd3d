package claudecode

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

// FuzzRead: for any file a reader returns whole lines in one tree, and reaches the end. A second pass returns the same,
// and the result can be written.
func FuzzRead(f *testing.F) {
	for _, data := range testutil.Samples(f) {
		f.Add(string(data))
	}
	for _, tt := range newer {
		f.Add(file(tt.nodes...))
	}
	f.Add("\x00\x00{\"type\":\"user\"")
	f.Fuzz(check)
}

func check(t *testing.T, text string) {
	t.Helper()
	Detect([]byte(text))
	r := NewReader(source("s", map[string]string{"s": text}), options())
	h, err := r.Header()
	if err != nil {
		if !errors.Is(err, interop.ErrNotSession) {
			t.Fatal(err)
		}
		return
	}
	s := readtest.Collect(t, h, r.Next)
	for _, e := range s.Entries[min(1, len(s.Entries)):] {
		if e.ParentID == "" {
			t.Fatalf("%s has no parent", e.ID)
		}
	}
	transcript.BuildContext(s.Path(t, ""), transcript.Coppice)
	children(t, r)
	if _, err := Write(io.Discard, h, drafts(&s)); err != nil {
		t.Fatal(err)
	}
}

// TestMutations runs the fuzz target on a bounded number of mutated seeds.
func TestMutations(t *testing.T) { testutil.Mutations(t, check) }

// FuzzWrite: for any messages of a session, Claude Code and the reader load the written file.
func FuzzWrite(f *testing.F) {
	for _, p := range providers {
		for _, m := range append(p.answer("t", []string{"k", "l"}), p.results([]string{"k", "l"})...) {
			f.Add(m, m)
			f.Add(p.answer("t", []string{"k"})[0], m)
		}
	}
	f.Add(`{"role":"user","content":[null,7,"s",[],{"type":"image"},{"type":"document","source":{}}]}`, `{"role":"user","parts":{"x":1}}`)
	f.Fuzz(func(t *testing.T, first, second string) {
		if !json.Valid([]byte(first)) || !json.Valid([]byte(second)) || strings.ContainsAny(first+second, "\r\n") {
			t.Skip()
		}
		g := grove{}
		g.add(g.add(g.add(g.add("", first), second), first), `{"role":"user","content":"end"}`)
		g.add("e1", second)
		var out bytes.Buffer
		if _, err := Write(&out, interop.Header{ID: "mine", Cwd: "/w"}, func(yield func(transcript.Draft, error) bool) {
			for _, d := range g.entries {
				if _, err := d.Line("", "", now); err == nil && !yield(d, nil) {
					return
				}
			}
		}); err != nil {
			t.Skip() // a line that is none
		}
		if err := loads(out.String()); err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		s, _ := read(t, out.String())
		if !slices.ContainsFunc(s.Entries, func(e transcript.Entry) bool { return strings.Contains(string(e.Raw), `"content":"end"`) }) {
			t.Fatalf("the end is gone\n%s", out.String())
		}
	})
}
