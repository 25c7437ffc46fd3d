package crash

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// tidyDeath runs two processes on one session. One is killed before change number left of its background work, in which
// it seals the closed segment, publishes the checkpoint and removes the plain segment; below 0 = it is not killed. The
// other commits before that, continues to commit, does its own background work and closes. It returns the moments of
// the second, and the number of changes of the first.
func (w *World) tidyDeath(ctx context.Context, left int) (moments []Moment, h *History, made int, err error) {
	base := Scenario{Before: 2}
	if err := base.Begin(ctx, w); err != nil {
		return nil, nil, 0, err
	}
	m := &mortal{FS: w.FS, left: -1}
	w.Over = m
	cfg := w.Config()
	w.Over = nil
	var tidy func()
	cfg.Go = func(job func()) { tidy = job }
	a, err := journal.Open(ctx, cfg)
	for i := 0; err == nil && tidy == nil && i < 8; i++ {
		err = w.Turn(ctx, a, w.text())
	}
	if err == nil && tidy == nil {
		err = fmt.Errorf("the first process had nothing to tidy")
	}
	var b *journal.Journal
	var later []func() // b's background work
	if err == nil {
		cfg = w.Config()
		cfg.Go = func(job func()) { later = append(later, job) }
		b, err = journal.Open(ctx, cfg)
	}
	if err == nil {
		err = w.Turn(ctx, b, w.text())
	}
	if err != nil {
		return nil, nil, 0, err
	}
	m.made, m.left = 0, left
	tidy() // its commits are not acknowledged to any caller
	made = m.made
	moments, err = w.Track(func() error {
		for range 2 {
			if err := w.Turn(ctx, b, w.text()); err != nil {
				return err
			}
			for len(later) > 0 {
				job := later[0]
				later = later[1:]
				job()
			}
		}
		return b.Close(ctx)
	})
	if err == nil {
		h, err = w.History(ctx)
	}
	if err == nil {
		err = h.Keeps(w.given, w.refused)
	}
	return moments, h, made, err
}

// exploreTidyDeath kills the first process before each change of its background work, and loses power before each later
// change of the second one.
func exploreTidyDeath(t *testing.T, r *proof.Report, seed uint64, blank *sync.Map) {
	lim := journal.Limits{RollEntries: 6, PublishCommits: 64, Keyframe: 4, WholeDoc: 8, Attempts: 4}
	plan := Plan{
		First: vfstest.Spread{Contents: 12, States: proof.Pick(t, 3, 16, 100)}, Second: vfstest.Spread{Contents: 4, States: proof.Pick(t, 1, 2, 20)},
		Every: 8, Kill: 16, Verify: 16,
	}
	step := proof.Pick(t, 5, 1, 1)
	for left, made := 0, 1; left < made && !r.Full(); left += step {
		where := fmt.Sprintf("tidying, seed %d, killed before change %d", seed, left)
		w := NewWorld(vfstest.NewCrashFS(), seed, lim)
		moments, h, n, err := w.tidyDeath(t.Context(), left)
		if err != nil {
			r.Violation("%s: without a crash: %v", where, err)
			return
		}
		if left == 0 { // their number is known only from a run in which it is not killed
			if _, _, made, err = NewWorld(vfstest.NewCrashFS(), seed, lim).tidyDeath(t.Context(), -1); err != nil || made < 8 {
				r.Violation("tidying, seed %d: %d changes, %v", seed, made, err)
				return
			}
		} else if n != left+1 {
			r.Violation("%s: it made %d changes", where, n)
		}
		x := NewExplorer(lim, where, plan, blank, r.Violation)
		x.Explore(t.Context(), moments, h)
		x.Report(r)
	}
}
