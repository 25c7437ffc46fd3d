// Package backendtest checks a driver or a decorator against the contract of package backend: each numbered line of
// that package's comment has at least one case here, the races included. A backend that passes can be trusted with
// sessions.
//
// Use: call Run from a test of the driver. Cases run sequentially, each on a backend of its own, which is closed when
// the case ends.
//
//	func TestBackend(t *testing.T) {
//		backendtest.Run(t, backendtest.Harness{New: func(t *testing.T) backend.Backend { return dial(t) }})
//	}
//
// Random cases print their seed when they fail; the environment variable COPPICE_BACKENDTEST_SEED repeats a run.
package backendtest

import (
	"hash/maphash"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/coppice-go/coppice/backend"
)

// SeedEnv names the environment variable that fixes the seed of the random cases.
const SeedEnv = "COPPICE_BACKENDTEST_SEED"

// Harness makes the backends under test.
type Harness struct {
	// New returns a fresh and empty backend. Cleanup other than Close is registered by t.Cleanup.
	New func(t *testing.T) backend.Backend
	// Reopen returns another handle on the objects of b, as another process would have; b may be closed
	// or in use. nil skips the cases with two handles.
	Reopen func(t *testing.T, b backend.Backend) backend.Backend
	// Short reduces races and random walks and leaves out the largest objects: for a store that charges for each
	// request.
	Short bool
}

// Run runs every case. The cases of Append, Cut and Resync are skipped unless New returns a backend.Appender.
func Run(t *testing.T, h Harness) {
	t.Helper()
	seed := chooseSeed(t)
	for _, group := range [][]testCase{
		readCases, writeCases, listCases, errorCases, raceCases, modelCases, appendCases,
		handleCases,
	} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) { runCase(t, h, c, seed) })
		}
	}
}

// needs is what a case requires.
type needs uint8

const (
	anyBackend needs = iota
	appender
	twoHandles
	twoAppenders
)

type testCase struct {
	name  string
	needs needs
	run   func(e *env)
}

func runCase(t *testing.T, h Harness, c testCase, seed uint64) {
	if (c.needs == twoHandles || c.needs == twoAppenders) && h.Reopen == nil {
		t.Skip("the harness has no Reopen")
	}
	b := h.New(t)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	e := &env{T: t, b: b, h: h, rng: rand.New(rand.NewPCG(seed, 1))}
	if c.needs == appender || c.needs == twoAppenders {
		a, ok := b.(backend.Appender)
		if !ok {
			t.Skip("not an Appender")
		}
		e.a = a
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d; to repeat: %s=%d go test -run '%s'", seed, SeedEnv, seed, t.Name())
		}
	})
	c.run(e)
}

func chooseSeed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(SeedEnv)
	if text == "" {
		return maphash.String(maphash.MakeSeed(), "coppice")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", SeedEnv, err)
	}
	return seed
}
