package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/internal/cli/clitest"
)

// started runs the program until it reads its standard input: then it has opened its session.
func started(t *testing.T, store string, args ...string) (cmd *exec.Cmd, in io.WriteCloser, out *bytes.Buffer) {
	t.Helper()
	cmd = process(t, store, args...)
	out = &bytes.Buffer{}
	cmd.Stdout = out
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: that it all went in means that the program is reading.
	if _, err := in.Write(bytes.Repeat([]byte("\n"), 1<<20)); err != nil {
		t.Fatal(err)
	}
	return cmd, in, out
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func finish(t *testing.T, cmd *exec.Cmd, in io.WriteCloser, input string) int {
	t.Helper()
	if _, err := io.WriteString(in, input); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	return exitCode(t, cmd.Wait())
}

// Two processes on one session: nothing is lost, the second is told, and can keep both.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	must(t, store, "", "create", "--session", "s")
	must(t, store, `{"role":"user","content":"base"}`, "append", "s")

	plain, plainIn, plainOut := started(t, store, "append", "s")
	both, bothIn, bothOut := started(t, store, "append", "--keep-both", "s")
	first := must(t, store, `{"role":"assistant","content":"first"}`, "append", "s")

	if code := finish(t, plain, plainIn, `{"role":"assistant","content":"told"}`); code != 4 {
		t.Fatalf("the second writer ended with %d: %s", code, plainOut)
	}
	doc, err := clitest.Decode(plainOut.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := value(t, doc, "error.code"); got != "conflict" {
		t.Errorf("error code %q", got)
	}
	if code := finish(t, both, bothIn, `{"role":"assistant","content":"kept"}`); code != 0 {
		t.Fatalf("keeping both ended with %d: %s", code, bothOut)
	}
	if doc, err = clitest.Decode(bothOut.Bytes()); err != nil {
		t.Fatal(err)
	}
	kept := value(t, doc, "kept")

	now := must(t, store, "", "resume", "s")
	if got, want := value(t, now, "head"), value(t, first, "entries.0"); got != want {
		t.Errorf("the head is %s, not the winner's %s", got, want)
	}
	all := must(t, store, "", "show", "--all", "s")
	if text := clitest.Text(all); strings.Count(text, `"first"`) != 1 || strings.Count(text, `"kept"`) != 1 || strings.Contains(text, "told") {
		t.Errorf("not exactly what was acknowledged is there: %s", text)
	}
	must(t, store, "", "switch", "s", kept)
	now = must(t, store, "", "resume", "s")
	if got := value(t, now, "context.-1.content"); got != "kept" {
		t.Errorf("on the branch %s the last message is %s", kept, got)
	}
}

// Many processes at once: what was acknowledged is there, once.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	must(t, store, "", "create", "--session", "s")
	const writers, turns = 3, 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for n := 0; n < turns; {
				cmd := process(t, store, "append", "s")
				cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"role":"user","content":"writer %d turn %d"}`, w, n))
				out, err := cmd.Output()
				var exit *exec.ExitError
				switch {
				case err == nil:
					n++
				case errors.As(err, &exit) && exit.ExitCode() == 4: // told: once more
				default:
					t.Errorf("writer %d: %v: %s", w, err, out)
					return
				}
			}
		})
	}
	wg.Wait()
	all := clitest.Text(must(t, store, "", "show", "--all", "s"))
	for w := range writers {
		for n := range turns {
			if got := strings.Count(all, fmt.Sprintf(`"writer %d turn %d"`, w, n)); got != 1 {
				t.Errorf("turn %d of writer %d is there %d times", n, w, got)
			}
		}
	}
	if got := value(t, must(t, store, "", "resume", "s"), "seq"); got != fmt.Sprint(writers*turns) {
		t.Errorf("%s commits, want %d", got, writers*turns)
	}
}

// An interrupt ends a command with 130 and one document, and changes nothing.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no signal can be sent to another process there")
	}
	store := t.TempDir()
	must(t, store, "", "create", "--session", "s")
	cmd, _, out := started(t, store, "append", "s")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 130 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	doc, err := clitest.Decode(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := value(t, doc, "error.code"); got != "interrupted" {
		t.Errorf("error code %q", got)
	}
	if got := value(t, must(t, store, "", "resume", "s"), "seq"); got != "0" {
		t.Errorf("seq %s after an append that was interrupted", got)
	}
}
