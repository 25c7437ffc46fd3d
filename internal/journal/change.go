package journal

import (
	"errors"

	"github.com/coppice-go/coppice/codec"
)

// errStale says that what was made in the background no longer fits the state.
var errStale = errors.New("the transcript has moved on")

// change is what upkeep has made and the next state takes in: a segment for the oldest unsealed lines
// (level -1), or an index object for the oldest references of a level. It changes no entry (I6, I7).
type change struct {
	level int
	ref   codec.Ref
}

// with is st after the change.
func (st *State) with(c change) (*State, error) {
	next := *st
	if c.level >= 0 {
		if err := next.Segments.Fold(c.level, c.ref); err != nil {
			return nil, errStale
		}
		return &next, nil
	}
	n := int(c.ref.Count)
	switch {
	case len(st.Plain) > 1 && st.Plain[0].First == c.ref.First:
		next.Plain = st.Plain[1:]
	case len(st.Plain) == 0 && len(st.Tail) >= n && st.Tail[0].Ord == c.ref.First:
		next.Tail = st.Tail[n:]
		for _, l := range st.Tail[:n] {
			next.tailSize -= int64(len(l.Raw)) + 1
		}
	default:
		return nil, errStale
	}
	if err := next.Segments.Append(c.ref); err != nil {
		return nil, err
	}
	return &next, nil
}

// foldable gives the references that are due to be folded. The newest of a level stays where it is: the
// next segment names it as the one before.
func (st *State) foldable() (level int, refs []codec.Ref, ok bool) {
	level, refs, ok = st.Segments.FoldCandidate()
	return level, refs, ok && len(st.Segments.Levels[level]) > len(refs)
}
