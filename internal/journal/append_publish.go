package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/parallel"
	"github.com/coppice-go/coppice/internal/segment"
)

// Finish writes what Close owes: the checkpoint, so that the next Open reads no tail.
func (a *appendStrategy) Finish(ctx context.Context, st *state.State) error {
	a.mu.Lock()
	due := len(st.Plain) > 1 || st.Summary.Seq != a.seq || !a.exists
	a.mu.Unlock()
	if !due {
		return nil
	}
	_, _, err := a.tidy(ctx, st, false)
	return err
}

// tidy seals the segments that are closed, folds references that are due, writes checkpoint_latest, and
// then removes the plain form of what that names as sealed. It returns st as it is then. often: see save.
func (a *appendStrategy) tidy(ctx context.Context, st *state.State, often bool) (*state.State, []state.Change, error) {
	var made []state.Change
	var gone []layout.Segment
	var rows []codec.IDRow
	for len(st.Plain) > 1 {
		refs := slices.Clone(st.Plain[:min(len(st.Plain)-1, sealLanes)])
		changes, err := a.sealPlain(ctx, refs)
		if err != nil {
			return nil, nil, err
		}
		for i, c := range changes {
			seg := store.SegmentOf(&refs[i])
			rows, c.Rows = append(rows, c.Rows...), nil
			if st, err = st.With(c); err != nil {
				return nil, nil, err
			}
			made, gone = append(made, c), append(gone, seg)
		}
	}
	for level, refs, ok := st.Foldable(); ok; level, refs, ok = st.Foldable() {
		c, err := a.past.Fold(ctx, level, refs, st.Summary.Epoch)
		if err != nil {
			return nil, nil, err
		}
		if st, err = st.With(c); err != nil {
			return nil, nil, err
		}
		made = append(made, c)
	}
	st, c, saved := a.indexed(ctx, st, rows, often)
	if c != nil {
		made = append(made, *c)
	}
	if saved != nil && !errors.Is(saved, errOlder) {
		return st, made, saved
	}
	if saved != nil {
		return st, made, a.dropErased(ctx, st, gone)
	}
	for _, seg := range gone {
		if err := a.b.Delete(ctx, seg.PlainKey(a.cfg.Session)); err != nil {
			return st, made, err
		}
	}
	return st, made, nil
}

// dropErased removes the sealed forms of segments that this handle wrote while entries of the session were erased, if
// the session leads to others in their place: they have what was erased.
func (a *appendStrategy) dropErased(ctx context.Context, st *state.State, sealed []layout.Segment) error {
	o, info, err := a.store.Checkpoint(ctx)
	if err != nil || o.Summary.Tombstone || o.Erased <= st.Erased || len(sealed) == 0 {
		return nil //nolint:nilerr // that is met again by what is done next
	}
	now, err := state.Restore(o, info)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	for _, seg := range sealed {
		in, ok, err := a.past.SealedAt(ctx, now, seg.First)
		if err != nil || !ok || in == seg {
			continue
		}
		if err := a.b.Delete(ctx, seg.SealedKey(a.cfg.Session)); err != nil {
			return err
		}
	}
	return nil
}

// sealLanes bounds the segments that are compressed at once, where a history was brought in in bulk.
const sealLanes = 2

// sealPlain writes the sealed forms of closed segments. Only the computing is done at once: what is read and written
// comes in one order, whatever takes how long.
func (a *appendStrategy) sealPlain(ctx context.Context, refs []checkpoint.PlainRef) ([]state.Change, error) {
	changes, closed := make([]state.Change, len(refs)), make([]*segment.Contents, len(refs))
	for i := range refs {
		var err error
		if changes[i], closed[i], err = a.readPlain(ctx, &refs[i]); err != nil {
			return nil, err
		}
	}
	sealed := make([]segment.Sealed, len(refs))
	err := parallel.Each(ctx, len(refs), func(i int) (err error) {
		if c := closed[i]; c != nil {
			sealed[i], err = c.Seal(store.SegmentOf(&refs[i]), refs[i].FirstSeq)
		}
		return err
	})
	for i, s := range sealed {
		if err == nil && closed[i] != nil {
			changes[i], err = a.past.StoreSealed(ctx, store.SegmentOf(&refs[i]), s)
		}
	}
	return changes, err
}

// readPlain reads a closed segment that is to be sealed; nil, and what it became, where it was sealed before.
func (a *appendStrategy) readPlain(
	ctx context.Context, ref *checkpoint.PlainRef,
) (state.Change, *segment.Contents, error) {
	seg := store.SegmentOf(ref)
	key := seg.PlainKey(a.cfg.Session)
	raw, _, err := a.b.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) { // another process sealed it, and was done
		d, err := a.describe(ctx, seg)
		if err != nil || d.sealed == nil {
			return state.Change{}, nil, errors.Join(err, state.ErrStale)
		}
		return state.Change{Level: -1, Ref: *d.sealed}, nil, nil
	}
	if err != nil {
		return state.Change{}, nil, err
	}
	if c, ok, err := a.sealedBefore(ctx, seg, raw); ok || err != nil {
		return c, nil, err
	}
	c, err := segment.Read(raw, seg)
	if err != nil {
		return state.Change{}, nil, store.Corrupt(key, 0, err)
	}
	if int64(len(raw)) != ref.Bytes || int64(c.End) != ref.Bytes || uint64(len(c.Lines)) != ref.Count {
		return state.Change{}, nil, store.Corrupt(key, int64(c.End), fmt.Errorf(
			"the closed segment has %d bytes, of them %d and %d lines committed, instead of %d and %d: %w",
			len(raw), c.End, len(c.Lines), ref.Bytes, ref.Count, codec.ErrFormat))
	}
	return state.Change{}, &c, nil
}

