package linear

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/proof"
)

// Histories of 2 to 5 clients of 50 operations each, on stores that refuse, lose and delay.
func TestProofLinear(t *testing.T) {
	for name, s := range map[string]struct {
		quick, ci, nightly int
		open               func(t *testing.T) backend.Backend
	}{
		"memory-replace": {8, 100, 30_000, func(*testing.T) backend.Backend { return memory.New() }},
		"memory-append":  {8, 240, 65_000, func(*testing.T) backend.Backend { return memory.NewAppender() }},
		"local": {2, 100, 5_000, func(t *testing.T) backend.Backend {
			b, err := local.Open(t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := proof.Begin(t, "linear-"+name)
			var next, ops atomic.Int64
			n := proof.Pick(t, s.quick, s.ci, s.nightly)
			var all sync.WaitGroup
			for range runtime.GOMAXPROCS(0) {
				all.Go(func() {
					for seed := next.Add(1); int(seed) <= n && !r.Full(); seed = next.Add(1) {
						judged, err := history(t, s.open(t), uint64(seed))
						ops.Add(int64(judged))
						r.Explored(1)
						if err != nil {
							r.Violation("seed %d: %v", seed, err)
						}
					}
				})
			}
			all.Wait()
			t.Logf("%d operations in %d histories", ops.Load(), n)
		})
	}
}

func history(t *testing.T, b backend.Backend, seed uint64) (int, error) {
	rules := fault.Chaos([]float64{0.1, 0.3, 0.6}[seed%3])
	if _, ok := b.(backend.Appender); ok {
		// A disk does nothing after the call has ended.
		rules = slices.DeleteFunc(rules, func(r fault.Rule) bool { return r.Kind == fault.Late })
	}
	f := fault.New(b, seed, rules...)
	defer b.Close()
	return Run(t.Context(), Options{
		Clean: b, Faulty: f, Deliver: func(ctx context.Context) { _ = f.Deliver(ctx) },
		Clients: 2 + int(seed%4), Ops: 50, Seed: seed,
	})
}
