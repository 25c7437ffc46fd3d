package repair

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/segment"
	"github.com/coppice-go/coppice/transcript"
)

// flipsMost bounds how many commits of one segment are mended.
const flipsMost = 16

// mend returns the lines of a plain segment in which a single bit of a commit was flipped as they were written: the
// checksum of the commit shows which bit it was. Whatever else is damaged stays as it is. raw is not changed.
func mend(raw []byte, opens bool) []byte {
	for range flipsMost {
		o, err := segment.ParseOpening(raw, opens)
		if err != nil {
			if raw, o, err = mendOpening(raw, opens); err != nil {
				return raw
			}
		}
		self := o.Self()
		good := o.Size + segment.Scan(raw[o.Size:], o.Prelude.Key, self, func(c segment.Commit) bool {
			self = c.Record.Self
			return true
		})
		at, bit := flipped(raw[good:], o.Prelude.Key, self)
		if at < 0 {
			return raw
		}
		raw = slices.Clone(raw)
		raw[good+at] ^= bit
	}
	return raw
}

// openingMost bounds the bytes at the start of a segment in which a flipped bit is looked for: eight tries each.
const openingMost = 4 << 10

// mendOpening flips the bit back by which the first lines of a segment fail their checksum. Where there is none it
// returns raw and an error.
func mendOpening(raw []byte, opens bool) ([]byte, segment.Opening, error) {
	end, lines := 0, 1
	if opens {
		lines = 2 // the session header, and the segment's own
	}
	for range lines {
		n := bytes.IndexByte(raw[end:], '\n')
		if n < 0 || end+n >= openingMost {
			break
		}
		end += n + 1
	}
	try := slices.Clone(raw)
	for bit := range 8 * end {
		try[bit/8] ^= 1 << (bit % 8)
		if o, err := segment.ParseOpening(try, opens); err == nil {
			return try, o, nil
		}
		try[bit/8] ^= 1 << (bit % 8)
	}
	return raw, segment.Opening{}, codec.ErrChecksum
}

// flipped finds the bit that makes rest, the bytes after a commit line of this self, begin with a whole commit; -1 =
// there is no such bit.
func flipped(rest []byte, key uint64, self uint32) (at int, bit byte) {
	for from := 0; from < len(rest); {
		n := bytes.Index(rest[from:], []byte(`,"self":"`))
		if n < 0 {
			break
		}
		end := min(len(rest), from+n+len(`,"self":"`)+8+len(`"}}`))
		from += n + 1
		for _, start := range starts(rest[:end]) {
			if at, bit = inCommit(rest, start, end, key, self); at >= 0 {
				return at, bit
			}
		}
	}
	for from := 0; from < len(rest); { // the mark itself may be what was flipped
		n := bytes.IndexByte(rest[from:], '\n')
		if n < 0 {
			break
		}
		if looksCommit(rest[from : from+n]) {
			if at, bit = inCommit(rest, from, from+n, key, self); at >= 0 {
				return at, bit
			}
		}
		from += n + 1
	}
	return -1, 0
}

// starts returns where the commit line may begin that ends p.
func starts(p []byte) []int {
	byText, byLine := bytes.LastIndex(p, []byte(`{"type":"custom","id":"`)), bytes.LastIndexByte(p, '\n')+1
	if byText < 0 || byText == byLine {
		return []int{byLine}
	}
	return []int{byText, byLine}
}

// inCommit finds the bit in the entries before the commit line rest[start:end], or in that line or its end.
func inCommit(rest []byte, start, end int, key uint64, self uint32) (at int, bit byte) {
	since, line := rest[:start], rest[start:end]
	if rec, ours, err := checkpoint.ParseRecord(line, key); ours && err == nil {
		if rec.Seq >= segment.Fence || rec.Len != int64(len(since)) {
			return -1, 0
		}
		if rec.Covers(self, since) { // only the line feed after it is another byte
			if end < len(rest) && oneBit(rest[end]^'\n') {
				return end, rest[end] ^ '\n'
			}
			return -1, 0
		}
		var seed [4]byte
		binary.LittleEndian.PutUint32(seed[:], self)
		at, bit = bitFor(since, codec.CRC(seed[:], since)^rec.CRC)
		if at >= 0 && !entriesWith(since, at, bit) {
			return -1, 0
		}
		return at, bit
	}
	at, bit = inLine(line, key)
	if at < 0 {
		return -1, 0
	}
	whole := slices.Clone(line)
	whole[at] ^= bit
	rec, ours, err := checkpoint.ParseRecord(whole, key)
	if !ours || err != nil || !rec.Covers(self, since) {
		return -1, 0
	}
	return start + at, bit
}

// inLine finds the bit of a commit line with which it verifies.
func inLine(line []byte, key uint64) (at int, bit byte) {
	const tail = len(`,"self":"`) + 8 + len(`"}}`)
	body := len(line) - tail
	if body < 0 {
		return -1, 0
	}
	var seed [8]byte
	binary.LittleEndian.PutUint64(seed[:], key)
	is := codec.CRC(seed[:], line[:body])
	var want [4]byte
	if _, err := hex.Decode(want[:], line[body+len(`,"self":"`):body+len(`,"self":"`)+8]); err == nil {
		if at, bit = bitFor(line[:body], is^binary.BigEndian.Uint32(want[:])); at >= 0 {
			return at, bit
		}
	}
	whole := slices.Clone(line)
	for at := body; at < len(line); at++ {
		for b := range 8 {
			whole[at] ^= 1 << b
			if _, ours, err := checkpoint.ParseRecord(whole, key); ours && err == nil {
				return at, 1 << b
			}
			whole[at] ^= 1 << b
		}
	}
	return -1, 0
}

// bitFor finds the bit of p whose change changes its CRC-32C by delta: what a bit changes depends on how many bytes
// are after it.
func bitFor(p []byte, delta uint32) (at int, bit byte) {
	table := crc32.MakeTable(crc32.Castagnoli)
	var change [8]uint32
	for b := range change {
		change[b] = table[1<<b]
	}
	for at := len(p) - 1; at >= 0; at-- {
		for b := range change {
			if change[b] == delta {
				return at, 1 << b
			}
			change[b] = table[byte(change[b])] ^ change[b]>>8
		}
	}
	return -1, 0
}

// entriesWith reports whether p is lines of entries with one bit changed: other damage may have the same checksum.
func entriesWith(p []byte, at int, bit byte) bool {
	p = slices.Clone(p)
	p[at] ^= bit
	if p[len(p)-1] != '\n' {
		return false
	}
	for line := range bytes.Lines(p) {
		if h, err := transcript.ParseLine(bytes.TrimSuffix(line, []byte("\n"))); err != nil || h.ID == "" {
			return false
		}
	}
	return true
}

func oneBit(b byte) bool { return b != 0 && b&(b-1) == 0 }
