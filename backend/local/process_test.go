package local_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
)

// childEnv makes the test binary one of the processes below: "mode dir id n".
const childEnv = "COPPICE_LOCAL_TEST_CHILD"

func TestMain(m *testing.M) {
	if args := strings.Fields(os.Getenv(childEnv)); len(args) == 4 {
		if err := child(args); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(args []string) error {
	n, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	b, err := local.Open(args[1], nil)
	if err != nil {
		return err
	}
	defer b.Close()
	for i := range n {
		switch args[0] {
		case "append":
			err = appendLine(b, fmt.Sprintf("%s %d\n", args[2], i))
		case "count":
			err = count(b)
		case "create":
			_, err = b.Put(ctx, fmt.Sprintf("keys/%d", i), []byte(args[2]), backend.IfAbsent())
			if err == nil {
				fmt.Println(i)
			} else if errors.Is(err, backend.ErrPrecondition) {
				err = nil
			}
		default:
			err = fmt.Errorf("mode %q", args[0])
		}
		if err != nil {
			return err
		}
		if args[0] == "append" {
			fmt.Println(i) // acknowledged
		}
	}
	return nil
}

// appendLine appends at the present end, which others may move.
func appendLine(b *local.Backend, line string) error {
	for range 100_000 {
		_, info, err := b.Get(ctx, logKey, backend.Tail(0))
		if err != nil {
			return err
		}
		_, err = b.Append(ctx, logKey, info.Size, []byte(line))
		if !errors.Is(err, backend.ErrPrecondition) {
			return err
		}
	}
	return errors.New("never the winner")
}

// count adds one to a number.
func count(b *local.Backend) error {
	for range 100_000 {
		p, info, err := b.Get(ctx, "count/x", backend.Range{})
		if err != nil {
			return err
		}
		was, err := strconv.Atoi(string(p))
		if err != nil {
			return err
		}
		_, err = b.Put(ctx, "count/x", []byte(strconv.Itoa(was+1)), backend.IfMatch(info.Version))
		if !errors.Is(err, backend.ErrPrecondition) {
			return err
		}
	}
	return errors.New("never the winner")
}

func start(t *testing.T, mode, dir, id string, n int) (*exec.Cmd, io.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %s %d", childEnv, mode, dir, id, n))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// compete runs processes against each other, and returns the output of each.
func compete(t *testing.T, mode, dir string, processes, n int) [][]string {
	t.Helper()
	cmds, outs := make([]*exec.Cmd, processes), make([]io.Reader, processes)
	for i := range cmds {
		cmds[i], outs[i] = start(t, mode, dir, strconv.Itoa(i), n)
	}
	printed := make([][]string, processes)
	for i, cmd := range cmds {
		p, err := io.ReadAll(outs[i])
		if err := errors.Join(err, cmd.Wait()); err != nil {
			t.Fatal(err)
		}
		printed[i] = strings.Fields(string(p))
	}
	return printed
}

func openWith(t *testing.T, key string, p []byte) (*local.Backend, string) {
	t.Helper()
	dir := t.TempDir()
	b, err := local.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	if _, err := b.Put(ctx, key, p, backend.IfAbsent()); err != nil {
		t.Fatal(err)
	}
	return b, dir
}

// TestProcessesAppend: each of racing appends is stored whole, once, and in its writer's order.
func TestProcessesAppend(t *testing.T) {
	t.Parallel()
	const processes, n = 3, 60
	b, dir := openWith(t, logKey, nil)
	compete(t, "append", dir, processes, n)
	p, _, err := b.Get(ctx, logKey, backend.Range{})
	if err != nil {
		t.Fatal(err)
	}
	next := make([]int, processes)
	for line := range strings.Lines(string(p)) {
		var id, i int
		if _, err := fmt.Sscanf(line, "%d %d\n", &id, &i); err != nil || id >= processes || i != next[id] {
			t.Fatalf("line %q (%v), expected %v", line, err, next)
		}
		next[id]++
	}
	for id, got := range next {
		if got != n {
			t.Errorf("process %d: %d of %d lines", id, got, n)
		}
	}
}

// TestProcessesIfMatch: no increment is lost, none is made twice.
func TestProcessesIfMatch(t *testing.T) {
	t.Parallel()
	const processes, n = 3, 40
	b, dir := openWith(t, "count/x", []byte("0"))
	compete(t, "count", dir, processes, n)
	if p, _, err := b.Get(ctx, "count/x", backend.Range{}); err != nil || string(p) != strconv.Itoa(processes*n) {
		t.Errorf("%q, %v; want %d", p, err, processes*n)
	}
}

// TestProcessesIfAbsent: each key has one winner, and holds its bytes.
func TestProcessesIfAbsent(t *testing.T) {
	t.Parallel()
	const processes, n = 3, 60
	b, dir := openWith(t, "other/x", nil)
	winner := map[string]int{}
	for id, won := range compete(t, "create", dir, processes, n) {
		for _, key := range won {
			if other, twice := winner[key]; twice {
				t.Errorf("key %s: won by %d and %d", key, other, id)
			}
			winner[key] = id
		}
	}
	for i := range n {
		key := strconv.Itoa(i)
		id, won := winner[key]
		p, _, err := b.Get(ctx, "keys/"+key, backend.Range{})
		if err != nil || !won || string(p) != strconv.Itoa(id) {
			t.Errorf("key %d: %q, %v; winner %d, %v", i, p, err, id, won)
		}
	}
}

// TestKilledInMidAppend kills a writing process repeatedly: everything acknowledged is stored, at most one more line
// is, the lock is free, and writing continues.
func TestKilledInMidAppend(t *testing.T) {
	t.Parallel()
	kills := 50
	if testing.Short() {
		kills = 14 // each number of lines twice; with the race detector a process takes 100 ms of CPU to start
	}
	b, dir := openWith(t, logKey, nil)
	var size int64
	for k := range kills {
		cmd, out := start(t, "append", dir, strconv.Itoa(k), 1_000_000)
		acked := -1
		lines := bufio.NewScanner(out)
		for range 1 + k%7 {
			if !lines.Scan() {
				t.Fatalf("kill %d: the child ended: %v", k, lines.Err())
			}
			acked, _ = strconv.Atoi(lines.Text())
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // lines written before it died count
			acked, _ = strconv.Atoi(lines.Text())
		}
		_ = cmd.Wait()
		size = verifyKilled(t, b, k, acked, size)
	}
	left, err := os.ReadDir(filepath.Join(dir, ".tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files: %v, %v", left, err)
	}
}

// verifyKilled checks the bytes that process k appended after size, cuts off a torn line, and returns the new size.
func verifyKilled(t *testing.T, b *local.Backend, k, acked int, size int64) int64 {
	t.Helper()
	p, info, err := b.Get(ctx, logKey, backend.Range{})
	if err != nil {
		t.Fatal(err)
	}
	whole := int64(bytes.LastIndexByte(p, '\n') + 1)
	var want strings.Builder
	n := bytes.Count(p[size:whole], []byte("\n"))
	for i := range n {
		fmt.Fprintf(&want, "%d %d\n", k, i)
	}
	if got := string(p[size:whole]); got != want.String() {
		t.Fatalf("kill %d: %q, want %q", k, got, want.String())
	}
	if n != acked+1 && n != acked+2 {
		t.Fatalf("kill %d: %d lines, acknowledged %d", k, n, acked+1)
	}
	if whole < info.Size {
		if err := b.Cut(ctx, logKey, whole, p[whole:]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Resync(ctx, logKey, size, whole); err != nil {
		t.Fatal(err)
	}
	return whole
}
