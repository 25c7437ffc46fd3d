package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// Load reads the newest state: checkpoint_latest and the log after it. A checkpoint that is lost or damaged, that names
// a missing segment, or that ends where its own commit line does not, counts as lost: then the state is rebuilt from
// the log alone (rebuild). Nothing is judged or written here (I14).
func (a *appendStrategy) Load(ctx context.Context) (*state.State, error) {
	o, info, err := a.store.Checkpoint(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.rebuild(ctx, info, a.store.Since())
	case errors.Is(err, store.ErrCorrupt):
		st, rerr := a.rebuild(ctx, info, a.store.Since())
		if errors.Is(rerr, fs.ErrNotExist) {
			return nil, err
		}
		return st, rerr
	case err != nil:
		return nil, err
	case o.Summary.Tombstone:
		return a.afterTombstone(ctx, o, info)
	}
	st, err := state.Restore(o, info)
	if err != nil || st.Active() == nil {
		return a.rebuildBeside(ctx, o, info)
	}
	now, err := a.catchUp(ctx, st)
	if errors.Is(err, errLost) || err == nil && now.Stale() {
		return a.rebuildBeside(ctx, o, info)
	}
	if err == nil && now.Summary.Tombstone { // its deletion has begun, and was broken off
		return nil, store.Deleted(now.Object(false))
	}
	return now, err
}

// afterTombstone reads a session that began after the one of a tombstone, and whose checkpoint is not written yet.
func (a *appendStrategy) afterTombstone(
	ctx context.Context, o *checkpoint.Object, info backend.Info,
) (*state.State, error) {
	next := layout.NextEpoch(o.Summary.Epoch)
	if a.store.Bound() { // it is that of the handle's own session
		return nil, store.Deleted(o)
	}
	begun, err := store.Begun(ctx, a.b, a.cfg.Session, next)
	if err != nil {
		return nil, err
	}
	if begun {
		st, err := a.rebuild(ctx, info, next)
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrDeleted) {
			return st, err
		}
	}
	return nil, store.Deleted(o)
}

// rebuildBeside is rebuild where checkpoint_latest is intact: that no segment is there is damage then, and not the
// absence of the session, unless the session was deleted between the two looks. Commits that it has and the log has not
// were acknowledged: the rest can be read, and ReadyBase refuses to write after it.
func (a *appendStrategy) rebuildBeside(
	ctx context.Context, o *checkpoint.Object, info backend.Info,
) (*state.State, error) {
	st, err := a.rebuild(ctx, info, o.Since)
	if err == nil && st.Summary.Seq < o.Summary.Seq {
		st.Missing = max(st.Missing, o.Summary.Seq)
	}
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, store.ErrDeleted) {
		return st, err
	}
	switch o, _, cerr := a.store.Checkpoint(ctx); {
	case cerr == nil && o.Summary.Tombstone:
		return nil, store.Deleted(o)
	case cerr == nil:
		key := layout.SessionPrefix(a.cfg.Session) + layout.Transcript
		none := fmt.Errorf("checkpoint_latest exists, but no segment does: %w", codec.ErrFormat)
		return nil, store.Corrupt(key, 0, none)
	}
	return nil, err
}

// Adopt notes what checkpoint_latest was when the state was read.
func (a *appendStrategy) Adopt(st *state.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if st.Saved.Seq < a.seq && a.exists { // this handle has written a newer one since
		return
	}
	a.version, a.exists, a.seq, a.bytes, a.batches = st.Version, st.Saved.Exists, st.Saved.Seq, st.Saved.Bytes,
		st.Batches
	a.runs = st.Saved.IDs
}

// saw notes what checkpoint_latest was when it was read to be replaced.
func (a *appendStrategy) saw(o *checkpoint.Object, info backend.Info, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.runs = nil
	if o != nil {
		a.runs = o.IDs
		a.seq, a.bytes, a.batches = o.Summary.Seq, o.Summary.Bytes, 0
		if o.Summary.Tombstone { // this session is over
			a.seq = math.MaxUint64
		}
	}
	a.exists = !errors.Is(err, fs.ErrNotExist) || info.Version != ""
	if info.Version != "" || !a.exists {
		a.version = info.Version
	}
}

// errLost means that a checkpoint does not fit the log.
var errLost = errors.New("checkpoint does not fit the log")

// catchUp holds the checkpoint's end against the log and plays what was committed after it.
func (a *appendStrategy) catchUp(ctx context.Context, st *state.State) (*state.State, error) {
	ref := st.Active()
	data, err := a.from(ctx, st)
	if err != nil {
		return nil, err
	}
	if st.LastLine > 0 {
		back := lookBack(st)
		if !isLastLine(data[:min(int64(len(data)), back)], st) {
			return nil, errLost
		}
		data = data[back:]
	} else {
		o, err := segment.ParseOpening(data, ref.First == 0)
		if err != nil || o.Prelude.Key != ref.Key || int64(o.Size) != ref.Bytes {
			return nil, errLost
		}
		data = data[o.Size:]
	}
	now, _, err := a.playFrom(ctx, st, data)
	return now, err
}

const (
	lineEnd  = 32       // what of a long last commit line is held against a checkpoint: its self, which covers the line
	lineMost = 64 << 10 // of a commit line that is held against it whole
)

// lookBack returns how much before the end of the log that st knows is read again. A last commit line that is not long
// is read whole: a checkpoint must not hide that it was damaged.
func lookBack(st *state.State) int64 {
	if st.LastLine > lineMost {
		return lineEnd
	}
	return st.LastLine
}

