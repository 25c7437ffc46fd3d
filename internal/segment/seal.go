package segment

import (
	"fmt"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

// Rows makes the skeleton rows of durable lines.
func Rows(lines []Line) ([]codec.Row, error) {
	out := make([]codec.Row, len(lines))
	for i, l := range lines {
		head, err := transcript.ParseLine(l.Raw)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", l.Ord, err)
		}
		out[i] = transcript.RowOf(head, l.Parent)
		if l.Commit {
			out[i].Flags |= codec.FlagCommit
		}
		if l.Orphan {
			out[i].Flags |= codec.FlagOrphan
		}
	}
	return out, nil
}

// Skeleton makes the skeleton of consecutive lines.
func Skeleton(lines []Line) (*codec.Skeleton, error) {
	r, err := Rows(lines)
	if err != nil {
		return nil, err
	}
	p, err := codec.EncodeSkeleton(lines[0].Ord, r)
	if err != nil {
		return nil, err
	}
	return codec.DecodeSkeleton(p)
}

// Seal makes the immutable form of consecutive lines (at least one), and the reference to it. prelude are
// the lines before them that have no ordinal; firstSeq is the seq of the first commit among them.
func Seal(name layout.Segment, prelude [][]byte, lines []Line, firstSeq uint64) (p []byte, ref codec.Ref, err error) {
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
	rows, err := Rows(lines)
	if err != nil {
		return nil, codec.Ref{}, err
	}
	p, err = codec.EncodeSegment(codec.SegmentSpec{
		Raw: raw, Prelude: len(prelude), First: lines[0].Ord, FirstSeq: firstSeq, Rows: rows,
	})
	if err != nil {
		return nil, codec.Ref{}, err
	}
	ref = codec.Ref{
		First: lines[0].Ord, Count: uint32(len(lines)), FirstSeq: firstSeq, RawBytes: int64(size),
		Epoch: name.Epoch, Rnd: name.Rnd,
	}
	ref.Seal(p)
	return p, ref, nil
}

// Contents are a whole segment's lines, and where the next segment begins.
type Contents struct {
	Opening Opening
	Commits int
	Lines   []Line
	Keys    []checkpoint.KeyRef // idempotency keys of its commits, oldest first
	Self    uint32              // of the last commit line
	Next    string              // the segment that the last commit line names; "" = none
	End     int                 // bytes up to the end of the last good commit
}

// Read reads a whole segment: every commit with the ordinals of its lines. What is after the last good
// commit is left out; End says where that is.
func Read(raw []byte, name layout.Segment) (Contents, error) {
	o, err := ParseOpening(raw, name.First == 0)
	c := Contents{Opening: o, End: o.Size}
	if err != nil {
		return c, err
	}
	next, head := name.First, int64(-1)
	c.Self = o.Self()
	var perr error
	good := Scan(raw[o.Size:], o.Prelude.Key, c.Self, func(s Commit) bool {
		if s.Record.Base != nil {
			head = s.Record.Base.HeadOrd
		}
		var lines []Line
		if lines, _, perr = Place(next, head, &s); perr != nil {
			return false
		}
		next, head = next+uint64(len(lines)), s.Record.HeadOrd
		if key := s.Record.Key; key != "" {
			ref := checkpoint.KeyRef{Hash: checkpoint.KeyHash(key), Seq: s.Record.Seq, Ord: next - 1}
			c.Keys = checkpoint.AppendKey(c.Keys, ref)
		}
		c.Lines = append(c.Lines, lines...)
		c.Self, c.Next = s.Record.Self, s.Record.Next
		c.Commits++
		return true
	})
	c.End = o.Size + good
	return c, perr
}
