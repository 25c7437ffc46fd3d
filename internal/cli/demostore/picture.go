package demostore

import (
	"encoding/binary"
	"hash/adler32"
	"hash/crc32"
	"math"
)

// The size of the picture in pixels. It is stored without compression, 60 KB: over the 32 KiB up to which an image
// stays in its entry, and the same bytes with every release of Go.
const (
	pictureWidth  = 480
	pictureHeight = 120
)

// height returns the tide at Saint-Malo, in metres, some hours after midnight of 20 March 2026: high at 07:31.
func height(hours float64) float64 {
	const mean, m2, n2 = 6.79, 5.1, 0.35
	wave := func(speed float64) float64 { return math.Cos(speed * (hours - 7.52) * math.Pi / 180) }
	return mean + m2*wave(28.984) + n2*wave(28.44)
}

// The colours of the picture, by the value of its bytes.
const (
	paper = iota
	grid
	sea
	deep
	edge
)

// palette are the colours in red, green and blue.
var palette = []byte{
	paper * 3: 0xfb, 0xfa, 0xf6, grid * 3: 0xdd, 0xdd, 0xd6, sea * 3: 0x8f, 0xc1, 0xdc,
	deep * 3: 0x5e, 0x9d, 0xc4, edge * 3: 0x1b, 0x4f, 0x72,
}

// tidePNG draws the tide of a day. Package image/png would add 130 KB to the command.
func tidePNG() []byte {
	header := binary.BigEndian.AppendUint32(nil, pictureWidth)
	header = binary.BigEndian.AppendUint32(header, pictureHeight)
	header = append(header, 8, 3, 0, 0, 0) // 8 bits a pixel, of a palette

	p := append([]byte(nil), "\x89PNG\r\n\x1a\n"...)
	p = appendChunk(p, "IHDR", header)
	p = appendChunk(p, "PLTE", palette)
	p = appendChunk(p, "IDAT", stored(pixels()))
	return appendChunk(p, "IEND", nil)
}

// pixels returns the rows of the picture, each with the number of its filter, 0, before it.
func pixels() []byte {
	row := func(metres float64) int { return pictureHeight - 1 - int(metres*pictureHeight/14) }
	p := make([]byte, 0, (1+pictureWidth)*pictureHeight)
	for y := range pictureHeight {
		p = append(p, 0)
		for x := range pictureWidth {
			top := row(height(float64(x) * 24 / pictureWidth))
			next := row(height(float64(x+1) * 24 / pictureWidth))
			c := byte(paper)
			switch {
			case y >= min(top, next)-1 && y <= max(top, next)+1:
				c = edge
			case y > row(2) && y > top:
				c = deep
			case y > top:
				c = sea
			case x%(pictureWidth/8) == 0 || y%(pictureHeight/4) == 0:
				c = grid
			}
			p = append(p, c)
		}
	}
	return p
}

// stored returns data as a zlib stream of one stored block: at most 65,535 bytes.
func stored(data []byte) []byte {
	n := uint16(len(data)) // fits: 57,720
	p := append([]byte(nil), 0x78, 0x01, 0x01)
	p = binary.LittleEndian.AppendUint16(p, n)
	p = binary.LittleEndian.AppendUint16(p, ^n)
	return binary.BigEndian.AppendUint32(append(p, data...), adler32.Checksum(data))
}

// appendChunk appends a chunk of a PNG file.
func appendChunk(p []byte, kind string, data []byte) []byte {
	p = binary.BigEndian.AppendUint32(p, uint32(len(data)))
	from := len(p)
	p = append(append(p, kind...), data...)
	return binary.BigEndian.AppendUint32(p, crc32.ChecksumIEEE(p[from:]))
}
