// Package readtest has helpers for the tests of readers.
package readtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Now is the time of conversions.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// T is a test, a benchmark or a fuzz target.
type T interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Files maps names relative to a session's folder to contents. A file with content "gone" is listed, but cannot be
// opened.
type Files[T ~string | ~[]byte] map[string]T

// Open opens a file.
func (f Files[T]) Open(name string) (io.ReadCloser, error) {
	if p, ok := f[name]; ok && string(p) != "gone" {
		return io.NopCloser(bytes.NewReader([]byte(p))), nil
	}
	return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
}

// List returns the names in a folder.
func (f Files[T]) List(dir string) (names []string, err error) {
	for name := range f {
		if path.Dir(name) == dir {
			names = append(names, name)
		}
	}
	if names == nil {
		err = fmt.Errorf("%s: %w", dir, fs.ErrNotExist)
	}
	slices.Sort(names)
	return names, err
}

// Source returns the source of one of the files.
func Source(name string, files map[string]string) interop.Source {
	f := Files[string](files)
	open := func() (io.ReadCloser, error) { return f.Open(name) }
	return interop.Source{Name: name, Open: open, Beside: f.Open, List: f.List}
}

// Session is the output of a reader.
type Session struct {
	Header  interop.Header
	Entries []transcript.Entry
	ByID    map[string]int
}

// Read reads a session.
func Read(t T, r interop.Reader) Session {
	t.Helper()
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transcript.ParseLine(h.Raw); err != nil {
		t.Fatalf("header %s: %v", h.Raw, err)
	}
	return Collect(t, h, r.Next)
}

// Parsed is the result of Parse.
type Parsed struct {
	Header  interop.Header
	Entries []transcript.Entry
	Drafts  []transcript.Draft
	Parents []int64
	Found   []transcript.Diagnostic // of the reader, then of the parents
	lines   []transcript.Line
}

// Parse reads a whole session and closes its reader.
func Parse(r interop.Reader) (s Parsed, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	if s.Header, err = r.Header(); err != nil {
		return s, err
	}
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, err
		}
		raw, err := d.Line("", "", time.Time{}) // checks it as a session does
		if err != nil {
			return s, err
		}
		l, err := transcript.ParseLine(raw)
		if err != nil {
			return s, err
		}
		s.Drafts, s.Entries = append(s.Drafts, d), append(s.Entries, l.Entry(uint64(len(s.lines))))
		s.lines = append(s.lines, l)
	}
	var found []transcript.Diagnostic
	s.Parents, found = transcript.ResolveParents(s.lines)
	s.Found = append(r.Diagnostics(), found...)
	return s, nil
}

// PathTo returns the entries from the root to the entry at an index.
func PathTo(entries []transcript.Entry, parents []int64, at int64) (path []transcript.Entry) {
	for ; at >= 0; at = parents[at] {
		path = append(path, entries[at])
	}
	slices.Reverse(path)
	return path
}

// All returns the header and all lines of a session, and closes its reader.
func All[R interop.Reader](r R) (interop.Header, []transcript.Line, error) {
	s, err := Parse(r)
	return s.Header, s.lines, err
}

// Collect reads entries and checks the rules for all readers: whole lines, unique IDs, parents first.
func Collect(t T, h interop.Header, next func() (transcript.Draft, error)) Session {
	t.Helper()
	s := Session{Header: h, ByID: map[string]int{}}
	for {
		d, err := next()
		if errors.Is(err, io.EOF) {
			return s
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := d.Line("", "", Now)
		if err != nil {
			t.Fatalf("%v: %.300s", err, d.Raw)
		}
		l, err := transcript.ParseLine(raw)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := s.ByID[l.ID]; ok {
			t.Fatalf("id %s twice", l.ID)
		}
		if _, ok := s.ByID[l.ParentID]; !ok && len(s.Entries) > 0 && l.ParentID != "" {
			t.Fatalf("%s comes before its parent %s", l.ID, l.ParentID)
		}
		s.ByID[l.ID] = len(s.Entries)
		s.Entries = append(s.Entries, l.Entry(uint64(len(s.Entries))))
	}
}

// Path returns the entries from the root to an id; "" = to the last entry.
func (s *Session) Path(t T, id string) (out []transcript.Entry) {
	t.Helper()
	if id == "" && len(s.Entries) > 0 {
		id = s.Entries[len(s.Entries)-1].ID
	}
	for id != "" {
		at, ok := s.ByID[id]
		if !ok || len(out) > len(s.Entries) {
			t.Fatalf("parent %q is not there", id)
		}
		out = append(out, s.Entries[at])
		id = s.Entries[at].ParentID
	}
	slices.Reverse(out)
	return out
}

// Amended returns entries with the amendments of later lines applied, without these.
func (s *Session) Amended(list []transcript.Entry) (out []transcript.Entry) {
	newest := map[string]transcript.Amendment{}
	for _, e := range s.Entries {
		if a, ok := e.Amendment(); ok {
			newest[a.Target] = a
		}
	}
	for _, e := range list {
		if _, ok := e.Amendment(); !ok {
			out = append(out, e.Amended(newest[e.ID]))
		}
	}
	return out
}

// Talk returns the context at an ID: a word per message, with amendments applied.
func (s *Session) Talk(t T, id string) string {
	t.Helper()
	roles := map[string]string{
		"user": "u", "assistant": "a", "toolResult": "r", "custom": "m", "compactionSummary": "C",
	}
	var words []string
	for _, m := range transcript.BuildContext(s.Amended(s.Path(t, id)), transcript.Coppice).Messages {
		is := transcript.Inspect(m.Raw)
		word := []string{roles[m.Role] + ":" + strings.ReplaceAll(is.Text, "\n", "|")}
		for _, c := range is.Calls {
			word = append(word, c.ID)
		}
		w := strings.Join(word, "+")
		if len(is.Results) > 0 {
			w += "=" + strings.Join(is.Results, ",")
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

// Kinds returns the kinds of diagnostics.
func Kinds(list []transcript.Diagnostic) string {
	var out []string
	for _, d := range list {
		out = append(out, d.Kind)
	}
	return strings.Join(out, " ")
}

// Lines returns lines in the form of a file.
func Lines(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
