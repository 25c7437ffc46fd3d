package faultfs

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
	"github.com/coppice-go/coppice/internal/proof/crash"
	"github.com/coppice-go/coppice/internal/proof/simfs"
)

var errnos = []syscall.Errno{
	syscall.EIO, syscall.ENOSPC, syscall.EINTR, syscall.EDQUOT, syscall.EROFS, syscall.EACCES, syscall.EMFILE,
}

var limits = journal.Limits{RollEntries: 7, PublishCommits: 2, Keyframe: 4, WholeDoc: 8, Attempts: 4}

// begin makes the disk that a script begins with.
func begin(ctx context.Context, name string) (*simfs.Image, error) {
	w := crash.NewWorld(simfs.New(), 1, limits)
	for i := range crash.Scenarios {
		if s := &crash.Scenarios[i]; s.Name == name {
			if err := s.Begin(ctx, w); err != nil {
				return nil, fmt.Errorf("begin %s: %w", name, err)
			}
		}
	}
	return w.FS.Point().Kept(), nil
}

// play plays a script on a disk with faults, and gives what is wrong with what came of it.
func play(ctx context.Context, n int, from *simfs.Image, rebase bool, faults ...Fault) (*life, error) {
	l := &life{World: crash.NewWorld(simfs.Boot(from), 2, limits), rebase: rebase}
	l.acked, l.failed = map[string]string{}, map[string]bool{}
	l.faults = New(l.FS, faults...)
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

// judge looks at the disk after each answer, as a crash leaves it at the worst and at the best, and at the end
// as other crashes and a killed process do.
func (l *life) judge(ctx context.Context) error {
	seen := map[[2]uint64]bool{}
	look := func(m *moment, img *simfs.Image, deep bool) error {
		if seen[img.Sum()] {
			return nil
		}
		seen[img.Sum()] = true
		if err := m.told.check(ctx, crash.NewWorld(simfs.Boot(img), 3, limits), deep); err != nil {
			return fmt.Errorf("%w\n%s", err, img)
		}
		return nil
	}
	for i := len(l.points) - 1; i >= 0; i-- {
		m := &l.points[i]
		spread := simfs.Spread{Contents: 2, States: 2}
		if i == len(l.points)-1 {
			spread = simfs.Spread{Contents: 4, States: 8}
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
func single(at int, c Call, errnos []syscall.Errno) (out []Fault) {
	for _, kind := range c.Class.Kinds() {
		for i, errno := range errnos {
			if kind == Before || i == 0 {
				out = append(out, Fault{at, kind, errno})
			}
		}
		if kind == Short || kind == Most {
			out = append(out, Fault{at, kind, 0}, Fault{at, kind, syscall.ENOSPC})
		}
	}
	return out
}

// job is one run of a script.
type job struct {
	life   int
	rebase bool
	faults []Fault
}

// Every call of every script fails once, in every way that it can.
func TestProofFaults(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	r := proof.Begin(t, "faults")
	ctx := t.Context()
	var jobs []job
	images := make([]*simfs.Image, len(lives))
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
				l, err := play(ctx, b.life, images[b.life], b.rebase, b.faults...)
				if err != nil {
					r.Violation("script %s, rebase %v, %v (%s): %v", lives[b.life].name, b.rebase, b.faults, l.names(b.faults), err)
				}
				r.Explored(1)
			}
		})
	}
	wg.Wait()
}

// names tells which calls failed.
func (l *life) names(faults []Fault) (out []string) {
	calls := l.faults.Calls()
	for _, f := range faults {
		if f.At < len(calls) {
			out = append(out, calls[f.At].Name)
		}
	}
	return out
}

// plan lists the runs of a script: one in so many calls when quick, every call, or every pair of them.
func plan(t *testing.T, n int, calls []Call) (jobs []job) {
	step := proof.Pick(t, 13, 1, 1)
	kinds := errnos
	if proof.Asked(t) == proof.Quick {
		kinds = errnos[:2]
	}
	for at := n % step; at < len(calls); at += step {
		for _, f := range single(at, calls[at], kinds) {
			jobs = append(jobs, job{n, at%2 == 0, []Fault{f}})
			if calls[at].Class != Read { // it may have broken a handle
				jobs = append(jobs, job{n, at%2 != 0, []Fault{f}})
			}
		}
	}
	if proof.Asked(t) == proof.Nightly {
		for a := range calls {
			for b := a + 1; b < len(calls)+20; b++ { // a fault makes some scripts longer
				for _, f := range single(a, calls[a], errnos[:1]) {
					for _, kind := range []Kind{Before, After, Lose} {
						g := Fault{b, kind, syscall.EIO}
						jobs = append(jobs, job{n, (a+b)%2 == 0, []Fault{f, g}})
					}
				}
			}
		}
	}
	return jobs
}
