package codec

import (
	"encoding/binary"
	"math"
)

// column is one number for each row, stored as the difference from the smallest of them in as few bytes as the largest
// difference needs. The bytes are in planes, all lowest ones first, then all second ones: so the high planes, which
// hardly change, compress to nothing, and any row is read in place, without decoding the others.
type column struct {
	base  uint64
	width int    // planes, 0 to 8; 0 = every row is base
	n     int    // rows
	data  []byte // width planes of n bytes
}

// at returns the number of row i.
func (c *column) at(i int) uint64 {
	switch c.width {
	case 0:
		return c.base
	case 1:
		return c.base + uint64(c.data[i])
	case 2:
		return c.base + uint64(c.data[i]) + uint64(c.data[c.n+i])<<8
	}
	var v uint64
	for at, shift := i, 0; at < len(c.data); at, shift = at+c.n, shift+8 {
		v |= uint64(c.data[at]) << shift
	}
	return c.base + v
}

// limit returns a number that no row exceeds, without reading the rows; the largest number if a row may wrap around.
func (c *column) limit() uint64 {
	if c.n == 0 {
		return 0
	}
	span := uint64(math.MaxUint64)
	if c.width < 8 {
		span = 1<<(8*c.width) - 1
	}
	if c.base > math.MaxUint64-span {
		return math.MaxUint64
	}
	return c.base + span
}

// appendSpec appends what precedes the data: width and base.
func (c *column) appendSpec(dst []byte) []byte {
	return binary.AppendUvarint(append(dst, byte(c.width)), c.base)
}

// readSpec reads the output of appendSpec.
func (c *column) readSpec(r *cursor, n int) {
	c.n = n
	c.width = int(r.U8())
	if c.width > 8 {
		r.Fail("a column of %d bytes a row", c.width)
	}
	c.base = r.Uvarint("column base", math.MaxUint64)
}

// size is the number of bytes of the data.
func (c *column) size() uint64 { return uint64(c.width) * uint64(c.n) }

// makeColumn builds the column of n values.
func makeColumn(n int, value func(int) uint64) column {
	if n == 0 {
		return column{}
	}
	low, high := value(0), value(0)
	for i := 1; i < n; i++ {
		v := value(i)
		low, high = min(low, v), max(high, v)
	}
	c := column{base: low, n: n}
	for span := high - low; span > 0; span >>= 8 {
		c.width++
	}
	c.data = make([]byte, c.size())
	for i := range n {
		v := value(i) - low
		for plane := range c.width {
			c.data[plane*n+i] = byte(v >> (8 * plane))
		}
	}
	return c
}

// zigzag maps small numbers of either sign to small unsigned ones.
func zigzag(v int64) uint64 { return uint64(v)<<1 ^ uint64(v>>63) }

func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }
