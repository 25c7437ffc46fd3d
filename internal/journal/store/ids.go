package store

import (
	"context"
	"errors"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
)

// IndexIDs extends the id index to all sealed lines of st, and stores the new runs. rows are the rows of lines that
// were sealed just now, so that these are not read again. ok is false if there is nothing to do. It replaces and
// removes no stored run.
func (h *History) IndexIDs(
	ctx context.Context, st *state.State, rows []codec.IDRow,
) (c state.Change, ok bool, err error) {
	c = state.Change{Level: state.IDsLevel, Was: st.IDs, IDs: slices.Clip(st.IDs)}
	end := st.Segments.Next()
	for at := st.Indexed(); at < end && len(c.IDs) < checkpoint.MaxRuns; ok = true {
		n := min(end-at, codec.MaxIDs)
		part, err := h.idRun(ctx, st, at, at+n, rows)
		if err != nil {
			return c, false, err
		}
		stay := state.MergeRuns(c.IDs, n)
		merged, err := h.mergeRuns(ctx, st, c.IDs[stay:], part)
		if err != nil {
			return c, false, err
		}
		ref, err := h.storeRun(ctx, merged, st.Summary.Epoch)
		if err != nil {
			return c, false, err
		}
		c.IDs, at = append(c.IDs[:stay:stay], ref), at+n
	}
	return c, ok, nil
}

// Reindexed returns st with a new id index of all sealed lines.
func (h *History) Reindexed(ctx context.Context, st *state.State) (*state.State, error) {
	bare := st.Named(nil)
	c, ok, err := h.IndexIDs(ctx, bare, nil)
	if err != nil || !ok {
		return bare, err
	}
	return bare.With(c)
}

// mergeRuns returns one run with the lines of stored runs and of next. A stored run that is damaged or missing is made
// again from the lines that it covers.
func (h *History) mergeRuns(
	ctx context.Context, st *state.State, refs []codec.Ref, next *codec.IDs,
) (*codec.IDs, error) {
	runs := make([]*codec.IDs, 0, len(refs)+1)
	for _, ref := range refs {
		run, err := h.readRun(ctx, ref)
		if unreadable(err) {
			run, err = h.idRun(ctx, st, ref.First, ref.First+uint64(ref.Count), nil)
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return next, nil
	}
	return codec.MergeIDs(append(runs, next)...)
}

// unreadable reports whether a run is missing, damaged or too new, so that it has to be made again from its lines.
func unreadable(err error) bool {
	return gone(err) || errors.Is(err, ErrCorrupt) || errors.Is(err, codec.ErrVersion)
}

// storeRun writes a run and returns the reference to it.
func (h *History) storeRun(ctx context.Context, run *codec.IDs, epoch uint64) (codec.Ref, error) {
	p, err := run.Encode()
	if err != nil {
		return codec.Ref{}, err
	}
	rnd, err := h.store.Random()
	if err != nil {
		return codec.Ref{}, err
	}
	ref := codec.Ref{First: run.First(), Count: uint32(run.Len()), Epoch: epoch, Rnd: rnd}
	ref.Seal(p)
	return ref, h.store.Create(ctx, layout.IDsKey(h.store.Session, refSegment(ref)), p)
}

// readRun reads a run; its hash is checked.
func (h *History) readRun(ctx context.Context, ref codec.Ref) (*codec.IDs, error) {
	return ReadRun(ctx, h.store.Backend, h.store.Session, ref)
}

// ReadRun reads a run of the id index of a session: one object. Its hash is checked.
func ReadRun(ctx context.Context, b backend.Backend, session string, ref codec.Ref) (*codec.IDs, error) {
	key := layout.IDsKey(session, refSegment(ref))
	p, err := readVerified(ctx, b, key, ref)
	if err != nil {
		return nil, err
	}
	run, err := codec.DecodeIDs(p)
	if err == nil && (run.First() != ref.First || run.Len() != int(ref.Count)) {
		err = codec.ErrFormat
	}
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	return run, nil
}

// DropRuns removes runs that no checkpoint in force names any more. What fails is left to a collection.
func (s *Store) DropRuns(ctx context.Context, refs []codec.Ref) {
	for _, ref := range refs {
		_ = s.Backend.Delete(ctx, layout.IDsKey(s.Session, refSegment(ref)))
	}
}

// idRun makes the run for the sealed lines from from to end. have are rows of the last of these lines, by ordinal; the
// others are read from the skeletons.
func (h *History) idRun(
	ctx context.Context, st *state.State, from, end uint64, have []codec.IDRow,
) (*codec.IDs, error) {
	have = lastRows(have, from, end)
	rows := make([]codec.IDRow, 0, end-from)
	for next := end - uint64(len(have)); from+uint64(len(rows)) < next; {
		before := len(rows)
		for sk, err := range h.Skeletons(ctx, st, from+uint64(len(rows))) {
			if err != nil {
				return nil, err
			}
			for i := range sk.Len() {
				if ord := sk.First() + uint64(i); ord == from+uint64(len(rows)) && ord < next {
					rows = append(rows, codec.IDRow{
						Hash: codec.HashID(sk.ID(i)), Ord: ord, Commit: sk.Flags(i)&codec.FlagCommit != 0,
					})
				}
			}
			if from+uint64(len(rows)) >= next {
				break
			}
		}
		if len(rows) == before { // the sealed lines of a state have no gap
			return nil, Corrupt("", 0, codec.ErrFormat)
		}
	}
	return codec.NewIDs(from, append(rows, have...))
}

// lastRows returns the rows from ordinal from on, if rows end at end without a gap; else nil.
func lastRows(rows []codec.IDRow, from, end uint64) []codec.IDRow {
	n := len(rows)
	if n == 0 || rows[n-1].Ord != end-1 || rows[n-1].Ord-rows[0].Ord != uint64(n-1) {
		return nil
	}
	if rows[0].Ord < from {
		rows = rows[from-rows[0].Ord:]
	}
	return rows
}
