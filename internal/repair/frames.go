package repair

import (
	"bytes"

	"github.com/coppice-go/coppice/codec"
)

// zstdMagic starts every frame of a sealed segment.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// frameMax bounds the lines of one frame: a line of 64 MiB has one of its own.
const frameMax = 64 << 20

// lines reads what can be read of a damaged sealed segment. A frame that is damaged counts as so many
// empty lines as the index says that it had, or as one, where the index is damaged as well.
func lines(p []byte) []byte {
	if idx, _, err := codec.DecodeSegmentIndex(p, int64(len(p))); err == nil && idx != nil {
		return byIndex(p, idx)
	}
	var out []byte
	for len(p) > 0 {
		at := bytes.Index(p, zstdMagic)
		if at < 0 {
			return out
		}
		p = p[at:]
		n := 0
		for end := len(zstdMagic); n == 0; {
			next := bytes.Index(p[end:], zstdMagic)
			stop := len(p)
			if next >= 0 {
				stop = end + next
			}
			if raw, size := frame(p[:stop]); size > 0 {
				out, n = append(out, raw...), size
			} else if next < 0 {
				break
			}
			end = stop + len(zstdMagic)
		}
		if n == 0 {
			out, n = append(out, '\n'), len(zstdMagic)
		}
		p = p[n:]
	}
	return out
}

// skippable starts the index of a sealed segment.
var skippable = []byte{0x5c, 0x2a, 0x4d, 0x18}

// frame decodes the frame at the start of p, which may be followed by the index.
func frame(p []byte) (raw []byte, size int) {
	if raw, err := codec.Decompress(nil, p, frameMax); err == nil {
		return raw, len(p)
	}
	for end := 0; ; {
		i := bytes.Index(p[end:], skippable)
		if i < 0 {
			return nil, 0
		}
		end += i
		if raw, err := codec.Decompress(nil, p[:end], frameMax); err == nil {
			return raw, end
		}
		end += len(skippable)
	}
}

// byIndex reads the frames that the index names.
func byIndex(p []byte, idx *codec.SegmentIndex) []byte {
	var out []byte
	line := 0
	for i := range idx.Frames() {
		off, n := idx.FrameRange(i)
		if off < 0 || off+n > int64(len(p)) {
			continue
		}
		raw, first, err := idx.DecodeFrame(i, p[off:off+n])
		if err != nil {
			continue
		}
		for ; line < first; line++ {
			out = append(out, '\n')
		}
		out = append(out, raw...)
		line += bytes.Count(raw, []byte{'\n'})
	}
	for ; line < idx.Prelude+idx.Count; line++ {
		out = append(out, '\n')
	}
	return out
}
