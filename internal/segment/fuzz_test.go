package segment_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

const key = 0x0123456789abcdef

var (
	first  = layout.Segment{Rnd: layout.FirstRandom}
	header = []byte(`{"type":"session","version":3,"id":"s1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`)
)

// opening returns the start of a session's first segment.
func opening(t testing.TB) []byte {
	p, err := checkpoint.Prelude{ID: "p0", Time: time.Unix(0, 0), Session: "s1", Key: key}.Line()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(header, []byte{'\n'}, p, []byte{'\n'})
}

// entryLine returns one message.
func entryLine(id string, text []byte) []byte {
	return fmt.Appendf(nil, `{"type":"message","id":%q,"parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":%q}}`+"\n", id, text)
}

// log returns a log of commits, each of some lines. Its commit lines verify for any lines, so that the fuzzer reaches
// the code after the checksums.
func log(t testing.TB, self uint32, entries ...[]byte) []byte {
	var out []byte
	for i, since := range entries {
		r := checkpoint.Record{
			ID: fmt.Sprintf("c%d", i), Time: time.Unix(int64(i), 0), Seq: uint64(i), Epoch: 1, Writer: "w", Reason: "turn", HeadOrd: -1, Branch: "main",
			Entries: bytes.Count(since, []byte{'\n'}), Doc: []byte(`{}`), DocCRC: codec.CRC([]byte(`{}`)), Synced: int64(len(out)),
		}
		out = append(out, since...)
		line, own, err := r.AppendLine(nil, key, self, since)
		if err != nil {
			t.Fatal(err)
		}
		out, self = append(append(out, line...), '\n'), own
	}
	return out
}

// spoil changes bytes: each three bytes of edits are an offset and the kind of change.
func spoil(p, edits []byte) []byte {
	for ; len(edits) >= 3 && len(p) > 0; edits = edits[3:] {
		at := (int(edits[0])<<8 | int(edits[1])) % len(p)
		switch c := edits[2]; {
		case c < 8:
			p[at] ^= 1 << c
		case c == 8:
			p = p[:at]
		case c == 9:
			p = slices.Concat(p[:at], p[at/2:])
		case c == 10:
			p = slices.Concat(p[:at/2], p[at:])
		case c == 11:
			p[at] = '\n'
		default:
			p[at] = c
		}
	}
	return p
}

// split makes the entries of commits from any bytes: \x01 ends a commit.
func split(lines []byte) (out [][]byte) {
	for part := range bytes.SplitSeq(lines, []byte{1}) {
		if len(part) > 0 && part[len(part)-1] != '\n' {
			part = append(bytes.Clone(part), '\n')
		}
		if out = append(out, part); len(out) == 16 {
			break
		}
	}
	return out
}

func seeds(f *testing.F) {
	two := slices.Concat(entryLine("a", []byte("one")), []byte{1}, entryLine("b", []byte("two")), entryLine("b", nil), []byte{1})
	f.Add(two, []byte(nil))
	f.Add(two, []byte{0, 40, 3})                             // a bit in an entry
	f.Add(two, []byte{1, 200, 8})                            // cut off
	f.Add(two, []byte{1, 0, 11})                             // a line split in two
	f.Add(two, []byte{1, 0, 9})                              // a part twice
	f.Add(log(f, 0, entryLine("x", nil)), []byte{0, 250, 1}) // an imported export of another session
	f.Add(slices.Concat(header, []byte("\n\x01{}\n\n\n\x01")), []byte{0, 0, 0})
	f.Add([]byte("\xff\x00{\"type\":\"custom\",\"id\":\"\x01"), []byte{9, 9, 10})
}

// FuzzScan compares the scanner with a naive reader: the same commits up to the same offset, for any change of the
// bytes (I10).
func FuzzScan(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, lines, edits []byte) {
		self := segment.GenesisSelf(header)
		for _, data := range [][]byte{spoil(log(t, self, split(lines)...), edits), lines} {
			var ids []string
			var seqs []uint64
			good := segment.Scan(data, key, self, func(c segment.Commit) bool {
				ids = append(ids, c.Record.ID)
				if seq, ok := checkpoint.RecordSeq(c.Line); !ok || seq != c.Record.Seq {
					t.Fatalf("the commit line's seq is read as %d, %v: %s", seq, ok, c.Line)
				}
				seqs = append(seqs, c.Record.Seq)
				return true
			})
			want, end := naive(data, key, self)
			if !slices.Equal(ids, want) || good != end {
				t.Fatalf("the scanner reads %q up to %d, the naive reader %q up to %d, of\n%s", ids, good, want, end, data)
			}
			if at, found := segment.Promises(data[good:], key, int64(good)); found && (at < 0 || at >= len(data)-good) {
				t.Fatalf("a promise at %d of %d bytes", at, len(data)-good)
			}
		}
	})
}

// FuzzRead reads a segment of any lines, and any bytes as a segment: the result is whole, dense and can be sealed, and
// the sealed form contains it.
func FuzzRead(f *testing.F) {
	seeds(f)
	start := opening(f)
	f.Fuzz(func(t *testing.T, lines, edits []byte) {
		self := segment.GenesisSelf(header)
		whole := slices.Concat(start, log(t, self, split(lines)...))
		for _, raw := range [][]byte{whole, spoil(bytes.Clone(whole), edits), lines} {
			c, err := segment.Read(raw, first)
			if c.End > len(raw) {
				t.Fatalf("read to %d of %d bytes", c.End, len(raw))
			}
			if err != nil {
				if !errors.Is(err, codec.ErrFormat) && !errors.Is(err, codec.ErrChecksum) && !errors.Is(err, codec.ErrVersion) && !errors.Is(err, transcript.ErrLine) {
					t.Fatalf("an error of no kind: %v", err)
				}
				continue
			}
			for i, l := range c.Lines {
				if l.Ord != uint64(i) || bytes.IndexByte(l.Raw, '\n') >= 0 {
					t.Fatalf("line %d has ordinal %d: %q", i, l.Ord, l.Raw)
				}
			}
			if len(c.Lines) > 0 {
				reseal(t, c, raw)
			}
		}
	})
}

// reseal seals the result of Read, and expects the same bytes back.
func reseal(t *testing.T, c segment.Contents, raw []byte) {
	s, err := c.Seal(first, 0)
	if err != nil {
		return // no skeleton can be made of it: writer and reader refuse it
	}
	if err := s.Ref.Verify(s.Bytes); err != nil {
		t.Fatal(err)
	}
	back, idx, err := codec.DecodeSegment(s.Bytes, s.Ref.RawBytes)
	if err != nil || !bytes.Equal(back, raw[:c.End]) || idx.Count != len(c.Lines) {
		t.Fatalf("sealed %d bytes, %d came back: %v", c.End, len(back), err)
	}
}
