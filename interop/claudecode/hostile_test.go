package claudecode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
)

// stream is generated while it is read.
type stream struct {
	n    int
	line func(i int) string
	i    int
	rest string
}

func (l *stream) Read(p []byte) (int, error) {
	for l.rest == "" {
		if l.i == l.n {
			return 0, io.EOF
		}
		l.rest = l.line(l.i)
		l.i++
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// drain reads a session made of n lines, and returns the number of entries and the most memory that was in use.
func drain(t testing.TB, n int, line func(i int) string) (entries int, peak uint64, r *Reader) {
	t.Helper()
	r = NewReader(interop.Source{Name: "s", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(&stream{n: n, line: line}), nil
	}}, options())
	for {
		_, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries, max(peak, testutil.Live()), r
		}
		if err != nil {
			t.Fatal(err)
		}
		if entries++; entries%50_000 == 1 {
			peak = max(peak, testutil.Live())
		}
	}
}

// size is the number of lines: a million unless the run is short.
func size() int {
	if os.Getenv("COPPICE_PROOF") != "" {
		return 1_000_000
	}
	return 20_000
}

// TestSizeLines: time is linear in the number of lines, and memory about 200 bytes per line.
func TestSizeLines(t *testing.T) {
	testutil.SkipLong(t)
	testutil.SkipLong(t)
	n := size()
	id := func(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", i) }
	line := func(i int, typ, parent, content string) string {
		return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"sessionId":"s","type":"%s","message":{"id":"m%d","role":"x","content":%s},"uuid":"%s"}`+"\n", parent, typ, i, content, id(i))
	}
	quoted := func(i int) string { return `"` + id(i) + `"` }
	for name, make := range map[string]func(i int) string{
		"children of one message": func(i int) string {
			if i == 0 {
				return line(0, "user", "null", `"q"`)
			}
			return line(i, "assistant", quoted(0), `"a"`)
		},
		"one long way": func(i int) string { return line(i, []string{"user", "assistant"}[i%2], quoted(i-1), `"x"`) },
		"one long way, backwards": func(i int) string {
			return line(n-i, []string{"user", "assistant"}[i%2], quoted(n-i-1), `"x"`)
		},
		"a circle of all":    func(i int) string { return line(i, "user", quoted((i+1)%n), `"x"`) },
		"roots":              func(i int) string { return line(i, "user", "null", `"x"`) },
		"lines of no speech": func(i int) string { return line(i, "progress", quoted(i+1), `"x"`) },
		"one message in pieces": func(i int) string {
			return strings.Replace(line(i, "assistant", quoted(i-1), `[]`), fmt.Sprint("m", i), "m", 1)
		},
		"results of one call": func(i int) string {
			if i == 0 {
				return line(0, "assistant", "null", call("c"))
			}
			return line(i, "user", quoted(i/2), result("c"))
		},
		"results without a call": func(i int) string { return line(i, "user", quoted(i-1), result(fmt.Sprint("c", i))) },
		"the same id":            func(i int) string { return line(7, "user", quoted(7), fmt.Sprintf(`"%d"`, i)) },
		"titles": func(i int) string {
			return fmt.Sprintf(`{"type":"summary","summary":"s%d","leafUuid":"%d"}`+"\n", i, i)
		},
		"long ids": func(i int) string {
			return fmt.Sprintf(`{"type":"user","uuid":"%0200d","parentUuid":"%0200d","message":{"content":"x"}}`+"\n", i, i-1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			entries, _, r := drain(t, n, make)
			if entries < 2 {
				t.Errorf("%d entries of %d lines", entries, n)
			}
			if len(r.Diagnostics()) > 101 {
				t.Error("too many diagnostics")
			}
		})
	}
}

// BenchmarkReaderMemory is what the reader holds for a line: the index is what a long file costs. Target: 330 bytes.
func BenchmarkReaderMemory(b *testing.B) {
	const n = 100_000
	pad := strings.Repeat("x", 500)
	var held uint64
	for b.Loop() {
		before := testutil.Live()
		_, peak, _ := drain(b, n, func(i int) string {
			return file(node{id: fmt.Sprintf("00000000-0000-4000-8000-%012x", i+1), parent: fmt.Sprintf("00000000-0000-4000-8000-%012x", i), typ: []string{"user", "assistant"}[i%2], content: `"` + pad + `"`})
		})
		held = peak - before
	}
	b.ReportMetric(float64(held)/n, "B/line")
}

// TestSizeLongLine: of an endless line only the beginning is held; it becomes a stub and hides nothing.
func TestSizeLongLine(t *testing.T) {
	testutil.SkipLong(t)
	const blocks = 200
	block := strings.Repeat("y", 1<<20)
	u, a := node{id: "u1", typ: "user"}.line(), node{id: "a1", parent: "u1", typ: "assistant"}.line()
	var entries int
	var r *Reader
	taken := testutil.Allocated(func() {
		entries, _, r = drain(t, blocks+4, func(i int) string {
			switch i {
			case 0:
				return u + "\n"
			case 1:
				return `{"parentUuid":"u1","isSidechain":false,"sessionId":"s1","type":"user","message":{"role":"user","content":"`
			case blocks + 2:
				return `"},"uuid":"big"}` + "\n"
			case blocks + 3:
				return a + "\n"
			}
			return block
		})
	})
	if entries != 5 || kinds(r.Diagnostics()) != "oversize" || taken > 256<<20 {
		t.Errorf("%d entries, %d MiB, %v", entries, taken>>20, r.Diagnostics())
	}
}

