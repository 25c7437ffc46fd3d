package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/journal/store"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// rebuild reads the state from the log alone. The first commit of a segment holds the session's table
// of branches and its document whole, so only the newest segment with commits is played; those before
// it are looked up for the map. Segments of an epoch before from are of a session that was deleted.
func (a *appendStrategy) rebuild(ctx context.Context, info backend.Info, from uint64) (*state.State, error) {
	all, err := a.store.Segments(ctx, from)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, a.missing()
	}
	later := from
	for _, l := range all {
		later = max(later, l.Seg.Since())
	}
	var st *state.State
	var damage error
	if later == from {
		st, damage = a.newest(ctx, all)
		if later, err = a.later(ctx, all, st, from); err != nil {
			return nil, err
		}
	}
	switch {
	case later > from && a.store.Bound():
		return nil, store.Deleted(store.EndedBefore(a.cfg.Session, later))
	case later > from:
		return a.rebuild(ctx, info, later)
	case damage != nil:
		return nil, damage
	case st.Summary.Tombstone:
		return nil, store.Deleted(st.Object(false))
	}
	st.Version, st.Saved = info.Version, state.Saved{Exists: info.Version != ""}
	seq, err := a.store.Shown(ctx, st)
	st.Missing = max(st.Missing, seq)
	return st, err
}

// later returns the first epoch of a session that began after the one of st was deleted, by the segments that are
// there; from if none did. Only then one of them has a later epoch than st, and commits. It matters after a repair:
// else the name of a session's first segment has its first epoch.
func (a *appendStrategy) later(ctx context.Context, all []store.Listed, st *state.State, from uint64) (uint64, error) {
	known := uint64(0)
	if st != nil {
		from, known = max(from, st.Since), st.Summary.Epoch
	}
	byEpoch := slices.SortedFunc(slices.Values(all), func(x, y store.Listed) int {
		return cmp.Compare(y.Seg.Epoch, x.Seg.Epoch)
	})
	for _, l := range byEpoch {
		if l.Seg.Epoch <= known {
			break
		}
		since, ok, err := a.store.SinceOf(ctx, l.Seg)
		if err != nil {
			return 0, err
		}
		if ok {
			return max(from, since), nil
		}
	}
	return from, nil
}

// newest plays the newest of these segments that has commits.
func (a *appendStrategy) newest(ctx context.Context, all []store.Listed) (*state.State, error) {
	var damage error
	for i := len(all) - 1; i >= 0; i-- {
		st, err := a.begunIn(ctx, all[i].Seg)
		if err == nil && st != nil {
			st, err = a.withHistory(ctx, st)
		}
		switch {
		case err != nil:
			if damage == nil {
				damage = err
			}
		case st == nil: // nothing was ever committed to it
		default:
			return st, nil
		}
	}
	if damage == nil {
		damage = a.missing()
	}
	return nil, damage
}

// begunIn plays the commits of one segment and of those that it rolls over to; nil where it has none.
func (a *appendStrategy) begunIn(ctx context.Context, seg layout.Segment) (*state.State, error) {
	raw, key, _, o, err := a.linked(ctx, seg)
	if err != nil {
		return nil, err
	}
	own := state.Rules{Profile: a.cfg.Profile, MaxBytes: a.cfg.MaxBytes}
	st, first := state.Opened(a.cfg.Session, &o, raw[o.Size:], own)
	if first == nil && seg.First == 0 {
		// A session's first segment is made with commit 0 in it, at once: without one it is damaged, and the
		// session is there all the same.
		return nil, store.Corrupt(key, int64(o.Size), codec.ErrChecksum)
	}
	if first == nil || state.Kept(first) { // only the segment before has the session's document
		return nil, nil
	}
	st.Plain = []checkpoint.PlainRef{plainRef(seg, &o)}
	now, _, err := a.playFrom(ctx, st, raw[o.Size:])
	return now, err
}

// plainRef refers to a plain segment in which nothing is committed yet.
func plainRef(seg layout.Segment, o *segment.Opening) checkpoint.PlainRef {
	p := &o.Prelude
	return checkpoint.PlainRef{
		Name: seg.Name(), First: p.First, FirstSeq: p.FirstSeq, Bytes: int64(o.Size), Epoch: p.Epoch, Key: p.Key,
		Self: o.Self(),
	}
}

// withHistory completes a rebuilt state by the segments before it and the session header.
func (a *appendStrategy) withHistory(ctx context.Context, st *state.State) (*state.State, error) {
	next := *st.Fresh()
	next.Plain = append([]checkpoint.PlainRef(nil), st.Plain...)
	var past []described // newest first
	replaced := map[string]string{}
	maps.Copy(replaced, st.Replaced)
	for seg := store.SegmentOf(&st.Plain[0]); seg.First > 0; {
		prev, err := a.before(ctx, seg)
		if err != nil {
			return nil, err
		}
		d, err := a.inPlaceOf(ctx, prev, replaced)
		if err != nil {
			return nil, err
		}
		past = append(past, d)
		if d.header != nil {
			next.Begins(d.header)
		}
		maps.Copy(replaced, d.replaced)
		seg = store.SegmentOf(&d.plain)
	}
	oldest := len(past)
	for oldest > 0 && past[oldest-1].sealed != nil {
		oldest--
		if err := next.Segments.Append(*past[oldest].sealed); err != nil {
			return nil, err
		}
	}
	for _, d := range past[:oldest] {
		next.Plain = append([]checkpoint.PlainRef{d.plain}, next.Plain...)
	}
	next.Keys = keysOf(past, st.Keys)
	return &next, nil
}

