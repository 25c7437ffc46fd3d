package journal

import (
	"bytes"
	"fmt"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
)

// scanned is a commit found in a segment's bytes, with the offset behind it.
type scanned struct {
	commitLines
	end int
}

// scanCommits walks bytes that begin behind a commit line (or behind a segment's prelude) whose self is
// given, and yields every commit whose line verifies and covers what stands before it. It returns the
// offset behind the last good one: what follows is no commit (I10).
func scanCommits(data []byte, key uint64, self uint32, yield func(scanned) bool) (good int) {
	var entries [][]byte
	for pos := 0; pos < len(data); {
		n := bytes.IndexByte(data[pos:], '\n')
		if n < 0 {
			return good
		}
		line := data[pos : pos+n]
		rec, ours, err := checkpoint.ParseRecord(line, key)
		if err != nil {
			return good
		}
		if !ours {
			entries = append(entries, line)
			pos += n + 1
			continue
		}
		if !rec.Covers(self, data[good:pos]) {
			return good
		}
		pos += n + 1
		good, self = pos, rec.Self
		if !yield(scanned{commitLines: commitLines{rec: rec, entries: entries, line: line}, end: pos}) {
			return good
		}
		entries = nil
	}
	return good
}

// promises finds a commit line in the bytes behind the last good commit that verifies and was written
// when more than the first good bytes of its segment were known to be durable: then what lies between is
// damage, not a torn tail. at is the offset of that line in rest.
func promises(rest []byte, key uint64, good int64) (at int, found bool) {
	for pos := 0; pos < len(rest); {
		n := bytes.IndexByte(rest[pos:], '\n')
		if n < 0 {
			return 0, false
		}
		line := rest[pos : pos+n]
		if i := bytes.Index(line, commitStart); i >= 0 {
			if rec, ours, err := checkpoint.ParseRecord(line[i:], key); err == nil && ours && rec.Synced > good {
				return pos + i, true
			}
		}
		pos += n + 1
	}
	return 0, false
}

var commitStart = []byte(`{"type":"custom","id":"`)

// opening is what stands at the start of a segment.
type opening struct {
	header  []byte // of a session's first segment
	prelude checkpoint.Prelude
	size    int // bytes of both with their newlines
}

// parseOpening reads the start of a segment. first: it begins at ordinal 0, so a session header comes
// before the prelude.
func parseOpening(data []byte, first bool) (opening, error) {
	var o opening
	line := func() ([]byte, error) {
		n := bytes.IndexByte(data[o.size:], '\n')
		if n < 0 {
			return nil, fmt.Errorf("the start of the segment is cut off: %w", codec.ErrFormat)
		}
		l := data[o.size : o.size+n]
		o.size += n + 1
		return l, nil
	}
	if first {
		h, err := line()
		if err != nil {
			return o, err
		}
		o.header = h
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
	o.prelude = p
	return o, nil
}

// self is what the first commit line of the segment is chained to.
func (o *opening) self() uint32 {
	if o.header != nil {
		return genesisSelf(o.header)
	}
	return o.prelude.PrevSelf
}

// genesisSelf is the self before commit 0: it covers the session header line.
func genesisSelf(header []byte) uint32 {
	return codec.UpdateCRC(codec.CRC(header), []byte{'\n'})
}
