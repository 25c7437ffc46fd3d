package harness

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// odd values replace valid ones.
var odd = []string{
	"null", "true", "0", "-1.5e300", `""`, `"x"`, `"main"`, `"entry"`, `"e1"`, "[]", "{}", `[null,7,"s",[],{}]`, `{"kind":"entry"}`, `{"role":"assistant","stopReason":"error"}`,
	`"` + strings.Repeat("y", maxID+1) + `"`, `"\ud800"`, `"\u0065\u0031"`,
}

// twist puts an odd value in the place of one of a value's, however deep, or takes it away.
func twist(d *rapid.T, v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		var names []string
		for _, name := range []string{"kind", "v", "id", "parentId", "type", "seq", "timestamp", "message", "retainedTail", "namespace", "key", "op", "value", "lane", "usage", "entryId", "fact", "leafId", "role", "stopReason", "model", "content", "createdAt", "cwd", "fromId", "summary", "details", "targetId", "label", "name"} {
			if _, ok := v[name]; ok {
				names = append(names, name)
			}
		}
		if len(names) == 0 {
			break
		}
		name := rapid.SampledFrom(names).Draw(d, "field")
		switch pick := rapid.IntRange(0, 3).Draw(d, "how"); {
		case pick == 0:
			delete(v, name)
		case pick == 1 || depth > 5:
			v[name] = json.RawMessage(rapid.SampledFrom(odd).Draw(d, "odd"))
		default:
			v[name] = twist(d, v[name], depth+1)
		}
		return v
	case []any:
		if len(v) > 0 {
			i := rapid.IntRange(0, len(v)-1).Draw(d, "element")
			v[i] = twist(d, v[i], depth+1)
			return v
		}
	}
	return json.RawMessage(rapid.SampledFrom(odd).Draw(d, "odd"))
}

// A value of any type in any field of any line is read to the end, and all entries returned are valid in a session.
func TestWrongTypes(t *testing.T) {
	var files [][]string
	for _, name := range []string{"transactions", "lanes"} {
		data, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, strings.Split(strings.TrimSpace(string(data)), "\n"))
	}
	rapid.Check(t, func(d *rapid.T) {
		lines := append([]string{}, rapid.SampledFrom(files).Draw(d, "file")...)
		for range rapid.IntRange(1, 8).Draw(d, "twists") {
			i := rapid.IntRange(0, len(lines)-1).Draw(d, "line")
			var v any
			if json.Unmarshal([]byte(lines[i]), &v) != nil {
				continue
			}
			out, err := json.Marshal(twist(d, v, 0))
			if err != nil {
				d.Fatal(err)
			}
			lines[i] = string(out)
		}
		check(d, []byte(lf(lines...)))
	})
}

// check reads a file that may hold anything.
func check(t interface{ Fatalf(string, ...any) }, data []byte) {
	Detect(data)
	s, err := tryRead(source(data))
	if err != nil {
		if !isNoSession(err) {
			t.Fatalf("%v", err)
		}
		return
	}
	for _, p := range []transcript.Profile{transcript.Coppice, transcript.Pi} {
		transcript.BuildContext(s.path(int64(len(s.entries))-1), p)
	}
	if s.reader.Verbatim() {
		t.Fatalf("the lines are not the file's")
	}
}

// FuzzRead: for any file, a reader returns lines that are valid in a session, and reaches the end.
func FuzzRead(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(seeds) < 3 {
		f.Fatal("no seeds", err)
	}
	for _, name := range seeds {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(lf(headerOf(true), say("a", "a", -1)+"\x00"+say("a", "b", 1), "[[[[", `[{"kind":"entry","id":"a","parentId":"a"`)))
	f.Fuzz(func(t *testing.T, data []byte) { check(t, data) })
}

// Deep nesting is refused or kept, and leaves the rest alone.
func TestDepth(t *testing.T) {
	for _, depth := range []int{400, 505, 508, 509, 510, 511, 512, 600, 1 << 20} {
		deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		for _, line := range []string{
			`{"kind":"value","op":"set","seq":3,"namespace":"n","key":"k","value":` + deep + `}`,
			`[{"kind":"list","op":"append","seq":3,"namespace":"n","key":"k","value":` + deep + `},{"seq":4}]`,
			`{"kind":"entry","id":"d","parentId":"a","type":"message","message":{"role":"user","content":` + deep + `},"seq":3,"timestamp":1}`,
			`{"kind":"entry","id":"d","parentId":"a","type":"future","message":{"role":"user","content":` + deep + `},"seq":3,"timestamp":1}`,
			`{"kind":"entry","id":"d","parentId":"a","type":"compaction","summary":"","retainedTail":[{"role":"user","content":` + deep + `},{"role":"assistant","content":` + deep + `}],"seq":3,"timestamp":1}`,
			`{"kind":"usage","id":"d","usage":{"a":` + deep + `},"adjustment":true,"seq":3}`, deep, `{"kind":"header","v":4,"metadata":{"a":` + deep + `}}`,
		} {
			check(t, []byte(lf(headerOf(false), say("a", "", 1), line, say("b", "a", 5))))
			check(t, []byte(lf(line, say("a", "", 1))))
		}
	}
}

