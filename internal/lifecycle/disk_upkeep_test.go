package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/vfs"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
	"github.com/coppice-go/coppice/snapshot"
)

// hold makes the first matching call wait until it is released.
type hold struct {
	match   func(op, key string) bool
	entered chan struct{} // closed when one waits
	release chan struct{}
	once    sync.Once
}

func newHold(match func(op, key string) bool) *hold {
	return &hold{match: match, entered: make(chan struct{}), release: make(chan struct{})}
}

func (h *hold) wait(op, key string) {
	if h.match(op, key) {
		h.once.Do(func() { close(h.entered) })
		<-h.release
	}
}

// reached reports whether a call waits, or waited.
func (h *hold) reached() bool {
	select {
	case <-h.entered:
		return true
	default:
		return false
	}
}

// heldPuts is a backend whose Put waits.
type heldPuts struct {
	backend.Backend
	*hold
}

func (b heldPuts) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	b.wait("put", key)
	return b.Backend.Put(ctx, key, p, c)
}

// heldAppenderPuts is a backend that appends and whose Put waits.
type heldAppenderPuts struct {
	backend.Appender
	*hold
}

func (b heldAppenderPuts) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	b.wait("put", key)
	return b.Appender.Put(ctx, key, p, c)
}

// bubbleEnv is the environment variable with the name of the test that a process runs in a bubble.
const bubbleEnv = "COPPICE_BUBBLE"

// bubble runs a test in a bubble, in which only its own goroutines can make progress, so that a hang is detected
// without a clock. It needs a process of its own: the pooled compressors of package codec hold channels, and a channel
// belongs to the bubble in which it was made.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if os.Getenv(bubbleEnv) == t.Name() {
		synctest.Test(t, f)
		return
	}
	pattern := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
	self := must(os.Executable())(t)
	cmd := exec.CommandContext(t.Context(), self, "-test.run", pattern, "-test.v", "-test.timeout", "2m")
	cmd.Env = append(os.Environ(), bubbleEnv+"="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()+" ") {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
}

// heldCall is a call in a goroutine of the bubble. It must not wait for a mutex: the bubble counts a goroutine that
// waits for one as running.
type heldCall struct{ done chan struct{} }

func beginHeld(t *testing.T, f func() error) heldCall {
	t.Helper()
	c := heldCall{make(chan struct{})}
	go func() {
		defer close(c.done)
		if err := f(); err != nil {
			t.Error(err)
		}
	}()
	return c
}

// returned reports whether the call has returned when all goroutines of the bubble are blocked.
func (c heldCall) returned() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// Commit: "durable: one PUT, or one append and one sync". A snapshot of the policy is no part of that: while its PUT
// hangs, commits and moves return. Close waits for it, and then it exists.
func TestSnapshotHoldsNoCommitUp(t *testing.T) {
	for kind, over := range map[string]func(h *hold) backend.Backend{
		"replace": func(h *hold) backend.Backend { return heldPuts{memory.New(), h} },
		"append":  func(h *hold) backend.Backend { return heldAppenderPuts{memory.NewAppender(), h} },
	} {
		t.Run(kind, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				h := newHold(func(_, key string) bool { return strings.Contains(key, "/snapshots/") })
				store := newStore(t, over(h), nil)
				s := create(t, store, "s", &coppice.SessionOptions{Snapshots: snapshot.Policy{Every: 3}})
				free := true
				returns := func(what string, f func() error) {
					if free && !beginHeld(t, f).returned() {
						t.Errorf("%s waits for the PUT of a snapshot", what)
						free = false
					}
				}
				for turn := 1; turn <= 6 && free; turn++ {
					say(t, s, fmt.Sprint("u", turn))
					returns(fmt.Sprint("commit ", turn), func() error {
						_, err := s.Commit(bg, coppice.Turn{State: state{Turns: turn}})
						return err
					})
				}
				returns("a move", func() error {
					_, err := s.Branch(bg, "", nil)
					return err
				})
				same(t, "a snapshot was begun", h.reached(), true)
				close(h.release)
				synctest.Wait()
				ok(t, s.Close())
				again := open(t, store, "s")
				taken := collect(t, again.Snapshots(bg))
				if len(taken) == 0 {
					t.Error("no snapshot was taken")
				}
				for _, i := range taken {
					v := must(again.At(bg, coppice.Target{Snapshot: i.ID}))(t)
					same(t, "state of a snapshot", stateOf(t, v), state{Turns: int(i.Seq)})
				}
				ok(t, again.Close())
			})
		})
	}
}

