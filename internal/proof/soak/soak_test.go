// Package soak runs many sessions for any length of time: writers that die during a call and return, a network that
// loses and delays messages, rollbacks, claims, snapshots, garbage collection and deletion, and a concurrent checker.
// At every check each acknowledged turn is present once, and after each round memory, descriptors and goroutines are
// back to their level.
//
//	make soak DURATION=10m
package soak

import (
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/proof"
)

const (
	durationEnv = "COPPICE_SOAK" // duration; absent = by the size of the run
	round       = 20 * time.Second
	heapFactor  = 1.25    // factor by which the heap at the end may exceed that in the middle,
	heapSlack   = 4 << 20 // plus so many bytes
	patience    = time.Minute
)

// duration returns the length of the soak.
func duration(t *testing.T) time.Duration {
	if text := os.Getenv(durationEnv); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			t.Fatalf("%s is %q: want a duration such as 10m", durationEnv, text)
		}
		return d
	}
	return time.Duration(proof.Pick(t, 3, 6, 600)) * time.Second
}

// TestProofSoak runs rounds. In each the houses, a store with some sessions each, are created, used, checked, emptied
// and removed; then the process must be as it was.
func TestProofSoak(t *testing.T) {
	r := proof.Begin(t, "soak")
	whole := duration(t)
	rounds := max(3, int(whole/round))
	houses, sessions := proof.Pick(t, 4, 8, 8), proof.Pick(t, 3, 8, 8)
	seed := rand.Uint64()
	t.Logf("seed %d: %d rounds of %v, %d sessions", seed, rounds, whole/time.Duration(rounds), houses*sessions)
	var marks []mark
	for n := range rounds {
		var all sync.WaitGroup
		for i := range houses {
			h := newHouse(t, r, seed, n*houses+i, sessions)
			all.Go(func() { h.live(whole / time.Duration(rounds)) })
		}
		all.Wait()
		marks = append(marks, look(marks))
		t.Logf("round %d: %v", n, marks[n])
		if r.Full() {
			return
		}
	}
	// The first round fills the pools.
	middle, end := marks[max(1, rounds/2)-1+rounds%2], marks[rounds-1]
	if limit := uint64(float64(middle.heap)*heapFactor) + heapSlack; end.heap > limit {
		r.Violation("seed %d: the heap has %d bytes at the end and %d in the middle", seed, end.heap, middle.heap)
	}
	if end.goroutines > marks[0].goroutines || end.files > marks[0].files {
		r.Violation("seed %d: after the first round %v, at the end %v", seed, marks[0], end)
	}
}

// mark is the resources of the process between two rounds.
type mark struct {
	heap              uint64
	goroutines, files int
}

// look measures the resources after background work has ended: it waits for at most a minute until they are not above
// those after the first round. A sync.Pool releases its content at the second collection after its last use, and
// objects with a finalizer at the third.
func look(marks []mark) mark {
	var m mark
	for begun := time.Now(); ; runtime.Gosched() {
		for range 3 {
			runtime.GC()
		}
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		m = mark{mem.HeapAlloc, runtime.NumGoroutine(), openFiles()}
		few := len(marks) > 0 && m.goroutines <= marks[0].goroutines && m.files <= marks[0].files
		if few || len(marks) == 0 && time.Since(begun) > time.Second || time.Since(begun) > patience {
			return m
		}
	}
}

// openFiles counts the file descriptors of this process; 0 = unknown.
func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(names)
}