// Very many of anything, or very long, take time in proportion and memory within bounds.
func TestSizeMany(t *testing.T) {
	testutil.SkipLong(t)
	testutil.SkipLong(t)
	const n, some = 1 << 20, 1 << 18
	entry := func(i int) string {
		return fmt.Sprintf(`{"kind":"entry","id":"%x","parentId":null,"type":"custom","customType":"x","seq":%d,"timestamp":1}`, i, i)
	}
	for _, tt := range []struct {
		name  string
		write func(w io.Writer)
		most  uint64 // bytes held
	}{
		{"a transaction of 2^19 writes", func(w io.Writer) {
			fmt.Fprint(w, `[{"seq":0}`)
			for i := range n / 2 {
				fmt.Fprint(w, ",", entry(i))
			}
			fmt.Fprintln(w, "]")
		}, 200 << 20},
		{"a transaction of 2^20 writes", func(w io.Writer) { // over 64 MiB: a stub
			fmt.Fprint(w, `[{"seq":0}`)
			for i := range n {
				fmt.Fprint(w, ",", entry(i))
			}
			fmt.Fprintln(w, "]")
		}, 200 << 20},
		{"a line of 200 MB", func(w io.Writer) {
			fmt.Fprint(w, `{"kind":"value","op":"set","seq":3,"namespace":"n","key":"k","value":"`)
			for range 200 {
				fmt.Fprint(w, strings.Repeat("x", 1<<20))
			}
			fmt.Fprintln(w, `"}`)
		}, 200 << 20},
		{"2^18 lanes", func(w io.Writer) {
			for i := range some {
				fmt.Fprintf(w, `{"kind":"value","op":"set","seq":%d,"namespace":"pi.branch.tip","key":"l%d","value":null}`+"\n", i, i)
			}
		}, 16 << 20},
		{"2^18 turns that failed", func(w io.Writer) {
			for i := range some {
				fmt.Fprintf(w, `{"kind":"entry","id":"%x","parentId":"%x","type":"message","message":{"role":"assistant","stopReason":"error"},"seq":%d,"timestamp":1}`+"\n", i+1, i, i)
			}
		}, 64 << 20},
		{"a circle of 2^18", func(w io.Writer) {
			for i := range some {
				fmt.Fprintf(w, `{"kind":"entry","id":"%x","parentId":"%x","type":"custom","customType":"x","seq":%d,"timestamp":1}`+"\n", i, (i+1)%some, i)
			}
		}, 16 << 20},
		{"2^18 lines of nothing", func(w io.Writer) { fmt.Fprint(w, strings.Repeat("x\n", some)) }, 16 << 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := testutil.Live()
			in, out := io.Pipe()
			go func() {
				fmt.Fprint(out, lf(headerOf(false), say("a", "", 1)))
				tt.write(out)
				fmt.Fprint(out, lf(say("z", "a", n+5)))
				_ = out.Close()
			}()
			r := NewReader(interop.Source{Name: "many", Open: func() (io.ReadCloser, error) { return in, nil }}, options())
			count, last := 0, ""
			for {
				d, err := r.Next()
				if err != nil {
					if err != io.EOF { //nolint:errorlint // as it is given
						t.Fatal(err)
					}
					break
				}
				count++
				last = string(d.Raw)
			}
			after := testutil.Live()
			held := after - min(after, before)
			if held > tt.most {
				t.Errorf("%d bytes are held", held)
			}
			runtime.KeepAlive(r)
			if count < 3 || !strings.Contains(last, `"z"`) || len(r.Diagnostics()) > 101 {
				t.Errorf("%d entries, %d diagnostics", count, len(r.Diagnostics()))
			}
			t.Logf("%d entries, %d bytes held, the last %.100s", count, held, last)
		})
	}
}
