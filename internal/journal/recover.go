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
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

func (a *appendLog) Load(ctx context.Context) (*State, error) {
	st, err := a.read(ctx)
	if err != nil {
		return nil, err
	}
	return st, nil
}

// read reads checkpoint_latest and the log behind it. A checkpoint that is lost or damaged, that names a
// missing segment, or that ends where its own commit line does not, counts as lost: then the log alone
// tells (rebuild). Nothing is judged or written here (I14).
func (a *appendLog) read(ctx context.Context) (*State, error) {
	o, info, err := a.store.latest(ctx)
	a.saw(o, info, err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a.rebuild(ctx)
	case errors.Is(err, ErrCorrupt):
		st, rerr := a.rebuild(ctx)
		if errors.Is(rerr, fs.ErrNotExist) {
			return nil, err
		}
		return st, rerr
	case err != nil:
		return nil, err
	case o.Summary.Tombstone:
		return nil, fmt.Errorf("session %s: %w: %w", a.cfg.Session, ErrDeleted, fs.ErrNotExist)
	}
	st, err := restore(o, info)
	if err != nil || st.active() == nil {
		return a.rebuild(ctx)
	}
	now, err := a.catchUp(ctx, st)
	if errors.Is(err, errLost) {
		return a.rebuild(ctx)
	}
	return now, err
}

// saw notes what checkpoint_latest was when it was read last.
func (a *appendLog) saw(o *checkpoint.Object, info backend.Info, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if o != nil {
		a.seq, a.bytes = o.Summary.Seq, o.Summary.Bytes
	}
	a.exists = !errors.Is(err, fs.ErrNotExist)
	if info.Version != "" || !a.exists {
		a.version = info.Version
	}
}

// errLost says that a checkpoint does not fit the log.
var errLost = errors.New("checkpoint does not fit the log")

// catchUp holds the checkpoint's end against the log and plays what was committed behind it.
func (a *appendLog) catchUp(ctx context.Context, st *State) (*State, error) {
	ref := st.active()
	data, err := a.from(ctx, st)
	if err != nil {
		return nil, err
	}
	if st.lastLine > 0 {
		if !bytes.HasSuffix(data[:min(len(data), lineEnd)], fmt.Appendf(nil, `,"self":"%08x"}}`+"\n", st.self)) {
			return nil, errLost
		}
		data = data[lineEnd:]
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

// lineEnd is how much of the last commit line is held against a checkpoint: its self, which is keyed and
// covers the line, which covers all before it.
const lineEnd = 32

// from reads the active segment from the end of its last commit line, which st knows, to its own; errLost
// where it does not reach that far. It is one read where nothing was committed since. A segment without
// commits yet is read from its start.
func (a *appendLog) from(ctx context.Context, st *State) ([]byte, error) {
	ref := st.active()
	key, back := a.activeKey(st), int64(lineEnd)
	if st.lastLine == 0 {
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
	data, _, err = a.b.Get(ctx, key, backend.Bytes(ref.Bytes-back, info.Size-ref.Bytes+back))
	return data, err
}

// play reads on from where st ends in its active segment. rest is how many bytes stand there that are no
// commit.
func (a *appendLog) play(ctx context.Context, st *State) (now *State, rest int64, err error) {
	key, off := a.activeKey(st), st.active().Bytes
	size, err := a.size(ctx, key)
	if err != nil || size <= off {
		return st, 0, err
	}
	data, _, err := a.b.Get(ctx, key, backend.Bytes(off, size-off))
	if err != nil {
		return st, 0, err
	}
	return a.playFrom(ctx, st, data)
}

// playFrom advances st over the commits in data, the bytes behind it, and over the segments that those
// roll over to (at most rollsMax).
func (a *appendLog) playFrom(ctx context.Context, st *State, data []byte) (now *State, rest int64, err error) {
	const rollsMax = 1 << 16
	for range rollsMax {
		now, next, good, err := a.replay(st, data)
		if err != nil {
			return nil, 0, err
		}
		st = now
		if next == "" {
			return st, int64(len(data) - good), nil
		}
		if st, data, err = a.enter(ctx, st, next); err != nil {
			return nil, 0, err
		}
	}
	return nil, 0, corrupt(a.activeKey(st), 0, fmt.Errorf("%d segments roll over to one another: %w", rollsMax, codec.ErrLimit))
}

// replay advances st over the commits of one segment's bytes; next names the segment that goes on.
func (a *appendLog) replay(st *State, data []byte) (now *State, next string, good int, err error) {
	now = st
	start := st.active().Bytes
	good = segment.Scan(data, st.key, st.self, func(s segment.Commit) bool {
		advanced, aerr := now.follows(&s)
		if aerr != nil {
			err = corrupt(a.activeKey(st), start+int64(s.End), aerr)
			return false
		}
		now, next = advanced, s.Record.Next
		now.unsure = nil // its writer confirmed all before it
		now.durable = max(now.durable, s.Record.Synced)
		return next == ""
	})
	return now, next, good, err
}

// enter opens the segment that the last commit of st rolled over to.
func (a *appendLog) enter(ctx context.Context, st *State, name string) (*State, []byte, error) {
	seg, ok := layout.ParseSegment(name)
	if !ok {
		return nil, nil, corrupt(a.activeKey(st), st.active().Bytes, fmt.Errorf("next segment %q: %w", name, codec.ErrFormat))
	}
	raw, key, _, err := a.store.segmentRaw(ctx, seg)
	if err != nil {
		return nil, nil, err
	}
	o, err := segment.ParseOpening(raw, seg.First == 0)
	if err != nil {
		return nil, nil, corrupt(key, 0, err)
	}
	p := &o.Prelude
	if p.PrevName != st.active().Name || p.PrevSelf != st.self || p.First != st.Next || p.Session != a.cfg.Session {
		return nil, nil, corrupt(key, 0, fmt.Errorf("it does not go on from %s: %w", st.active().Name, codec.ErrFormat))
	}
	ref := checkpoint.PlainRef{
		Name: name, First: p.First, FirstSeq: p.FirstSeq, Bytes: int64(o.Size), Epoch: p.Epoch, Key: p.Key, Self: p.PrevSelf,
	}
	next := st.rolled(ref)
	if st.durable < st.active().Bytes {
		next.unsure = append(slices.Clone(st.unsure), span{key: a.activeKey(st), from: st.durable, end: st.active().Bytes})
	}
	return next, raw[o.Size:], nil
}
