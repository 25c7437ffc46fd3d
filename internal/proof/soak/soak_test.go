// Package soak lets many sessions live for as long as one likes: writers that die in mid-call and come back,
// a network that loses and delays, rollbacks, claims, snapshots, garbage collection and deletion, and beside
// them a checker that never stops. Whatever was acknowledged is there once at every look, and after each
// round memory, descriptors and goroutines are where they were.
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
	durationEnv = "COPPICE_SOAK" // how long; absent = by the size of the run
	round       = 20 * time.Second
	heapFactor  = 1.25    // by which the heap at the end may exceed that in the middle,
	heapSlack   = 4 << 20 // beside so many bytes
	patience    = time.Minute
)

// duration is how long the soak takes.
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

// TestProofSoak runs rounds. In each the houses, each a store with some sessions, are built, lived in,
// checked, emptied and torn down; then the process must be as it was.
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

// mark is what the process holds between two rounds.
type mark struct {
	heap              uint64
	goroutines, files int
}

// look measures, once what runs in the background has ended: it waits for at most a minute until no more is
// held than after the first round. A sync.Pool gives up what it has at the second collection after its last
// use, and what had a finalizer goes at the third.
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

// openFiles counts the file descriptors of this process; 0 where nobody tells.
func openFiles() int {
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(names)
}
