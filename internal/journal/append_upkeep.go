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

// Finish seals closed segments and writes checkpoint_latest, if it is older than st, so that the next Open reads no
// tail.
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

// tidy seals the closed segments, folds the references that are due, and writes checkpoint_latest. Then it removes the
// plain forms of the sealed segments. It returns the state after these changes, and the changes. often: see save.
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

// dropErased removes sealed segments that this handle wrote while another writer erased entries, and that the erasure
// replaced: they contain the erased text.
func (a *appendStrategy) dropErased(ctx context.Context, st *state.State, sealed []layout.Segment) error {
	o, info, err := a.store.Checkpoint(ctx)
	if err != nil || o.Summary.Tombstone || o.Erased <= st.Erased || len(sealed) == 0 {
		return nil //nolint:nilerr // the next operation meets the same error
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

// sealLanes is the maximum number of segments that are compressed at a time.
const sealLanes = 2

// sealPlain writes the sealed forms of closed segments. It compresses them in parallel. Reads and writes happen in the
// order of refs, so that the requests do not depend on timing.
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

// readPlain reads a closed segment to be sealed. If another process has sealed it, it returns nil contents and the
// change that refers to the sealed form.
func (a *appendStrategy) readPlain(
	ctx context.Context, ref *checkpoint.PlainRef,
) (state.Change, *segment.Contents, error) {
	seg := store.SegmentOf(ref)
	key := seg.PlainKey(a.cfg.Session)
	raw, _, err := a.b.Get(ctx, key, backend.Range{})
	if errors.Is(err, fs.ErrNotExist) { // another process sealed it and removed the plain form
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

// sealedBefore returns the change that refers to the sealed form of a segment, if that exists together with the plain
// form raw: another process wrote the sealed form and did not remove the plain form yet, or died before. It makes the
// sealed form durable first, because the sync of that process may have failed. false = no sealed form exists.
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

// indexed adds the ids of sealed lines to the id index and writes checkpoint_latest. The checkpoint names only runs
// that the current checkpoint names, and the new one: another writer may have merged and removed runs that this handle
// knew. It returns the new state and the change of the index; nil = the index did not change. If indexing fails, a
// later run contains the ids.
func (a *appendStrategy) indexed(
	ctx context.Context, st *state.State, rows []codec.IDRow, often bool,
) (*state.State, *state.Change, error) {
	was, saved := st.IDs, errRuns
	for range a.cfg.Limits.Attempts {
		a.mu.Lock()
		inForce := a.runs
		a.mu.Unlock()
		if st = st.Named(inForce); a.rebuildIDs {
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

// errRuns means that the checkpoint of another writer names other runs of the id index.
var errRuns = errors.New("the runs of the id index have changed")

// errOlder means that checkpoint_latest contains a later commit than the checkpoint to be written.
var errOlder = errors.New("a newer checkpoint is in force")

// save replaces checkpoint_latest by that of st, on condition of the version seen last, and never by an older commit.
// The caller has made the log up to st durable (I13). often reuses the compressed frames of the previous checkpoint,
// which is faster; without it the body is one frame, which is smaller.
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
		if older {
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

// sealAll seals all closed segments, folds all references into one, and writes the checkpoint. It does not change the
// log, and returns the new state.
func (a *appendStrategy) sealAll(ctx context.Context, st *state.State) (*state.State, error) {
	st, _, err := a.tidy(ctx, st, false)
	if err != nil {
		return nil, err
	}
	if st, err = a.past.FoldAll(ctx, st); err != nil {
		return nil, err
	}
	// With errOlder or errRuns the checkpoint of another writer is in force, which serves as well.
	if err := a.save(ctx, st, false); err != nil && !errors.Is(err, errOlder) && !errors.Is(err, errRuns) {
		return nil, err
	}
	return st, nil
}
