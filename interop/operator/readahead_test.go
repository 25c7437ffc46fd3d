package operator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// oddFile gives a session of n plain entries, and between some of them lines about which there is something to say.
func oddFile(n int, seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	lines := []string{head}
	parent := "null"
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"type":"message","id":"m%d","parent_id":%s,"timestamp":%d.5,"message":{"role":"assistant","contents":[{"type":"tool_call","id":"k%d","name":"ls","args":{}}],"timestamp":1}}`, i, parent, i, i),
			fmt.Sprintf(`{"type":"message","id":"r%d","parent_id":"m%d","timestamp":%d.5,"message":{"role":"tool","contents":[{"type":"tool_result","id":"k%d","content":%q},{"type":"tool_result","id":"k0"}],"timestamp":1}}`, i, i, i, i, strings.Repeat("x", rnd.IntN(2000))))
		parent = fmt.Sprintf(`"r%d"`, i)
		if rnd.IntN(50) > 0 {
			continue
		}
		odd := []string{
			"{torn", "", head, `{"id":"x"}`, `{"type":"label","parent_id":null,"timestamp":1,"label":"no id"}`, `{"type":"dream","id":"d","parent_id":null,"timestamp":1}`,
			`{"type":"session_info","id":"` + strings.Repeat("i", maxID+1) + `","parent_id":null,"timestamp":1}`,
			`{"type":"custom","id":"c","parent_id":null,"data":"` + strings.Repeat("x", maxPlain) + `"}`,
			`{"type":"custom","id":"c","parent_id":null,"data":"` + strings.Repeat("x", jsonl.MaxEntry) + `"}`,
			`{"type":"leaf","id":"l","parent_id":"r1","timestamp":1,"target_id":"r1"}` + `{"type":"label","id":"two on a line","parent_id":"l","timestamp":1}`,
		}
		lines = append(lines, odd[rnd.IntN(len(odd))])
	}
	return lf(lines...)
}

// What is read ahead is what is read line by line: the same entries, and the same is said, in the same order.
func TestAheadIsTheSame(t *testing.T) {
	seeds := uint64(3)
	if testutil.RaceEnabled {
		seeds = 1
	}
	for seed := range seeds {
		data := []byte(oddFile(1000, seed))
		calmly := open(data)
		if _, err := calmly.Header(); err != nil {
			t.Fatal(err)
		}
		calmly.ahead.plain = func(jsonl.Entry) bool { return false }
		_, want, err := readAll(calmly)
		if err != nil {
			t.Fatal(err)
		}
		r := open(data)
		_, got, err := readAll(r)
		if err != nil || len(got) < 3000 {
			t.Fatalf("%d lines, %v", len(got), err)
		}
		for i, l := range got {
			if !bytes.Equal(l.Raw, want[i].Raw) && !strings.Contains(string(l.Raw), `"no id"`) {
				t.Fatalf("seed %d, line %d:\n%.300s\n%.300s", seed, i, l.Raw, want[i].Raw)
			}
		}
		if diff := cmp.Diff(calmly.Diagnostics(), r.Diagnostics()); diff != "" || len(got) != len(want) || r.BadLines() != calmly.BadLines() {
			t.Errorf("seed %d: %d lines, want %d; %d bad, want %d\n%s", seed, len(got), len(want), r.BadLines(), calmly.BadLines(), diff)
		}
	}
}

// guarded is a source that knows whether it is read after its end.
type guarded struct {
	io.Reader
	t      *testing.T
	closed bool
}

func (g *guarded) Read(p []byte) (int, error) {
	if g.closed {
		g.t.Error("read after Close")
	}
	return g.Reader.Read(p[:min(len(p), 4096)])
}

func (g *guarded) Close() error { g.closed = true; return nil }

// Close may come at any moment: nothing reads on behind it, and no goroutine is left, or the bubble would not end.
func TestAheadEnds(t *testing.T) {
	data := oddFile(400, 9)
	broken := errors.New("broken")
	for _, n := range []int{0, 1, calmLines, calmLines + 1, 200, 1000, all} {
		synctest.Test(t, func(t *testing.T) {
			g := &guarded{Reader: io.MultiReader(strings.NewReader(data), failing{broken}), t: t}
			r := NewReader(interop.Source{Open: func() (io.ReadCloser, error) { return g, nil }}, interop.Options{Now: testNow})
			var err error
			for i := 0; i < n && err == nil; i++ {
				_, err = r.Next()
			}
			if n == all && !errors.Is(err, broken) || n < all && err != nil {
				t.Errorf("%d entries: %v", n, err)
			}
			for range 2 {
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if n > 0 && !g.closed {
				t.Error("the source is still open")
			}
		})
	}
}

const all = 1 << 30 // entries: more than there are

// Whoever asks on the way what was found loses no entry.
func TestAheadIsAsked(t *testing.T) {
	lines := []string{head}
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf(`{"type":"label","id":"l%d","parent_id":null,"timestamp":1,"label":%q}`, i, strings.Repeat("x", i%1000)))
	}
	r := open([]byte(lf(lines...)))
	for i := range 5000 {
		d, err := r.Next()
		if err != nil || !bytes.Contains(d.Raw, fmt.Appendf(nil, `"id":"l%d"`, i)) {
			t.Fatalf("entry %d: %.100s, %v", i, d.Raw, err)
		}
		if i%700 == 0 && (r.Diagnostics() != nil || r.BadLines() != 0) {
			t.Fatalf("entry %d: %v", i, r.Diagnostics())
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// An entry that would become gigabytes, for each of its messages has its place and its head, becomes a stub; so
// does one whose names are repeated beyond the limit of an entry.
func TestSizeEntryThatGrows(t *testing.T) {
	testutil.SkipSizes(t)
	results := strings.Repeat(`{"type":"tool_result","id":"k"},`, 4_000)
	for name, line := range map[string]string{
		"a long id":   `{"type":"message","id":"` + strings.Repeat("i", 60<<10) + `","parent_id":"p","timestamp":1,"message":{"role":"tool","contents":[` + results + `0]}}`,
		"a long head": `{"type":"message","id":"a","parent_id":"p","timestamp":1,"message":{"x":"` + strings.Repeat("i", 60<<10) + `","contents":[` + strings.ReplaceAll(results, `},`, `},0,`) + `0]}}`,
		"many names":  `{"type":"message","id":"a","parent_id":"p","timestamp":1,"message":{"contents":[{"type":"tool_result"` + strings.Repeat(`,"id":"k"`, 1<<16) + `}]}}`,
		"many images": `{"type":"message","id":"a","parent_id":"p","timestamp":1,"message":{"contents":[{"type":"image","images":[` + strings.Repeat("1,", 3<<20) + `1]}]}}`,
	} {
		call := `{"type":"message","id":"c","parent_id":null,"timestamp":1,"message":{"role":"assistant","contents":[{"type":"tool_call","id":"k","name":"` + strings.Repeat("n", maxName) + `"}]}}`
		r := open([]byte(lf(head, call, line, `{"type":"label","id":"z","parent_id":null,"timestamp":1}`)))
		_, lines, err := readAll(r)
		if err != nil || len(lines) != 3 {
			t.Fatalf("%s: %d lines, %v", name, len(lines), err)
		}
		if l := lines[1]; l.ParentID != "p" || !bytes.Contains(l.Raw, []byte(`"stub":{`)) || len(l.Raw) > 2<<20 || len(r.Diagnostics()) == 0 {
			t.Errorf("%s: %.300s, %v", name, l.Raw, r.Diagnostics())
		}
	}
}

// A name that counts and stands twice in a block counts as encoding/json has it: the last one.
func TestNamesTwice(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"text","content":"a","type":"image","images":["/9j/x"]}`:                        `[{"type":"image","data":"/9j/x","mimeType":"image/jpeg"}]`,
		`{"type":"tool_result","id":"k","type":"text","content":"a"}`:                            `[{"type":"text","id":"k","text":"a"}]`,
		`{"type":"thinking","signature":"s","content":"hm","signature":""}`:                      `[{"type":"thinking","thinking":"hm"}]`,
		`{"type":"tool_call","kind":null,"args":{},"kind":"read"}`:                               `[{"type":"toolCall","kind":"read","arguments":{}}]`,
		`{"type":"image","images":["/9j/x"],"images":7}`:                                         `[{"type":"image","images":7}]`,
		`{"type":"image","images":7,"images":["/9j/x"]}`:                                         `[{"type":"image","data":"/9j/x","mimeType":"image/jpeg"}]`,
		`{"typ\u0065":"text","content":"a"}`:                                                     `[{"type":"text","text":"a"}]`,
		`{"type":"text","content":"a","é<":1}`:                                                   `[{"type":"text","text":"a","é\u003c":1}]`,
		`{"type" : "text" , "content" : "a" , "é<" : [ 1 ] }`:                                    `[{"type":"text","text":"a","é\u003c":[ 1 ]}]`,
		`{"type":"image","images":["data:image/\u0070ng;base64,A\/A","\/9j\/","a\"b"]}`:          `[{"type":"image","data":"A/A","mimeType":"image/png"},{"type":"image","data":"/9j/","mimeType":"image/jpeg"},{"type":"image_url","image_url":{"url":"a\"b"}}]`,
		`{"type":"tool_call","id":"k","name":"ls"},{"type":"tool_result","id":"k","id":"other"}`: `[{"type":"toolCall","id":"k","name":"ls"}]`,
	} {
		_, lines, err := readAll(open([]byte(lf(head, `{"type":"message","id":"a","message":{"contents":[0],"contents":[`+in+`],"role":"ai"}}`))))
		if err != nil || len(lines) == 0 {
			t.Fatalf("%s: %d lines, %v", in, len(lines), err)
		}
		if want = `"content":` + want; !bytes.Contains(lines[0].Raw, []byte(want)) {
			t.Errorf("%s became %s, want %s", in, lines[0].Raw, want)
		}
		if names := `"toolCallId":"k","toolName":"ls","toolCallId":"other","toolName":""`; len(lines) > 1 && !bytes.Contains(lines[1].Raw, []byte(names)) {
			t.Errorf("%s became %s, want %s", in, lines[1].Raw, names)
		}
	}
}