// TestSizeLongLines: of any number of lines with many megabytes only a few are held at a time.
func TestSizeLongLines(t *testing.T) {
	testutil.SkipLong(t)
	testutil.SkipLong(t)
	const n, size = 12, 24 << 20
	pixels := strings.Repeat("A", size)
	src := interop.Source{Name: "s", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(&stream{n: n, line: func(i int) string {
			return node{id: fmt.Sprint("u", i), typ: "user", content: `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixels + `"}}]`}.line() + "\n"
		}}), nil
	}}
	r := NewReader(src, options())
	before, peak := testutil.Live(), uint64(0)
	entries := 0
	for ; ; entries++ {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(d.Raw) < size && entries > 0 {
			t.Fatal(len(d.Raw), err)
		}
		peak = max(peak, testutil.Live())
	}
	if held := (peak - before) / size; entries != n+1 || held > 8 {
		t.Errorf("%d entries, memory of %d lines", entries, held)
	}
}

// TestSizeEntry: an entry over the bound becomes a stub that keeps the role; images do not count.
func TestSizeEntry(t *testing.T) {
	testutil.SkipLong(t)
	long := strings.Repeat("z", 5<<20)
	s, r := read(t, file(
		node{id: "u1", typ: "user", content: `[{"type":"text","text":"hi"},{"type":"text","text":"` + long + `"}]`},
		node{id: "a1", parent: "u1", typ: "assistant", content: strings.Replace(call("c1"), "ls", long, 1)},
		node{id: "r1", parent: "a1", typ: "user", content: `[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("AAAA", 1<<21) + `"}}]}]`},
	))
	if got := kinds(r.Diagnostics()); got != "oversize oversize" {
		t.Error(r.Diagnostics())
	}
	if got := s.Talk(t, ""); !strings.HasPrefix(got, "u:hi|[5242882 bytes left out") || !strings.HasSuffix(got, "a:+c1 r:=c1") {
		t.Errorf("%.300s", got)
	}
	for _, e := range s.Entries {
		if len(e.Raw) > 1<<20 && e.ID != "r1" {
			t.Errorf("%s has %d bytes", e.ID, len(e.Raw))
		}
	}
}

type failing struct{ r io.Reader }

func (f *failing) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = errDisk
	}
	return n, err
}

var errDisk = errors.New("disk is gone")

// TestFailures: errors of the underlying file are returned, with the entries read before.
func TestFailures(t *testing.T) {
	text := file(node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant"})
	opened := 0
	src := func(bad int) interop.Source {
		opened = 0
		return interop.Source{Name: "s", Open: func() (io.ReadCloser, error) {
			if opened++; opened == bad {
				return io.NopCloser(&failing{strings.NewReader(text[:len(text)-10])}), nil
			} else if opened == -bad {
				return nil, errDisk
			}
			return io.NopCloser(strings.NewReader(text)), nil
		}}
	}
	for _, bad := range []int{1, -1, 2, -2} {
		r := NewReader(src(bad), options())
		var err error
		for err == nil {
			_, err = r.Next()
		}
		if !errors.Is(err, errDisk) {
			t.Errorf("reading %d: %v", bad, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
