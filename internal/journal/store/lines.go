package store

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/segment"
)

// Lines yields durable lines by ordinal, in the order of ords, which must ascend; nil = all of them. Neighbours share a
// range read. References to images stay in the lines. If a segment was collected in the meantime, its lines are looked
// up once more in the newest state.
func (h *History) Lines(ctx context.Context, st *state.State, ords []uint64) iter.Seq2[state.Line, error] {
	return func(yield func(state.Line, error) bool) {
		w := wanted{ords: ords, all: ords == nil, end: st.Next}
		for !w.done() {
			ord, before := w.next(), w
			lines, err := h.stretch(ctx, st, &w)
			if gone(err) && h.latest != nil {
				var now *state.State
				if now, err = h.latest(ctx); err == nil {
					w = before // the ordinals that the failed read had taken are wanted again
					lines, err = h.stretch(ctx, now, &w)
					err = lost(err)
				}
			}
			if err == nil && len(lines) == 0 {
				err = fmt.Errorf("read entry %d: the session has %d", ord, st.Next)
			}
			if err != nil {
				yield(state.Line{}, err)
				return
			}
			for _, l := range lines {
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}

// wanted are the ordinals that are still to be read.
type wanted struct {
	ords []uint64
	all  bool
	at   uint64 // with all: the next ordinal
	end  uint64
}

func (w *wanted) done() bool { return w.all && w.at >= w.end || !w.all && len(w.ords) == 0 }

func (w *wanted) next() uint64 {
	if w.all {
		return w.at
	}
	return w.ords[0]
}

// below takes the ordinals that are under limit, at most stretchMax of them.
func (w *wanted) below(limit uint64) []uint64 {
	const stretchMax = 1 << 16
	var out []uint64
	for !w.done() && w.next() < limit && len(out) < stretchMax {
		out = append(out, w.next())
		if w.all {
			w.at++
		} else {
			w.ords = w.ords[1:]
		}
	}
	return out
}

// stretch reads the next wanted lines that are stored together: in the tail in memory, in a plain segment or in a
// sealed one.
func (h *History) stretch(ctx context.Context, st *state.State, w *wanted) ([]state.Line, error) {
	ord := w.next()
	if n := len(st.Tail); n > 0 && ord >= st.Tail[0].Ord {
		var out []state.Line
		for _, o := range w.below(st.Tail[0].Ord + uint64(n)) {
			out = append(out, st.Tail[o-st.Tail[0].Ord])
		}
		return out, nil
	}
	if ref, ok := st.Unsealed(ord); ok {
		r, err := h.plainRaw(ctx, ref)
		if err != nil {
			return nil, err
		}
		c, err := segment.Read(r.raw, r.seg)
		if err == nil && c.End < len(r.raw) {
			err = fmt.Errorf("its commits end here: %w", codec.ErrChecksum)
		}
		if err != nil {
			return nil, Corrupt(r.seg.PlainKey(h.store.Session), int64(c.End), err)
		}
		lines := c.Lines
		var out []state.Line
		for _, o := range w.below(ref.First + uint64(len(lines))) {
			out = append(out, lines[o-ref.First])
		}
		return out, nil
	}
	ref, ok, err := h.holding(ctx, st, ord)
	if err != nil || !ok {
		return nil, err
	}
	idx, err := h.segmentIndex(ctx, ref)
	if err != nil {
		return nil, err
	}
	return h.sealedLines(ctx, ref, idx, w.below(ref.First+uint64(ref.Count)))
}

// sealedLines reads lines of one sealed segment: neighbouring frames by one range read.
func (h *History) sealedLines(
	ctx context.Context, ref codec.Ref, idx *codec.SegmentIndex, ords []uint64,
) ([]state.Line, error) {
	sk, err := idx.Skeleton()
	key := refSegment(ref).SealedKey(h.store.Session)
	if err != nil {
		return nil, Corrupt(key, 0, err)
	}
	out := make([]state.Line, 0, len(ords))
	for i := 0; i < len(ords); {
		first := idx.Locate(ords[i])
		last, end := first, i+1
		for end < len(ords) && idx.Locate(ords[end]) <= last+1 {
			last = idx.Locate(ords[end])
			end++
		}
		from, lines, err := h.frames(ctx, key, idx, first, last)
		if err != nil {
			return nil, err
		}
		for _, ord := range ords[i:end] {
			k := int(ord - ref.First)
			at := idx.Prelude + k - from
			if at < 0 || at >= len(lines) {
				return nil, Corrupt(key, 0, fmt.Errorf("entry %d is not in its frame: %w", ord, codec.ErrFormat))
			}
			out = append(out, state.Line{
				Ord: ord, Parent: sk.Parent(k), Raw: lines[at],
				Commit: sk.Flags(k)&codec.FlagCommit != 0, Orphan: sk.Flags(k)&codec.FlagOrphan != 0,
			})
		}
		i = end
	}
	return out, nil
}

// frames reads the frames first to last of a segment and returns their lines. from is the number of the first of these
// lines within the segment, prelude included.
func (h *History) frames(
	ctx context.Context, key string, idx *codec.SegmentIndex, first, last int,
) (from int, lines [][]byte, err error) {
	off, _ := idx.FrameRange(first)
	lastOff, n := idx.FrameRange(last)
	p, _, err := h.store.Backend.Get(ctx, key, backend.Bytes(off, lastOff+n-off))
	if err != nil {
		return 0, nil, err
	}
	for i := first; i <= last; i++ {
		at, n := idx.FrameRange(i)
		raw, line, err := idx.DecodeFrame(i, p[at-off:at-off+n]) // whole lines, as many as the index has
		if err != nil {
			return 0, nil, Corrupt(key, at, err)
		}
		if i == first {
			from = line
		}
		for len(raw) > 0 {
			end := bytes.IndexByte(raw, '\n')
			lines, raw = append(lines, raw[:end]), raw[end+1:]
		}
	}
	return from, lines, nil
}

// Skeletons yields the skeletons of all durable lines of st, in order and dense, from ordinal from on; the
// first may begin below it. Sealed lines cost one read per index object, and one per segment that is not
// folded yet. If one of these objects was collected in the meantime, the lines from there on are read instead.
func (h *History) Skeletons(ctx context.Context, st *state.State, from uint64) iter.Seq2[*codec.Skeleton, error] {
	return func(yield func(*codec.Skeleton, error) bool) {
		w := &walk{h: h, next: from, yield: yield}
		st.Segments.Refs(func(level int, ref codec.Ref) bool { return w.down(ctx, level, ref) })
		switch {
		case w.stopped:
			return
		case w.err != nil && !gone(w.err):
			yield(nil, w.err)
			return
		case w.err == nil:
			w.next = max(from, st.Segments.Next())
		}
		const most = 1 << 12
		for w.next < st.Next {
			var rest []state.Line
			for l, err := range h.Lines(ctx, st, upFrom(w.next, min(st.Next, w.next+most))) {
				if err != nil {
					yield(nil, err)
					return
				}
				rest = append(rest, l)
			}
			if !w.give(segment.Skeleton(rest)) {
				return
			}
		}
	}
}

func upFrom(from, end uint64) []uint64 {
	out := make([]uint64, 0, end-min(from, end))
	for ; from < end; from++ {
		out = append(out, from)
	}
	return out
}

// walk goes over the skeletons below references.
type walk struct {
	h       *History
	next    uint64 // the ordinal from which on none was given
	yield   func(*codec.Skeleton, error) bool
	stopped bool
	err     error
}

func (w *walk) give(sk *codec.Skeleton, err error) bool {
	if err == nil {
		w.next = sk.First() + uint64(sk.Len())
	}
	w.stopped = !w.yield(sk, err) || err != nil
	return !w.stopped
}

// down returns the skeletons below one reference.
func (w *walk) down(ctx context.Context, level int, ref codec.Ref) bool {
	if ref.First+uint64(ref.Count) <= w.next {
		return true
	}
	if level == 0 {
		idx, err := w.h.segmentIndex(ctx, ref)
		if err != nil {
			w.err = err
			return false
		}
		return w.give(idx.Skeleton())
	}
	f, err := w.h.folded(ctx, level, ref)
	if err != nil {
		w.err = err
		return false
	}
	for i, r := range f.refs {
		if level > 1 {
			if !w.down(ctx, level-1, r) {
				return false
			}
			continue
		}
		if r.First+uint64(r.Count) <= w.next {
			continue
		}
		if !w.give(codec.DecodeSkeleton(f.skeletons[i])) {
			return false
		}
	}
	return true
}
