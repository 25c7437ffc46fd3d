package jsonl

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/transcript"
)

func entryLine(id string) string {
	return `{"type":"message","id":"` + id + `","timestamp":"2026-01-02T03:04:05.000Z"}`
}

// scanned returns what an EntryScanner reports of a file: an id or a "-" for each object and each lost line, then the
// diagnostics, then how many lines were spoiled and lost.
func scanned(t *testing.T, file string) []string {
	t.Helper()
	s := NewEntryScanner(strings.NewReader(file), "parentId", func(l transcript.Line) bool { return l.ID != "" })
	var out []string
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.ID == "" {
			e.ID = "-"
		}
		out = append(out, fmt.Sprintf("%d:%s", e.Number, e.ID))
	}
	for _, d := range s.Diagnostics() {
		out = append(out, fmt.Sprintf("%d %s %s", d.Ordinal, d.Kind, d.Detail))
	}
	return append(out, fmt.Sprint(s.Changed(), s.Bad(), s.Refused()))
}

func TestEntryScanner(t *testing.T) {
	for name, tt := range map[string]struct {
		file string
		want []string
	}{
		"intact": {entryLine("a") + "\n" + entryLine("b") + "\n", []string{"1:a", "2:b", "false 0 0"}},
		"no newline at the end": {
			entryLine("a"),
			[]string{"1:a", "1 converted the last line has no newline", "true 0 0"},
		},
		"byte order mark and CR LF": {
			"\xef\xbb\xbf" + entryLine("a") + "\r\n" + entryLine("b") + "\r\n",
			[]string{
				"1:a", "2:b", "1 converted a byte order mark", "1 converted lines end with CR LF (said once)",
				"true 0 0",
			},
		},
		"blank lines and white space": {
			"\n " + entryLine("a") + "\n\n",
			[]string{
				"2:a", "1 converted a blank line", "2 converted white space around a line (said once)",
				"3 converted a blank line", "true 0 0",
			},
		},
		"NULs": {
			"\x00\x00" + entryLine("a") + "\n",
			[]string{"1:a", "1 bad-line 2 NUL bytes, as a crash leaves them", "true 1 0"},
		},
		"two on a line": {
			entryLine("a") + entryLine("b") + "\n",
			[]string{"1:a", "1:b", "1 converted more than one object on the line", "true 0 0"},
		},
		"after a torn one": {
			entryLine("a")[:30] + entryLine("b") + "\n",
			[]string{
				"1:b", "1 bad-line transcript: not an entry: offset 32: unexpected 't'",
				"1 converted an entry was found behind the damage, on the same line", "true 1 1",
			},
		},
		"torn": {
			entryLine("a") + "\n" + entryLine("b")[:20],
			[]string{"1:a", "2:-", "2 torn-line transcript: not an entry: unexpected end", "true 1 1"},
		},
	} {
		if diff := cmp.Diff(tt.want, scanned(t, tt.file)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestHeadLines(t *testing.T) {
	var got []string
	head := "\xef\xbb\xbf" + entryLine("a") + "\r\nprose\n\x00" + entryLine("b") + "\n" + entryLine("c")[:20]
	for n, l := range HeadLines([]byte(head)) {
		got = append(got, fmt.Sprint(n, l.ID))
	}
	if diff := cmp.Diff([]string{"0a", "2b"}, got); diff != "" {
		t.Error(diff)
	}
	n := 0
	for range HeadLines([]byte(strings.Repeat("{}\n", maxHeadLines+1))) {
		n++
	}
	if n != maxHeadLines {
		t.Errorf("%d lines", n)
	}
}
