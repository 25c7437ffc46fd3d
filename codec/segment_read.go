package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"sort"
)

// SegmentIndex is the index at the end of a sealed segment: the positions of its frames, and the skeleton of its
// entries. It is a view of the bytes it was decoded from.
type SegmentIndex struct {
	First    uint64 // ordinal of the first entry
	Count    int    // entries
	FirstSeq uint64 // seq of the first commit in or after this segment
	Prelude  int    // lines before the first entry
	RawBytes int64  // all lines, uncompressed
	Bytes    int64  // the whole object

	frames   []frame
	skeleton []byte
	start    int64 // offset of the index in the object
}

// DecodeSegmentIndex reads the index of a sealed segment of size bytes from tail, its last len(tail) bytes. If tail is
// too short, need is the number of bytes from the end to read instead, and idx and err are nil. The result refers to
// tail, which must not change; in addition at most seven times its bytes are allocated.
func DecodeSegmentIndex(tail []byte, size int64) (idx *SegmentIndex, need int64, err error) {
	if size < segmentFooter || int64(len(tail)) > size {
		return nil, 0, fmt.Errorf("segment of %d bytes, %d of them given: %w", size, len(tail), ErrFormat)
	}
	if len(tail) < segmentFooter {
		return nil, min(size, defaultTail), nil
	}
	footer := tail[len(tail)-segmentFooter:]
	if string(footer[12:]) != segmentMagic {
		return nil, 0, fmt.Errorf("segment does not end as a sealed one: %w", ErrFormat)
	}
	n := int64(binary.LittleEndian.Uint32(footer[4:]))
	if n < segmentFooter+8 || n > size || n > maxIndex {
		return nil, 0, fmt.Errorf("segment: index of %d bytes in %d: %w", n, size, ErrFormat)
	}
	if n > int64(len(tail)) {
		return nil, n, nil
	}
	p := tail[int64(len(tail))-n:]
	if _, err := splitChecksum("segment index", p[:len(p)-len(segmentMagic)]); err != nil {
		return nil, 0, err
	}
	if err := checkVersion("segment", binary.LittleEndian.Uint16(footer)); err != nil {
		return nil, 0, err
	}
	if binary.LittleEndian.Uint32(p) != skippableMagic || int64(binary.LittleEndian.Uint32(p[4:])) != n-8 ||
		footer[2] != 0 || footer[3] != 0 {
		return nil, 0, fmt.Errorf("segment index: wrong head or foot: %w", ErrFormat)
	}
	idx = &SegmentIndex{Bytes: size, start: size - n}
	return idx, 0, idx.read(p[8 : len(p)-segmentFooter])
}

// defaultTail is the length of the first read: the index of a usual segment fits.
const defaultTail = 32 << 10

// read fills the index from its part of the object, and checks that the frames add up.
func (x *SegmentIndex) read(p []byte) error {
	c := &cursor{What: "segment index", P: p}
	x.First = c.Uvarint("first ordinal", 1<<61)
	x.Count = int(c.Uvarint("entries", maxRows))
	x.FirstSeq = c.Uvarint("first seq", math.MaxUint64)
	x.Prelude = int(c.Uvarint("prelude", maxRows))
	frames := c.Uvarint("frames", uint64(len(p))/7)
	skeleton := c.Uvarint("skeleton", uint64(len(p)))
	x.frames = make([]frame, 0, frames)
	var off, lines int64
	for range frames {
		f := frame{off: off, line: int(lines)}
		f.bytes = int64(c.Uvarint("frame", uint64(x.start-off)))
		f.raw = int64(c.Uvarint("raw frame", maxFrame))
		f.lines = int(c.Uvarint("lines", uint64(f.raw)))
		f.crc = c.U32()
		if f.lines == 0 || f.raw > frameTarget && f.lines > 1 {
			c.Fail("a frame of %d lines in %d bytes", f.lines, f.raw)
		}
		if c.Err != nil {
			return c.Err
		}
		off, lines = off+f.bytes, lines+int64(f.lines)
		x.RawBytes += f.raw
		x.frames = append(x.frames, f)
	}
	x.skeleton = c.Take(skeleton)
	switch {
	case c.Err == nil && len(c.P) != 0:
		c.Fail("%d bytes too many", len(c.P))
	case off != x.start:
		c.Fail("frames of %d bytes where %d are", off, x.start)
	case lines != int64(x.Prelude)+int64(x.Count):
		c.Fail("%d lines for %d entries and a prelude of %d", lines, x.Count, x.Prelude)
	}
	return c.Err
}

// Skeleton decodes the skeleton of the segment's entries.
func (x *SegmentIndex) Skeleton() (*Skeleton, error) {
	s, err := DecodeSkeleton(x.skeleton)
	if err != nil {
		return nil, fmt.Errorf("segment: %w", err)
	}
	if s.First() != x.First || s.Len() != x.Count {
		return nil, fmt.Errorf("segment: skeleton of %d entries from %d instead of %d from %d: %w", s.Len(), s.First(),
			x.Count, x.First, ErrFormat)
	}
	return s, nil
}