// ticks makes watchers sleep until they are woken: a watcher's context holds its channel.
type ticks struct{}

// watcher returns the context of a Watch whose polls are controlled by ticks.
func watcher(ctx context.Context) (context.Context, chan struct{}) {
	tick := make(chan struct{})
	return context.WithValue(ctx, ticks{}, tick), tick
}

// sleepsByTicks is the sleep function of the watchers of a store.
func sleepsByTicks(ctx context.Context) error {
	tick, _ := ctx.Value(ticks{}).(chan struct{})
	select {
	case <-tick:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Watch: "Between commits it costs one Stat per Options.Poll." On a handle that commits it costs no write, and the
// handle's own commits cause no read of checkpoint_latest: at most one Stat and one read of the log each.
func TestWatchOnAWriterCostsItsPolls(t *testing.T) {
	const commits, every = 300, 10
	for kind, open := range backends {
		if kind == "replace" {
			continue // on this store every commit is a PUT of checkpoint_latest
		}
		t.Run(kind, func(t *testing.T) {
			calls := callsByFolder{n: map[string]int{}}
			watched := fault.New(open(t), 1)
			watched.Add(fault.Rule{When: calls.see})
			store := newStore(t, watched, nil)
			setSleep(store, sleepsByTicks)
			s := create(t, store, "s", nil)
			ctx, cancel := context.WithCancel(bg)
			defer cancel()
			ctx, tick := watcher(ctx)
			got, done := make(chan uint64), make(chan struct{})
			go func() {
				defer close(done)
				for c, err := range s.Watch(ctx, 0) {
					if err != nil {
						t.Error(err)
						return
					}
					got <- c.Commit.Seq
				}
			}()
			polls := 0
			for i := range uint64(commits) {
				say(t, s, "u")
				commit(t, s, state{Turns: int(i)})
				same(t, "seen", <-got, i+1)
				if i%every == 0 {
					tick <- struct{}{}
					polls++
				}
			}
			cancel()
			<-done
			n := calls.all()
			for _, c := range []struct {
				heldCall string
				most     int
			}{
				{"put checkpoint_latest", 3}, // one every 256 commits
				{"get checkpoint_latest", polls + 8},
				{"stat checkpoint_latest", polls},
				{"get sessions", 2*commits + polls + 16},
				{"stat sessions", polls},
				{"append sessions", commits},
			} {
				if n[c.heldCall] > c.most {
					t.Errorf("%s: %d for %d commits and %d polls, want at most %d", c.heldCall, n[c.heldCall], commits, polls, c.most)
				}
			}
			ok(t, s.Close())
		})
	}
}

// callsByFolder counts calls by operation and kind of object. It is the predicate of a rule that never applies.
type callsByFolder struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *callsByFolder) see(call fault.Call) bool {
	folder, _, _ := strings.Cut(call.Key, "/")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n[call.Op+" "+folder]++
	return false
}

func (c *callsByFolder) all() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// slowReads is a backend that delays the answer to the n-th read under a marked context.
type slowReads struct {
	backend.Backend
	*slow
}

// slowAppenderReads is slowReads for a backend that appends.
type slowAppenderReads struct {
	backend.Appender
	*slow
}

type slow struct {
	*hold
	mu sync.Mutex
	n  int
}

// isSlow is the key of the mark in a context.
type isSlow struct{}

func (w *slow) answered(ctx context.Context) {
	if ctx.Value(isSlow{}) == nil {
		return
	}
	w.mu.Lock()
	w.n--
	last := w.n == 0
	w.mu.Unlock()
	if last {
		w.wait("", "")
	}
}

func (b slowReads) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	p, info, err := b.Backend.Get(ctx, key, r)
	b.answered(ctx)
	return p, info, err
}

