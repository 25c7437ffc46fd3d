package checkpoint

import (
	"sort"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/codec"
)

const (
	maxLevels    = 8    // 64^8 segments
	maxLevelRefs = 1024 // more mean that folding has stopped
)

// SegmentMap locates the sealed entries: Levels[0] refers to segments, Levels[n] to index objects that fold FoldWidth
// references of Levels[n-1]. The highest level is the oldest part; within a level references are in order. Together
// they cover the ordinals from 0 without a gap (I6). With regular folding, three levels of at most 64 references
// address 262,144 segments.
//
// Methods that change the map do not change its old slices: a copy of the struct is a snapshot.
type SegmentMap struct {
	Levels [][]codec.Ref
}

// Next returns the ordinal after the last one that the map covers, which is also their number.
func (m SegmentMap) Next() uint64 {
	for _, level := range m.Levels {
		if n := len(level); n > 0 {
			return level[n-1].First + uint64(level[n-1].Count)
		}
	}
	return 0
}

// Refs returns every reference, oldest first, each with its level.
func (m SegmentMap) Refs(yield func(level int, ref codec.Ref) bool) {
	for l := len(m.Levels) - 1; l >= 0; l-- {
		for _, ref := range m.Levels[l] {
			if !yield(l, ref) {
				return
			}
		}
	}
}

// Append adds a sealed segment, which must start where the map ends.
func (m *SegmentMap) Append(ref codec.Ref) error {
	if ref.First != m.Next() || ref.Count == 0 {
		return canon.Malformed("segment %d of %d entries after ordinal %d", ref.First, ref.Count, m.Next())
	}
	if len(m.Levels) > 0 {
		if err := canon.AtMost("segments that wait to be folded", len(m.Levels[0])+1, maxLevelRefs); err != nil {
			return err
		}
	}
	m.set(0, nil, ref)
	return nil
}

// set replaces a level by rest and ref.
func (m *SegmentMap) set(level int, rest []codec.Ref, ref ...codec.Ref) {
	levels := make([][]codec.Ref, max(len(m.Levels), level+1))
	copy(levels, m.Levels)
	if rest == nil {
		rest = levels[level]
	}
	levels[level] = append(append(make([]codec.Ref, 0, len(rest)+len(ref)), rest...), ref...)
	m.Levels = levels
}

// FoldCandidate returns the references that are due to be folded: the oldest FoldWidth of the lowest level with that
// many. ok false = none is due.
func (m SegmentMap) FoldCandidate() (level int, refs []codec.Ref, ok bool) {
	for l, level := range m.Levels {
		if len(level) >= FoldWidth && l < maxLevels-1 {
			return l, level[:FoldWidth:FoldWidth], true
		}
	}
	return 0, nil, false
}

// Fold replaces the oldest references of a level, at most FoldWidth, by one to their index object, one level up. It is
// refused unless index covers exactly those entries (I7).
func (m *SegmentMap) Fold(level int, index codec.Ref) error {
	if level < 0 || level >= len(m.Levels) || level >= maxLevels-1 {
		return canon.Malformed("fold of level %d: no references there", level)
	}
	refs, end := m.Levels[level], index.First+uint64(index.Count)
	n := sort.Search(len(refs), func(i int) bool { return refs[i].First >= end })
	if n == 0 || n > FoldWidth || index.First != refs[0].First || index.FirstSeq != refs[0].FirstSeq ||
		refs[n-1].First+uint64(refs[n-1].Count) != end {
		return canon.Malformed("fold of level %d: index object covers %d+%d, not a run of at most %d references", level,
			index.First, index.Count, FoldWidth)
	}
	m.set(level, append([]codec.Ref{}, refs[n:]...))
	m.set(level+1, nil, index)
	return nil
}

// Find returns the reference that covers an ordinal. level 0 = a segment, else an index object.
func (m SegmentMap) Find(ordinal uint64) (level int, ref codec.Ref, ok bool) {
	return m.search(func(r codec.Ref) bool { return r.First > ordinal }, func(r codec.Ref) bool {
		return ordinal < r.First+uint64(r.Count)
	})
}

// FindSeq returns the last reference that starts at or before a commit's seq. Only its lines show whether it contains
// the commit, which may be newer than everything sealed.
func (m SegmentMap) FindSeq(seq uint64) (level int, ref codec.Ref, ok bool) {
	return m.search(func(r codec.Ref) bool { return r.FirstSeq > seq }, func(codec.Ref) bool { return true })
}

// search finds the newest reference that is not after the target.
func (m SegmentMap) search(after, holds func(codec.Ref) bool) (int, codec.Ref, bool) {
	for l, level := range m.Levels {
		if i := sort.Search(len(level), func(i int) bool { return after(level[i]) }); i > 0 {
			return l, level[i-1], holds(level[i-1])
		}
	}
	return 0, codec.Ref{}, false
}

// check checks the invariants of the map.
func (m SegmentMap) check() error {
	if err := canon.AtMost("levels of the segment map", len(m.Levels), maxLevels); err != nil {
		return err
	}
	var next, seq uint64
	for l := len(m.Levels) - 1; l >= 0; l-- {
		if err := canon.AtMost("segment references of one level", len(m.Levels[l]), maxLevelRefs); err != nil {
			return err
		}
		for _, ref := range m.Levels[l] {
			if ref.First != next || ref.Count == 0 || ref.FirstSeq < seq || ref.RawBytes < 0 || ref.Bytes < 0 {
				return canon.Malformed("segment map: reference %d+%d where ordinal %d comes next", ref.First, ref.Count,
					next)
			}
			next, seq = ref.First+uint64(ref.Count), ref.FirstSeq
			if next < ref.First {
				return canon.Malformed("segment map: ordinals beyond 64 bits")
			}
		}
	}
	return nil
}
