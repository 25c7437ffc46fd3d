// Package segment reads segments of the transcript so that the result is exactly what was committed: every commit line
// verifies by itself, and covers all bytes since the one before it, across segments back to the session header (I10).
// It is pure: bytes in, lines out.
//
// A segment is a session header line (the first one only), a prelude line, and commits: the lines of entries, then the
// commit line that makes them durable. docs/format/commit-line.md and docs/format/segment.md describe the bytes.
package segment

import (
	"bytes"
	"fmt"
	"iter"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

// Line is a durable line of the transcript.
type Line struct {
	Ord    uint64
	Parent int64 // ordinal, -1 = root
	Raw    []byte
	Commit bool // a commit line of this session
	Orphan bool // it names a parent that the session does not have
}

// Commit is one commit in the log: its record, the lines that it made durable, and its own line.
type Commit struct {
	Record  checkpoint.Record
	Entries [][]byte          // stored lines, without newlines
	Heads   []transcript.Line // of Entries, if they were parsed before; those of other bytes are ignored
	Line    []byte            // the commit line, without its newline
	Doc     []byte            // the document after it, if the line was composed here; nil = read it from Record
	End     int               // offset after it in the scanned bytes
}

// Scan reads bytes that begin after a commit line (or after a segment's prelude) with the given self, and yields every
// commit whose line verifies and covers the bytes before it. It returns the offset after the last good one: the bytes
// after it are no commit (I10).
func Scan(data []byte, key uint64, self uint32, yield func(Commit) bool) (good int) {
	var entries [][]byte
	for pos := 0; pos < len(data); {
		n := bytes.IndexByte(data[pos:], '\n')
		if n < 0 {
			return good
		}
		line := data[pos : pos+n : pos+n]
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
		if !yield(Commit{Record: rec, Entries: entries, Line: line, End: pos}) {
			return good
		}
		entries = nil
	}
	return good
}

var commitStart = []byte(`{"type":"custom","id":"`)

// Promises searches the bytes after the last good commit for a commit line that verifies and was written when more than
// the first good bytes of its segment were known to be durable: then the bytes in between are damage, not a torn tail.
// at is the offset of that line in rest.
func Promises(rest []byte, key uint64, good int64) (at int, found bool) {
	for at := range promises(rest, key, good) {
		return at, true
	}
	return 0, false
}

// Promised returns the seq of the newest commit whose line Promises finds; 0 = none.
func Promised(rest []byte, key uint64, good int64) (seq uint64) {
	for _, rec := range promises(rest, key, good) {
		if rec.Seq < Fence {
			seq = max(seq, rec.Seq)
		}
	}
	return seq
}

// Fence is the lowest seq that no commit has: a repair writes it after the end of a segment.
const Fence = 1 << 62

// promises yields the commit lines of Promises with their offsets.
func promises(rest []byte, key uint64, good int64) iter.Seq2[int, checkpoint.Record] {
	return func(yield func(int, checkpoint.Record) bool) {
		for pos := 0; pos < len(rest); {
			n := bytes.IndexByte(rest[pos:], '\n')
			if n < 0 {
				return
			}
			line := rest[pos : pos+n]
			if i := bytes.Index(line, commitStart); i >= 0 {
				// One that verifies and cannot be read is from a later release, and no torn tail either.
				rec, ours, err := checkpoint.ParseRecord(line[i:], key)
				if ours && (err != nil || rec.Synced > good) && !yield(pos+i, rec) {
					return
				}
			}
			pos += n + 1
		}
	}
}

// Place assigns the lines of a commit their ordinals, from next on, and those of their parents: the previous entry of
// the commit, or for the first the head before it, unless the record contains another. The commit line is last, below
// the new head.
func Place(next uint64, head int64, c *Commit) ([]Line, []transcript.Entry, error) {
	lines := make([]Line, 0, len(c.Entries)+1)
	entries := make([]transcript.Entry, 0, len(c.Entries))
	prev, deltas := head, c.Record.Parents
	for i, raw := range c.Entries {
		ord := next + uint64(i)
		e, err := c.entry(i, ord)
		if err != nil {
			return nil, nil, fmt.Errorf("commit %s: %w", c.Record.ID, err)
		}
		parent := prev
		if len(deltas) > 0 && deltas[0].Index == i {
			parent = -1
			if d := deltas[0].Delta; d != 0 {
				parent = int64(ord) - d
			}
			deltas = deltas[1:]
		}
		lines = append(lines, Line{Ord: ord, Parent: parent, Raw: raw, Orphan: parent < 0 && e.ParentID != ""})
		entries = append(entries, e)
		prev = int64(ord)
	}
	if len(deltas) > 0 {
		return nil, nil, fmt.Errorf("commit %s: parent of line %d: %w", c.Record.ID, deltas[0].Index, codec.ErrFormat)
	}
	own := Line{Ord: next + uint64(len(c.Entries)), Parent: c.Record.HeadOrd, Raw: c.Line, Commit: true}
	return append(lines, own), entries, nil
}

// entry is the i-th entry of the commit.
func (c *Commit) entry(i int, ord uint64) (transcript.Entry, error) {
	raw := c.Entries[i]
	if i < len(c.Heads) {
		if h := &c.Heads[i]; len(raw) > 0 && len(h.Raw) == len(raw) && &h.Raw[0] == &raw[0] {
			return h.Entry(ord), nil
		}
	}
	return Entry(ord, raw)
}

// Entry reads the head of a stored line.
func Entry(ord uint64, raw []byte) (transcript.Entry, error) {
	l, err := transcript.ParseLine(raw)
	if err != nil {
		return transcript.Entry{}, fmt.Errorf("entry %d: %w", ord, err)
	}
	return l.Entry(ord), nil
}
