// Package kill ends real processes with SIGKILL at arbitrary moments on a real disk. Every acknowledged entry must be
// present afterwards, once, with its bytes, in whichever process opens the sessions next.
package kill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/transcript"
)

const (
	jobEnv   = "COPPICE_KILL_JOB" // "DIR SESSION SEED": this process is a writer
	writers  = 4                  // running at once
	lifetime = 8 * time.Millisecond
	startup  = 25 * time.Millisecond // maximum life of a process that is killed before its first commit
	patience = 30 * time.Second
	turns    = 1 << 20 // limit for a writer that is not killed
)

func TestMain(m *testing.M) {
	if job := os.Getenv(jobEnv); job != "" {
		if err := write(strings.Fields(job)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// write is a writer: it commits turns until it is killed, and prints each acknowledged entry with the checksum of its
// text.
func write(job []string) error {
	var seed uint64
	if len(job) != 3 {
		return fmt.Errorf("job %q", job)
	}
	if _, err := fmt.Sscan(job[2], &seed); err != nil {
		return fmt.Errorf("seed %s: %w", job[2], err)
	}
	b, err := local.Open(job[0], nil)
	if err != nil {
		return err
	}
	st, err := coppice.New(b, nil)
	if err != nil {
		return err
	}
	ctx, rng := context.Background(), rand.New(rand.NewPCG(seed, 1))
	s, err := st.OpenOrCreate(ctx, job[1], &coppice.SessionOptions{KeepBoth: true})
	if err != nil {
		return err
	}
	for turn := range turns {
		err := step(ctx, s, rng, fmt.Sprintf("%d-%d", seed, turn))
		if errors.Is(err, os.ErrExist) { // another writer created the session meanwhile
			s, err = st.Open(ctx, job[1], &coppice.SessionOptions{KeepBoth: true})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step is one turn of a writer, and sometimes a move.
func step(ctx context.Context, s *coppice.Session, rng *rand.Rand, name string) error {
	text := name + strings.Repeat("x", rng.IntN(12_000))
	ids, err := s.Append(ctx, entry.User(text))
	var r coppice.Receipt
	if err == nil {
		r, err = s.Commit(ctx, coppice.Turn{State: map[string]string{"turn": name}})
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s %d\n", ids[0], crc32.ChecksumIEEE([]byte(text)))
	if r.Kept != "" { // the handle is behind
		return s.Reload(ctx)
	}
	switch rng.IntN(20) {
	case 0:
		_, err = s.Snapshot(ctx, "")
	case 1:
		_, err = s.Branch(ctx, ids[0], nil)
	}
	if errors.Is(err, coppice.ErrConflict) {
		return s.Reload(ctx)
	}
	return err
}

// world is the disk and the entries acknowledged on it.
type world struct {
	t    *testing.T
	r    *proof.Report
	dir  string
	seed uint64

	mu    sync.Mutex
	acked map[string]map[string]string // by session: entry id to checksum
}

func TestProofKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SIGKILL is how it kills")
	}
	r := proof.Begin(t, "kill")
	cycles := proof.Pick(t, 24, 520, 10_000)
	w := &world{t: t, r: r, dir: filepath.Join(t.TempDir(), "store"), seed: rand.Uint64(), acked: map[string]map[string]string{}}
	t.Logf("seed %d", w.seed)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(w.seed, uint64(i)))
			for range cycles / writers {
				w.cycle(rng, []string{"shared", fmt.Sprintf("own-%d", i)}[rng.IntN(2)])
			}
		})
	}
	all.Wait()
	w.check()
}

// cycle runs one writer until it is killed.
func (w *world) cycle(rng *rand.Rand, session string) {
	c := exec.CommandContext(w.t.Context(), os.Args[0])
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%s %s %d", jobEnv, w.dir, session, rng.Uint64()))
	var said strings.Builder
	c.Stderr = &said
	out, err := c.StdoutPipe()
	if err != nil {
		w.r.Violation("start: %v", err)
		return
	}
	if err := c.Start(); err != nil {
		w.r.Violation("start: %v", err)
		return
	}
	hung := time.AfterFunc(patience, func() { // a writer commits or ends long before
		w.r.Violation("a writer of %s did nothing for %v", session, patience)
		_ = c.Process.Kill()
	})
	defer hung.Stop()
	lines := bufio.NewReader(out)
	if rng.IntN(4) > 0 {
		w.read(lines, session, 1) // the session is open, and commits have begun
		time.Sleep(time.Duration(rng.Int64N(int64(lifetime))))
	} else {
		time.Sleep(time.Duration(rng.Int64N(int64(startup)))) // during the opening or a recovery
	}
	_ = c.Process.Kill()
	w.read(lines, session, turns) // everything acknowledged before the death
	err = c.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		w.r.Violation("a writer of %s ended by itself: %v: %s", session, err, &said)
	}
	w.r.Explored(1)
}

// read records at most n acknowledged entries. A line that the death cut off does not count.
func (w *world) read(lines *bufio.Reader, session string, n int) {
	for range n {
		line, err := lines.ReadString('\n')
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				w.r.Violation("read: %v", err)
			}
			return
		}
		id, sum, _ := strings.Cut(strings.TrimSpace(line), " ")
		w.mu.Lock()
		if w.acked[session] == nil {
			w.acked[session] = map[string]string{}
		}
		w.acked[session][id] = sum
		w.mu.Unlock()
	}
}

// check opens every session as the next process would.
func (w *world) check() {
	b, err := local.Open(w.dir, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	defer b.Close()
	st, err := coppice.New(b, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	total := 0
	for _, session := range slices.Sorted(maps.Keys(w.acked)) {
		s, err := st.Open(w.t.Context(), session, nil)
		if err != nil {
			w.r.Violation("open %s: %v", session, err)
			continue
		}
		have := map[string][]string{}
		for e, err := range s.Entries(w.t.Context()) {
			if err != nil {
				w.r.Violation("read %s: %v", session, err)
				break
			}
			have[e.ID] = append(have[e.ID], fmt.Sprint(crc32.ChecksumIEEE([]byte(textOf(e)))))
		}
		for id, sum := range w.acked[session] {
			if got := have[id]; len(got) != 1 || got[0] != sum {
				w.r.Violation("%s: entry %s was acknowledged and stands there %d times, checksums %v, want %s", session, id, len(got), got, sum)
			}
		}
		total += len(w.acked[session])
		if err := s.Close(); err != nil {
			w.r.Violation("close %s: %v", session, err)
		}
	}
	report, err := st.Verify(w.t.Context(), "", true)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range report.Problems {
		if errors.Is(p, coppice.ErrCorrupt) {
			w.r.Violation("verify: %v", p)
		}
	}
	w.t.Logf("%d entries were acknowledged in %d sessions", total, len(w.acked))
}

// textOf returns the text of a user's entry.
func textOf(e transcript.Entry) string {
	if m, ok := e.Message(); ok {
		return transcript.Inspect(m.Raw).Text
	}
	return ""
}
