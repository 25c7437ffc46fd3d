package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// mend handles bytes after the last commit of the active segment that are no commit. First all bytes that no commit
// line promised as durable are written in place again and synced; then they are classified. Torn bytes, those of a
// writer that died or ran out of space in mid-append, are copied to an object of their own and cut off. Anything else
// is damage, and the log stays as it is.
//
// It returns the newest state: base, of which the next commit names the moved bytes, or what others committed
// meanwhile.
func (a *appendStrategy) mend(ctx context.Context, base *state.State) (*state.State, error) {
	key, good := a.activeKey(base), base.Active().Bytes
	size, err := a.size(ctx, key)
	if err != nil {
		return nil, err
	}
	if _, err := a.b.Resync(ctx, key, min(base.Durable, good), size); err != nil {
		if errors.Is(err, backend.ErrPrecondition) {
			return base, nil // another process appended just now: look again
		}
		return nil, err
	}
	now, rest, err := a.play(ctx, base)
	if err != nil || rest == 0 || now.Summary.Seq > base.Summary.Seq {
		return now, err
	}
	torn, _, err := a.b.Get(ctx, key, backend.Bytes(good, rest))
	if errors.Is(err, backend.ErrRange) { // another process cut them off: look again
		return base, nil
	}
	if err != nil {
		return nil, err
	}
	if err := a.judge(ctx, base, torn); err != nil {
		return nil, err
	}
	rnd, err := a.store.Random()
	if err != nil {
		return nil, err
	}
	aside := layout.TornKey(a.cfg.Session, store.SegmentOf(base.Active()), good, rnd)
	if err := a.store.Create(ctx, aside, torn); err != nil {
		return nil, err
	}
	if err := a.b.Cut(ctx, key, good, torn); err != nil && !errors.Is(err, backend.ErrPrecondition) {
		return nil, err
	}
	next := *base
	next.Pending, next.Durable = strings.TrimPrefix(aside, layout.SessionPrefix(a.cfg.Session)), good
	return &next, nil
}

// judge reports whether the bytes after the last good commit are a torn tail (nil) or damage: they are
// damage iff another process is known to have built upon something after them. A later commit line promises
// more, a checkpoint or a snapshot is of a later commit, or a segment that holds commits continues this one.
func (a *appendStrategy) judge(ctx context.Context, base *state.State, rest []byte) error {
	key, good := a.activeKey(base), base.Active().Bytes
	if at, found := segment.Promises(rest, base.Key, good); found {
		return store.Corrupt(key, good, fmt.Errorf(
			"a commit line at byte %d was written when these bytes were durable: %w",
			good+int64(at), codec.ErrChecksum))
	}
	o, _, err := a.store.Checkpoint(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, store.ErrCorrupt):
	case err != nil:
		return err
	case o.Summary.Tombstone:
		return store.Deleted(o)
	case o.Summary.Seq > base.Summary.Seq:
		return a.endsEarly(base, o.Summary.Seq)
	}
	if seq, err := a.store.Shown(ctx, base); err != nil {
		return err
	} else if seq > 0 {
		return a.endsEarly(base, seq)
	}
	all, err := a.store.Segments(ctx, base.Since)
	if err != nil {
		return err
	}
	for _, f := range all {
		if f.Seg.First <= base.Active().First {
			continue
		}
		goesOn, err := a.goesOn(ctx, f.Seg, base.Active().Name)
		if err != nil {
			return err
		}
		if goesOn {
			return store.Corrupt(key, good,
				fmt.Errorf("segment %s continues commits that are missing here: %w", f.Seg.Name(), codec.ErrChecksum))
		}
	}
	return nil
}

// endsEarly returns the error of a log that ends before a commit that was acknowledged, as a checkpoint or a snapshot
// shows.
func (a *appendStrategy) endsEarly(st *state.State, acked uint64) error {
	return store.Corrupt(a.activeKey(st), st.Active().Bytes, fmt.Errorf(
		"commits up to %d were stored, the log ends with %d: %w", acked, st.Summary.Seq, codec.ErrChecksum))
}

// goesOn reports whether a segment names prev as the one before it and holds a commit.
func (a *appendStrategy) goesOn(ctx context.Context, seg layout.Segment, prev string) (bool, error) {
	raw, key, _, err := a.store.SegmentRaw(ctx, seg)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	o, err := segment.ParseOpening(raw, false)
	if err != nil {
		return false, store.Corrupt(key, 0, err)
	}
	if o.Prelude.PrevName != prev {
		return false, nil
	}
	holds := false
	segment.Scan(raw[o.Size:], o.Prelude.Key, o.Self(), func(segment.Commit) bool {
		holds = true
		return false
	})
	return holds, nil
}
