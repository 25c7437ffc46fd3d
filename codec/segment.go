package codec

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// SegmentSpec is the content of a sealed segment.
type SegmentSpec struct {
	Raw      []byte // whole lines, each ended by a line feed
	Prelude  int    // lines at the start that are not entries: session header, segment line
	First    uint64 // ordinal of the first entry
	FirstSeq uint64 // seq of the first commit in or after this segment
	Rows     []Row  // one for every line after the prelude
}

const (
	// frameTarget is the maximum of raw bytes of a frame; a line that is longer has a frame of its own.
	frameTarget = 128 << 10
	// segmentMagic ends every sealed segment; skippableMagic starts the zstd frame of its index, which other readers of
	// zstd skip.
	segmentMagic   = "\x89cpseg\r\n"
	skippableMagic = 0x184D2A5C
	segmentFooter  = 2 + 2 + 4 + 4 + 8
	// maxIndex bounds the index of one segment.
	maxIndex = 64 << 20
)

// frame is one entry of the seek table.
type frame struct {
	off, bytes int64 // position of the compressed frame in the object
	raw        int64
	line       int // its first line, counted from 0 with the prelude
	lines      int
	crc        uint32 // of the compressed bytes
}

// EncodeSegment seals lines: zstd frames of whole lines, at most 128 KiB raw unless a single line
// is longer, and then a skippable frame with seek table, skeleton and checksums, so that zstdcat
// prints exactly the lines, one suffix read returns the index, and one range read returns an entry.
// Lines that do not match the rows are ErrFormat. Equal specs produce equal bytes.
func EncodeSegment(spec SegmentSpec) ([]byte, error) {
	lines := bytes.Count(spec.Raw, []byte{'\n'})
	switch {
	case len(spec.Raw) == 0 || spec.Raw[len(spec.Raw)-1] != '\n':
		return nil, fmt.Errorf("encode segment: %d bytes are not whole lines: %w", len(spec.Raw), ErrFormat)
	case spec.Prelude < 0 || lines != spec.Prelude+len(spec.Rows):
		return nil, fmt.Errorf("encode segment: %d lines for %d rows and a prelude of %d: %w", lines, len(spec.Rows),
			spec.Prelude, ErrFormat)
	}
	skeleton, err := EncodeSkeleton(spec.First, spec.Rows)
	if err != nil {
		return nil, fmt.Errorf("encode segment: %w", err)
	}
	p := make([]byte, 0, len(spec.Raw)/3+len(skeleton))
	var frames []frame
	for rest := spec.Raw; len(rest) > 0; {
		n := frameLen(rest)
		if n > maxFrame {
			return nil,
				fmt.Errorf("encode segment: line of %d bytes, at most %d are allowed: %w", n, maxFrame, ErrLimit)
		}
		start := len(p)
		p = Compress(p, rest[:n], Default)
		frames = append(frames, frame{
			bytes: int64(len(p) - start), raw: int64(n),
			lines: bytes.Count(rest[:n], []byte{'\n'}), crc: CRC(p[start:]),
		})
		rest = rest[n:]
	}
	return appendSegmentIndex(p, spec, frames, skeleton)
}

// frameLen returns the length of the next frame at the start of p, which is whole lines: as many lines as fit the
// target, at least one.
func frameLen(p []byte) int {
	if len(p) <= frameTarget {
		return len(p)
	}
	if end := bytes.LastIndexByte(p[:frameTarget], '\n'); end >= 0 {
		return end + 1
	}
	return bytes.IndexByte(p, '\n') + 1
}

// appendSegmentIndex appends the skippable frame that ends a sealed segment.
func appendSegmentIndex(p []byte, spec SegmentSpec, frames []frame, skeleton []byte) ([]byte, error) {
	start := len(p)
	p = binary.LittleEndian.AppendUint32(p, skippableMagic)
	p = binary.LittleEndian.AppendUint32(p, 0) // its size, set below
	for _, n := range []uint64{
		spec.First, uint64(len(spec.Rows)), spec.FirstSeq, uint64(spec.Prelude),
		uint64(len(frames)), uint64(len(skeleton)),
	} {
		p = binary.AppendUvarint(p, n)
	}
	for i := range frames {
		f := &frames[i]
		for _, n := range []int64{f.bytes, f.raw, int64(f.lines)} {
			p = binary.AppendUvarint(p, uint64(n))
		}
		p = binary.LittleEndian.AppendUint32(p, f.crc)
	}
	p = append(p, skeleton...)
	size := len(p) - start + segmentFooter
	if size > maxIndex {
		return nil,
			fmt.Errorf("encode segment: index of %d bytes, at most %d are allowed: %w", size, maxIndex, ErrLimit)
	}
	binary.LittleEndian.PutUint32(p[start+4:], uint32(size-8))
	p = binary.LittleEndian.AppendUint16(p, version)
	p = binary.LittleEndian.AppendUint16(p, 0)
	p = binary.LittleEndian.AppendUint32(p, uint32(size))
	p = appendChecksum(p, start)
	return append(p, segmentMagic...), nil
}
