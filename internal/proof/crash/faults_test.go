package crash

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

var errnos = []syscall.Errno{
	syscall.EIO, syscall.ENOSPC, syscall.EINTR, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EMFILE,
}

var faultLimits = journal.Limits{RollEntries: 7, PublishCommits: 2, Keyframe: 4, WholeDoc: 8, Attempts: 4}

// begin makes the disk that a script begins with.
func begin(ctx context.Context, name string) (*vfstest.Image, error) {
	w := NewWorld(vfstest.NewCrashFS(), 1, faultLimits)
	for i := range Scenarios {
		if s := &Scenarios[i]; s.Name == name {
			if err := s.Begin(ctx, w); err != nil {
				return nil, fmt.Errorf("begin %s: %w", name, err)
			}
		}
	}
	return w.FS.Point().Kept(), nil
}

// play plays a script on a disk with faults, and returns what is wrong with the result.
func play(ctx context.Context, n int, from *vfstest.Image, settles bool, faults ...vfstest.Fault) (*life, error) {
	l := &life{World: NewWorld(vfstest.Boot(from), 2, faultLimits), settles: settles}
	l.acked, l.failed = map[string]string{}, map[string]bool{}
	l.faults = vfstest.NewFaultFS(l.FS, faults...)
	l.Over = l.faults
	lives[n].play(ctx, l)
	if len(l.wrong) > 0 {
		return l, l.wrong[0]
	}
	if again := l.faults.Retried(); len(again) > 0 {
		return l, fmt.Errorf("I13: %s was synced again after a failed sync", again[0])
	}
	return l, l.judge(ctx)
}

// judge checks the disk after each answer, in the worst and the best state after a crash, and at the end in those of
// other crashes and of a killed process.
func (l *life) judge(ctx context.Context) error {
	seen := map[[2]uint64]bool{}
	look := func(m *moment, img *vfstest.Image, deep bool) error {
		if seen[img.Sum()] {
			return nil
		}
		seen[img.Sum()] = true
		if err := m.told.check(ctx, NewWorld(vfstest.Boot(img), 3, faultLimits), deep); err != nil {
			return fmt.Errorf("%w\n%s", err, img)
		}
		return nil
	}
	for i := len(l.points) - 1; i >= 0; i-- {
		m := &l.points[i]
		spread := vfstest.Spread{Contents: 2, States: 2}
		if i == len(l.points)-1 {
			spread = vfstest.Spread{Contents: 4, States: 8}
			if err := look(m, m.at.Kept(), true); err != nil {
				return fmt.Errorf("after the process died: %w", err)
			}
		}
		n := 0
		for img := range m.at.States(spread, uint64(i)) {
			if err := look(m, img, n == 0); err != nil {
				return fmt.Errorf("after answer %d and a crash, state %d: %w", i, n, err)
			}
			n++
		}
	}
	return nil
}

// single are the faults of one call.
func single(at int, c vfstest.Call, errnos []syscall.Errno) (out []vfstest.Fault) {
	for _, kind := range c.Class.Kinds() {
		for i, errno := range errnos {
			if kind == vfstest.Before || i == 0 {
				out = append(out, vfstest.Fault{At: at, Kind: kind, Errno: errno})
			}
		}
		if kind == vfstest.Short || kind == vfstest.Most {
			out = append(out, vfstest.Fault{At: at, Kind: kind}, vfstest.Fault{At: at, Kind: kind, Errno: syscall.ENOSPC})
		}
	}
	return out
}

// job is one run of a script.
type job struct {
	life    int
	settles bool
	faults  []vfstest.Fault
}

// Every call of every script fails once, in every possible way.
func TestProofFaults(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	r := proof.Begin(t, "faults")
	ctx := t.Context()
	var jobs []job
	images := make([]*vfstest.Image, len(lives))
	for n, s := range lives {
		img, err := begin(ctx, s.before)
		if err != nil {
			t.Fatal(err)
		}
		images[n] = img
		l, err := play(ctx, n, img, false)
		if err != nil {
			t.Fatalf("script %s without a fault: %v", s.name, err)
		}
		jobs = append(jobs, plan(t, n, l.faults.Calls())...)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for !r.Full() {
				i := int(next.Add(1)) - 1
				if i >= len(jobs) {
					return
				}
				b := &jobs[i]
				l, err := play(ctx, b.life, images[b.life], b.settles, b.faults...)
				if err != nil {
					r.Violation("script %s, settles %v, %v (%s): %v", lives[b.life].name, b.settles, b.faults, l.names(b.faults), err)
				}
				r.Explored(1)
			}
		})
	}
	wg.Wait()
}

// names returns the calls that failed.
func (l *life) names(faults []vfstest.Fault) (out []string) {
	calls := l.faults.Calls()
	for _, f := range faults {
		if f.At < len(calls) {
			out = append(out, calls[f.At].Name)
		}
	}
	return out
}

// plan lists the runs of a script: one in so many calls when quick, every call, or every pair of them.
func plan(t *testing.T, n int, calls []vfstest.Call) (jobs []job) {
	step := proof.Pick(t, 13, 2, 1)
	for at := n % step; at < len(calls); at += step {
		kinds := errnos
		switch proof.Asked(t) {
		case proof.Quick:
			kinds = errnos[:2]
		case proof.CI: // the error matters for few calls: EIO, and the others alternately
			kinds = []syscall.Errno{errnos[0], errnos[1+at%(len(errnos)-1)]}
		case proof.Nightly:
		}
		for _, f := range single(at, calls[at], kinds) {
			jobs = append(jobs, job{n, at%2 == 0, []vfstest.Fault{f}})
			if calls[at].Class != vfstest.Read { // it may have broken a handle
				jobs = append(jobs, job{n, at%2 != 0, []vfstest.Fault{f}})
			}
		}
	}
	if proof.Asked(t) == proof.Nightly {
		for a := range calls {
			for b := a + 1; b < len(calls)+20; b++ { // a fault makes some scripts longer
				for _, f := range single(a, calls[a], errnos[:1]) {
					for _, kind := range []vfstest.FaultKind{vfstest.Before, vfstest.After, vfstest.Lose} {
						g := vfstest.Fault{At: b, Kind: kind, Errno: syscall.EIO}
						jobs = append(jobs, job{n, (a+b)%2 == 0, []vfstest.Fault{f, g}})
					}
				}
			}
		}
	}
	return jobs
}
