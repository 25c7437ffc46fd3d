package casprobe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/trace"
)

func clock() time.Time { return time.Unix(0, 0) }

func random() io.Reader { return rand.NewChaCha8([32]byte{1}) }

func nap(context.Context, time.Duration) error { return nil }

func keys(t *testing.T, b backend.Backend) string {
	t.Helper()
	var out []string
	for info, err := range b.List(t.Context(), backend.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, info.Key)
	}
	return strings.Join(out, " ")
}

// A store is probed once: the process that probed it remembers the result, and every other one needs one read.
func TestProofIsRemembered(t *testing.T) {
	b := memory.New()
	counted := trace.New(b)
	p := New(counted, clock, random(), nap)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := p.Prove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if io := counted.IO(); io.Put > 5+2*Racers+2 || io.Put < 2*Racers {
		t.Errorf("%d writes", io.Put)
	}
	if got := keys(t, b); got != proofKey {
		t.Errorf("left: %s", got)
	}
	other := trace.New(b)
	if err := New(other, clock, random(), nap).Prove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := other.IO(), (backend.IO{Get: 1}); got.Get != want.Get || got.Put != 0 || got.List != 0 || got.Stat != 0 || got.Delete != 0 {
		t.Errorf("the second process asked %+v", got)
	}
}

// double is a store that breaks one condition and keeps the others.
type double struct {
	backend.Backend
	breaks func(c backend.Cond, key string, n int) bool
	mu     sync.Mutex
	n      int
}

func (d *double) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	d.mu.Lock()
	d.n++
	n := d.n
	d.mu.Unlock()
	if d.breaks(c, key, n) {
		c = backend.Cond{}
	}
	return d.Backend.Put(ctx, key, p, c)
}

func TestStoresThatIgnoreConditions(t *testing.T) {
	racing := func(suffix string) func(backend.Cond, string, int) bool {
		return func(c backend.Cond, key string, n int) bool {
			return c != backend.Cond{} && strings.HasSuffix(key, suffix) && n%5 == 0 // some of the racers only
		}
	}
	for name, breaks := range map[string]func(backend.Cond, string, int) bool{
		"all of them":          func(backend.Cond, string, int) bool { return true },
		"if-none-match":        func(c backend.Cond, _ string, _ int) bool { return c == backend.IfAbsent() },
		"if-match":             func(c backend.Cond, _ string, _ int) bool { return c != backend.IfAbsent() },
		"of what is not there": func(_ backend.Cond, key string, _ int) bool { return strings.HasSuffix(key, ".never") },
		"under a race, create": racing("-create"), "under a race, replace": racing("-replace"),
	} {
		t.Run(name, func(t *testing.T) {
			b := memory.New()
			p := New(&double{Backend: b, breaks: breaks}, clock, random(), nap)
			for range 2 {
				err := p.Prove(t.Context())
				if !errors.Is(err, backend.ErrNoCAS) || backend.OutcomeOf(err) != backend.NotApplied {
					t.Errorf("got %v", err)
				}
			}
			if got := keys(t, b); got != "" {
				t.Errorf("left: %s", got)
			}
		})
	}
}

// A store that is busy or loses answers is probed again; while the answers stay ambiguous no result is reported.
func TestUnclear(t *testing.T) {
	busy := fault.Rule{When: fault.On("put", "cas/probe-"), Count: 40, Outcome: backend.NotApplied, Err: backend.ErrBusy}
	b := fault.New(memory.New(), 1)
	b.Add(busy)
	var slept []time.Duration
	p := New(b, clock, random(), func(_ context.Context, d time.Duration) error { slept = append(slept, d); return nil })
	for range 20 {
		if err := p.Prove(t.Context()); err == nil {
			break
		} else if errors.Is(err, backend.ErrNoCAS) || !errors.Is(err, ErrUnclear) {
			t.Fatal(err)
		}
	}
	if err := p.Prove(t.Context()); err != nil {
		t.Errorf("it never became clear: %v", err)
	}
	if len(slept) == 0 || slept[0] != pause {
		t.Errorf("slept %v", slept)
	}

	gone := fault.New(memory.New(), 1)
	gone.Add(fault.Rule{Count: -1, Outcome: backend.NotApplied, Err: io.ErrUnexpectedEOF})
	p = New(gone, clock, random(), nap)
	if err := p.Prove(t.Context()); err == nil || errors.Is(err, backend.ErrNoCAS) {
		t.Errorf("a store that does not answer: %v", err)
	}
	gone.Clear()
	if err := p.Prove(t.Context()); err != nil {
		t.Errorf("it answers again: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(memory.New(), clock, random(), nap).Prove(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that is over: %v", err)
	}
}

// Result.Err, for outcomes that are rare in a race.
func TestResult(t *testing.T) {
	for name, tt := range map[string]struct {
		r    Result
		want error
	}{
		"one":               {Result{Won: []int{3}, Refused: 31}, nil},
		"two":               {Result{Won: []int{3, 4}}, backend.ErrNoCAS},
		"none":              {Result{Refused: 32}, ErrUnclear},
		"one lost answer":   {Result{Doubt: []int{1}, Refused: 31, Other: io.EOF}, nil},
		"no such condition": {Result{Won: []int{1}, Other: fmt.Errorf("501: %w", backend.ErrNoCAS)}, backend.ErrNoCAS},
	} {
		if err := tt.r.Err(); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A lost answer whose body is not stored, and no writer with a success.
	b := fault.New(memory.New(), 1)
	if _, err := b.Put(t.Context(), "k", bytes.Repeat([]byte("x"), 3), backend.Cond{}); err != nil {
		t.Fatal(err)
	}
	if err := Race(t.Context(), b, "k", false); !errors.Is(err, ErrUnclear) {
		t.Errorf("nobody won: %v", err)
	}
}
