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

// Sealed is the immutable form of a segment.
type Sealed struct {
	Bytes []byte
	Ref   codec.Ref
	IDs   []codec.IDRow // of its lines, for the id index
}

// Seal makes the immutable form of a segment with at least one line; firstSeq is the seq of the first commit among
// them. Only Raw, Opening.Lines and Lines of c are used.
func (c *Contents) Seal(name layout.Segment, firstSeq uint64) (s Sealed, err error) {
	rows, err := Rows(c.Lines)
	if err != nil {
		return s, err
	}
	first := c.Lines[0].Ord
	s.Bytes, err = codec.EncodeSegment(codec.SegmentSpec{
		Raw: c.Raw, Prelude: len(c.Opening.Lines), First: first, FirstSeq: firstSeq, Rows: rows,
	})
	if err != nil {
		return s, err
	}
	s.Ref = codec.Ref{
		First: first, Count: uint32(len(rows)), FirstSeq: firstSeq, RawBytes: int64(len(c.Raw)),
		Epoch: name.Epoch, Rnd: name.Rnd,
	}
	s.Ref.Seal(s.Bytes)
	s.IDs = make([]codec.IDRow, len(rows))
	for i := range rows {
		s.IDs[i] = codec.IDRow{
			Hash: codec.HashID(rows[i].ID), Ord: first + uint64(i), Commit: rows[i].Flags&codec.FlagCommit != 0,
		}
	}
	return s, nil
}

// Contents are the lines of a whole segment, and the name of the next segment.
type Contents struct {
	Raw     []byte // up to End
	Opening Opening
	Commits int
	Lines   []Line
	Keys    []checkpoint.KeyRef // idempotency keys of its commits, oldest first
	Self    uint32              // of the last commit line
	Next    string              // the segment that the last commit line names; "" = none
	End     int                 // bytes up to the end of the last good commit
}

// Read reads a whole segment: every commit with the ordinals of its lines. Bytes after the last good commit are left
// out; End is their offset.
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
	c.Raw = raw[:c.End]
	return c, perr
}
