package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// refused reports whether an error means damage or a missing object. Nothing else is possible on a disk that lost names
// after their sync.
func refused(err error) bool {
	return errors.Is(err, store.ErrCorrupt) || errors.Is(err, fs.ErrNotExist)
}

// truthful opens a session on a disk whose directories failed to sync silently, after honest commits. Later
// acknowledged ones may be lost; what is read is a prefix of the commits, or is reported as damage (lost), and the same
// holds after one more commit.
func (w *World) truthful(ctx context.Context, honest int, told *Promise, h *History) (lost bool, err error) {
	j, err := journal.Open(ctx, w.Config())
	switch {
	case errors.Is(err, store.ErrDeleted) && told.Deleting:
		return false, nil
	case errors.Is(err, fs.ErrNotExist) && honest > 0 && !told.Deleting:
		return false, fmt.Errorf("I1: %d commits were durable, and the session counts as missing: %w", honest, err)
	case refused(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("opening fails otherwise than by damage: %w", err)
	}
	st := j.State()
	if st.Summary.Tombstone {
		if !told.Deleting {
			return false, errors.New("I1: the session counts as deleted")
		}
		return false, nil
	}
	n := int(st.Summary.Seq) + 1
	if n < honest {
		return false, fmt.Errorf("I1: %d commits were durable, %d are there", honest, n)
	}
	if err := h.Holds(st); err != nil {
		return false, err
	}
	if err := h.Reads(ctx, j, st); err != nil {
		return refused(err), damageOnly(err, "reading")
	}
	if _, err := j.Commit(ctx, w.Step(st, 20)); err != nil {
		return refused(err), damageOnly(err, "the next commit")
	}
	return w.wentOn(ctx, n, h)
}

// damageOnly returns an error that means anything but damage or a missing object.
func damageOnly(err error, what string) error {
	if refused(err) {
		return nil
	}
	return fmt.Errorf("%s fails otherwise than by damage: %w", what, err)
}

// wentOn reads the session after a commit behind n others.
func (w *World) wentOn(ctx context.Context, n int, h *History) (lost bool, err error) {
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return refused(err), damageOnly(err, "opening after the next commit")
	}
	all, err := ReadHistory(ctx, j)
	if err != nil {
		return refused(err), damageOnly(err, "reading after the next commit")
	}
	if len(all.Commits) <= n {
		return false, fmt.Errorf("I1: after the next commit there are %d, before it %d", len(all.Commits), n)
	}
	for i := range n {
		if all.Commits[i] != h.Commits[i] {
			return false, fmt.Errorf("I10: commit %d is %+v, and was %+v", i, all.Commits[i], h.Commits[i])
		}
	}
	return false, nil
}

// runOnLies runs a scenario like Run, on a disk whose directories lie about syncs from the start of Play; honest
// commits precede.
func (s *Scenario) runOnLies(ctx context.Context, w *World) (moments []Moment, h *History, honest int, err error) {
	if err := s.Begin(ctx, w); err != nil {
		return nil, nil, 0, err
	}
	if h, err = w.History(ctx); err != nil {
		return nil, nil, 0, err
	}
	honest = w.Told.Commits
	w.FS.DirsLie = true
	moments, err = w.Track(func() error { return s.Play(ctx, w) })
	if err == nil && !w.Told.Deleting {
		h, err = w.History(ctx)
	}
	return moments, h, honest, err
}

// exploreLies plays a scenario on a disk whose directories lie about their syncs, and loses power before each change.
// It counts the states that are reported as damaged or missing.
func exploreLies(t *testing.T, r *proof.Report, seed uint64) (lost int) {
	ctx, lim := t.Context(), limits(seed)
	s := &Scenarios[seed%uint64(len(Scenarios))]
	w := NewWorld(vfstest.NewCrashFS(), seed, lim)
	moments, h, honest, err := s.runOnLies(ctx, w)
	if err != nil {
		r.Violation("lies, scenario %s, seed %d: without a crash: %v", s.Name, seed, err)
		return 0
	}
	seen := map[[2]uint64]bool{}
	for i := len(moments) - 1; i >= 0; i-- {
		m, n := &moments[i], 0
		for img := range m.At.States(vfstest.Spread{Contents: 6, States: proof.Pick(t, 4, 60, 200)}, uint64(i)) {
			if n++; seen[img.Sum()] {
				continue
			}
			seen[img.Sum()] = true
			gone, err := boot(img, seedFirst, lim).truthful(ctx, honest, &m.Told, h)
			if gone {
				lost++
			}
			if err != nil {
				r.Violation("lies, scenario %s, seed %d, crash before change %d (%s %s), state %d: %v\n%s",
					s.Name, seed, m.Op.N, m.Op.Kind, m.Op.Name, n-1, err, img)
			}
		}
	}
	r.Explored(len(seen))
	r.Figure("first", len(seen))
	return lost
}
