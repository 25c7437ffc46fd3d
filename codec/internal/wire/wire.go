// Package wire holds what all formats of codec share: their errors, checksums, format version, and
// a reader of small header fields that cannot run past its bytes.
package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
)

// Error is the kind of a decoding error; every one wraps exactly one kind.
type Error string

func (e Error) Error() string { return string(e) }

// The kinds, as package codec documents them.
const (
	ErrFormat   Error = "malformed data"
	ErrChecksum Error = "checksum does not match"
	ErrLimit    Error = "over the limit"
	ErrVersion  Error = "unsupported format version"
)

// Version is the version that every encoder of this package writes, and the newest that its
// decoders read. It counts for containers, skeletons and segment indexes together.
const Version = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// CRC returns the CRC-32C (Castagnoli) of p.
func CRC(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

// UpdateCRC returns the CRC-32C of the bytes that gave crc, followed by p.
func UpdateCRC(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }

// AppendCRC appends the CRC-32C of dst[from:] to dst.
func AppendCRC(dst []byte, from int) []byte {
	return binary.LittleEndian.AppendUint32(dst, CRC(dst[from:]))
}

// SplitCRC takes the CRC-32C off the end of p and verifies it over all that stands before.
func SplitCRC(what string, p []byte) ([]byte, error) {
	if len(p) < 4 {
		return nil, fmt.Errorf("%s of %d bytes is too short: %w", what, len(p), ErrFormat)
	}
	body := p[:len(p)-4]
	if want, got := binary.LittleEndian.Uint32(p[len(body):]), CRC(body); got != want {
		return nil, fmt.Errorf("%s: crc32c %08x instead of %08x: %w", what, got, want, ErrChecksum)
	}
	return body, nil
}

// CheckVersion refuses what this program cannot read. It is called after the checksum has
// verified, so that a flipped bit is reported as damage and not as a newer format.
func CheckVersion(what string, v uint16) error {
	switch {
	case v > Version:
		return fmt.Errorf("%s is too new to read: written in format %d, this program reads up to %d: %w",
			what, v, Version, ErrVersion)
	case v == 0:
		return fmt.Errorf("%s is too old to read: written in format 0, this program reads from 1: %w", what, ErrVersion)
	}
	return nil
}

// Cursor reads the small fields of a header. The first failure sticks and every later read gives
// zero, so that a decoder checks Err once, before it uses anything.
type Cursor struct {
	What string // what is read, for errors
	P    []byte // what is left
	Err  error
}

// Fail records the first failure, an ErrFormat.
func (c *Cursor) Fail(format string, args ...any) {
	if c.Err == nil {
		c.Err = fmt.Errorf("%s: %s: %w", c.What, fmt.Sprintf(format, args...), ErrFormat)
		c.P = nil
	}
}

// Take returns the next n bytes as a view.
func (c *Cursor) Take(n uint64) []byte {
	if n > uint64(len(c.P)) {
		c.Fail("a field of %d bytes where %d remain", n, len(c.P))
		return nil
	}
	b := c.P[:n:n]
	c.P = c.P[n:]
	return b
}

// U8 reads one byte.
func (c *Cursor) U8() byte {
	if b := c.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// U32 reads four bytes.
func (c *Cursor) U32() uint32 {
	if b := c.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Uvarint reads a number of at most limit in its shortest form.
func (c *Cursor) Uvarint(name string, limit uint64) uint64 {
	v, n := binary.Uvarint(c.P)
	switch {
	case n <= 0:
		c.Fail("%s: unreadable number", name)
		return 0
	case n != uvarintLen(v):
		c.Fail("%s: number not in its shortest form", name)
		return 0
	case v > limit:
		if c.Err == nil {
			c.Err = fmt.Errorf("%s: %s is %d, at most %d can be: %w", c.What, name, v, limit, ErrLimit)
			c.P = nil
		}
		return 0
	}
	c.P = c.P[n:]
	return v
}

// uvarintLen is the number of bytes of v as a uvarint.
func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
