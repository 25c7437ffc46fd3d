package ingest

import (
	"bytes"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/examples/session"
)

// What was imported before is left alone, whatever its format and whatever was added to the session; what has other
// bytes becomes a session of its own.
func TestImportAgain(t *testing.T) {
	const omp = `{"type":"title","v":1,"title":"T","updatedAt":"2026-01-01T00:00:00.000Z","pad":""}` + "\n" +
		`{"type":"session","version":3,"id":"o","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}` + "\n" +
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"hi","timestamp":1}}` + "\n"
	line := `{"type":"custom","id":"z","parentId":null,"timestamp":"2026-01-01T00:00:02.000Z","customType":"x"}` + "\n"
	for _, c := range []struct {
		name, first, second string
		again, added        bool
		unchanged           bool
		detail              string
	}{
		{name: "the same", first: string(session.JSONL), second: string(session.JSONL), unchanged: true},
		{name: "added to since", first: string(session.JSONL), second: string(session.JSONL), added: true, unchanged: true},
		{name: "with an original", first: omp, second: omp, unchanged: true},
		{name: "with an original, added to since", first: omp, second: omp, added: true, unchanged: true},
		{name: "asked for", first: omp, second: omp, again: true, detail: "this file's already"},
		{name: "grown", first: omp, second: omp + line, detail: "when it was shorter"},
		{name: "grown, of the store's own form", first: string(session.JSONL), second: string(session.JSONL) + line, detail: "when it was shorter"},
		{name: "shorter", first: omp + line, second: omp, detail: "another session's"},
		{name: "other bytes", first: omp, second: strings.Replace(omp, "hi", "ho", 1), detail: "another session's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := store(t)
			first, err := Import(t.Context(), st, FromBytes("f", []byte(c.first)), options())
			if err != nil {
				t.Fatal(err)
			}
			if c.added {
				add(t, st, first.Session)
				first.Entries++
			}
			o := options()
			o.Again = c.again
			r, err := Import(t.Context(), st, FromBytes("f", []byte(c.second)), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Unchanged != c.unchanged || c.unchanged != (r.Session == first.Session) || r.Unchanged && (r.Entries != first.Entries || r.Format != first.Format) {
				t.Errorf("%+v after %+v", r, first)
			}
			if found := len(r.Diagnostics) > 0; found == c.unchanged || found && !strings.Contains(r.Diagnostics[0].Detail, c.detail) {
				t.Errorf("%+v: want %q", r.Diagnostics, c.detail)
			}
			sessions := 0
			for _, err := range st.List(t.Context(), coppice.ListOptions{}) {
				if sessions++; err != nil {
					t.Fatal(err)
				}
			}
			if want := map[bool]int{true: 1, false: 2}[c.unchanged]; sessions != want {
				t.Errorf("%d sessions: want %d", sessions, want)
			}
			var out bytes.Buffer
			if err := st.Export(t.Context(), r.Session, &out); err != nil || out.String() != c.second {
				t.Errorf("gives back %d bytes, %v: want the %d of the file", out.Len(), err, len(c.second))
			}
		})
	}
}

// A session that was deleted does not come back under its id.
func TestImportOfDeleted(t *testing.T) {
	st := store(t)
	first, err := Import(t.Context(), st, FromBytes("f", session.JSONL), options())
	if err == nil {
		err = st.Delete(t.Context(), first.Session)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := Import(t.Context(), st, FromBytes("f", session.JSONL), options())
	if err != nil || r.Unchanged || r.Session == first.Session || r.Entries != first.Entries || len(r.Diagnostics) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// add appends one message to a session.
func add(t *testing.T, st *coppice.Store, id string) {
	t.Helper()
	s, err := st.Open(t.Context(), id, nil)
	if err == nil {
		_, err = s.Append(t.Context(), entry.Message(map[string]any{"role": "user", "content": "more"}))
	}
	if err == nil {
		_, err = s.Commit(t.Context(), coppice.Turn{})
	}
	if err == nil {
		err = s.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
