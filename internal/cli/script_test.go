package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-go/coppice/examples/session"
)

var update = flag.Bool("update", false, "write the golden files")

// The scripts run the program itself: the test binary, started as "coppice", is it.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"coppice": func() { os.Exit(Main(os.Args[1:])) },
	})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                "testdata/script",
		UpdateScripts:      *update,
		RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", noWait)
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("COPPICE_STORE", env.WorkDir+"/store")
			return os.WriteFile(env.WorkDir+"/example.jsonl", session.JSONL, 0o644)
		},
		Condition: func(cond string) (bool, error) {
			if cond == "nonroot" {
				return runtime.GOOS != "windows" && os.Getuid() != 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": jsonCmd, "setvar": setvarCmd, "bytes": bytesCmd, "shape": shapeCmd, "exit": exitCmd, "flip": flipCmd,
		},
	})
}

// noWait takes away the second that a program with the race detector waits before it ends.
const noWait = "atexit_sleep_ms=0"

// document reads the one JSON document in a file of a script ("stdout" and the like too).
func document(ts *testscript.TestScript, name string) any {
	v, err := decodeOne([]byte(ts.ReadFile(name)))
	if err != nil {
		ts.Fatalf("%s: %v", name, err)
	}
	return v
}

func decodeOne(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("not JSON: %w: %.200s", err, raw)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("more than one JSON document: %.200s", raw)
	}
	return v, nil
}

// at follows a path of names, numbers and "len" through a document.
func at(v any, path string) (any, error) {
	if path == "." {
		return v, nil
	}
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[step]
			if !ok {
				return nil, fmt.Errorf("%s: no %q", path, step)
			}
			v = next
		case []any:
			if step == "len" {
				v = json.Number(strconv.Itoa(len(x)))
				continue
			}
			i, err := strconv.Atoi(step)
			if i < 0 && err == nil {
				i += len(x)
			}
			if err != nil || i < 0 || i >= len(x) {
				return nil, fmt.Errorf("%s: no element %q of %d", path, step, len(x))
			}
			v = x[i]
		default:
			return nil, fmt.Errorf("%s: %q of %T", path, step, v)
		}
	}
	return v, nil
}

func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return "?"
	}
	return strings.TrimSpace(buf.String())
}

// json FILE PATH VALUE: the value at the path is this one. With ! it is another, or there is none.
func jsonCmd(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE")
	}
	v, err := at(document(ts, args[0]), args[1])
	if neg {
		if err == nil && text(v) == args[2] {
			ts.Fatalf("%s is %s", args[1], args[2])
		}
		return
	}
	if err != nil {
		ts.Fatalf("%v", err)
	}
	if text(v) != args[2] {
		ts.Fatalf("%s is %s, want %s", args[1], text(v), args[2])
	}
}

// setvar NAME FILE PATH: an environment variable from a document.
func setvarCmd(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: setvar NAME FILE PATH")
	}
	v, err := at(document(ts, args[1]), args[2])
	if err != nil {
		ts.Fatalf("%v", err)
	}
	ts.Setenv(args[0], text(v))
}

// bytes FILE TEXT...: a file of these bytes; \xNN, \n and the like count as in Go.
func bytesCmd(ts *testscript.TestScript, _ bool, args []string) {
	var b strings.Builder
	for _, a := range args[1:] {
		s, err := strconv.Unquote(`"` + strings.ReplaceAll(a, `"`, `\"`) + `"`)
		if err != nil {
			ts.Fatalf("%s: %v", a, err)
		}
		b.WriteString(s)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(b.String()), 0o644))
}

// flip FILE OFFSET: changes one bit of the byte there; a negative offset counts from the end.
func flipCmd(ts *testscript.TestScript, _ bool, args []string) {
	name := ts.MkAbs(args[0])
	p, err := os.ReadFile(name)
	ts.Check(err)
	off, err := strconv.Atoi(args[1])
	ts.Check(err)
	if off < 0 {
		off += len(p)
	}
	p[off] ^= 1
	ts.Check(os.WriteFile(name, p, 0o600))
}

// exit CODE COMMAND...: runs the program, which must end with this code.
func exitCmd(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// shape FILE GOLDEN: the document's fields and their types.
func shapeCmd(ts *testscript.TestScript, _ bool, args []string) {
	got := shapeOf(document(ts, args[0])) + "\n"
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("shape is\n%swant\n%s", got, want)
	}
}

// shapeOf tells the fields of a document and their types, in order of their names.
func shapeOf(v any) string {
	switch x := v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		var kinds []string
		for _, e := range x {
			if s := shapeOf(e); !slices.Contains(kinds, s) {
				kinds = append(kinds, s)
			}
		}
		slices.Sort(kinds)
		return "[" + strings.Join(kinds, "|") + "]"
	case map[string]any:
		var names []string
		for name := range x {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			names[i] = name + ":" + shapeOf(x[name])
		}
		return "{" + strings.Join(names, " ") + "}"
	}
	return fmt.Sprintf("%T", v)
}
