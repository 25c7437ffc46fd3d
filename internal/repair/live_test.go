package repair_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/repair"
	"github.com/coppice-go/coppice/internal/testutil"
)

// A writer that is alive commits just before any one call of a repair. What it is told was stored is there afterwards:
// the repair finds it, or stops and is run again, or the writer is refused.
func TestRepairBesideALiveWriter(t *testing.T) {
	testutil.SkipLong(t)
	step := 1
	if testing.Short() {
		step = 5
	}
	for _, kind := range proof.StoreKinds {
		t.Run(kind, func(t *testing.T) {
			acked, refused := 0, 0
			for _, turns := range []int{20, 21} { // after one of them the live writer's commit begins a segment
				w := proof.NewWorld(t, proof.StoreOf(kind))
				w.Session("s1", turns)
				all := proof.Objects(t, w.B)
				key := proof.KeysWith(all, "/transcript/")[1]
				q := flip(rand.New(rand.NewPCG(1, 2)), all[key])
				for n := 1; ; n += step {
					hurt := from(t, kind, all, key, all[key], w.Lim)
					live := hurt.Open("s1") // before the damage
					proof.Put(t, hurt.B, key, q)
					ok, more := commitsBefore(t, hurt, live, n, fmt.Sprintf("%d turns, call %d", turns, n))
					if !more {
						break
					}
					if ok {
						acked++
					} else {
						refused++
					}
				}
			}
			if acked == 0 || refused == 0 {
				t.Errorf("%d commits were acknowledged beside the repair, %d refused", acked, refused)
			}
			t.Logf("%d commits were acknowledged beside the repair, %d refused", acked, refused)
		})
	}
}

// commitsBefore repairs a session while a live handle commits before call n of the repair; more is false where it makes
// fewer calls.
func commitsBefore(t *testing.T, w *proof.World, live *journal.Journal, n int, what string) (acked, more bool) {
	t.Helper()
	ctx := context.Background()
	cfg := w.Config("s1")
	calls := 0
	cfg.Backend = fault.New(w.B, 1, fault.Rule{When: func(fault.Call) bool {
		if calls++; calls == n {
			_, err := live.Commit(ctx, &journal.Step{Reason: "turn", Entries: []*journal.Entry{proof.Message(live, "live", "live")}})
			acked = err == nil
			if err != nil && errors.Is(err, journal.ErrUnknown) {
				t.Errorf("%s: the live writer's outcome is unknown: %v", what, err)
			}
		}
		return false
	}})
	_, err := repair.Repair(ctx, cfg, nil, false)
	if calls < n {
		return false, false
	}
	if err != nil {
		runRepair(w, "s1", false)
	}
	if got := w.IDs("s1"); acked && !slices.Contains(got, "live") {
		t.Errorf("%s: an acknowledged turn is lost beside the repair: %v", what, got)
	}
	healthy(w, what)
	return acked, true
}
