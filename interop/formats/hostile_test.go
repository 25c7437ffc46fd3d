package formats

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

var odd = []any{
	nil, true, 0, -1.5e300, 1e18, "", "x", "blob:sha256:zz",
	[]any{},
	[]any{nil, 7, "s", []any{}, obj{}},
	obj{},
	obj{"type": "text"},
	obj{"type": "text", "text": 7},
	obj{"type": "tool_result", "content": []any{obj{"type": "image"}}},
	[]any{obj{"type": "toolCall", "id": 1, "arguments": "{"}},
	obj{"role": "user"},
	"2026-01-01T00:00:00Z",
}

// twist replaces a value of an object, at any depth, by an odd one, or removes it.
func twist(d rapidDraw, v any, depth int) any {
	switch v := v.(type) {
	case obj:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		if len(names) == 0 {
			return odd[d.n("odd", len(odd))]
		}
		sortStrings(names)
		name := names[d.n("field", len(names))]
		switch pick := d.n("what", 4); {
		case pick == 0:
			delete(v, name)
		case pick == 1 || depth > 6:
			v[name] = odd[d.n("odd", len(odd))]
		default:
			v[name] = twist(d, v[name], depth+1)
		}
		return v
	case []any:
		if len(v) > 0 && d.n("in", 3) > 0 {
			i := d.n("element", len(v))
			v[i] = twist(d, v[i], depth+1)
			return v
		}
	}
	return odd[d.n("odd", len(odd))]
}

func sortStrings(s []string) {
	for i := range s {
		for k := i; k > 0 && s[k] < s[k-1]; k-- {
			s[k], s[k-1] = s[k-1], s[k]
		}
	}
}

// A value of any type in any field of any line is read without a panic, and every program loads the files written from
// it.
func TestWrongTypes(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(t *rapid.T) {
		d := rapidDraw{t}
		from, to := rapid.SampledFrom(written).Draw(t, "from"), rapid.SampledFrom(written).Draw(t, "to")
		lines := genFile(from, d, rapid.IntRange(1, 8).Draw(t, "n"))
		for range d.n("twists", 6) {
			i := d.n("line", len(lines))
			var v any
			if err := json.Unmarshal([]byte(lines[i]), &v); err != nil {
				t.Fatal(err)
			}
			out, err := json.Marshal(twist(d, v, 0))
			if err != nil {
				t.Fatal(err)
			}
			lines[i] = string(out)
		}
		Detect([]byte(lf(lines...)), "")
		s, err := tryRead(from, source("x", []byte(lf(lines...))))
		if err != nil {
			if !errors.Is(err, interop.ErrNotSession) {
				t.Fatal(err)
			}
			return
		}
		for _, p := range profiles {
			s.context(p)
		}
		text, _ := write(t, to, s, s.last())
		read(t, to, []byte(text))
	})
}

// Trees with missing parents, cycles or repeated IDs are read to the end, and files written from them have none of
// these.
func TestTangledTrees(t *testing.T) {
	line := map[interop.Format]string{
		interop.Pi: `{"type":"custom","id":%s,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","customType":"x"}`,
	}
	line[interop.Omp], line[interop.Atomic] = line[interop.Pi], line[interop.Pi]
	line[interop.Operator] = `{"type":"custom","id":%s,"parent_id":%s,"timestamp":1.0,"custom_type":"x"}`
	id := []string{`"a"`, `"b"`, `"c"`, `"d"`, `""`, "7", `"a.1"`, `"head"`, `"head.1"`}
	rapid.Check(t, func(t *rapid.T) {
		f, to := rapid.SampledFrom(written).Draw(t, "format"), rapid.SampledFrom(written).Draw(t, "to")
		lines := []string{headers[f][0]}
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			lines = append(lines, fmt.Sprintf(line[f], rapid.SampledFrom(id).Draw(t, "id"), rapid.SampledFrom(append(id, "null", `"nobody"`)).Draw(t, "parent")))
		}
		s := read(t, f, []byte(lf(lines...)))
		if len(s.entries) != len(lines)-1 {
			t.Fatalf("%d of %d entries", len(s.entries), len(lines)-1)
		}
		text, losses := write(t, to, s, s.last())
		back := read(t, to, []byte(text))
		if len(back.entries) < len(s.entries) {
			t.Fatalf("%d entries, there were %d", len(back.entries), len(s.entries))
		}
		delete(losses, piwriter.LostHeader)
		if len(s.found) == 0 && len(losses) > 0 {
			t.Fatalf("nothing was odd, and yet %v", losses)
		}
	})
	if _, err := Write(io.Discard, interop.Pi, interop.Header{}, func(func(transcript.Draft, error) bool) {}, "nobody"); err == nil {
		t.Error("a head that is nobody")
	}
}

// fill reads as n bytes of one letter without holding them.
type fill struct{ n int64 }

var letters = bytes.Repeat([]byte("x"), 64<<10)

func (f *fill) Read(p []byte) (int, error) {
	if f.n == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), f.n)], letters)
	f.n -= int64(n)
	return n, nil
}

