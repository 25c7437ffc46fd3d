package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/api"
)

// watchClock is the clock of a watch. Short waits are over at once and take no time. A long one is over, and the time
// has passed, while the files are silent; else it never is.
type watchClock struct {
	mu     sync.Mutex
	now    time.Time
	silent bool
	waits  []chan time.Time
	length []time.Duration
}

func (c *watchClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *watchClock) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= time.Second {
		ch <- c.now
		return ch
	}
	c.waits, c.length = append(c.waits, ch), append(c.length, d)
	c.pass()
	return ch
}

// pass lets the time of the newest long wait pass, if the files are silent. The wait for the end is no such wait.
func (c *watchClock) pass() {
	i := len(c.waits) - 1
	if !c.silent || i < 0 || c.length[i] <= ending {
		return
	}
	c.now = c.now.Add(c.length[i])
	c.waits[i] <- c.now
	c.waits, c.length = c.waits[:i], c.length[:i]
}

// silence lets the files be silent, or ends that.
func (c *watchClock) silence(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = on
	c.pass()
}

// watched is a running import --watch.
type watched struct {
	t      *testing.T
	clock  *watchClock
	stdout chan string
	cancel context.CancelFunc
	done   chan int
	env    map[string]string
}

func watching(t *testing.T, args ...string) *watched {
	t.Helper()
	w := unwatched(t)
	w.watch(args...)
	return w
}

// unwatched returns a store that is not watched yet.
func unwatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{t: t, clock: &watchClock{now: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}, done: make(chan int, 1)}
	w.env = map[string]string{"COPPICE_STORE": t.TempDir(), "HOME": t.TempDir(), "COPPICE_HISTORY": "off"}
	return w
}

// watch starts import --watch.
func (w *watched) watch(args ...string) {
	t := w.t
	t.Helper()
	out, stdout := io.Pipe()
	errs, stderr := io.Pipe()
	w.stdout = make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	w.cancel = cancel
	go func() {
		code := Run(ctx, Env{
			Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, Now: w.clock.Now, After: w.clock.After,
			Getenv: func(name string) string { return w.env[name] },
		}, append([]string{"import", "--watch"}, args...))
		w.done <- code
		_, _ = stdout.Close(), stderr.Close()
	}()
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			w.stdout <- lines.Text()
		}
		close(w.stdout)
	}()
	lines := bufio.NewScanner(errs)
	if !lines.Scan() || !strings.Contains(lines.Text(), "watching") {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	go func() { _, _ = io.Copy(io.Discard, errs) }()
}

// says waits for the next line of the output, which must begin with a text.
func (w *watched) says(text string) {
	w.t.Helper()
	select {
	case line := <-w.stdout:
		if line = strings.Join(strings.Fields(line), " "); !strings.HasPrefix(line, text) { // columns are aligned
			w.t.Fatalf("%q: want %q", line, text)
		}
	case <-time.After(time.Minute):
		w.t.Fatalf("no output: want %q", text)
	}
}

// run runs another command on the store.
func (w *watched) run(args ...string) string {
	w.t.Helper()
	var out strings.Builder
	code := Run(w.t.Context(), Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: io.Discard, Now: w.clock.Now,
		Getenv: func(name string) string { return w.env[name] },
	}, args)
	if code != 0 {
		w.t.Fatalf("%v: exit code %d", args, code)
	}
	return out.String()
}

// end interrupts the watch, which must end well.
func (w *watched) end() {
	w.t.Helper()
	w.cancel()
	for line := range w.stdout {
		w.t.Log(line)
	}
	if code := <-w.done; code != api.ExitDone {
		w.t.Errorf("exit code %d", code)
	}
}

