package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// sealTail writes the tail of st as a segment.
func (j *Journal) sealTail(ctx context.Context, st *State) (change, error) {
	rnd, err := j.random()
	if err != nil {
		return change{}, err
	}
	name := layout.Segment{First: st.Tail[0].Ord, Epoch: st.Summary.Epoch, Rnd: rnd}
	id, now, err := j.lineID()
	if err != nil {
		return change{}, err
	}
	pre := checkpoint.Prelude{
		ID: id, Time: now, Session: j.cfg.Session, First: name.First, FirstSeq: st.tailSeq(), Epoch: name.Epoch, Key: st.key,
	}
	if rec, ok, _ := firstRecord(st.Tail, st.key); ok && rec.Base != nil {
		pre.PrevSelf = rec.Base.Self
	}
	if refs := st.Segments.Levels; len(refs) > 0 && len(refs[0]) > 0 {
		last := refs[0][len(refs[0])-1]
		pre.PrevName = layout.Segment{First: last.First, Epoch: last.Epoch, Rnd: last.Rnd}.Name()
		pre.PrevBytes = last.RawBytes
	}
	line, err := pre.Line()
	if err != nil {
		return change{}, err
	}
	prelude := [][]byte{line}
	if name.First == 0 {
		prelude = [][]byte{st.Header, line}
	}
	return j.writeSealed(ctx, name, prelude, st.Tail, pre.FirstSeq)
}

func firstRecord(lines []Line, key uint64) (checkpoint.Record, bool, error) {
	for _, l := range lines {
		if l.Commit {
			return checkpoint.ParseRecord(l.Raw, key)
		}
	}
	return checkpoint.Record{}, false, nil
}

// lineID makes an id and a time for a line of the protocol's own.
func (j *Journal) lineID() (string, time.Time, error) {
	now := j.cfg.Now().UTC().Truncate(time.Millisecond)
	id, err := transcript.NewID(now, j.cfg.Rand)
	return id, now, err
}

// random is 16 hex digits that no two names share.
func (j *Journal) random() (string, error) {
	var b [8]byte
	if _, err := io.ReadFull(j.cfg.Rand, b[:]); err != nil {
		return "", fmt.Errorf("read randomness: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// fold makes the index object that takes the place of a level's oldest 64 references: those with their
// skeletons on the lowest level, the references alone above it.
func (j *Journal) fold(ctx context.Context, level int, refs []codec.Ref, epoch uint64) (change, error) {
	var skeletons [][]byte
	if level == 0 {
		for _, ref := range refs {
			idx, err := j.segmentIndex(ctx, ref)
			if err != nil {
				return change{}, err
			}
			skeletons = append(skeletons, idx.SkeletonBytes())
		}
	}
	p, err := codec.EncodeIndex(refs, skeletons)
	if err != nil {
		return change{}, err
	}
	rnd, err := j.random()
	if err != nil {
		return change{}, err
	}
	ref := codec.Ref{First: refs[0].First, FirstSeq: refs[0].FirstSeq, Epoch: epoch, Rnd: rnd}
	for _, r := range refs {
		ref.Count += r.Count
		ref.RawBytes += r.RawBytes
	}
	ref.Seal(p)
	key := layout.IndexKey(j.cfg.Session, level+1, layout.Segment{First: ref.First, Epoch: epoch, Rnd: rnd})
	return change{level: level, ref: ref}, j.store.create(ctx, key, p)
}

// foldable gives the references that are due to be folded. The newest of a level stays where it is: the
// next segment names it as the one before.
func (st *State) foldable() (level int, refs []codec.Ref, ok bool) {
	level, refs, ok = st.Segments.FoldCandidate()
	return level, refs, ok && len(st.Segments.Levels[level]) > len(refs)
}

// writeSealed seals lines and stores the segment.
func (j *Journal) writeSealed(ctx context.Context, name layout.Segment, prelude [][]byte, lines []Line, firstSeq uint64) (change, error) {
	p, ref, err := segment.Seal(name, prelude, lines, firstSeq)
	if err != nil {
		return change{}, err
	}
	return change{level: -1, ref: ref}, j.store.create(ctx, name.SealedKey(j.cfg.Session), p)
}

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

// busy is the error of a store that asks to try again: nothing was applied.
func busy(err error) bool {
	return errors.Is(err, backend.ErrBusy) && backend.OutcomeOf(err) == backend.NotApplied
}
