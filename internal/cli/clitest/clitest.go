// Package clitest runs scripts of the command line: testscript, with commands that look into the JSON of
// coppice, on a store of any kind.
package clitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-go/coppice/examples/session"
)

// Options say which scripts are run, and on what.
type Options struct {
	Dir    string                   // of the scripts
	Files  []string                 // or these
	Store  func(work string) string // the store of a script, by its work folder
	Disk   bool                     // it is a folder: what scripts guard by [disk] holds
	Env    []string                 // KEY=VALUE, for the programs
	Update bool                     // write the golden files
}

// Run runs the scripts. The test binary must know the program as "coppice" (testscript.Main).
func Run(t *testing.T, o Options) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Dir: o.Dir, Files: o.Files, UpdateScripts: o.Update, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("TZ", "UTC")
			env.Setenv("GORACE", NoWait)
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("COPPICE_STORE", o.Store(env.WorkDir))
			for _, kv := range o.Env {
				key, value, _ := strings.Cut(kv, "=")
				env.Setenv(key, value)
			}
			return os.WriteFile(env.WorkDir+"/example.jsonl", session.JSONL, 0o600)
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "nonroot":
				return runtime.GOOS != "windows" && os.Getuid() != 0, nil
			case "disk":
				return o.Disk, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"json": jsonCmd, "setvar": setvarCmd, "bytes": bytesCmd, "shape": shapeCmd, "exit": exitCmd, "flip": flipCmd,
		},
	})
}

// NoWait takes away the second that a program with the race detector waits before it ends: GORACE.
const NoWait = "atexit_sleep_ms=0"

// document reads the one JSON document in a file of a script ("stdout" and the like too).
func document(ts *testscript.TestScript, name string) any {
	v, err := Decode([]byte(ts.ReadFile(name)))
	if err != nil {
		ts.Fatalf("%s: %v", name, err)
	}
	return v
}

// Decode reads the one JSON document in raw; numbers keep their literals.
func Decode(raw []byte) (any, error) {
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

// At follows a path of names, numbers and "len" through a document.
func At(v any, path string) (any, error) {
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

// Text is a value as JSON, and a string as it is.
func Text(v any) string {
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
	v, err := At(document(ts, args[0]), args[1])
	if neg {
		if err == nil && Text(v) == args[2] {
			ts.Fatalf("%s is %s", args[1], args[2])
		}
		return
	}
	if err != nil {
		ts.Fatalf("%v", err)
	}
	if Text(v) != args[2] {
		ts.Fatalf("%s is %s, want %s", args[1], Text(v), args[2])
	}
}

// setvar NAME FILE PATH: an environment variable from a document.
func setvarCmd(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: setvar NAME FILE PATH")
	}
	v, err := At(document(ts, args[1]), args[2])
	if err != nil {
		ts.Fatalf("%v", err)
	}
	ts.Setenv(args[0], Text(v))
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

// flip FILE OFFSET: changes one bit of a byte of the file, which a pattern may name; a negative offset counts from the end.
func flipCmd(ts *testscript.TestScript, _ bool, args []string) {
	names, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(names) != 1 {
		ts.Fatalf("%s names %d files", args[0], len(names))
	}
	name := names[0]
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
	got := Shape(document(ts, args[0])) + "\n"
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("shape is\n%swant\n%s", got, want)
	}
}

// Shape tells the fields of a document and their types, in order of their names.
func Shape(v any) string {
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
			if s := Shape(e); !slices.Contains(kinds, s) {
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
			names[i] = name + ":" + Shape(x[name])
		}
		return "{" + strings.Join(names, " ") + "}"
	}
	return fmt.Sprintf("%T", v)
}
