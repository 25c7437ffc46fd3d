package repair

import (
	"bytes"

	"github.com/coppice-go/coppice/codec"
)

// zstdMagic starts every frame of a sealed segment.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// frameMax bounds the lines of one frame: a line of 64 MiB has one of its own.
const frameMax = 64 << 20

// lines reads what can be read of a damaged sealed segment. A damaged frame becomes as many empty lines as it has by
// the index, or one, if the index is damaged too.
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
		n := frameSize(p)
		raw, err := codec.Decompress(nil, p[:n], frameMax)
		if n == 0 || err != nil {
			raw, n = []byte{'\n'}, len(zstdMagic)
		}
		out, p = append(out, raw...), p[n:]
	}
	return out
}

// frameSize is the length of the zstd frame at the start of p, by the headers of its blocks (RFC 8878); 0 = they do not
// make a frame.
func frameSize(p []byte) int {
	if len(p) < len(zstdMagic)+1 {
		return 0
	}
	head := p[len(zstdMagic)]
	single, checksum := head>>5&1, head>>2&1
	at := len(zstdMagic) + 1 + 1 - int(single) + []int{0, 1, 2, 4}[head&3] + []int{int(single), 2, 4, 8}[head>>6]
	for {
		if at+3 > len(p) {
			return 0
		}
		block := int(p[at]) | int(p[at+1])<<8 | int(p[at+2])<<16
		size := block >> 3
		if block>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		at += 3 + size
		if block&1 != 0 {
			break
		}
	}
	if at += 4 * int(checksum); at > len(p) {
		return 0
	}
	return at
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