// keysOf returns the newest idempotency keys of segments, which come newest first, and those of the commits after them.
// A keyframe does not hold them: a turn that is tried again must not be applied twice because a checkpoint was lost.
func keysOf(past []described, newest []checkpoint.KeyRef) (keys []checkpoint.KeyRef) {
	for i := len(past) - 1; i >= 0; i-- {
		for _, k := range past[i].keys {
			keys = checkpoint.AppendKey(keys, k)
		}
	}
	for _, k := range newest {
		keys = checkpoint.AppendKey(keys, k)
	}
	return keys
}

// linked reads a segment that the log refers to. If the segment is missing, or its first line is that of another
// segment, the error is ErrCorrupt and not fs.ErrNotExist, which would mean that the session does not exist.
func (a *appendStrategy) linked(
	ctx context.Context, seg layout.Segment,
) (raw []byte, key string, isSealed bool, o segment.Opening, err error) {
	for range 2 { // it may be sealed between two reads
		if raw, key, isSealed, err = a.store.SegmentRaw(ctx, seg); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = store.Corrupt(key, 0, fmt.Errorf("the log refers to it, but it is missing: %w", codec.ErrFormat))
	}
	if err != nil {
		return nil, key, isSealed, o, err
	}
	if o, err = segment.ParseOpening(raw, seg.First == 0); err != nil {
		return nil, key, isSealed, o, store.Corrupt(key, 0, err)
	}
	if p := &o.Prelude; !o.Of(a.cfg.Session, seg) {
		err = store.Corrupt(key, 0, fmt.Errorf("its first line belongs to session %q, entry %d, epoch %d: %w",
			p.Session, p.First, p.Epoch, codec.ErrFormat))
	}
	return raw, key, isSealed, o, err
}

// inPlaceOf describes the segment that is in force of one that the log names: commits after it name the segments that
// they replaced. What a repair put in its place begins with the same line, under a later epoch.
func (a *appendStrategy) inPlaceOf(
	ctx context.Context, named layout.Segment, replaced map[string]string,
) (described, error) {
	seg := named
	for name, ok := replaced[seg.Name()]; ok; name, ok = replaced[seg.Name()] {
		delete(replaced, seg.Name()) // so that it ends
		if next, ok := layout.ParseSegment(name); ok && next.First == named.First {
			seg = next
		}
	}
	d, err := a.describe(ctx, seg)
	if err != nil {
		if in := a.present(ctx, seg); in != seg {
			return a.describe(ctx, in)
		}
	}
	return d, err
}

// present returns a segment if it is there, else what a repair put in its place.
func (a *appendStrategy) present(ctx context.Context, named layout.Segment) layout.Segment {
	for _, key := range []string{named.PlainKey(a.cfg.Session), named.SealedKey(a.cfg.Session)} {
		if _, err := a.size(ctx, key); !errors.Is(err, fs.ErrNotExist) {
			return named
		}
	}
	in := named
	all, err := a.store.Segments(ctx, a.store.Since())
	for _, l := range all {
		if err == nil && l.Seg.First == named.First && l.Seg.Epoch > in.Epoch {
			in = l.Seg
		}
	}
	return in
}

// before is the segment that seg names as its predecessor.
func (a *appendStrategy) before(ctx context.Context, seg layout.Segment) (layout.Segment, error) {
	_, key, _, o, err := a.linked(ctx, seg)
	if err != nil {
		return seg, err
	}
	prev, ok := layout.ParseSegment(o.Prelude.PrevName)
	if !ok || prev.First >= seg.First {
		return seg,
			store.Corrupt(key, 0, fmt.Errorf("the segment before it is %q: %w", o.Prelude.PrevName, codec.ErrFormat))
	}
	return prev, nil
}

// described is a segment of the past.
type described struct {
	plain  checkpoint.PlainRef
	sealed *codec.Ref // nil where it is plain still
	header []byte     // of the first segment
	keys   []checkpoint.KeyRef

	replaced map[string]string // names of segments that its commits replaced, by old names
}

// describe reads a segment of the past and makes the references to it.
func (a *appendStrategy) describe(ctx context.Context, seg layout.Segment) (described, error) {
	raw, key, isSealed, _, err := a.linked(ctx, seg)
	if err != nil {
		return described{}, err
	}
	c, err := segment.Read(raw, seg)
	if err != nil {
		return described{}, store.Corrupt(key, 0, err)
	}
	o := &c.Opening
	d := described{header: o.Header, keys: c.Keys, plain: plainRef(seg, o), replaced: state.ReplacedBy(c.Lines)}
	ref := &d.plain
	ref.Count, ref.Bytes, ref.Self = uint64(len(c.Lines)), int64(c.End), c.Self
	if !isSealed {
		return d, nil
	}
	p, _, err := a.b.Get(ctx, key, backend.Range{})
	if err != nil {
		return described{}, err
	}
	d.sealed = &codec.Ref{
		First: ref.First, Count: uint32(ref.Count), FirstSeq: ref.FirstSeq, RawBytes: int64(len(raw)),
		Epoch: seg.Epoch, Rnd: seg.Rnd,
	}
	d.sealed.Seal(p)
	return d, nil
}

// missing is the error of a session of which there is nothing.
func (a *appendStrategy) missing() error {
	return &backend.Error{
		Op: "get", Key: layout.CheckpointKey(a.cfg.Session), Outcome: backend.NotApplied, Err: fs.ErrNotExist,
	}
}
