package segment

import (
	"bytes"
	"fmt"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
)

// Opening is the start of a segment.
type Opening struct {
	Header  []byte // the session header line, of a session's first segment
	Prelude checkpoint.Prelude
	Lines   [][]byte // both, unchanged
	Size    int      // bytes of both with their newlines
}

// Of reports whether the first lines are those of a segment of a session. Otherwise the object under its name is
// foreign: another session's, or another segment.
func (o *Opening) Of(session string, seg layout.Segment) bool {
	p := &o.Prelude
	return p.Session == session && p.First == seg.First && p.Epoch == seg.Epoch
}

// ParseOpening reads the start of a segment. first: it begins at ordinal 0, so a session header precedes the prelude.
// Errors wrap one of codec's.
func ParseOpening(data []byte, first bool) (Opening, error) {
	var o Opening
	line := func() ([]byte, error) {
		n := bytes.IndexByte(data[o.Size:], '\n')
		if n < 0 {
			return nil, fmt.Errorf("the start of the segment is cut off: %w", codec.ErrFormat)
		}
		l := data[o.Size : o.Size+n : o.Size+n]
		o.Size += n + 1
		o.Lines = append(o.Lines, l)
		return l, nil
	}
	if first {
		h, err := line()
		if err != nil {
			return o, err
		}
		o.Header = h
	}
	l, err := line()
	if err != nil {
		return o, err
	}
	p, ok := checkpoint.ParsePrelude(l)
	if !ok {
		if p.Format > checkpoint.PreludeFormat {
			return o, fmt.Errorf("segment of format %d: %w", p.Format, codec.ErrVersion)
		}
		return o, fmt.Errorf("the segment's first line: %w", codec.ErrChecksum)
	}
	o.Prelude = p
	return o, nil
}

// Self returns the self to which the first commit line of the segment is chained.
func (o *Opening) Self() uint32 {
	if o.Header != nil {
		return GenesisSelf(o.Header)
	}
	return o.Prelude.PrevSelf
}

// GenesisSelf returns the self before commit 0: it covers the session header line.
func GenesisSelf(header []byte) uint32 {
	return codec.CRC(header, []byte{'\n'})
}