func (b slowReads) Stat(ctx context.Context, key string) (backend.Info, error) {
	info, err := b.Backend.Stat(ctx, key)
	b.answered(ctx)
	return info, err
}

func (b slowAppenderReads) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	p, info, err := b.Appender.Get(ctx, key, r)
	b.answered(ctx)
	return p, info, err
}

func (b slowAppenderReads) Stat(ctx context.Context, key string) (backend.Info, error) {
	info, err := b.Appender.Stat(ctx, key)
	b.answered(ctx)
	return info, err
}

// Watch: "It moves a read-only handle along." Along means forward: of two watchers of one handle one reads slowly, and
// its result is outdated when it arrives. Head().Seq never decreases, whichever read is the slow one.
func TestTwoWatchersMoveForward(t *testing.T) {
	for kind, over := range map[string]func(s *slow) (reader, writer backend.Backend){
		"replace": func(s *slow) (reader, writer backend.Backend) {
			b := memory.New()
			return slowReads{b, s}, b.Share()
		},
		"append": func(s *slow) (reader, writer backend.Backend) {
			b := memory.NewAppender()
			return slowAppenderReads{b, s}, b.Share()
		},
	} {
		t.Run(kind, func(t *testing.T) {
			read := 0
			for more := true; more; read++ {
				slow := &slow{hold: newHold(func(string, string) bool { return true }), n: read + 1}
				reader, writer := over(slow)
				more = twoWatchers(t, fmt.Sprintf("read %d is slow", read+1), reader, writer, slow)
			}
			if read < 3 {
				t.Errorf("the slow watcher reads %d times", read-1)
			}
		})
	}
}

// twoWatchers lets one watcher read while another overtakes it; false if the slow one had no such read.
func twoWatchers(t *testing.T, what string, reader, writer backend.Backend, slow *slow) (held bool) {
	t.Helper()
	store := newStore(t, reader, nil)
	setSleep(store, sleepsByTicks)
	w := create(t, processOn(t, writer, "writer"), "s", nil)
	turn := func(n int) {
		say(t, w, fmt.Sprint("u", n))
		commit(t, w, state{Turns: n})
	}
	turn(1)
	ro := must(store.Open(bg, "s", &coppice.SessionOptions{ReadOnly: true}))(t)
	ctx, cancel := context.WithCancel(bg)
	defer cancel()
	var mu sync.Mutex
	newest := uint64(0)
	watch := func(ctx context.Context) (tick chan struct{}, seen chan uint64) {
		ctx, tick = watcher(ctx)
		seen = make(chan uint64, 16)
		go func() {
			defer close(seen)
			for c, err := range ro.Watch(ctx, 1) {
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if now := ro.Head().Seq; now < newest {
					t.Errorf("%s: the head went back from %d to %d", what, newest, now)
				} else {
					newest = now
				}
				mu.Unlock()
				seen <- c.Commit.Seq
			}
		}()
		return tick, seen
	}
	until := func(seen chan uint64, seq uint64) {
		for got := range seen {
			if got == seq {
				return
			}
		}
	}
	slowTick, slowSeen := watch(context.WithValue(ctx, isSlow{}, true))
	fastTick, fastSeen := watch(ctx)
	turn(2)
	slowTick <- struct{}{}
	select {
	case <-slow.entered:
		held = true
	case <-slowSeen:
	}
	turn(3)
	for got := uint64(0); got < 3; { // the slow watcher may move the handle at the same moment, and then makes no poll
		select {
		case fastTick <- struct{}{}:
		case got = <-fastSeen:
		}
	}
	close(slow.release)
	if held {
		until(slowSeen, 2)
	}
	mu.Lock()
	if now := ro.Head().Seq; now < newest {
		t.Errorf("%s: the head went back from %d to %d", what, newest, now)
	}
	mu.Unlock()
	cancel()
	for range slowSeen {
	}
	for range fastSeen {
	}
	ok(t, ro.Close())
	return held
}

