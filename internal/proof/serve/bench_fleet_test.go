package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var (
	fleetRounds = flag.Int("rounds", 1, "of BenchmarkFleet: how often each side is measured, in turn with the others")
	fleetSpan   = flag.Duration("span", 2*time.Second, "of BenchmarkFleet: how long a side is measured in a round")
	fleetSides  = flag.String("sides", "", "of BenchmarkFleet: only sides whose names contain it")
)

// BenchmarkFleet compares ways for many agents to commit at once, a session each: turns of 1.3 KB, by handles in this
// process and over HTTP, and the floors of the same disk: an append and a sync, in a file for each agent, and in one
// log that syncs the lines of all agents together; and PostgreSQL, if it is installed. Processor time is that of
// clients, servers and background work, until all are idle again. Each figure is the median of the rounds.
func BenchmarkFleet(b *testing.B) {
	for _, agents := range []int{1, 16, 64, 200} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) {
			sides := fleetOf(b, agents)
			for b.Loop() {
				for range *fleetRounds {
					for _, s := range sides {
						s.laps = append(s.laps, s.measure(b, agents, *fleetSpan))
					}
				}
			}
			var table strings.Builder
			fmt.Fprintf(&table, "%d agents, medians of %d rounds of %v\n%-28s %9s %9s %9s %9s %6s %6s\n", agents,
				*fleetRounds, *fleetSpan, "", "turns/s", "p50 us", "p99 us", "CPU us", "cores", "x 1st")
			for _, s := range sides {
				s.row(&table, sides[0])
			}
			b.Log(table.String())
		})
	}
}

// fleetSide is one way to store turns.
type fleetSide struct {
	name    string
	turner  turner
	done    []int // turns of each agent
	used    func() time.Duration
	measure func(b *testing.B, agents int, span time.Duration) fleetLap
	laps    []fleetLap
}

// fleetLap is the result of a side in one round.
type fleetLap struct {
	turns int
	took  time.Duration // until the last answer
	used  time.Duration // processor time
	waits []time.Duration
}

func (l *fleetLap) wait(percent int) float64 {
	if len(l.waits) == 0 {
		return 0
	}
	slices.Sort(l.waits)
	return float64(l.waits[(len(l.waits)-1)*percent/100].Microseconds())
}

func (l *fleetLap) perSecond() float64 { return float64(l.turns) / l.took.Seconds() }

// row writes the medians of a side.
func (s *fleetSide) row(w *strings.Builder, first *fleetSide) {
	of := func(s *fleetSide, figure func(l *fleetLap) float64) float64 {
		var all []float64
		for i := range s.laps {
			all = append(all, figure(&s.laps[i]))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	fmt.Fprintf(w, "%-28s %9.0f %9.0f %9.0f %9.0f %6.2f %6.2f\n", s.name, of(s, (*fleetLap).perSecond),
		of(s, func(l *fleetLap) float64 { return l.wait(50) }), of(s, func(l *fleetLap) float64 { return l.wait(99) }),
		of(s, func(l *fleetLap) float64 { return float64(l.used.Microseconds()) / float64(l.turns) }),
		of(s, func(l *fleetLap) float64 { return l.used.Seconds() / l.took.Seconds() }),
		of(s, (*fleetLap).perSecond)/of(first, (*fleetLap).perSecond))
}

// fleetOf returns the sides, the bare files first.
func fleetOf(b *testing.B, agents int) []*fleetSide {
	root, err := os.MkdirTemp("", "fleet")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(root) })
	if err := os.Chmod(root, 0o755); err != nil { //nolint:gosec // PostgreSQL runs as another user
		b.Fatal(err)
	}
	bare, shared := &bareFiles{dir: root, open: make([]*os.File, agents)}, newSharedLog(b, root)
	b.Cleanup(func() { _ = bare.close() })
	in, closeStore := newWithin(b, filepath.Join(root, "inside"), agents)
	b.Cleanup(func() { _ = closeStore() })
	p, err := command(context.WithoutCancel(b.Context()), filepath.Join(root, "http"))
	if err == nil {
		err = p.ready()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = p.end() })
	served := func() time.Duration { return selfUsed() + usedBy(p.cmd.Process.Pid) }
	all := []*fleetSide{
		{name: "bare append, a file each", turner: bare, used: selfUsed},
		{name: "bare append, one shared log", turner: shared, used: selfUsed},
		{name: "in process", turner: in, used: selfUsed},
		{name: "over HTTP", turner: &overHTTP{addr: p.addr, clients: make([]client, agents)}, used: served},
	}
	for _, s := range all {
		s.done, s.measure = make([]int, agents), s.lap
	}
	all = append(all, postgres(b, root)...)
	return slices.DeleteFunc(all, func(s *fleetSide) bool {
		return !strings.Contains(s.name, *fleetSides)
	})
}

