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

// trimTail handles bytes at the end of the active segment that are not a commit. It first rewrites and syncs the bytes
// that no commit line promised as durable, then classifies them (checkTorn). Torn bytes are the beginning of an append
// whose writer died or ran out of space: trimTail copies them to an object of their own and cuts them off. Other bytes
// are damage: the log stays as it is, and the error is ErrCorrupt.
//
// It returns the newest state: base with Pending set, so that the next commit names the object of the torn bytes; base
// unchanged if another process appended or cut meanwhile; or a newer state if that process committed.
func (a *appendStrategy) trimTail(ctx context.Context, base *state.State) (*state.State, error) {
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
	if err := a.checkTorn(ctx, base, torn); err != nil {
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

// checkTorn returns nil if rest, the bytes after the last commit of base, are a torn tail, and ErrCorrupt if they are
// damaged commits. They are damage if something shows that a later commit was stored: a commit line in rest that was
// written when the bytes before it were durable, a checkpoint or snapshot of a later commit, or a later segment that
// contains commits and names this one as the segment before it.
func (a *appendStrategy) checkTorn(ctx context.Context, base *state.State, rest []byte) error {
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

// endsEarly returns the error of a log that ends with st, although commits up to the seq stored were acknowledged.
func (a *appendStrategy) endsEarly(st *state.State, stored uint64) error {
	return store.Corrupt(a.activeKey(st), st.Active().Bytes, fmt.Errorf(
		"commits up to %d were stored, the log ends with %d: %w", stored, st.Summary.Seq, codec.ErrChecksum))
}

// goesOn reports whether the segment seg names prev as the segment before it and contains a commit. It is false for a
// segment that does not exist.
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