// isLastLine reports whether p is the last commit line of st, or the end of it.
func isLastLine(p []byte, st *state.State) bool {
	if !bytes.HasSuffix(p, fmt.Appendf(nil, `,"self":"%08x"}}`+"\n", st.Self)) {
		return false
	}
	if st.LastLine > lineMost {
		return true
	}
	_, ours, err := checkpoint.ParseRecord(p[:len(p)-1], st.Key)
	return ours && err == nil
}

// from reads the active segment from the end of its last commit line, which st knows, to its own; errLost
// where it does not reach that far. It is one read where nothing was committed since. A segment without
// commits yet is read from its start.
func (a *appendStrategy) from(ctx context.Context, st *state.State) ([]byte, error) {
	ref := st.Active()
	key, back := a.activeKey(st), lookBack(st)
	if st.LastLine == 0 {
		back = ref.Bytes
	}
	data, info, err := a.b.Get(ctx, key, backend.Tail(back))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errLost
	case err != nil:
		return nil, err
	case back > ref.Bytes || info.Size < ref.Bytes:
		return nil, errLost
	case info.Size == ref.Bytes:
		return data, nil
	}
	data, err = a.rest(ctx, key, ref.Bytes-back, info.Size)
	if errors.Is(err, fs.ErrNotExist) || err == nil && int64(len(data)) < back { // sealed between two looks
		return nil, errLost
	}
	return data, err
}

// rest reads the bytes of the log from off to size. Another writer may have cut torn bytes off since the look at its
// size: then it looks again, at most Limits.Attempts times.
func (a *appendStrategy) rest(ctx context.Context, key string, off, size int64) ([]byte, error) {
	for range a.cfg.Limits.Attempts {
		if size <= off {
			return nil, nil
		}
		data, _, err := a.b.Get(ctx, key, backend.Bytes(off, size-off))
		if !errors.Is(err, backend.ErrRange) {
			return data, err
		}
		if size, err = a.size(ctx, key); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s was cut %d times in a row: %w", key, a.cfg.Limits.Attempts, backend.ErrBusy)
}

// play reads on from where st ends in its active segment. rest is how many bytes at its end are no commit.
func (a *appendStrategy) play(ctx context.Context, st *state.State) (now *state.State, rest int64, err error) {
	key, off := a.activeKey(st), st.Active().Bytes
	size, err := a.size(ctx, key)
	if err != nil {
		return st, 0, err
	}
	data, err := a.rest(ctx, key, off, size)
	if err != nil || len(data) == 0 {
		return st, 0, err
	}
	if now, rest, err = a.playFrom(ctx, st, data); err == nil && now.Stale() {
		now, err = a.Load(ctx)
		return now, 0, err
	}
	return now, rest, err
}

// playFrom advances st over the commits in data, the bytes after it, and over the segments that those
// roll over to (at most rollsMax).
func (a *appendStrategy) playFrom(
	ctx context.Context, st *state.State, data []byte,
) (now *state.State, rest int64, err error) {
	const rollsMax = 1 << 16
	for range rollsMax {
		now, next, end, err := st.Play(data)
		if err != nil {
			return nil, 0, store.Corrupt(a.activeKey(st), st.Active().Bytes+int64(end), err)
		}
		st = now
		if next == "" {
			if lost := segment.Promised(data[end:], st.Key, st.Active().Bytes); lost > st.Summary.Seq {
				early := *st
				early.Missing, st = lost, &early
			}
			return st, int64(len(data) - end), nil
		}
		if st, data, err = a.nextSegment(ctx, st, next); err != nil {
			return nil, 0, err
		}
	}
	return nil, 0, store.Corrupt(a.activeKey(st), 0,
		fmt.Errorf("%d segments roll over to one another: %w", rollsMax, codec.ErrLimit))
}

// nextSegment reads the segment that the last commit of st names as the next one. It returns the state that continues
// in that segment, and the bytes of its lines.
func (a *appendStrategy) nextSegment(ctx context.Context, st *state.State, name string) (*state.State, []byte, error) {
	seg, ok := layout.ParseSegment(name)
	if !ok {
		return nil, nil,
			store.Corrupt(a.activeKey(st), st.Active().Bytes, fmt.Errorf("next segment %q: %w", name, codec.ErrFormat))
	}
	raw, key, _, o, err := a.linked(ctx, seg)
	if err != nil {
		if in := a.present(ctx, seg); in != seg {
			seg = in
			raw, key, _, o, err = a.linked(ctx, seg)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	p := &o.Prelude
	if prev, ok := layout.ParseSegment(p.PrevName); ok && store.SegmentOf(st.Active()).StandsFor(prev) {
		own := *st // what was written again has other checksums, which the segment after it does not know
		own.Self, st = p.PrevSelf, &own
	} else if p.PrevName != st.Active().Name || p.PrevSelf != st.Self || p.First != st.Next {
		return nil, nil,
			store.Corrupt(key, 0, fmt.Errorf("it does not continue %s: %w", st.Active().Name, codec.ErrFormat))
	}
	next := st.Rolled(plainRef(seg, &o))
	if st.Durable < st.Active().Bytes {
		next.Unsure = append(slices.Clone(st.Unsure),
			state.Span{Key: a.activeKey(st), From: st.Durable, End: st.Active().Bytes})
	}
	return next, raw[o.Size:], nil
}
