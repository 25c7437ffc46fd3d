package crash

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// limits are small, so that a few turns roll, seal and publish; a seed chooses among them.
func limits(seed uint64) journal.Limits {
	return journal.Limits{
		RollEntries:    []int{5, 8, 16384, 11}[seed%4],
		PublishCommits: []int{1, 2, 3, 64, 2}[seed%5],
		Keyframe:       4, WholeDoc: []int{8, 4096}[seed%2], Attempts: 4,
	}
}

// each runs jobs on all processors until they are done or the report is full.
func each(r *proof.Report, jobs int, do func(job int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				job := int(next.Add(1)) - 1
				if job >= jobs || r.Full() {
					return
				}
				do(job)
			}
		})
	}
	wg.Wait()
}

// Power is lost before every change of the disk in the scenarios, and again before every change of the recovery.
func TestProofCrash(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	r := proof.Begin(t, "crash")
	rounds := proof.Pick(t, 1, 1, 300)
	plan := Plan{
		First:  vfstest.Spread{Contents: proof.Pick(t, 30, 24, 30), States: proof.Pick(t, 6, 18, 200)},
		Second: vfstest.Spread{Contents: proof.Pick(t, 24, 10, 24), States: proof.Pick(t, 4, 8, 80)},
		Every:  proof.Pick(t, 20, 1, 1),
		Kill:   proof.Pick(t, 12, 1, 1),
		Verify: proof.Pick(t, 16, 8, 1),
	}
	var blank sync.Map
	repairs, deaths := proof.Pick(t, 3, 48, 5000), proof.Pick(t, 1, 2, 60)
	var lost atomic.Int64
	lies := proof.Pick(t, 6, len(Scenarios), 40*len(Scenarios))
	each(r, rounds*len(Scenarios)+repairs+deaths+lies, func(job int) {
		switch n := job - rounds*len(Scenarios); {
		case n >= repairs+deaths:
			lost.Add(int64(exploreLies(t, r, uint64(n-repairs-deaths))))
			return
		case n >= repairs:
			exploreTidyDeath(t, r, uint64(n-repairs), &blank)
			return
		case n >= 0:
			exploreRepair(t, r, uint64(n))
			return
		}
		s := &Scenarios[job%len(Scenarios)]
		x := exploreOne(t, r, s, uint64(job), plan, &blank)
		x.Report(r)
	})
	if lost.Load() == 0 {
		t.Error("no name was lost where directories lie")
	}
}

func exploreOne(t *testing.T, r *proof.Report, s *Scenario, seed uint64, plan Plan, blank *sync.Map) *Explorer {
	where := fmt.Sprintf("scenario %s, seed %d", s.Name, seed)
	lim := limits(seed)
	x := NewExplorer(lim, where, plan, blank, r.Violation)
	w := NewWorld(vfstest.NewCrashFS(), seed, lim)
	moments, h, err := s.Run(t.Context(), w)
	if err != nil {
		r.Violation("%s: without a crash: %v", where, err)
		return x
	}
	x.Explore(t.Context(), moments, h)
	return x
}