// add appends to a file, which it makes if need be.
func add(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

const (
	watchedPi = `{"type":"session","version":3,"id":"pi-1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}` + "\n" +
		`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-02T03:04:06.000Z","message":` +
		`{"role":"user","content":"hello"}}` + "\n"
	watchedMore = `{"type":"message","id":"m2","parentId":"m1","timestamp":"2026-01-02T03:04:07.000Z","message":` +
		`{"role":"user","content":"more"}}` + "\n"
	claudeID = "22220000-0000-4000-8000-000000000001"
)

// claudeLine is a line of Claude Code.
func claudeLine(n int, kind, message string) string {
	parent := "null"
	if n > 1 {
		parent = fmt.Sprintf(`"22220000-0000-4000-8000-0000000001%02d"`, n-1)
	}
	return fmt.Sprintf(`{"parentUuid":%s,"isSidechain":false,"userType":"external","cwd":"/w","sessionId":%q,`+
		`"version":"2.1.0","type":%q,"message":%s,"uuid":"22220000-0000-4000-8000-0000000001%02d",`+
		`"timestamp":"2026-01-02T03:04:%02d.000Z"}`+"\n", parent, claudeID, kind, message, n, n)
}

// TestImportWatch watches a folder: complete messages and results are imported at once, an unfinished line and an
// unfinished answer after 10 seconds of silence, folders that appear are watched, and all is stored at the end.
func TestImportWatch(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"notification", "polling"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := []string{dir}
			if how == "polling" {
				args = append(args, "--poll")
			}
			add(t, filepath.Join(dir, "old.jsonl"), strings.ReplaceAll(watchedPi, "pi-1", "old-1"))
			w := watching(t, args...)
			w.says("old-1 1 entry")
			pi := filepath.Join(dir, "new", "folder", "pi.jsonl")
			add(t, pi, watchedPi)
			w.says("pi-1 1 entry")
			add(t, pi, watchedMore[:40])
			claude := filepath.Join(dir, "new", "claude.jsonl")
			call := claudeLine(2, "assistant", `{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"tool_use",`+
				`"id":"toolu_1","name":"Bash","input":{}}],"stop_reason":null}`)
			add(t, claude, claudeLine(1, "user", `{"role":"user","content":"go"}`)+call)
			w.says(claudeID[:13] + " 2 entries") // the answer may go on
			add(t, claude, claudeLine(3, "user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1",`+
				`"content":"out"}]}`))
			w.says(claudeID[:13] + " 5 entries, 3 of them new")
			add(t, pi, watchedMore[40:])
			w.says("pi-1 2 entries, 1 of them new")

			text := claudeLine(4, "assistant", `{"id":"msg_2","role":"assistant","model":"m","content":[{"type":"text",`+
				`"text":"done"}],"stop_reason":null}`)
			add(t, claude, text)
			w.clock.silence(true)
			w.says(claudeID[:13] + " 6 entries, 1 of them new")
			w.clock.silence(false)

			last := claudeLine(5, "assistant", `{"id":"msg_3","role":"assistant","model":"m","content":[{"type":"text",`+
				`"text":"and"}],"stop_reason":null}`) + `{"torn`
			add(t, claude, last)
			w.end()
			whole, err := os.ReadFile(claude)
			if err != nil {
				t.Fatal(err)
			}
			if got := w.run("export", "--format", "original", claudeID); got != string(whole) {
				t.Errorf("%d bytes of the file are stored, want %d", len(got), len(whole))
			}
			if got := w.run("--json", "list"); strings.Count(got, `"id"`) != 3 {
				t.Errorf("not three sessions: %s", got)
			}
		})
	}
}

// TestImportWatchTerminated: a signal ends the program well, with all that was written before it.
func TestImportWatchTerminated(t *testing.T) {
	t.Parallel()
	store, dir := t.TempDir(), t.TempDir()
	cmd := process(t, store, "import", "--watch", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(errs); !lines.Scan() || !strings.Contains(lines.Text(), "watching") {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	file := filepath.Join(dir, "a.jsonl")
	add(t, file, watchedPi)
	answer, in := "", bufio.NewReader(out)
	for !strings.Contains(answer, `"session":"pi-1","entries":1`) {
		b, err := in.ReadByte()
		if err != nil {
			t.Fatalf("%q, %v", answer, err)
		}
		answer += string(b)
	}
	add(t, file, watchedMore+`{"torn`)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(in)
	if err != nil || !strings.Contains(string(rest), `"total":`) {
		t.Errorf("%s, %v", rest, err)
	}
	if code := exitCode(t, cmd.Wait()); code != api.ExitDone {
		t.Errorf("exit code %d", code)
	}
	got, _, code := call(t, store, "", "export", "--format", "original", "pi-1")
	if code != api.ExitDone || got != watchedPi+watchedMore+`{"torn` {
		t.Errorf("exit code %d, stored: %s", code, got)
	}
}

// TestImportWatchOfDeleted: a watch reports each file of a deleted session once, with the date, and counts it once.
func TestImportWatchOfDeleted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pi, other := filepath.Join(dir, "pi.jsonl"), filepath.Join(dir, "other.jsonl")
	add(t, pi, watchedPi)
	w := unwatched(t)
	w.run("import", dir)
	w.run("delete", "--yes", "pi-1")
	w.watch(dir)
	w.says("pi-1 deleted on 2100-01-01, not imported again (--again imports it)")
	add(t, pi, watchedMore)
	add(t, other, strings.ReplaceAll(watchedPi, "pi-1", "other"))
	w.says("other 1 entry")
	w.cancel()
	w.says("total: 2 files: 1 new, 0 grown, 0 unchanged, 1 deleted here before; 1 entry added")
	w.end()
}
