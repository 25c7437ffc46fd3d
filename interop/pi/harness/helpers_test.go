package harness

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

func options() interop.Options {
	return interop.Options{Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

func source(data []byte) interop.Source {
	return interop.Source{Name: "test", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

var lf = readtest.Lines

// headerOf is the header of a file of one form or the other.
func headerOf(old bool) string {
	if old {
		return `{"kind":"header","version":4,"id":"s1","createdAt":1767225600000,"cwd":"/w","metadata":{"app":"x"}}`
	}
	return `{"v":4,"kind":"header","id":"s1","storageVersion":1,"createdAt":1767225600000,"cwd":"/w"}`
}

// session is a file as it was read.
type session struct {
	header  interop.Header
	entries []transcript.Entry
	parents []int64
	found   []transcript.Diagnostic // of the reader, then of the parents
	reader  *Reader
}

func read(t testing.TB, data string) session {
	t.Helper()
	s, err := tryRead(source([]byte(data)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tryRead(src interop.Source) (s session, err error) {
	r := NewReader(src, options())
	s.reader = r
	defer func() { err = errors.Join(err, r.Close()) }()
	if s.header, err = r.Header(); err != nil {
		return s, err
	}
	var lines []transcript.Line
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s, err
		}
		raw, err := d.Line("", "", time.Time{}) // as a session checks it
		if err != nil {
			return s, err
		}
		l, err := transcript.ParseLine(raw)
		if err != nil {
			return s, err
		}
		s.entries = append(s.entries, l.Entry(uint64(len(lines))))
		l.Raw = nil
		lines = append(lines, l)
	}
	var found []transcript.Diagnostic
	s.parents, found = transcript.ResolveParents(lines)
	s.found = append(r.Diagnostics(), found...)
	return s, nil
}

// path is the way to an entry by its ordinal.
func (s session) path(at int64) []transcript.Entry {
	var path []transcript.Entry
	for ; at >= 0; at = s.parents[at] {
		path = append(path, s.entries[at])
	}
	slices.Reverse(path)
	return path
}

// context is what the session shows when it is opened.
func (s session) context() transcript.Context {
	return transcript.BuildContext(s.path(int64(len(s.entries))-1), transcript.Coppice)
}

// says gives a context in short: role and text of each message.
func says(c transcript.Context) []string {
	var out []string
	for _, m := range c.Messages {
		out = append(out, m.Role+": "+m.Text())
	}
	return out
}

// outline gives the entries in short, one a line.
func (s session) outline() string {
	var out strings.Builder
	for _, e := range s.entries {
		out.Write(e.Raw)
		out.WriteByte('\n')
	}
	return out.String()
}

func isNoSession(err error) bool { return errors.Is(err, interop.ErrNotSession) }
