package codex

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/coppice-go/coppice/interop"
)

// named is a line of Codex's list of names.
func named(id, name string) string {
	return fmt.Sprintf(`{"id":%q,"thread_name":%s,"updated_at":"2026-01-01T00:00:00Z"}`+"\n", id, quoted(name))
}

// TestThreadName: a session's title is the last name of its thread in Codex's list, in either of its two places.
func TestThreadName(t *testing.T) {
	const home, archive = "../../../../session_index.jsonl", "../session_index.jsonl"
	long := strings.Repeat("é", maxTitleSize)
	for name, tt := range map[string]struct {
		around folder
		want   string
	}{
		"none":                      {folder{}, ""},
		"of others":                 {folder{home: named("s2", "other") + named("s11", "another") + `{"id":"s2","thread_name":"s1","for":"s1"}` + "\n"}, ""},
		"one":                       {folder{home: named("s2", "other") + named("s1", "mine") + named("s3", "other")}, "mine"},
		"the last":                  {folder{home: named("s1", "first") + named("s1", "second <&> \"é\"\n")}, `second <&> "é"`},
		"an empty one":              {folder{home: named("s1", "first") + named("s1", " ")}, "first"},
		"without a line feed":       {folder{home: strings.TrimSpace(named("s1", "mine"))}, "mine"},
		"with another end of line":  {folder{home: strings.ReplaceAll(named("s1", "mine")+named("s2", "x"), "\n", "\r\n")}, "mine"},
		"torn":                      {folder{home: named("s1", "mine") + `{"id":"s1","thread_name":"torn"`}, "mine"},
		"behind what is no JSON":    {folder{home: "\x00\xff{]\n[\"s1\"]\n" + named("s1", "mine")}, "mine"},
		"a line that is too long":   {folder{home: named("s1", "mine") + named("s1", strings.Repeat("x", 1<<17)) + named("s2", "x")}, "mine"},
		"behind a long line":        {folder{home: strings.Repeat("x", 1<<17) + "\n" + named("s1", "mine")}, "mine"},
		"the rest of a long line":   {folder{home: named("s1", "mine") + strings.Repeat("x", maxIndexLine) + named("s1", "theirs")}, "mine"},
		"cut":                       {folder{home: named("s1", "x"+long)}, "x" + long[:maxTitleSize-2]},
		"archived":                  {folder{archive: named("s1", "mine")}, "mine"},
		"not beside but in its own": {folder{"session_index.jsonl": named("s1", "mine")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			src := source(meta + user("q"))
			src.Beside = tt.around.Open
			r := NewReader(src, interop.Options{Now: now})
			s := collect(t, r)
			title := ""
			if tt.want != "" {
				title = `,"title":` + quoted(tt.want) + "}"
			}
			if s.Header.Title != tt.want || !utf8.ValidString(s.Header.Title) || len(r.Diagnostics()) > 0 || (tt.want != "" && name != "the last" && !strings.HasSuffix(string(s.Header.Raw), title)) {
				t.Errorf("title %q, want %q; %s, %v", s.Header.Title, tt.want, s.Header.Raw, r.Diagnostics())
			}
		})
	}
}

// seekable is a seekable list of names that counts the bytes read.
type seekable struct {
	io.ReadSeeker
	read *int
}

func (s seekable) Read(p []byte) (int, error) {
	n, err := s.ReadSeeker.Read(p)
	*s.read += n
	return n, err
}

func (s seekable) Close() error { return nil }

// TestThreadNameBounds: only the end of a long list is read; an error costs only the title, and is reported.
func TestThreadNameBounds(t *testing.T) {
	others := strings.Repeat(named("s2", "other"), 2*maxIndexSize/len(named("s2", "other")))
	for text, want := range map[string]string{others + named("s1", "mine"): "mine", named("s1", "old") + others: "", named("s1", "mine"): "mine"} {
		read := 0
		src := source(meta + user("q"))
		src.Beside = func(string) (io.ReadCloser, error) { return seekable{strings.NewReader(text), &read}, nil }
		if h, err := NewReader(src, interop.Options{Now: now}).Header(); err != nil || h.Title != want || read > maxIndexSize {
			t.Errorf("%d bytes: %q, %v after %d", len(text), h.Title, err, read)
		}
	}
	src := source(meta + user("q"))
	read := 0
	src.Beside = func(string) (io.ReadCloser, error) {
		text := strings.NewReader(named("s1", "old") + others + named("s1", "new"))
		return struct {
			io.Reader
			io.Closer
		}{seekable{text, &read}, io.NopCloser(nil)}, nil
	}
	if h, err := NewReader(src, interop.Options{Now: now}).Header(); err != nil || h.Title != "old" || read > maxIndexSize {
		t.Errorf("without a way to the end: %q, %v after %d", h.Title, err, read)
	}
	src.Beside = func(string) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(named("s1", "mine")), iotest.ErrReader(errors.New("no disk")))), nil
	}
	r := NewReader(src, interop.Options{Now: now})
	s := collect(t, r)
	if d := r.Diagnostics(); s.Talk(t, "") != "u:q" || len(d) != 1 || !strings.HasSuffix(d[0].Detail, "session_index.jsonl: no disk") {
		t.Errorf("%s, %v", s.Talk(t, ""), d)
	}
}
