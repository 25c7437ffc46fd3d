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

// Load reads the newest state: checkpoint_latest and the log after it. It rebuilds the state from the log alone if the
// checkpoint is lost or damaged, names a missing segment, or does not end with a commit line of the log. Load writes
// nothing (I14).
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
	if err == nil && now.Summary.Tombstone { // a deletion has begun and did not complete
		return nil, store.Deleted(now.Object(false))
	}
	return now, err
}

// afterTombstone reads a session that was created under the id of a deleted one, while checkpoint_latest is still the
// tombstone of the deleted one.
func (a *appendStrategy) afterTombstone(
	ctx context.Context, o *checkpoint.Object, info backend.Info,
) (*state.State, error) {
	next := layout.NextEpoch(o.Summary.Epoch)
	if a.store.Bound() { // the tombstone is that of the handle's own session
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

// rebuildBeside is rebuild with an intact checkpoint_latest, which does not fit the log. If no segment exists, the
// session is damaged, and not absent, unless it was deleted after o was read. Commits that the checkpoint has and the
// log lacks were acknowledged, so they are noted as missing: the others can be read, but ReadyBase refuses to write.
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

// Adopt records the version of checkpoint_latest from which the state was read.
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

// saw records the version of checkpoint_latest that was read in order to replace it.
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

// catchUp checks that the checkpoint ends with a commit line of the log, and applies the commits after that line. If
// the checkpoint does not fit the log it returns errLost.
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
	lineEnd  = 32       // bytes at the end of a longer commit line that are compared: its checksum
	lineMost = 64 << 10 // longest commit line that is read whole and compared with a checkpoint, in bytes
)

// lookBack returns how many bytes before the end of st are read again. A last commit line of up to lineMost bytes is
// read whole, so that a checkpoint does not hide damage of it.
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

// from reads the active segment from lookBack bytes before the end of st to the end of the segment. If the segment ends
// before st does, the error is errLost. If nothing was committed after st, this is one read. A segment without commits
// is read from its start.
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
	if errors.Is(err, fs.ErrNotExist) || err == nil && int64(len(data)) < back { // sealed between two reads
		return nil, errLost
	}
	return data, err
}

// rest reads the bytes of the log from off to size. If another writer has cut torn bytes off in the meantime, it asks
// for the size again, at most Limits.Attempts times.
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

// play reads the active segment from the end of st on, and applies the commits there. rest is the number of bytes after
// the last commit.
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

// playFrom applies the commits in data, which are the bytes after st, and those of the segments that follow (at most
// rollsMax). rest is the number of bytes after the last commit.
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
		own := *st // a repair wrote the segment again, with other checksums than those that the next segment names
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
