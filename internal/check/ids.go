package check

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
)

// run is a run of the id index that was read.
type run struct {
	*codec.IDs
	key   string
	wrong bool // a row of it was reported
}

// runs reads the id index that the newest state names.
func (v *verifier) runs(ctx context.Context) error {
	if v.st == nil {
		return nil
	}
	for _, ref := range v.namedRuns(ctx) {
		key := layout.IDsKey(v.id, segmentOf(ref))
		ids, err := store.ReadRun(ctx, v.b, v.id, ref)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			v.note(Missing, key, 0, errGone, "the ids of entries %d to %d", ref.First, ref.First+uint64(ref.Count)-1)
		case errors.Is(err, store.ErrCorrupt), errors.Is(err, codec.ErrVersion):
			v.note(Damaged, key, 0, err, "the ids of entries %d to %d", ref.First, ref.First+uint64(ref.Count)-1)
		case err != nil:
			return fmt.Errorf("verify session %s: %w", v.id, err)
		default:
			v.r.Bytes += ref.Bytes
			v.ids = append(v.ids, &run{IDs: ids, key: key})
		}
	}
	return nil
}

// namedRuns returns the runs that the newest state names. A writer removes those that it has merged: if one is gone,
// the state is read again.
func (v *verifier) namedRuns(ctx context.Context) []codec.Ref {
	refs := v.st.IDs
	for range verifyRuns {
		gone := slices.ContainsFunc(refs, func(ref codec.Ref) bool {
			_, err := v.b.Stat(ctx, layout.IDsKey(v.id, segmentOf(ref)))
			return errors.Is(err, fs.ErrNotExist)
		})
		if !gone {
			break
		}
		now, err := journal.Open(ctx, v.cfg)
		if err != nil || slices.Equal(now.State().IDs, refs) {
			break
		}
		refs = now.State().IDs
	}
	return refs
}

// heldIDs holds the rows of a skeleton against the id index. Each line has one row in it, so none is too many.
func (v *verifier) heldIDs(sk *codec.Skeleton) {
	for _, r := range v.ids {
		from, end := max(sk.First(), r.First()), min(sk.First()+uint64(sk.Len()), r.End())
		for ord := from; ord < end && !r.wrong; ord++ {
			i := int(ord - sk.First())
			held := false
			for _, row := range r.Find(codec.HashID(sk.ID(i))) {
				held = held || row.Ord == ord && row.Commit == (sk.Flags(i)&codec.FlagCommit != 0)
			}
			if r.wrong = !held; r.wrong {
				v.note(Mismatch, r.key, 0, nil, "entry %d has the id %s, which the index does not say", ord, sk.ID(i))
			}
		}
	}
}
