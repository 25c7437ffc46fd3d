package formats_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// A file that is read again yields the lines of its import, whatever the clock and the ids were then. Lines that the
// import had to make up come without bytes, in their places.
func TestReread(t *testing.T) {
	files, err := filepath.Glob("../*/testdata/*.jsonl")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(name, func(t *testing.T) {
			open := func() (io.ReadCloser, error) { return os.Open(name) }
			first, err := formats.Open(interop.Source{Name: name, Open: open}, "",
				interop.Options{Now: time.Unix(1.7e9, 0)})
			if err != nil {
				t.Fatal(err)
			}
			defer first.Close()
			h, err := first.Header()
			if err != nil {
				t.Fatal(err) // each of them holds a session
			}
			n, unknown, header := 0, 0, false
			for d, err := range formats.Reread(open) {
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 && !header && bytes.Equal(d.Raw, h.Raw) {
					header = true
					continue
				}
				want, err := first.Next()
				if err != nil {
					t.Fatalf("line %d: %v", n, err)
				}
				n++
				if d.Raw == nil {
					unknown++
				} else if !bytes.Equal(d.Raw, want.Raw) {
					t.Fatalf("line %d is\n%s, and was\n%s", n, d.Raw, want.Raw)
				}
			}
			if _, err := first.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("there are more lines than %d: %v", n, err)
			}
			if unknown > 0 {
				t.Logf("%d of %d lines are made up", unknown, n)
			}
		})
	}
}

// A line for which the import read another file cannot be reproduced from the imported file alone; the lines around it
// can.
func TestRereadWithoutTheFilesBeside(t *testing.T) {
	const sum = "9aef4fb3eefff5697350f2d4d43e0be2269092e568744e3f5ba37806aad6f6ad"
	file := `{"type":"title","v":1,"title":"t","pad":""}
{"type":"session","version":3,"id":"s","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":"first"}}
{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"user","content":[{"type":"image","data":"blob:sha256:` + sum + `","mimeType":"image/png"}]}}
{"type":"message","id":"c","parentId":"b","timestamp":"2026-01-02T03:04:08.000Z","message":{"role":"user","content":"last"}}
`
	open := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(file)), nil }
	var got []string
	for d, err := range formats.Reread(open) {
		if err != nil {
			t.Fatal(err)
		}
		id := "-"
		if l, err := transcript.ParseLine(d.Raw); err == nil {
			id = l.ID
		}
		got = append(got, id)
	}
	if is := strings.Join(got, " "); is != "s a - c" && is != "s - a - c" {
		t.Errorf("the lines are of %s", is)
	}
}
