// Package clitest runs scripts of the command line on a store of any kind. A script is a testscript
// in which
//
//	run coppice ARGS... [<FILE]           runs a command, which must succeed (with ! fail)
//	exit CODE coppice ARGS... [<FILE]     runs a command, which must end with this exit code
//	json FILE PATH VALUE                  compares a value in a JSON document
//	setvar NAME FILE PATH                 sets a variable to a value in a JSON document
//	shape FILE GOLDEN                     compares the fields of a JSON document and their types
//	bytes FILE TEXT...                    writes a file; \xNN, \n and the like are as in Go
//	flip FILE OFFSET                      changes one bit of a file
//
// Commands run in the test's own process where the caller says how: a process of its own for each
// takes most of the time of a script. "exec coppice" always starts one.
package clitest

import (
	"bytes"
	"context"
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
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/testutil"
)

// Call is one command that a script runs in the test's process.
type Call struct {
	Args           []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(name string) string
	Now            func() time.Time
}

// Options say which scripts are run, and on what.
type Options struct {
	Dir    string                   // of the scripts
	Files  []string                 // or these
	Store  func(work string) string // the store of a script, by its work folder
	Disk   bool                     // it is a folder: what scripts guard by [disk] holds
	Env    []string                 // KEY=VALUE, for the programs
	Update bool                     // write the golden files

	// InProcess runs a command in this process and returns its exit code; nil = a process for each
	// command. The scripts change the working directory then: they do not run in parallel, and no
	// other test may run beside them.
	InProcess func(ctx context.Context, call Call) int
}

// Run runs the scripts. The test binary must know the program as "coppice" (testscript.Main).
func Run(t *testing.T, o Options) {
	t.Helper()
	p := testscript.Params{
		Dir: o.Dir, Files: o.Files, UpdateScripts: o.Update, RequireUniqueNames: true,
		Setup: o.setup,
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
			"run": o.runCmd, "exit": o.exitCmd,
			"json": jsonCmd, "setvar": setvarCmd, "bytes": bytesCmd, "shape": shapeCmd, "flip": flipCmd,
		},
	}
	if o.InProcess == nil {
		testscript.Run(t, p)
		return
	}
	testscript.RunT(serial{t}, p)
}

// serial runs scripts one after the other.
type serial struct{ *testing.T }

func (serial) Parallel()     {}
func (serial) Verbose() bool { return testing.Verbose() }
func (s serial) Run(name string, f func(testscript.T)) {
	s.T.Run(name, func(t *testing.T) { f(serial{t}) })
}

type clockKey struct{}

func (o Options) setup(env *testscript.Env) error {
	env.Values[clockKey{}] = NewClock()
	env.Setenv("TZ", "UTC")
	env.Setenv("GORACE", NoWait)
	env.Setenv("HOME", env.WorkDir+"/home")
	env.Setenv("COPPICE_STORE", o.Store(env.WorkDir))
	env.Setenv(testutil.ShiftVariable, os.Getenv(testutil.ShiftVariable))
	for _, kv := range o.Env {
		key, value, _ := strings.Cut(kv, "=")
		env.Setenv(key, value)
	}
	return os.WriteFile(env.WorkDir+"/example.jsonl", session.JSONL(), 0o600)
}

// run coppice ARGS... [<FILE]: runs a command, which must succeed, or with ! must not.
func (o Options) runCmd(ts *testscript.TestScript, neg bool, args []string) {
	if code := o.exitCode(ts, args); (code != 0) != neg {
		ts.Fatalf("exit code %d", code)
	}
}

// exit CODE coppice ARGS... [<FILE]: runs a command, which must end with this exit code.
func (o Options) exitCmd(ts *testscript.TestScript, _ bool, args []string) {
	if code := o.exitCode(ts, args[1:]); strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

func (o Options) exitCode(ts *testscript.TestScript, args []string) int {
	if len(args) == 0 || args[0] != "coppice" {
		ts.Fatalf("usage: run coppice ARGS... [<FILE]; exit CODE coppice ARGS... [<FILE]")
	}
	input, last := "", len(args)-1
	if file, ok := strings.CutPrefix(args[last], "<"); ok {
		input, args = ts.MkAbs(file), args[:last]
	}
	if o.InProcess != nil {
		return o.call(ts, input, args[1:])
	}
	if input != "" { // a script has no other way to the input of a process
		args = append([]string{"sh", "-c", `exec coppice "$@" <"$0"`, input}, args[1:]...)
	}
	err := ts.Exec(args[0], args[1:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	ts.Check(err)
	return 0
}

// call runs a command in this process, in the directory and the environment of the script.
func (o Options) call(ts *testscript.TestScript, input string, args []string) int {
	was, err := os.Getwd()
	ts.Check(err)
	ts.Check(os.Chdir(ts.MkAbs(".")))
	defer func() { ts.Check(os.Chdir(was)) }()
	stdin := io.Reader(strings.NewReader(""))
	if input != "" {
		raw, err := os.ReadFile(input)
		ts.Check(err)
		stdin = bytes.NewReader(raw)
	}
	clock, ok := ts.Value(clockKey{}).(func() time.Time)
	if !ok {
		ts.Fatalf("no clock")
	}
	return o.InProcess(context.Background(), Call{
		Args: args, Stdin: stdin, Stdout: ts.Stdout(), Stderr: ts.Stderr(), Getenv: ts.Getenv, Now: clock,
	})
}

// NoWait is a value for GORACE: a program with the race detector does not wait for a second before
// it ends.
const NoWait = "atexit_sleep_ms=0"

// document reads the one JSON document in a file of a script, or in "stdout".
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

// Text returns a value as JSON, and a string as it is.
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

// json FILE PATH VALUE: the value at the path must be this one; with ! it must be another one, or
// missing.
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

// bytes FILE TEXT...: writes a file of these bytes.
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

// flip FILE OFFSET: changes one bit of a byte. A pattern may name the file; a negative offset
// counts from the end.
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

// shape FILE GOLDEN: the document's fields and their types.
func shapeCmd(ts *testscript.TestScript, _ bool, args []string) {
	got := Shape(document(ts, args[0])) + "\n"
	if want := ts.ReadFile(args[1]); got != want {
		ts.Fatalf("shape is\n%swant\n%s", got, want)
	}
}

// Shape returns the fields of a document and their types, in order of their names.
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
