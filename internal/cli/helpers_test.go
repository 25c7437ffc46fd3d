package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/cli/clitest"
)

// clock is the time of all commands that tests run in this process.
var clock = clitest.NewClock()

// call runs one command in this process.
func call(t *testing.T, store, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return callWith(t, nil, store, stdin, args...)
}

// callWith is call in an environment.
func callWith(t *testing.T, env map[string]string, store, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	c, out, errs := with(env, stdin)
	code = c.run(t.Context(), append([]string{"--store", store}, args...))
	return out.String(), errs.String(), code
}

// with returns a command line with an environment and an input.
func with(env map[string]string, stdin string) (c *cli, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	get := func(name string) string { return env[name] }
	return newCLI(Env{
		Stdin: strings.NewReader(stdin), Stdout: stdout, Stderr: stderr, Getenv: get, Now: clock,
	}), stdout, stderr
}

// must runs one command that has to succeed, and returns its JSON document.
func must(t *testing.T, store, stdin string, args ...string) any {
	t.Helper()
	stdout, stderr, code := call(t, store, stdin, append([]string{"--json"}, args...)...)
	if code != 0 {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
	}
	v, err := clitest.Decode([]byte(stdout))
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// value returns what is at a path of a document, as text.
func value(t *testing.T, v any, path string) string {
	t.Helper()
	x, err := clitest.At(v, path)
	if err != nil {
		t.Fatal(err)
	}
	return clitest.Text(x)
}

// process prepares the program itself as a process of its own.
func process(t *testing.T, store string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "coppice", append([]string{"--json", "--store", store}, args...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "COPPICE_HISTORY=off", "GORACE="+clitest.NoWait)
	return cmd
}

// example writes the bundled session to a file.
func example(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "example.jsonl")
	if err := os.WriteFile(name, session.JSONL(), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// bare returns a command line without an environment.
func bare() (c *cli, stdout, stderr *bytes.Buffer) { return with(nil, "") }

// damage flips a bit in the middle of every transcript below a store.
func damage(t *testing.T, store string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(store, "sessions", "*", "transcript", "*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcript in %s: %v", store, err)
	}
	for _, name := range names {
		p, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p[len(p)/2] ^= 1
		if err := os.WriteFile(name, p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
