package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// rows makes the skeleton rows of durable lines.
func rows(lines []Line) ([]codec.Row, error) {
	out := make([]codec.Row, len(lines))
	for i, l := range lines {
		head, err := transcript.ParseLine(l.Raw)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", l.Ord, err)
		}
		out[i] = transcript.Row(head, l.Parent)
		if l.Commit {
			out[i].Flags |= codec.FlagCommit
		}
		if l.Orphan {
			out[i].Flags |= codec.FlagOrphan
		}
	}
	return out, nil
}

// sealed is a segment's immutable form, ready to be written.
type sealed struct {
	name layout.Segment
	ref  codec.Ref
	raw  []byte
}

// seal makes the immutable form of consecutive lines. prelude are the lines before them that have no
// ordinal: the session header in a session's first segment, and the segment's own.
func seal(name layout.Segment, prelude [][]byte, lines []Line, firstSeq uint64) (*sealed, error) {
	size := 0
	for _, l := range prelude {
		size += len(l) + 1
	}
	for _, l := range lines {
		size += len(l.Raw) + 1
	}
	raw := make([]byte, 0, size)
	for _, l := range prelude {
		raw = append(append(raw, l...), '\n')
	}
	for _, l := range lines {
		raw = append(append(raw, l.Raw...), '\n')
	}
	skeleton, err := rows(lines)
	if err != nil {
		return nil, err
	}
	p, err := codec.EncodeSegment(codec.SegmentSpec{
		Raw: raw, Prelude: len(prelude), First: lines[0].Ord, FirstSeq: firstSeq, Rows: skeleton,
	})
	if err != nil {
		return nil, err
	}
	s := &sealed{name: name, raw: p, ref: codec.Ref{
		First: lines[0].Ord, Count: uint32(len(lines)), FirstSeq: firstSeq, RawBytes: int64(size), Bytes: int64(len(p)),
		Epoch: name.Epoch, Rnd: name.Rnd,
	}}
	h := sha256.Sum256(p)
	copy(s.ref.Sum[:], h[:])
	return s, nil
}

// sealTail makes the segment that the tail of st becomes.
func (j *Journal) sealTail(st *State) (*sealed, error) {
	rnd, err := j.random()
	if err != nil {
		return nil, err
	}
	name := layout.Segment{First: st.Tail[0].Ord, Epoch: st.Summary.Epoch, Rnd: rnd}
	id, now, err := j.lineID()
	if err != nil {
		return nil, err
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
		return nil, err
	}
	prelude := [][]byte{line}
	if name.First == 0 {
		prelude = [][]byte{st.Header, line}
	}
	return seal(name, prelude, st.Tail, pre.FirstSeq)
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
	ref := codec.Ref{First: refs[0].First, FirstSeq: refs[0].FirstSeq, Epoch: epoch, Rnd: rnd, Bytes: int64(len(p))}
	for _, r := range refs {
		ref.Count += r.Count
		ref.RawBytes += r.RawBytes
	}
	h := sha256.Sum256(p)
	copy(ref.Sum[:], h[:])
	key := layout.IndexKey(j.cfg.Session, level+1, layout.Segment{First: ref.First, Epoch: epoch, Rnd: rnd})
	return change{level: level, ref: ref}, j.store.create(ctx, key, p)
}

// foldable gives the references that are due to be folded. The newest of a level stays where it is: the
// next segment names it as the one before.
func (st *State) foldable() (level int, refs []codec.Ref, ok bool) {
	level, refs, ok = st.Segments.FoldCandidate()
	return level, refs, ok && len(st.Segments.Levels[level]) > len(refs)
}

// writeSealed stores a sealed segment.
func (j *Journal) writeSealed(ctx context.Context, s *sealed) (change, error) {
	err := j.store.create(ctx, s.name.SealedKey(j.cfg.Session), s.raw)
	return change{level: -1, ref: s.ref}, err
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
