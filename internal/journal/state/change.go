package state

import (
	"errors"
	"slices"

	"github.com/coppice-go/coppice/codec"
)

// ErrStale means that what was made in the background no longer fits the state.
var ErrStale = errors.New("the transcript has moved on")

// Change is a result of background work that the next state refers to: a segment with the oldest unsealed lines (level
// -1), an index object with the oldest references of a level, or new runs of the id index (level IDsLevel). It changes
// no entry (I6, I7).
type Change struct {
	Level int
	Ref   codec.Ref
	Rows  []codec.IDRow // of the sealed lines, if known; indexing sets it to nil

	Was, IDs []codec.Ref // with IDsLevel: the runs before and after
}

// IDsLevel is the level of a change of the id index.
const IDsLevel = -2

// With returns st after the change.
func (st *State) With(c Change) (*State, error) {
	next := *st
	if c.Level == IDsLevel {
		if !slices.Equal(st.IDs, c.Was) || endOf(c.IDs) > st.Segments.Next() {
			return nil, ErrStale
		}
		next.IDs = c.IDs
		return &next, nil
	}
	if c.Level >= 0 {
		if err := next.Segments.Fold(c.Level, c.Ref); err != nil {
			return nil, ErrStale
		}
		return &next, nil
	}
	n := int(c.Ref.Count)
	switch {
	case len(st.Plain) > 1 && st.Plain[0].First == c.Ref.First:
		next.Plain = st.Plain[1:]
	case len(st.Plain) == 0 && len(st.Tail) >= n && st.Tail[0].Ord == c.Ref.First:
		next.Tail = st.Tail[n:]
		for _, l := range st.Tail[:n] {
			next.TailBytes -= int64(len(l.Raw)) + 1
		}
	default:
		return nil, ErrStale
	}
	if err := next.Segments.Append(c.Ref); err != nil {
		return nil, err
	}
	return &next, nil
}

// Foldable returns the references that are due to be folded. The newest of a level stays where it is: the
// next segment names it as the one before.
func (st *State) Foldable() (level int, refs []codec.Ref, ok bool) {
	level, refs, ok = st.Segments.FoldCandidate()
	return level, refs, ok && len(st.Segments.Levels[level]) > len(refs)
}