// "With any other error of a commit nothing was applied: the entries are pending, the state is as it was, and Commit
// may be called again." The creation of the next segment fails, or its outcome is unknown: the append that would have
// named it was never tried, so the outcome of the commit is known.
func TestFailedSegmentIsNoDoubt(t *testing.T) {
	for name, rule := range map[string]fault.Rule{
		"lost before": {Kind: fault.Before}, "lost after": {Kind: fault.After}, "late": {Kind: fault.Late},
	} {
		t.Run(name, func(t *testing.T) {
			b := fault.New(memory.NewAppender(), 1)
			store := processOn(t, b, "one")
			s := create(t, store, "s", nil)
			bulk(t, s, 1, 2)
			rule.Count, rule.When = -1, putIn("/transcript/")
			b.Add(rule)
			ids := say(t, s, "u "+strings.Repeat("x", 600_000), "a "+strings.Repeat("y", 600_000))
			_, err := s.Commit(bg, coppice.Turn{State: state{Turns: 2}})
			if err == nil || errors.Is(err, coppice.ErrCommitUnknown) {
				t.Errorf("commit: %.150v ..., want an error that says that nothing was applied", err)
			}
			same(t, "segments were tried", len(b.Faults()) > 0, true)
			same(t, "stored", open(t, store, "s").Head().Seq, 1)
			b.Clear()
			if _, err = s.Commit(bg, coppice.Turn{State: state{Turns: 2}}); err != nil {
				t.Fatalf("the same commit again: %.150v ...", err)
			}
			b.Deliver(bg)
			ok(t, s.Close())
			again := open(t, store, "s")
			same(t, "state", stateOf(t, again), state{Turns: 2})
			same(t, "entries", len(collect(t, again.Entries(bg))), 4)
			same(t, "head", again.Head().Entry, ids[1])
			sound(t, store)
		})
	}
}

// heldNames is a file system in which the rename of a new file waits.
type heldNames struct {
	vfs.FS
	*hold
}

func (f heldNames) Rename(from, to string) error {
	f.wait("rename", to)
	return f.FS.Rename(from, to)
}

func (f heldNames) Link(from, to string) error {
	f.wait("link", to)
	return f.FS.Link(from, to)
}

// "A handle (Session) is one writer": the writers of two sessions never wait for each other. While the checkpoint of
// one session is being written to a slow disk, that of another is written and closed, by the same process and by
// another one.
func TestSessionsDoNotWaitForEachOther(t *testing.T) {
	for _, name := range []string{"one process", "two processes"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				disk := vfstest.NewCrashFS()
				first := process(t, disk, "first")
				for _, id := range []string{"a", "b"} {
					s := create(t, first, id, nil)
					say(t, s, "u1")
					commit(t, s, nil)
					ok(t, s.Close())
				}
				h := newHold(func(_, to string) bool { return to == "checkpoint_latest/a" })
				one := process(t, heldNames{disk, h}, "one")
				two := one
				if name == "two processes" {
					two = process(t, disk, "two")
				}
				a, b := open(t, one, "a"), open(t, two, "b")
				say(t, a, "u2")
				commit(t, a, nil)
				say(t, b, "u2")
				commit(t, b, nil)
				slow := beginHeld(t, a.Close)
				same(t, "the first session has closed", slow.returned(), false)
				same(t, "its checkpoint waits for the disk", h.reached(), true)
				other := beginHeld(t, b.Close)
				if !other.returned() {
					t.Error("the second session waits for the first")
				}
				close(h.release)
				<-slow.done
				<-other.done
				for _, id := range []string{"a", "b"} {
					same(t, id, texts(t, open(t, process(t, disk, "reader"), id)), "u1 u2")
				}
			})
		})
	}
}