// A line of 200 MB passes through in bounded memory, and hides nothing behind it.
func TestSizeLine(t *testing.T) {
	testutil.SkipLong(t)
	for _, f := range written {
		lines := everyType(f, false)
		open := func() (io.ReadCloser, error) {
			front, back, _ := strings.Cut(lf(lines...), "\n")
			big := `{"type":"message","id":"big","parentId":null,"parent_id":null,"message":{"role":"user","content":"`
			return io.NopCloser(io.MultiReader(strings.NewReader(front+"\n"+big), &fill{200 << 20}, strings.NewReader(`"}}`+"\n"+back))), nil
		}
		var s session
		var err error
		taken := testutil.Allocated(func() { s, err = tryRead(f, interop.Source{Open: open}) })
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		if taken > 192<<20 {
			t.Errorf("%s: %d MiB were allocated", f, taken>>20)
		}
		if s.ordinal("big") != 0 || s.ordinal("00000001") < 0 || s.reader.Verbatim() || len(s.reader.Diagnostics()) == 0 {
			t.Errorf("%s: %d entries, %v", f, len(s.entries), s.reader.Diagnostics())
		}
	}
}

// A million children of one entry, and a chain of a hundred thousand: time and memory are linear.
func TestSizeMany(t *testing.T) {
	testutil.SkipLong(t)
	testutil.SkipLong(t)
	const chain = 50_000
	children := 150_000
	if os.Getenv("COPPICE_PROOF") != "" {
		children = 1_000_000
	}
	many := func(n int, parent func(i int) string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) {
			r, w := io.Pipe()
			go func() {
				_, err := fmt.Fprintln(w, headers[interop.Operator][0])
				for i := 0; i < n && err == nil; i++ {
					_, err = fmt.Fprintf(w, `{"type":"custom","id":"%x","timestamp":1.5,"parent_id":%s,"custom_type":"x"}`+"\n", i, parent(i))
				}
				w.CloseWithError(err)
			}()
			return r, nil
		}
	}
	for name, c := range map[string]struct {
		n      int
		parent func(i int) string
	}{
		"children": {children, func(i int) string {
			if i == 0 {
				return "null"
			}
			return `"0"`
		}},
		"a chain":        {chain, func(i int) string { return fmt.Sprintf(`"%x"`, i-1) }},
		"backwards":      {chain, func(i int) string { return fmt.Sprintf(`"%x"`, i+1) }},
		"one circle":     {chain, func(i int) string { return fmt.Sprintf(`"%x"`, (i+1)%chain) }},
		"all themselves": {chain, func(i int) string { return fmt.Sprintf(`"%x"`, i) }},
	} {
		s, err := tryRead(interop.Operator, interop.Source{Open: many(c.n, c.parent)})
		if err != nil || len(s.entries) < c.n {
			t.Fatalf("%s: %d entries of %d, %v", name, len(s.entries), c.n, err)
		}
		var n counter
		if _, err := Write(&n, interop.Pi, s.header, s.seq(), s.last()); err != nil || n == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	same := func(yield func(transcript.Draft, error) bool) {
		for range chain {
			if !yield(transcript.Draft{Raw: []byte(`{"type":"custom","id":"a","parentId":"a","customType":"x"}`)}, nil) {
				return
			}
		}
	}
	if losses, err := Write(io.Discard, interop.Pi, interop.Header{}, same, "a"); err != nil || len(losses) == 0 {
		t.Errorf("one id %d times: %v, %v", chain, losses, err)
	}
}

type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// Content nested beyond the limit is refused or cut with a notice, by every reader.
func TestDepth(t *testing.T) {
	testutil.SkipLong(t)
	deep := func(n int) string { return strings.Repeat(`{"a":[`, n) + strings.Repeat(`]}`, n) }
	for _, f := range written {
		for _, n := range []int{100, 250, 254, 255, 256, 300, 100_000} {
			line := `{"type":"message","id":"d","parentId":null,"parent_id":null,"timestamp":1.0,"message":{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"n","arguments":` + deep(n) + `}]}}`
			other := `{"type":"dream","id":"e","parentId":null,"parent_id":null,"timestamp":1.0,"x":` + deep(n) + `}`
			s := read(t, f, []byte(lf(headers[f][0], line, other, `{"type":"custom","id":"z","parentId":null,"parent_id":null,"timestamp":1.0}`)))
			if s.last() != "z" || len(s.entries) < 3 && s.reader.BadLines() == 0 {
				t.Errorf("%s, %d levels: %d entries, %v", f, n, len(s.entries), s.found)
			}
			for _, to := range written {
				text, _ := write(t, to, s, "z")
				if back := read(t, to, []byte(text)); back.ordinal("z") < 0 || len(back.entries) < len(s.entries) {
					t.Errorf("%s as %s, %d levels: %d entries, there were %d: %v", f, to, n, len(back.entries), len(s.entries), back.found)
				}
			}
		}
	}
}
