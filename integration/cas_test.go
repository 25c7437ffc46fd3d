package integration

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/integration/s3test"
)

// The races that a store must decide consistently, with more rounds than in the contract: they are required before
// another version of the server is used. Each handle has its own connections.
const casWriters = 16

// COPPICE_LONG=1 runs the races and sizes in full, for minutes: required before another version of the server or of the
// SDK is used.
func long() bool { return os.Getenv("COPPICE_LONG") != "" }

// rounds is a fifth of n, all of it in a long run, and less if each request costs money.
func rounds(t *testing.T, n int) int {
	switch {
	case long():
		return n
	case testing.Short(), s3test.For(t).External:
		return n / 20
	}
	return n / 5
}

// each runs f for every handle at once, and returns the number of successes. Any error except a failed condition is
// fatal.
func each(t *testing.T, handles []backend.Backend, f func(i int, b backend.Backend) error) (won int) {
	t.Helper()
	var wg sync.WaitGroup
	var n atomic.Int32
	start := make(chan struct{})
	for i, b := range handles {
		wg.Go(func() {
			<-start
			err := f(i, b)
			for try := 0; errors.Is(err, backend.ErrBusy) && try < 50; try++ {
				err = f(i, b)
			}
			switch {
			case err == nil:
				n.Add(1)
			case !errors.Is(err, backend.ErrPrecondition) || backend.OutcomeOf(err) != backend.NotApplied:
				t.Errorf("writer %d: %v (%s)", i, err, backend.OutcomeOf(err))
			}
		})
	}
	close(start)
	wg.Wait()
	return int(n.Load())
}

func handles(t *testing.T, prefix string, targets ...*s3test.Target) []backend.Backend {
	var list []backend.Backend
	for i := range casWriters {
		list = append(list, backend.WithPrefix(targets[i%len(targets)].Open(t, nil), prefix))
	}
	return list
}

// raceAll runs the three races.
func raceAll(t *testing.T, list []backend.Backend, n int) {
	t.Run("barrier", func(t *testing.T) {
		version := seed(t, list[0], "barrier")
		for round := range n {
			var next atomic.Pointer[backend.Version]
			won := each(t, list, func(i int, b backend.Backend) error {
				info, err := b.Put(t.Context(), "barrier", fmt.Appendf(nil, "round %d writer %d", round, i), backend.IfMatch(version))
				if err == nil {
					next.Store(&info.Version)
				}
				return err
			})
			if won != 1 {
				t.Fatalf("round %d: %d winners", round, won)
			}
			version = *next.Load()
		}
	})
	t.Run("creators", func(t *testing.T) {
		for round := range n {
			key := fmt.Sprintf("create/%05d", round)
			if won := each(t, list, func(i int, b backend.Backend) error {
				_, err := b.Put(t.Context(), key, fmt.Appendf(nil, "writer %d", i), backend.IfAbsent())
				return err
			}); won != 1 {
				t.Fatalf("%s: %d winners", key, won)
			}
		}
	})
	t.Run("counter", func(t *testing.T) {
		seed(t, list[0], "counter")
		each(t, list, func(_ int, b backend.Backend) error { return countUp(t, b, 2*n/casWriters+1) })
		p, _, err := list[0].Get(t.Context(), "counter", backend.Range{})
		if want := uint64(casWriters * (2*n/casWriters + 1)); err != nil || binary.LittleEndian.Uint64(p) != want {
			t.Fatalf("the counter stands at %d after %d increments, %v", binary.LittleEndian.Uint64(p), want, err)
		}
	})
}

func seed(t *testing.T, b backend.Backend, key string) backend.Version {
	t.Helper()
	info, err := b.Put(t.Context(), key, make([]byte, 8), backend.IfAbsent())
	if err != nil {
		t.Fatal(err)
	}
	return info.Version
}

// countUp adds 1 n times by compare-and-set.
func countUp(t *testing.T, b backend.Backend, n int) error {
	for done, tries := 0, 0; done < n; tries++ {
		if tries > 10_000 {
			return fmt.Errorf("%d of %d in %d tries", done, n, tries)
		}
		p, info, err := b.Get(t.Context(), "counter", backend.Range{})
		if err != nil {
			return err
		}
		next := binary.LittleEndian.AppendUint64(nil, binary.LittleEndian.Uint64(p)+1)
		_, err = b.Put(t.Context(), "counter", fmt.Appendf(next, " try %d", tries), backend.IfMatch(info.Version))
		switch {
		case err == nil:
			done++
		case !errors.Is(err, backend.ErrPrecondition) && !errors.Is(err, backend.ErrBusy):
			return err
		}
	}
	return nil
}

func TestCAS(t *testing.T) {
	s3test.Each(t, func(t *testing.T, target *s3test.Target) {
		raceAll(t, handles(t, target.Prefix(t), target), rounds(t, 500))
	})
}

// Two server processes on one directory are one store.
func TestCASTwoServers(t *testing.T) {
	if s3test.For(t).External {
		t.Skip("a store of one's own is tested as it is")
	}
	first := start(t, t.TempDir())
	second := start(t, first.Dir)
	a, b := first.Target("two-servers"), second.Target("two-servers")
	if err := a.MakeBucket(t.Context()); err != nil {
		t.Fatal(err)
	}
	raceAll(t, handles(t, "p", a, b), rounds(t, 200))
}

func start(t *testing.T, dir string) *s3test.Server {
	t.Helper()
	s, err := s3test.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s
}