// lap lets all agents commit for a time. The first lap of a side creates sessions and connections.
func (s *fleetSide) lap(b *testing.B, agents int, span time.Duration) fleetLap {
	waits, before := make([][]time.Duration, agents), sumOf(s.done)
	run := func(span time.Duration) {
		var all sync.WaitGroup
		begun := time.Now()
		for agent := range agents {
			all.Go(func() {
				for last := time.Duration(0); last < span; {
					if err := s.turner.turn(b.Context(), agent, s.done[agent]); err != nil {
						b.Errorf("%s, agent %d, turn %d: %v", s.name, agent, s.done[agent], err)
						return
					}
					now := time.Since(begun)
					waits[agent] = append(waits[agent], now-last)
					last = now
					s.done[agent]++
				}
			})
		}
		all.Wait()
	}
	if before == 0 {
		run(1)
		s.settle()
		before = sumOf(s.done)
		clear(waits)
	}
	used, begun := s.used(), time.Now()
	run(span)
	took := time.Since(begun)
	s.settle()
	return fleetLap{sumOf(s.done) - before, took, s.used() - used, slices.Concat(waits...)}
}

// settle waits until the background work of the turns is done.
func (s *fleetSide) settle() {
	for last := s.used(); ; {
		time.Sleep(200 * time.Millisecond)
		now := s.used()
		if now-last < 10*time.Millisecond {
			return
		}
		last = now
	}
}

// selfUsed is the processor time of this process.
func selfUsed() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// usedBy is the processor time of other processes, without that of their children.
func usedBy(pids ...int) (sum time.Duration) {
	for _, pid := range pids {
		sum += ticks(pid, 11, 12)
	}
	return sum
}

// ticks adds up fields of a process's status, counted from the state, that are ticks of 10 ms.
func ticks(pid int, fields ...int) (sum time.Duration) {
	p, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, status, _ := strings.Cut(string(p), ") ")
	for i, f := range strings.Fields(status) {
		if slices.Contains(fields, i) {
			n, _ := strconv.Atoi(f)
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

// turnBytes are the bytes of a turn for the floors.
var turnBytes = []byte(fill("", 1300))

// bareFiles appends and syncs, with a file for each agent.
type bareFiles struct {
	dir  string
	open []*os.File
}

func (f *bareFiles) turn(_ context.Context, agent, n int) (err error) {
	if n == 0 {
		name := filepath.Join(f.dir, fmt.Sprint("bare", agent))
		if f.open[agent], err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	if _, err := f.open[agent].Write(turnBytes); err != nil {
		return err
	}
	return syscall.Fdatasync(int(f.open[agent].Fd()))
}

func (f *bareFiles) close() (err error) {
	for _, file := range f.open {
		if file != nil {
			err = errors.Join(err, file.Close())
		}
	}
	return err
}

// sharedLog is one file. A caller that finds no sync under way writes and syncs the lines of all waiting callers.
type sharedLog struct {
	file *os.File
	sync chan struct{} // held by the caller that writes

	mu      sync.Mutex
	pending *logBatch
}

type logBatch struct {
	bytes []byte
	done  bool // guarded by sync
	err   error
}

func newSharedLog(b *testing.B, dir string) *sharedLog {
	f, err := os.OpenFile(filepath.Join(dir, "shared"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return &sharedLog{file: f, sync: make(chan struct{}, 1), pending: &logBatch{}}
}

func (l *sharedLog) turn(context.Context, int, int) error {
	l.mu.Lock()
	mine := l.pending
	mine.bytes = append(mine.bytes, turnBytes...)
	l.mu.Unlock()
	l.sync <- struct{}{}
	defer func() { <-l.sync }()
	if mine.done {
		return mine.err
	}
	l.mu.Lock()
	l.pending = &logBatch{}
	l.mu.Unlock()
	if _, mine.err = l.file.Write(mine.bytes); mine.err == nil {
		mine.err = syscall.Fdatasync(int(l.file.Fd()))
	}
	mine.done = true
	return mine.err
}