// sealedBefore takes a sealed form that is there together with the plain one: another process died, or still is,
// between writing the one and removing the other. Its sync may have failed, so it is made durable first.
func (a *appendStrategy) sealedBefore(ctx context.Context, seg layout.Segment, raw []byte) (state.Change, bool, error) {
	key := seg.SealedKey(a.cfg.Session)
	p, info, err := a.b.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) {
		return state.Change{}, false, nil
	}
	if err != nil {
		return state.Change{}, false, err
	}
	have, _, err := codec.DecodeSegment(p, backend.MaxObjectSize)
	if err != nil || !bytes.Equal(have, raw) {
		return state.Change{}, false,
			store.Corrupt(key, 0, fmt.Errorf("it is not the sealed form of the plain segment: %w", codec.ErrChecksum))
	}
	if err := a.store.Harden(ctx, key, p, info.Version); err != nil {
		return state.Change{}, false, err
	}
	d, err := a.describe(ctx, seg)
	if err != nil || d.sealed == nil {
		return state.Change{}, false, errors.Join(err, state.ErrStale)
	}
	return state.Change{Level: -1, Ref: *d.sealed}, true, nil
}

// indexed adds what is sealed to the id index, and writes checkpoint_latest. It names only runs that are in force, or
// that were made just now: another writer may have merged, and removed, those that this handle knew. It returns st as
// it is then, with the change of the index; nil = it is as it was. What cannot be indexed is in the next run.
func (a *appendStrategy) indexed(
	ctx context.Context, st *state.State, rows []codec.IDRow, often bool,
) (*state.State, *state.Change, error) {
	was, saved := st.IDs, errRuns
	for range a.cfg.Limits.Attempts {
		a.mu.Lock()
		inForce := a.runs
		a.mu.Unlock()
		if st = st.Named(inForce); a.anew {
			st = st.Named(nil)
		}
		if c, ok, err := a.past.IndexIDs(ctx, st, rows); err == nil && ok {
			if next, err := st.With(c); err == nil {
				st = next
			}
		}
		if saved = a.save(ctx, st, often); saved == nil {
			a.store.DropRuns(ctx, state.Superseded(inForce, st.IDs))
		}
		if !errors.Is(saved, errRuns) {
			break
		}
	}
	if slices.Equal(was, st.IDs) {
		return st, nil, saved
	}
	return st, &state.Change{Level: state.IDsLevel, Was: was, IDs: st.IDs}, saved
}

// errRuns means that another writer's checkpoint names other runs of the id index.
var errRuns = errors.New("the runs of the id index have changed")

// errOlder means that the checkpoint in force is of a later commit than the one that was to be written.
var errOlder = errors.New("a newer checkpoint is in force")

// save writes checkpoint_latest for st: under the version seen last, and only forward. The log up to st
// is durable already (I13). often: it is one of many, and keeps the frames of the one before; what a closed session
// leaves is one frame, which is smaller.
func (a *appendStrategy) save(ctx context.Context, st *state.State, often bool) error {
	o := st.Object(false)
	if often {
		a.mu.Lock()
		o.Reuse(a.last)
		a.mu.Unlock()
	}
	body, err := o.Encode()
	if err != nil {
		return err
	}
	if often {
		a.mu.Lock()
		a.last = o
		a.mu.Unlock()
	}
	key := layout.CheckpointKey(a.cfg.Session)
	for range a.cfg.Limits.Attempts {
		a.mu.Lock()
		cond, older, named := backend.IfMatch(a.version), a.seq > st.Summary.Seq, a.runs
		if !a.exists {
			cond = backend.IfAbsent()
		}
		a.mu.Unlock()
		if older { // the version in force is known, and st is older
			return errOlder
		}
		info, err := a.b.Put(ctx, key, body, cond)
		if err == nil {
			a.mu.Lock()
			a.version, a.exists, a.seq, a.bytes, a.batches = info.Version, true, st.Summary.Seq, st.Summary.Bytes,
				st.Batches
			a.runs = st.IDs
			a.mu.Unlock()
			return nil
		}
		if !errors.Is(err, backend.ErrPrecondition) {
			return err
		}
		o, info, err := a.store.Checkpoint(ctx)
		a.saw(o, info, err)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrCorrupt):
		case err != nil:
			return err
		case o.Summary.Tombstone || o.Summary.Seq > st.Summary.Seq:
			return errOlder
		case o.Summary.Seq == st.Summary.Seq && o.Segments.Next() >= st.Segments.Next():
			return errOlder
		case !slices.Equal(o.IDs, named):
			return errRuns
		}
	}
	return fmt.Errorf("write %s: it changed %d times in a row", key, a.cfg.Limits.Attempts)
}

// settle writes a checkpoint of the settled state, and returns that: the log itself stays as it is.
func (a *appendStrategy) settle(ctx context.Context, st *state.State) (*state.State, error) {
	st, _, err := a.tidy(ctx, st, false)
	if err != nil {
		return nil, err
	}
	if st, err = a.past.FoldAll(ctx, st); err != nil {
		return nil, err
	}
	// another writer's is newer: it does as well
	if err := a.save(ctx, st, false); err != nil && !errors.Is(err, errOlder) && !errors.Is(err, errRuns) {
		return nil, err
	}
	return st, nil
}
