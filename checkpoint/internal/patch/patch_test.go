package patch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/codec"
)

type todo struct {
	Title string   `json:"title"`
	Done  bool     `json:"done"`
	After string   `json:"after,omitempty"`
	Body  []string `json:"body"`
}

// program is a typical state of a Go program: fields in declaration order, a map, a list of structs.
type program struct {
	Zone  string            `json:"zone"`
	Note  string            `json:"note,omitempty"`
	Files map[string]string `json:"files"`
	Todo  []todo            `json:"todo"`
	Alpha int               `json:"alpha"`
}

func newState() program {
	s := program{Zone: "z", Files: map[string]string{}, Alpha: 1}
	for i := range 60 {
		s.Files[fmt.Sprintf("dir/file-%02d~x.go", 2*i)] = "sha256:<abc>&" + fmt.Sprint(i)
		s.Todo = append(s.Todo, todo{Title: fmt.Sprintf("step %d: if a < b && c > d", i), Body: []string{"one", "two"}})
	}
	return s
}

func document(t testing.TB, s any) []byte {
	t.Helper()
	p, err := json.Marshal(map[string]any{"state": s})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Typical changes between two turns result in a small patch, although new members are in the middle, and encoding/json
// adds escapes.
func TestMakeIsSmall(t *testing.T) {
	for name, edit := range map[string]func(*program){
		"a number":              func(s *program) { s.Alpha++ },
		"a file among others":   func(s *program) { s.Files["dir/file-33.go"] = "<new>" },
		"files come and go":     func(s *program) { delete(s.Files, "dir/file-10~x.go"); s.Files["a"] = "b"; s.Files["zz"] = "1" },
		"a task at the end":     func(s *program) { s.Todo = append(s.Todo, todo{Title: "<last>", Body: []string{}}) },
		"the first task goes":   func(s *program) { s.Todo = s.Todo[1:] },
		"a window of tasks":     func(s *program) { s.Todo = append(s.Todo[3:], todo{Title: "x"}, todo{Title: "y"}) },
		"a task in the middle":  func(s *program) { s.Todo = append(s.Todo[:7:7], append([]todo{{Title: "<in>"}}, s.Todo[7:]...)...) },
		"omitted field appears": func(s *program) { s.Note = "between others" },
		"nested one appears":    func(s *program) { s.Todo[4].After = "step 3" },
		"both kinds of order":   func(s *program) { s.Todo[4].After = "step 3"; s.Files["dir/file-33.go"] = "q"; s.Note = "n" },
		"null for a list":       func(s *program) { s.Todo[9].Body = nil },
	} {
		was, is := newState(), newState()
		edit(&is)
		from, to := document(t, was), document(t, is)
		patch, sorted, ok := Make(from, to)
		if !ok || len(patch) > len(to)/8 {
			t.Errorf("%s: patch of %d bytes for a document of %d, ok %v: %.300s", name, len(patch), len(to), ok, patch)
			continue
		}
		out, err := Apply(from, patch, sorted)
		if err != nil || !bytes.Equal(out, to) {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// Cases in which libraries lost data silently: a returned patch must produce the exact bytes.
func TestMakeIsExact(t *testing.T) {
	pad := `,"pad":"` + strings.Repeat("x", 400) + `"}`
	values := []string{
		`1`, `1.0`, `1e0`, `-0`, `0`, `9007199254740993`, `9007199254740992`, `1e400`, `12345678901234567891`, `null`, `""`, `"\u00e9"`, `"é"`,
		`"\ud800"`, `"\ud83d\ude00"`, `"😀"`, `"<"`, `"\u003c"`, `"\u2028"`, "\"\u2028\"", `[]`, `{}`, `[[]]`, `[{}]`, `{"":1}`, `{"":{"":[]}}`,
		`{"~":1,"/":2}`, `{"~1":1,"~0":2}`, `{"a/b":1}`, `{"é":1}`, `{"\u00e9":1}`, `{"-":1,"0":2}`, `{"a":1,"b":2}`, `{"b":2,"a":1}`, `{"a":1,"a":2}`,
		`{"a":2,"a":1}`, `{"\ud800":1,"\ud801":2}`, `[null]`, `[null,null]`, `[1,2,3]`, `[3,2,1]`, `[1,1,1]`, `"null"`, "\"\xff\"", `{"` + "\xff" + `":1}`,
	}
	patched := 0
	for _, a := range values {
		for _, b := range values {
			from, to := []byte(`{"state":`+a+pad), []byte(`{"state":`+b+pad)
			patch, sorted, ok := Make(from, to)
			if !ok {
				continue
			}
			patched++
			out, err := Apply(from, patch, sorted)
			if err != nil || !bytes.Equal(out, to) {
				t.Errorf("%s to %s by %s: %s, %v", a, b, patch, out, err)
			}
			if !json.Valid(patch) {
				t.Errorf("%s to %s: %s is no JSON", a, b, patch)
			}
		}
	}
	if all := len(values) * len(values); patched < all*3/4 {
		t.Errorf("only %d of %d changes have a patch", patched, all)
	}
}

func TestMakeRefuses(t *testing.T) {
	long := strings.Repeat("y", 1000)
	for name, tt := range map[string][2]string{
		"over half":       {`{"state":1}`, `{"state":"` + long + `"}`},
		"name twice":      {`{"state":1,"state":2,"p":"` + long + `"}`, `{"state":1,"state":3,"p":"` + long + `"}`},
		"no JSON":         {`{`, `{"state":1}`},
		"to is no JSON":   {`{"state":1}`, `{`},
		"empty":           {``, `{"state":1}`},
		"white space":     {`{"state": 1,"p":"` + long + `"}`, `{"state":2,"p":"` + long + `"}`},
		"from no object":  {`[1,"` + long + `"]`, `[2,"` + long + `"]`},
		"nested too deep": {`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, `{"a":1}`},
	} {
		if patch, _, ok := Make([]byte(tt[0]), []byte(tt[1])); ok {
			t.Errorf("%s: offers %.100s", name, patch)
		}
	}
}

// Arrays over the limit are compared index by index, without the product of their lengths.
func TestMakeLongArrays(t *testing.T) {
	list := make([]int, 50_000)
	for i := range list {
		list[i] = i
	}
	from := document(t, list)
	list = append(list, 7)
	list[100] = -1
	to := document(t, list)
	patch, sorted, ok := Make(from, to)
	if !ok || len(patch) > 200 {
		t.Fatalf("ok %v, %d bytes", ok, len(patch))
	}
	if out, err := Apply(from, patch, sorted); err != nil || !bytes.Equal(out, to) {
		t.Error(err)
	}
	if patch, _, ok := Make(to, document(t, list[1:])); ok {
		t.Errorf("everything moved, and still a patch of %d bytes", len(patch))
	}
}

func TestApplyHostile(t *testing.T) {
	doc := `{"state":{"a":[1,2,3],"b":{"c":"` + strings.Repeat("z", 1000) + `"}}}`
	bomb := `[{"op":"copy","from":"/state/b","path":"/state/x"}`
	for i := range 40 {
		bomb += fmt.Sprintf(`,{"op":"copy","from":"/state","path":"/state/y%d"}`, i)
	}
	for name, patch := range map[string]string{
		"not JSON": `[`, "not a list": `{}`, "null": `null`, "list of lists": `[[]]`, "number": `[1]`, "no op": `[{}]`, "unknown op": `[{"op":"x","path":"/a"}]`,
		"no path": `[{"op":"add","value":1}]`, "no value": `[{"op":"add","path":"/state/a/0"}]`, "no value at the root": `[{"op":"add","path":""}]`,
		"replace beyond": `[{"op":"replace","path":"/state/a/9","value":1}]`, "set beyond": `[{"op":"replace","path":"/state/a/3","value":1}]`,
		"negative": `[{"op":"remove","path":"/state/a/-1"}]`, "index huge": `[{"op":"add","path":"/state/a/99999999999999999999","value":1}]`,
		"remove missing": `[{"op":"remove","path":"/nope"}]`, "into a string": `[{"op":"add","path":"/state/b/c/d","value":1}]`,
		"test fails": `[{"op":"test","path":"/state","value":1}]`, "root scalar": `[{"op":"replace","path":"","value":1}]`, "null op": `[null]`,
		"copy bomb": bomb + `]`, "white space": `[ ]`, "deep": strings.Repeat("[", 10000) + strings.Repeat("]", 10000), "path no string": `[{"op":"add","path":{},"value":1}]`,
		"move without from": `[{"op":"move","path":"/a"}]`, "replace root no value": `[{"op":"replace","path":""}]`,
	} {
		for _, sorted := range []bool{false, true} {
			out, err := Apply([]byte(doc), []byte(patch), sorted)
			var limit *codec.LimitError
			if !errors.Is(err, codec.ErrFormat) && !errors.As(err, &limit) {
				t.Errorf("%s: %v, %.100s", name, err, out)
			}
		}
	}
	for _, from := range []string{``, `[]`, `1`, `null`, `{`, `{}x`} {
		if _, err := Apply([]byte(from), []byte(`[]`), false); err == nil {
			t.Errorf("document %q passes", from)
		}
	}
	big := `{"a":[` + strings.Repeat("0,", 30_000) + `0]}`
	many := `[{"op":"remove","path":"/a/0"}` + strings.Repeat(`,{"op":"remove","path":"/a/0"}`, 29_000) + `]`
	var limit *codec.LimitError
	if _, err := Apply([]byte(big), []byte(many), false); !errors.As(err, &limit) {
		t.Errorf("29,001 removals from an array of 30,001: %v", err)
	}
}

func TestApplyLeavesItsInput(t *testing.T) {
	from := []byte(`{"state":[1]}`)
	out, err := Apply(from, []byte(`[]`), true)
	if err != nil || !bytes.Equal(out, from) {
		t.Fatalf("%s, %v", out, err)
	}
	out[0] = 'x'
	if from[0] != '{' {
		t.Error("the result shares memory with the document")
	}
}

func TestSortedOrder(t *testing.T) {
	add := []byte(`[{"op":"add","path":"/m/b","value":2},{"op":"add","path":"/u/b","value":2},{"op":"add","path":"/n","value":{"y":1,"x":2}}]`)
	from := []byte(`{"m":{"a":1,"c":3},"u":{"c":3,"a":1},"z":[{"b":1,"a":2}]}`)
	want := `{"m":{"a":1,"b":2,"c":3},"n":{"y":1,"x":2},"u":{"c":3,"a":1,"b":2},"z":[{"b":1,"a":2}]}`
	if out, err := Apply(from, add, true); err != nil || string(out) != want {
		t.Errorf("got %s, %v\nwant %s", out, err, want)
	}
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"", "", `[]`},
		{"", `{"n": 1}`, `[{"op":"add","path":"","value":{"n":1}}]`},
		{"1", "", `[{"op":"remove","path":""}]`},
		{"1", " 1\n", `[]`},
		{"1", "1.0", `[{"op":"replace","path":"","value":1.0}]`},
		{"1", `"<"`, `[{"op":"replace","path":"","value":"<"}]`},
		{`[]`, `{}`, `[{"op":"add","path":"","value":{}}]`},
		{`{"a":1,"b":[1,2,3]}`, `{"b":[2,3,4],"c":null}`, `[{"op":"remove","path":"/a"},{"op":"remove","path":"/b/0"},{"op":"add","path":"/b/2","value":4},{"op":"add","path":"/c","value":null}]`},
		{`{"x/y~":9007199254740992}`, `{"x/y~":9007199254740993}`, `[{"op":"replace","path":"/x~1y~0","value":9007199254740993}]`},
	} {
		got, err := Diff(json.RawMessage(tt.a), json.RawMessage(tt.b))
		if err != nil || string(got) != tt.want {
			t.Errorf("%q to %q: %s, %v, want %s", tt.a, tt.b, got, err, tt.want)
		}
	}
	for _, bad := range []string{`{`, `{"a":1,"a":2}`} {
		if _, err := Diff(json.RawMessage(bad), json.RawMessage(`1`)); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("from %s: %v", bad, err)
		}
		if _, err := Diff(json.RawMessage(`1`), json.RawMessage(bad)); !errors.Is(err, codec.ErrFormat) {
			t.Errorf("to %s: %v", bad, err)
		}
	}
}
