package formats

import (
	"iter"
	"slices"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

var testNow = readtest.Now

func options() interop.Options {
	return interop.Options{Now: testNow}
}

func source(name string, data []byte) interop.Source {
	return interop.Bytes(name, data)
}

var lf = readtest.Lines

// session is a file as it was read.
type session struct {
	format  interop.Format
	header  interop.Header
	entries []transcript.Entry
	drafts  []transcript.Draft
	parents []int64
	found   []transcript.Diagnostic // of the reader, then of the parents
	reader  interop.Reader
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func read(t fataler, f interop.Format, data []byte) session {
	t.Helper()
	s, err := tryRead(f, source("test", data))
	if err != nil {
		t.Fatalf("read as %q: %v", f, err)
	}
	return s
}

func tryRead(f interop.Format, src interop.Source) (session, error) {
	r, err := Open(src, f, options())
	if err != nil {
		return session{}, err
	}
	p, err := readtest.Parse(r)
	return session{f, p.Header, p.Entries, p.Drafts, p.Parents, p.Found, r}, err
}

// seq returns the entries as a session does.
func (s session) seq() iter.Seq2[transcript.Draft, error] {
	return transcript.Drafts(s.drafts...)
}

func (s session) last() string {
	if len(s.entries) == 0 {
		return ""
	}
	return s.entries[len(s.entries)-1].ID
}

// ordinal of the entry that answers to an id; -1 = none.
func (s session) ordinal(id string) int64 {
	for i, e := range slices.Backward(s.entries) {
		if e.ID == id {
			return int64(i)
		}
	}
	return -1
}

func (s session) path(at int64) []transcript.Entry { return readtest.PathTo(s.entries, s.parents, at) }

// context is what the session shows when it is opened.
func (s session) context(p transcript.Profile) transcript.Context {
	return transcript.BuildContext(s.path(int64(len(s.entries))-1), p)
}

// rebuilt joins header and entries as a session would store them.
func (s session) rebuilt() string {
	lines := []string{string(s.header.Raw)}
	for _, e := range s.entries {
		lines = append(lines, string(e.Raw))
	}
	return lf(lines...)
}

// said returns what a reader sees of a context: text, calls and results, without roles.
func said(c transcript.Context) []string {
	var out []string
	for _, m := range c.Messages {
		shape := transcript.Inspect(m.Raw)
		line := shape.Text
		for _, call := range shape.Calls {
			line += " call:" + call.ID
		}
		for _, id := range shape.Results {
			line += " result:" + id
		}
		out = append(out, line)
	}
	return out
}

var profiles = map[interop.Format]transcript.Profile{
	interop.Pi: transcript.Pi, interop.Omp: transcript.OMP, interop.Atomic: transcript.Atomic, interop.Operator: transcript.Operator,
}

var written = []interop.Format{interop.Pi, interop.Omp, interop.Atomic, interop.Operator}
