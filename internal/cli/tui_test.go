//go:build linux || darwin

package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/clitest"
)

// person sits at a pseudo-terminal at which a command runs.
type person struct {
	t   *testing.T
	cmd *exec.Cmd
	tty *os.File
	out bytes.Buffer // the standard output of the command, where it is not the terminal

	drawn chan []byte // what the terminal shows; closed at the end
	seen  bytes.Buffer
}

// sit starts a command at a terminal of 120 columns and 30 lines.
func sit(t *testing.T, store string, piped bool, env []string, args ...string) *person {
	t.Helper()
	p := &person{t: t, drawn: make(chan []byte, 1<<12)}
	p.cmd = exec.CommandContext(t.Context(), "coppice", append([]string{"--store", store}, args...)...)
	p.cmd.Env = append(append(os.Environ(), "TZ=UTC", "COPPICE_HISTORY=off", "TERM=xterm-256color", "PAGER=",
		"GORACE="+clitest.NoWait), env...)
	if piped {
		p.cmd.Stdout = &p.out
	}
	tty, err := pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 30, Cols: 120})
	if errors.Is(err, pty.ErrUnsupported) {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.tty = tty
	done := make(chan struct{})
	go func() { // a terminal never makes a program wait
		defer close(done)
		defer close(p.drawn)
		for {
			buf := make([]byte, 1<<12)
			n, err := p.tty.Read(buf) // EIO on Linux when the last user of the terminal is gone
			p.drawn <- buf[:n]
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = p.tty.Close()
		for range p.drawn { // until the reader has ended
		}
		<-done
	})
	return p
}

// sees reads until the terminal has shown a text since the last call. Later screens are drawn as differences, in which
// words are in pieces: only the first one is read.
func (p *person) sees(text string) *person {
	p.t.Helper()
	for !strings.Contains(p.seen.String(), text) {
		b, ok := <-p.drawn
		if p.seen.Write(b); !ok && !strings.Contains(p.seen.String(), text) {
			p.t.Fatalf("the command ended before the terminal showed %q; it showed %q", text, p.seen.String())
		}
	}
	p.seen.Reset()
	return p
}

func (p *person) types(keys string) *person {
	p.t.Helper()
	if _, err := io.WriteString(p.tty, keys); err != nil {
		p.t.Fatal(err)
	}
	return p
}

// leaves reads to the end and returns the exit code.
func (p *person) leaves() int {
	p.t.Helper()
	for b := range p.drawn {
		p.seen.Write(b)
	}
	return exitCode(p.t, p.cmd.Wait())
}

func demoStore(t *testing.T) string {
	t.Helper()
	store := filepath.Join(t.TempDir(), "store")
	if out, err := process(t, store, "import", example(t)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return store
}

// The id that was picked is all of the standard output; leaving without a choice is 130 and prints nothing.
func TestPickOnATerminal(t *testing.T) {
	store := demoStore(t)
	p := sit(t, store, true, nil, "pick")
	p.sees("tideline").types("no such thing\r\x15tide\r")
	if code := p.leaves(); code != 0 || !strings.HasPrefix(p.out.String(), "019c") ||
		strings.Count(p.out.String(), "\n") != 1 {
		t.Errorf("exit code %d, printed %q; want 0 and one id", code, p.out.String())
	}
	p = sit(t, store, true, nil, "pick", "--list")
	if code := p.leaves(); code != 0 || !strings.HasPrefix(p.out.String(), "SESSION") {
		t.Errorf("exit code %d, printed %q; want 0 and the list", code, p.out.String())
	}
	p = sit(t, store, true, nil, "pick").sees("tideline").types("\x03")
	if code := p.leaves(); code != api.ExitInterrupted || p.out.Len() > 0 {
		t.Errorf("exit code %d, printed %q; want 130 and nothing", code, p.out.String())
	}
}

// Looking at a tree writes nothing; a rollback is confirmed, and is there when the program has ended.
func TestBrowseOnATerminal(t *testing.T) {
	store := demoStore(t)
	commits := func() int {
		t.Helper()
		out, err := process(t, store, "log", "019c").Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(out), `"seq":`)
	}
	before := commits()
	p := sit(t, store, false, nil, "tui", "019c")
	p.sees("tideline").types("\rsq")
	if code := p.leaves(); code != 0 || commits() != before {
		t.Errorf("exit code %d, %d commits; want 0 and %d", code, commits(), before)
	}
	// Without a session the person picks one.
	p = sit(t, store, false, nil, "tui").sees("tideline  2").types("tide\r").sees("roll back").types("q")
	if code := p.leaves(); code != 0 || commits() != before {
		t.Errorf("picked: exit code %d, %d commits; want 0 and %d", code, commits(), before)
	}
	p = sit(t, store, false, nil, "tui", "019c")
	p.sees("tideline").types("gry")
	for commits() == before { // until the program has rolled back
		if t.Context().Err() != nil {
			t.Fatal("the rollback was not made")
		}
	}
	p.types("\x03") // q waits for what the program makes of the outcome
	if code := p.leaves(); code != 0 || commits() != before+1 {
		t.Errorf("exit code %d, %d commits; want 0 and %d", code, commits(), before+1)
	}
}

// Output that is longer than the terminal goes through $PAGER, shorter output does not, and leaving the pager early is
// no failure.
func TestPager(t *testing.T) {
	store := demoStore(t)
	pager := filepath.Join(t.TempDir(), "pager")
	if err := os.WriteFile(pager, []byte("#!/bin/sh\nhead -n 3\necho paged by $0 $1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"PAGER=" + pager + " well"}
	p := sit(t, store, false, env, "show", "019c")
	p.sees("paged by " + pager + " well")
	if code := p.leaves(); code != 0 {
		t.Errorf("exit code %d, %q", code, p.seen.String())
	}
	p = sit(t, store, false, env, "list")
	p.sees("tideline")
	if code := p.leaves(); code != 0 || strings.Contains(p.seen.String(), "paged") {
		t.Errorf("exit code %d; a short list: %q", code, p.seen.String())
	}
	p = sit(t, store, false, []string{"PAGER=/no/such/pager"}, "show", "019c").sees("tideline")
	if code := p.leaves(); code != 0 || strings.Count(p.seen.String(), "\n") < 100 {
		t.Errorf("exit code %d, %d lines; want the whole output", code, strings.Count(p.seen.String(), "\n"))
	}
}
