package codex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/coppice-go/coppice/interop"
)

// TestClose: Close at any time leaves no goroutine and no open file. The file is longer than the read-ahead, has lines
// of every size, and continues from a base.
func TestClose(t *testing.T) {
	long := with(said("@"), strings.Repeat("x", 700<<10))
	one := metaOn(1, 0, "") + strings.Repeat(user("q"), 2000) + long + long + strings.Repeat("x\n", 3000)
	own := metaOn(9, 1, bytesEnd(one)) + strings.Repeat(user("q")+said("a"), 12_000) + strings.Repeat(long, 3) + user("end")
	for name, pack := range map[string]func(string) string{
		"plain": func(s string) string { return s },
		"zst":   func(s string) string { return string(pack(t, []byte(s))) },
	} {
		files := map[string]string{"own": pack(own), file(1): pack(one)}
		for _, n := range []int{-1, 0, 1, 2003, 5000, 26_004} {
			open := 0
			at := func(name string) (io.ReadCloser, error) {
				open++
				return &closing{strings.NewReader(files[name]), func() { open-- }}, nil
			}
			r := NewReader(interop.Source{
				Name: "own", Open: func() (io.ReadCloser, error) { return at("own") }, Beside: at,
				List: func(string) ([]string, error) { return []string{file(1)}, nil },
			}, interop.Options{Now: now})
			if n >= 0 {
				if _, err := r.Header(); err != nil {
					t.Fatal(err)
				}
			}
			for i := range n {
				if _, err := r.Next(); err != nil {
					t.Fatalf("entry %d: %v", i, err)
				}
			}
			for range 2 {
				if err := r.Close(); err != nil || open != 0 {
					t.Errorf("%s, closed after %d entries: %v, %d files are open", name, n, err, open)
				}
			}
			if err := goleak.Find(); err != nil {
				t.Fatalf("%s, closed after %d entries: %v", name, n, err)
			}
			if _, err := r.Next(); err == nil {
				t.Errorf("%s, closed after %d entries: there is another", name, n)
			}
		}
	}
}

// TestLeave: a base that is left before its end is closed at once, and lines read ahead are dropped.
func TestLeave(t *testing.T) {
	open := 0
	src := source(metaOn(9, 1, `,"end_ordinal_exclusive":101`) + user("end"))
	src.List = func(string) ([]string, error) { return []string{file(1)}, nil }
	src.Beside = func(string) (io.ReadCloser, error) {
		open++
		return &closing{strings.NewReader(metaOn(1, 0, "") + strings.Repeat(user("q"), 50_000)), func() { open-- }}, nil
	}
	r := NewReader(src, interop.Options{Now: now})
	if s := collect(t, r); len(s.Entries) != 103 || open != 0 || len(r.Diagnostics()) > 0 {
		t.Errorf("%d entries, %d files are open, %v", len(s.Entries), open, r.Diagnostics())
	}
	if err := goleak.Find(); err != nil {
		t.Error(err)
	}
}

type closing struct {
	io.Reader
	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return nil
}

// TestOrder: lines of every size keep their order. Diagnostics are in order of lines, as from one goroutine: damage of
// a line before findings in its content.
func TestOrder(t *testing.T) {
	var text, want strings.Builder
	text.WriteString(meta)
	n := 1
	line := func(s, found string) {
		n++
		text.WriteString(s)
		if found != "" {
			fmt.Fprintf(&want, "%d %s\n", n, found)
		}
	}
	for i := range 12 {
		for range 900 {
			line(user(fmt.Sprint("q", n+1)), "")
		}
		switch i % 4 {
		case 0:
			line("{}\n", "bad-line an object without a type")
		case 1:
			for range 2 { // after half a batch, and each longer than one read
				line(with(user("@"), fmt.Sprint("q", n+1, strings.Repeat("-", 400<<10))), "")
			}
			line("7\n", "bad-line no JSON object")
		case 2:
			line(with(user("@"), fmt.Sprint("q", n+1, strings.Repeat("-", 600<<10))), "")
			line("\x00\x00{}\n", "bad-line 2 NUL bytes, as a crash leaves them")
			fmt.Fprintf(&want, "%d bad-line an object without a type\n", n)
		case 3:
			line("\n", "")
		}
	}
	r := reader(text.String())
	s := collect(t, r)
	at := 1
	for _, e := range s.Entries[1:] {
		var number int
		if _, err := fmt.Sscanf(e.ID, "cx-%d", &number); err != nil || number <= at || !bytes.Contains(e.Raw, fmt.Appendf(nil, `"q%d`, number)) {
			t.Fatalf("behind line %d: %.300s", at, e.Raw)
		}
		at = number
	}
	var got strings.Builder
	for _, d := range r.Diagnostics() {
		fmt.Fprintf(&got, "%d %s %s\n", d.Ordinal, d.Kind, d.Detail)
	}
	if got.String() != want.String() || len(s.Entries) != 1+12*900+9 {
		t.Errorf("%d entries, diagnostics\n%s\nwant\n%s", len(s.Entries), got.String(), want.String())
	}
}

// TestMuchDamage: findings beyond the bound of the list are counted.
func TestMuchDamage(t *testing.T) {
	r := reader(meta + user("q") + strings.Repeat("1\n", 70_000) + user("q") + strings.Repeat("2\n", 5))
	s := collect(t, r)
	d := r.Diagnostics()
	if len(s.Entries) != 3 || r.BadLines() != 70_005 || len(d) != 101 || d[100].Detail != "69905 more" {
		t.Errorf("%d entries, %d bad lines, %d diagnostics: %v", len(s.Entries), r.BadLines(), len(d), d[len(d)-1])
	}
}

// TestReadError: entries before a read error are returned, and then the same error at every call.
func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	text := meta + strings.Repeat(user("q"), 5000)
	r := NewReader(interop.Source{Name: "s", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))), nil
	}}, interop.Options{Now: now})
	n, err := 0, error(nil)
	for ; err == nil; n++ {
		_, err = r.Next()
	}
	if _, again := r.Next(); n != 5002 || !errors.Is(err, broken) || !errors.Is(again, broken) || !strings.HasPrefix(err.Error(), "s: read at offset ") {
		t.Errorf("%d entries, then %v and %v", n-1, err, again)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}
