package harness

import (
	"errors"
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

func source(data []byte) interop.Source { return interop.Bytes("test", data) }

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
	p, err := readtest.Parse(r)
	return session{p.Header, p.Entries, p.Parents, p.Found, r}, err
}

// path is the way to an entry by its ordinal.
func (s session) path(at int64) []transcript.Entry { return readtest.PathTo(s.entries, s.parents, at) }

// context is what the session shows when it is opened.
func (s session) context() transcript.Context {
	return transcript.BuildContext(s.path(int64(len(s.entries))-1), transcript.Coppice)
}

// Role and text of each message of a context.
func says(c transcript.Context) []string {
	var out []string
	for _, m := range c.Messages {
		out = append(out, m.Role+": "+m.Text())
	}
	return out
}

// outline returns a short form of the entries, one a line.
func (s session) outline() string {
	var out strings.Builder
	for _, e := range s.entries {
		out.Write(e.Raw)
		out.WriteByte('\n')
	}
	return out.String()
}

func isNoSession(err error) bool { return errors.Is(err, interop.ErrNotSession) }
