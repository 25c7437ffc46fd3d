package journal

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/testutil"
)

const (
	childEnv = "COPPICE_JOURNAL_CHILD" // "kill DIR", "race DIR NAME N" or "sync DIR N"
	killed   = 60                      // processes that die in mid-commit
)

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		if err := child(strings.Fields(job)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// diskConfig is a handle as a program has it, with real randomness. The clocks of all processes begin at one time:
// none of them decides anything.
func diskConfig(b *local.Backend) Config {
	return Config{
		Backend: b, Session: "s1", Writer: fmt.Sprint(os.Getpid()), Rand: rand.Reader,
		Now:    testutil.Clock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Millisecond),
		Limits: Limits{RollEntries: 40, PublishCommits: 8},
		Sleep: func(ctx context.Context, d time.Duration) error {
			select {
			case <-time.After(d):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}
}

// child is another process: it prints each entry that was acknowledged.
func child(job []string) error {
	b, err := local.Open(job[1], nil)
	if err != nil {
		return err
	}
	defer b.Close()
	ctx := context.Background()
	j, err := Open(ctx, diskConfig(b))
	if err != nil {
		return err
	}
	name, n, keep := "k"+fmt.Sprint(os.Getpid()), 1<<30, false
	switch job[0] {
	case "race":
		name, keep = job[2], true
		_, err = fmt.Sscan(job[3], &n)
	case "sync":
		_, err = fmt.Sscan(job[2], &n)
	}
	if err != nil {
		return err
	}
	for i := range n {
		e := say(j, fmt.Sprintf("%s-%d", name, i), strings.Repeat("x", i%3000))
		r, err := j.Commit(ctx, &Step{Reason: "turn", Entries: []*Entry{e}, Edit: setState(fmt.Sprintf(`{"by":%q,"turn":%d}`, name, i)), KeepBoth: keep})
		if err != nil {
			return err
		}
		fmt.Printf("%s %q\n", e.ID, r.Kept)
	}
	if job[0] == "kill" {
		return nil
	}
	return j.Close(ctx)
}

func command(job ...string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childEnv+"="+strings.Join(job, " "))
	c.Stderr = os.Stderr
	return c
}

// newDisk makes a session on a real disk.
func newDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	j := Create(diskConfig(b), state.Genesis{Header: header("s1")})
	if _, err := j.Commit(t.Context(), &Step{Reason: "turn", Entries: []*Entry{say(j, "root", "root")}}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

// onDisk reads all entries by a fresh handle.
func onDisk(t *testing.T, dir string) map[string]int {
	t.Helper()
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	j, err := Open(t.Context(), diskConfig(b))
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	w := &world{t: t, b: b}
	all := map[string]int{}
	for _, id := range w.ids(j) {
		all[id]++
	}
	return all
}

// Processes die by SIGKILL at any moment: every reopen succeeds, and no acknowledged entry is lost.
func TestKill9(t *testing.T) {
	testutil.SkipLong(t)
	n := killed
	if testing.Short() {
		n = 20
	}
	dir := newDisk(t)
	acked := map[string]bool{}
	for range n {
		c := command("kill", dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewReader(out)
		stop := time.After(pick(6 * time.Millisecond)) // the moment of death: any will do, on any machine
		lines := make(chan string)
		go func() {
			defer close(lines)
			for {
				line, err := said.ReadString('\n')
				if err != nil {
					return
				}
				lines <- line
			}
		}()
		first := <-lines // it lives and commits
		acked[strings.Fields(first + " ?")[0]] = true
		for open := true; open; {
			select {
			case line, ok := <-lines:
				if open = ok; ok {
					acked[strings.Fields(line)[0]] = true
				}
			case <-stop:
				_ = c.Process.Kill()
				stop = nil
			}
		}
		if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Fatalf("the child ended by itself: %v", err)
		}
	}
	all := onDisk(t, dir)
	for id := range acked {
		if all[id] != 1 {
			t.Errorf("entry %s was acknowledged and stands %d times in the history", id, all[id])
		}
	}
	t.Logf("%d processes killed, %d entries acknowledged, %d in the history", n, len(acked), len(all))
}

// pick is a random duration up to limit: the moment of death.
func pick(limit time.Duration) time.Duration {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(limit)))
	if err != nil {
		return limit
	}
	return time.Duration(n.Int64())
}

// Two processes on one session: nothing is lost, and each that came second was told and kept its turn.
func TestTwoProcesses(t *testing.T) {
	dir := newDisk(t)
	const each = 60
	var outs [2]io.Reader
	var cmds [2]*exec.Cmd
	for i := range cmds {
		cmds[i] = command("race", dir, fmt.Sprintf("p%d", i), fmt.Sprint(each))
		out, err := cmds[i].StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		outs[i] = out
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	acked, kept := 0, 0
	for i, out := range outs {
		text, err := io.ReadAll(out)
		if werr := cmds[i].Wait(); err != nil || werr != nil {
			t.Fatal(err, werr)
		}
		for line := range strings.Lines(string(text)) {
			acked++
			if !strings.Contains(line, `""`) {
				kept++
			}
		}
	}
	all := onDisk(t, dir)
	if acked != 2*each || len(all) != 2*each+1 {
		t.Errorf("%d acknowledged, %d in the history, want %d and the root", acked, len(all), 2*each)
	}
	t.Logf("%d of %d turns came second and live on a branch of their own", kept, acked)
}

// One fdatasync a commit, and one write, as the kernel sees it.
func TestOneSyncACommit(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	if out, err := exec.Command(strace, "-f", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace cannot trace here: %v: %s", err, out)
	}
	dir := newDisk(t)
	count := func(n int) (syncs, writes int) {
		trace := filepath.Join(t.TempDir(), "trace")
		c := command("sync", dir, fmt.Sprint(n))
		c.Args = append([]string{strace, "-f", "-y", "-o", trace, "-e", "trace=fsync,fdatasync,write,pwrite64"}, c.Args...)
		c.Path = strace
		if err := c.Run(); err != nil {
			t.Fatalf("the traced process: %v", err)
		}
		text, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, ".jsonl>") {
				continue
			}
			switch {
			case strings.Contains(line, "fdatasync("), strings.Contains(line, "fsync("):
				syncs++
			case strings.Contains(line, "write"):
				writes++
			}
		}
		return syncs, writes
	}
	syncs, writes := count(7) // fewer than PublishCommits, no roll
	if syncs != 7 || writes != 7 {
		t.Errorf("7 commits made %d syncs and %d writes of the log, want 7 and 7", syncs, writes)
	}
}
