package integration

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/integration/s3test"
	"github.com/coppice-go/coppice/internal/journal"
)

// The server is killed repeatedly in the middle of commits. Everything that it acknowledged exists when it is back, and
// the writer determines the outcome of the commit that was under way.
func TestServerIsKilled(t *testing.T) {
	if s3test.For(t).External {
		t.Skip("only our own server is killed")
	}
	server := start(t, t.TempDir())
	target := server.Target("kill-server")
	if err := target.MakeBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := target.Open(t, nil)
	w, l := &world{t: t, direct: b, faulty: b, limits: journal.Limits{SealEntries: 30}}, newLedger()
	j := w.create(b)
	l.acked["first"] = w.turn(j, "first").Commit.Commit
	rng := rand.New(rand.NewPCG(1, 2))
	kills := max(rounds(t, 50), 2)
	killed := make(chan error, 1)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for range kills {
			time.Sleep(time.Duration(5+rng.IntN(40)) * time.Millisecond)
			if err := errors.Join(server.Kill(), server.Restart()); err != nil {
				killed <- err
				return
			}
		}
		killed <- nil
	}()
	c := &chaos{world: w, ledger: l}
	turns := 0
	for running := true; running; turns++ {
		select {
		case <-over:
			running = false
		default:
		}
		id := fmt.Sprintf("turn-%d", turns)
		s := step(j, id)
		r, err := j.Commit(t.Context(), s)
		if err != nil {
			r, err = c.recover(t.Context(), j, s, err)
		}
		if l.note(id, r, err); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := <-killed; err != nil {
		t.Fatal(err)
	}
	st := w.check(l)
	t.Logf("%d kills, %d turns, %d times unknown, %d times not applied, head at seq %d", kills, turns, c.unknown, c.refused, st.Summary.Seq)
}

const clientEnv = "COPPICE_KILLED_CLIENT"

// A writer in a process of its own is killed repeatedly in the middle of commits; the next one continues. Everything
// that a killed one printed as acknowledged is in the history.
func TestClientIsKilled(t *testing.T) {
	target := s3test.For(t)
	prefix := target.Prefix(t)
	b := backend.WithPrefix(target.Open(t, nil), prefix)
	w, l := &world{t: t, direct: b, faulty: b}, newLedger()
	l.acked["first"] = w.turn(w.create(b), "first").Commit.Commit
	rng := rand.New(rand.NewPCG(3, 4))
	for life := range max(rounds(t, 20), 2) {
		maps.Copy(l.acked, client(t, target, prefix, life, time.Duration(20+rng.IntN(150))*time.Millisecond))
	}
	l.deaths = true // requests of a dead writer may have been applied, or arrive later
	w.check(l)
	t.Logf("%d turns acknowledged by writers that were killed", len(l.acked)-1)
}

// client runs a writer for a while, kills it, and returns the turns that it printed as acknowledged.
func client(t *testing.T, target *s3test.Target, prefix string, life int, after time.Duration) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledClient$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", clientEnv, prefix, life))
	for name, value := range must(target.Environ(t.Context()))(t) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	acked := map[string]string{}
	var other []string // other output of the writer: why it failed
	var timer *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		word := strings.Fields(lines.Text())
		if len(word) != 3 || word[0] != "acked" {
			other = append(other, lines.Text())
			continue
		}
		if timer == nil { // it has started
			timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		acked[word[1]] = word[2]
	}
	if err := cmd.Wait(); err == nil {
		t.Errorf("the writer ended by itself, after %d turns: %v", len(acked), slices.Collect(maps.Keys(acked)))
	}
	if len(acked) == 0 {
		t.Errorf("the writer acknowledged nothing: %q", other)
	}
	return acked
}

// TestKilledClient is the process that TestClientIsKilled kills.
func TestKilledClient(t *testing.T) {
	var prefix string
	var life int
	if n, _ := fmt.Sscan(os.Getenv(clientEnv), &prefix, &life); n != 2 {
		t.Skip("not the process that is to be killed")
	}
	b := backend.WithPrefix(s3test.For(t).Open(t, nil), prefix)
	w := &world{t: t, direct: b, faulty: b, limits: journal.Limits{SealEntries: 20}}
	j := w.open(b)
	for i := range 100_000 {
		id := fmt.Sprintf("life%d-%d", life, i)
		fmt.Println("acked", id, w.turn(j, id).Commit.Commit)
	}
}
