package store

import (
	"context"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/journal/state"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
)

// SealTail writes the tail of st as a segment.
func (h *History) SealTail(ctx context.Context, st *state.State) (state.Change, error) {
	rnd, err := h.store.Random()
	if err != nil {
		return state.Change{}, err
	}
	name := layout.Segment{First: st.Tail[0].Ord, Epoch: st.Summary.Epoch, Rnd: rnd}
	id, now, err := h.store.LineID()
	if err != nil {
		return state.Change{}, err
	}
	pre := checkpoint.Prelude{
		ID: id, Time: now, Session: h.store.Session, First: name.First, FirstSeq: st.TailSeq(), Epoch: name.Epoch,
		Key: st.Key,
	}
	if rec, ok, _ := firstRecord(st.Tail, st.Key); ok && rec.Base != nil {
		pre.PrevSelf = rec.Base.Self
	}
	if refs := st.Segments.Levels; len(refs) > 0 && len(refs[0]) > 0 {
		last := refs[0][len(refs[0])-1]
		pre.PrevName = layout.Segment{First: last.First, Epoch: last.Epoch, Rnd: last.Rnd}.Name()
		pre.PrevBytes = last.RawBytes
	}
	line, err := pre.Line()
	if err != nil {
		return state.Change{}, err
	}
	prelude := [][]byte{line}
	if name.First == 0 {
		prelude = [][]byte{st.Header, line}
	}
	return h.WriteSealed(ctx, name, prelude, st.Tail, pre.FirstSeq)
}

func firstRecord(lines []state.Line, key uint64) (checkpoint.Record, bool, error) {
	for _, l := range lines {
		if l.Commit {
			return checkpoint.ParseRecord(l.Raw, key)
		}
	}
	return checkpoint.Record{}, false, nil
}

// Fold makes the index object that takes the place of a level's oldest 64 references: those with their
// skeletons on the lowest level, the references alone above it.
func (h *History) Fold(ctx context.Context, level int, refs []codec.Ref, epoch uint64) (state.Change, error) {
	var skeletons [][]byte
	if level == 0 {
		for _, ref := range refs {
			idx, err := h.segmentIndex(ctx, ref)
			if err != nil {
				return state.Change{}, err
			}
			skeletons = append(skeletons, idx.SkeletonBytes())
		}
	}
	p, err := codec.EncodeIndex(refs, skeletons)
	if err != nil {
		return state.Change{}, err
	}
	rnd, err := h.store.Random()
	if err != nil {
		return state.Change{}, err
	}
	ref := codec.Ref{First: refs[0].First, FirstSeq: refs[0].FirstSeq, Epoch: epoch, Rnd: rnd}
	for _, r := range refs {
		ref.Count += r.Count
		ref.RawBytes += r.RawBytes
	}
	ref.Seal(p)
	key := layout.IndexKey(h.store.Session, level+1, layout.Segment{First: ref.First, Epoch: epoch, Rnd: rnd})
	return state.Change{Level: level, Ref: ref}, h.store.Create(ctx, key, p)
}

// WriteSealed seals lines and stores the segment.
func (h *History) WriteSealed(
	ctx context.Context, name layout.Segment, prelude [][]byte, lines []state.Line, firstSeq uint64,
) (state.Change, error) {
	c := segment.Contents{Opening: segment.Opening{Lines: prelude}, Lines: lines}
	for _, l := range prelude {
		c.Raw = append(append(c.Raw, l...), '\n')
	}
	for _, l := range lines {
		c.Raw = append(append(c.Raw, l.Raw...), '\n')
	}
	s, err := c.Seal(name, firstSeq)
	if err != nil {
		return state.Change{}, err
	}
	return h.StoreSealed(ctx, name, s)
}

// StoreSealed stores a sealed segment.
func (h *History) StoreSealed(ctx context.Context, name layout.Segment, s segment.Sealed) (state.Change, error) {
	err := h.store.Create(ctx, name.SealedKey(h.store.Session), s.Bytes)
	return state.Change{Level: -1, Ref: s.Ref, Rows: s.IDs}, err
}

// FoldAll folds all references but the newest segment's into one, level by level, and lets the lineage begin with the
// newest commit: what is older is found in the log.
func (h *History) FoldAll(ctx context.Context, st *state.State) (*state.State, error) {
	next := *st
	if n := len(next.Lineage); n > 1 {
		next.Lineage = next.Lineage[n-1:]
	}
	for level := 0; level < len(next.Segments.Levels); level++ {
		stay := 0
		if level == 0 {
			stay = 1 // the next segment names it as the one before
		}
		for refs := next.Segments.Levels[level]; len(refs) > stay+1; refs = next.Segments.Levels[level] {
			n := min(len(refs)-stay, checkpoint.FoldWidth)
			c, err := h.Fold(ctx, level, refs[:n:n], next.Summary.Epoch)
			if err != nil {
				return nil, err
			}
			if err := next.Segments.Fold(level, c.Ref); err != nil {
				return nil, err
			}
		}
	}
	return &next, nil
}
