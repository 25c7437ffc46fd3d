package claudecode

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// watched is a file that must not be read by two at once, nor after it was closed. The race detector sees the
// first.
type watched struct {
	t      *testing.T
	r      io.Reader
	reads  int
	closed bool
}

func (w *watched) Read(p []byte) (int, error) {
	if w.reads++; w.closed {
		w.t.Error("read after Close")
	}
	return w.r.Read(p)
}

func (w *watched) Close() error {
	if w.closed {
		w.t.Error("closed twice")
	}
	w.closed = true
	return nil
}

// longFile has many batches of lines, with a call and its result in each pair.
func longFile(pairs int) string {
	var b strings.Builder
	parent := ""
	pad := strings.Repeat("x", 4<<10)
	for i := range pairs {
		a, r, c := fmt.Sprint("a", i), fmt.Sprint("r", i), fmt.Sprint("c", i)
		b.WriteString(file(
			node{id: a, parent: parent, typ: "assistant", content: strings.Replace(call(c), "ls", pad, 1)},
			node{id: r, parent: a, typ: "user", content: result(c)},
		))
		parent = r
	}
	return b.String()
}

// TestNothingIsLeftRunning: goroutines that read ahead end with the reader, wherever that is: after the header,
// half-way, at the end, or at an error in either pass. A closed file is not read.
func TestNothingIsLeftRunning(t *testing.T) {
	batches := 20
	if testing.Short() {
		batches = 12 // more than are read ahead
	}
	text := longFile(batches * jsonl.BatchSize / (4 << 10))
	half := text[:len(text)/2]
	for name, c := range map[string]struct {
		first, second io.Reader
		entries       int // that are read; -1 = all
		close         bool
	}{
		"header alone":             {strings.NewReader(text), nil, 0, false},
		"header, closed":           {strings.NewReader(text), nil, 0, true},
		"one entry, closed":        {strings.NewReader(text), strings.NewReader(text), 1, true},
		"half-way, closed":         {strings.NewReader(text), strings.NewReader(text), 500, true},
		"to the end":               {strings.NewReader(text), strings.NewReader(text), -1, false},
		"to the end, closed":       {strings.NewReader(text), strings.NewReader(text), -1, true},
		"error in the index":       {io.MultiReader(strings.NewReader(half), &failing{strings.NewReader("")}), nil, -1, true},
		"error in the entries":     {strings.NewReader(text), io.MultiReader(strings.NewReader(half), &failing{strings.NewReader("")}), -1, true},
		"shorter at second sight":  {strings.NewReader(text), strings.NewReader(half), -1, true},
		"none of Claude Code's":    {strings.NewReader(strings.Repeat("{\"type\":\"x\"}\n", 200_000)), nil, -1, false},
		"error before anything":    {&failing{strings.NewReader("")}, nil, -1, false},
		"closed while one is long": {strings.NewReader(longLine("user") + text), strings.NewReader(longLine("user") + text), 1, true},
		"given up at a long one":   {strings.NewReader(strings.Repeat("{\"type\":\"x\"}\n", 999) + longLine("x") + text), nil, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			var opened []*watched
			r := NewReader(interop.Source{Name: "s", Open: func() (io.ReadCloser, error) {
				in := []io.Reader{c.first, c.second}[len(opened)]
				opened = append(opened, &watched{t: t, r: in})
				return opened[len(opened)-1], nil
			}}, options())
			_, err := r.Header()
			for n := 0; n != c.entries && err == nil; n++ {
				_, err = r.Next()
			}
			if c.entries < 0 {
				if _, again := r.Next(); !errors.Is(again, err) {
					t.Errorf("after %v: %v", err, again)
				}
			}
			if c.close {
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			for i, in := range opened {
				if (c.close || c.entries < 0 && i == 0) && !in.closed {
					t.Errorf("file %d is open", i)
				}
			}
		})
	}
}

func longLine(typ string) string {
	return node{id: "long", typ: typ, extra: `,"more":"` + strings.Repeat("y", 8<<20) + `"`}.line() + "\n"
}

// TestManyBatches: diagnostics of distant lines have the right order and numbers; those of the file come once; an entry
// finds its parent and its call in any batch.
func TestManyBatches(t *testing.T) {
	const pairs = 400
	text := strings.Split(strings.TrimSuffix(longFile(pairs), "\n"), "\n")
	text[100] = "torn {"
	text[300] += "\r"
	text[500] = text[0] // again
	text[600] += "\r"
	text[700] = strings.Replace(text[700], `"uuid":"a350"`, `"uuid":"a0"`, 1)
	s, r := read(t, strings.Join(text, "\n"))
	var found []string
	for _, d := range r.Diagnostics() {
		found = append(found, fmt.Sprint(d.Ordinal, " ", d.Kind))
	}
	want := "101 bad-line, 301 converted, 501 duplicate-id, 701 duplicate-id, 800 converted, 102 orphan, 502 orphan, 702 orphan, 102 orphan-result, 502 orphan-result"
	if got := strings.Join(found, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if r.BadLines() != 1 {
		t.Errorf("%d bad lines", r.BadLines())
	}
	names := 0
	for _, e := range s.Path(t, "") {
		if strings.Contains(string(e.Raw), `"toolName":"Bash"`) {
			names++
		}
	}
	if names < pairs-5 {
		t.Errorf("%d results know their tool", names)
	}
}