// SkeletonBytes returns the encoded skeleton, for an index object.
func (x *SegmentIndex) SkeletonBytes() []byte { return x.skeleton }

// Frames returns the number of frames.
func (x *SegmentIndex) Frames() int { return len(x.frames) }

// Locate returns the frame that holds the entry of this ordinal, -1 if the segment does not.
func (x *SegmentIndex) Locate(ordinal uint64) int {
	if ordinal < x.First || ordinal-x.First >= uint64(x.Count) {
		return -1
	}
	line := x.Prelude + int(ordinal-x.First)
	return sort.Search(len(x.frames), func(i int) bool { return x.frames[i].line > line }) - 1
}

// FrameRange returns the position of frame i in the object. Neighbouring frames are contiguous, so that consecutive
// frames are one range read.
func (x *SegmentIndex) FrameRange(i int) (off, n int64) { return x.frames[i].off, x.frames[i].bytes }

// FrameRaw returns the uncompressed bytes of frame i, a bound for what DecodeFrame allocates.
func (x *SegmentIndex) FrameRaw(i int) int64 { return x.frames[i].raw }

// DecodeFrame decodes frame i from p, exactly the bytes of FrameRange, and checks them against the index. raw is whole
// lines, newly allocated; firstLine is the number of its first line in the segment, from 0 and with the prelude: line k
// is the entry First + k - Prelude.
func (x *SegmentIndex) DecodeFrame(i int, p []byte) (raw []byte, firstLine int, err error) {
	if err = x.checkFrame(i, p); err == nil {
		raw, err = x.appendFrame(nil, i, p)
	}
	return raw, x.frames[i].line, err
}

// checkFrame compares the compressed bytes of frame i with the index, before any memory is taken.
func (x *SegmentIndex) checkFrame(i int, p []byte) error {
	f := &x.frames[i]
	if int64(len(p)) != f.bytes {
		return fmt.Errorf("segment: frame %d: %d bytes instead of %d: %w", i, len(p), f.bytes, ErrFormat)
	}
	if got := CRC(p); got != f.crc {
		return fmt.Errorf("segment: frame %d at byte %d: crc32c %08x instead of %08x: %w", i, f.off, got, f.crc,
			ErrChecksum)
	}
	size, err := frameContentSize(p, maxFrame)
	if err != nil {
		return fmt.Errorf("segment: frame %d at byte %d: %w", i, f.off, err)
	}
	if int64(size) != f.raw {
		return fmt.Errorf("segment: frame %d at byte %d declares %d bytes instead of %d: %w", i, f.off, size, f.raw,
			ErrFormat)
	}
	return nil
}

// appendFrame decodes frame i, which was checked, and expects whole lines, as many as in the index.
func (x *SegmentIndex) appendFrame(dst []byte, i int, p []byte) ([]byte, error) {
	f := &x.frames[i]
	out, err := Decompress(dst, p, int(f.raw))
	if err != nil {
		return nil, fmt.Errorf("segment: frame %d at byte %d: %w", i, f.off, err)
	}
	raw := out[len(dst):]
	if len(raw) == 0 || raw[len(raw)-1] != '\n' || bytes.Count(raw, []byte{'\n'}) != f.lines {
		return nil, fmt.Errorf("segment: frame %d at byte %d does not hold %d lines: %w", i, f.off, f.lines, ErrFormat)
	}
	return out, nil
}

// DecodeSegment decodes and checks a whole sealed segment: index, every frame, skeleton. Lines of over maxRaw bytes
// together are ErrLimit, before anything is allocated for them. raw is newly allocated; idx refers to p.
func DecodeSegment(p []byte, maxRaw int64) (raw []byte, idx *SegmentIndex, err error) {
	idx, need, err := DecodeSegmentIndex(p, int64(len(p)))
	if err == nil && need > 0 {
		err = fmt.Errorf("segment of %d bytes, its index has %d: %w", len(p), need, ErrFormat)
	}
	if err != nil {
		return nil, nil, err
	}
	if idx.RawBytes > maxRaw {
		return nil, nil,
			fmt.Errorf("segment: %d bytes of lines, at most %d are allowed: %w", idx.RawBytes, maxRaw, ErrLimit)
	}
	skeleton, err := idx.Skeleton()
	if err != nil {
		return nil, nil, err
	}
	if err := skeleton.Verify(); err != nil {
		return nil, nil, err
	}
	for i := range idx.frames {
		f := &idx.frames[i]
		if err := idx.checkFrame(i, p[f.off:f.off+f.bytes]); err != nil {
			return nil, nil, err
		}
	}
	raw = make([]byte, 0, idx.RawBytes+decodeSlack)
	for i := range idx.frames {
		f := &idx.frames[i]
		if raw, err = idx.appendFrame(raw, i, p[f.off:f.off+f.bytes]); err != nil {
			return nil, nil, err
		}
	}
	return raw, idx, nil
}
