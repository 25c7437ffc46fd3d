package crash

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/repair"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/internal/vfs/vfstest"
)

// entries returns the session's entries with their bytes, without placeholders of lost ones.
func (w *World) entries(ctx context.Context) (map[string]string, error) {
	j, err := journal.Open(ctx, w.Config())
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for l, err := range j.Lines(ctx, j.State(), nil) {
		if err != nil {
			return nil, err
		}
		if e, err := segment.Entry(l.Ord, l.Raw); err == nil && !l.Commit && !strings.Contains(string(l.Raw), `"coppice.lost"`) {
			out[e.ID] = string(l.Raw)
		}
	}
	return out, nil
}

// damage flips a bit of one object of the transcript, or of the checkpoint.
func (w *World) damage(ctx context.Context) (string, error) {
	var keys []string
	for _, prefix := range []string{layout.SessionPrefix(Session) + layout.Transcript, layout.CheckpointKey(Session)} {
		for info, err := range w.Config().Backend.List(ctx, backend.ListOptions{Prefix: prefix}) {
			if err != nil {
				return "", err
			}
			keys = append(keys, info.Key)
		}
	}
	key := keys[w.Rng.IntN(len(keys))]
	p, _ := w.FS.Bytes(key)
	at := w.Rng.IntN(len(p))
	p[at] ^= 1 << w.Rng.IntN(8)
	w.FS.Overwrite(key, p)
	return fmt.Sprintf("%s, byte %d", key, at), nil
}

// mended continues after a crash of a repair: the repair runs again if needed, and then everything exists that the
// repair would have kept.
func (w *World) mended(ctx context.Context, want map[string]string, repaired bool) error {
	commit := func() error {
		j, err := journal.Open(ctx, w.Config())
		if err == nil {
			_, err = j.Commit(ctx, w.Step(j.State(), 20))
		}
		return err
	}
	err := commit()
	if errors.Is(err, store.ErrCorrupt) && !repaired {
		if _, err = repair.Repair(ctx, w.Config(), nil, false); err == nil {
			err = commit()
		}
	}
	if err != nil {
		return fmt.Errorf("the next commit: %w", err)
	}
	got, err := w.entries(ctx)
	if err != nil && !repaired { // old lines may be damaged while the newest are not
		if _, err = repair.Repair(ctx, w.Config(), nil, false); err == nil {
			got, err = w.entries(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("reading: %w", err)
	}
	for id, raw := range want {
		if got[id] != raw {
			return fmt.Errorf("I14: entry %s is %.60q, and was %.60q", id, got[id], raw)
		}
	}
	return nil
}

// exploreRepair damages a session and crashes its repair at every change.
func exploreRepair(t *testing.T, r *proof.Report, seed uint64) {
	ctx, lim := t.Context(), limits(seed)
	base := Scenario{Before: 6}
	w := NewWorld(vfstest.NewCrashFS(), seed, lim)
	if err := base.Begin(ctx, w); err != nil {
		r.Violation("repair, seed %d: %v", seed, err)
		return
	}
	what, err := w.damage(ctx)
	var moments []Moment
	done := Promise{Commits: 1}
	if err == nil {
		moments, err = w.Track(func() error {
			w.Told = Promise{}
			_, err := repair.Repair(ctx, w.Config(), nil, false)
			w.Told = done
			return err
		})
	}
	var want map[string]string
	if err == nil {
		want, err = w.entries(ctx)
	}
	if err != nil {
		r.Violation("repair, seed %d, %s: without a crash: %v", seed, what, err)
		return
	}
	seen := map[[2]uint64]bool{}
	for i := len(moments) - 1; i >= 0; i-- {
		m, n := &moments[i], 0
		for img := range m.At.States(vfstest.Spread{Contents: 8, States: proof.Pick(t, 2, 30, 200)}, uint64(i)) {
			if n++; seen[img.Sum()] {
				continue
			}
			seen[img.Sum()] = true
			if err := boot(img, seedFirst, lim).mended(ctx, want, m.Told.Commits > 0); err != nil {
				r.Violation("repair, seed %d, %s, crash before change %d (%s %s), state %d: %v\n%s",
					seed, what, m.Op.N, m.Op.Kind, m.Op.Name, n-1, err, img)
			}
		}
	}
	r.Explored(len(seen))
	r.Figure("first", len(seen))
}
