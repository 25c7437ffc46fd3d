package codec

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"
)

// formatError is the kind of a decoding error; every one wraps exactly one kind.
type formatError string

func (e formatError) Error() string { return string(e) }

// version is the version that every encoder of this package writes, and the newest that its decoders read. It applies
// to containers, skeletons and segment indexes together.
const version = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the CRC-32C (Castagnoli) of p.
func checksum(p []byte) uint32 { return crc32.Checksum(p, castagnoli) }

// updateChecksum returns the CRC-32C of the bytes with the checksum crc, followed by p.
func updateChecksum(crc uint32, p []byte) uint32 { return crc32.Update(crc, castagnoli, p) }

// appendChecksum appends the CRC-32C of dst[from:] to dst.
func appendChecksum(dst []byte, from int) []byte {
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[from:]))
}

// splitChecksum removes the CRC-32C from the end of p and verifies it over the bytes before.
func splitChecksum(what string, p []byte) ([]byte, error) {
	if len(p) < 4 {
		return nil, fmt.Errorf("%s of %d bytes is too short: %w", what, len(p), ErrFormat)
	}
	body := p[:len(p)-4]
	if want, got := binary.LittleEndian.Uint32(p[len(body):]), checksum(body); got != want {
		return nil, fmt.Errorf("%s: crc32c %08x instead of %08x: %w", what, got, want, ErrChecksum)
	}
	return body, nil
}

// checkVersion refuses a version that this program cannot read. It is called after the checksum was verified, so that a
// flipped bit is reported as damage and not as a newer format.
func checkVersion(what string, v uint16) error {
	switch {
	case v > version:
		return fmt.Errorf("%s is too new to read: written in format %d, this program reads up to %d: %w",
			what, v, version, ErrVersion)
	case v == 0:
		return fmt.Errorf("%s is too old to read: written in format 0, this program reads from 1: %w", what, ErrVersion)
	}
	return nil
}

// cursor reads the small fields of a header. The first failure is kept and every later read returns zero, so that a
// decoder checks Err once, before it uses anything.
type cursor struct {
	What string // what is read, for errors
	P    []byte // the remaining bytes
	Err  error
}

// Fail records the first failure, an ErrFormat.
func (c *cursor) Fail(format string, args ...any) {
	if c.Err == nil {
		c.Err = fmt.Errorf("%s: %s: %w", c.What, fmt.Sprintf(format, args...), ErrFormat)
		c.P = nil
	}
}

// Take returns the next n bytes as a view.
func (c *cursor) Take(n uint64) []byte {
	if n > uint64(len(c.P)) {
		c.Fail("a field of %d bytes where %d remain", n, len(c.P))
		return nil
	}
	b := c.P[:n:n]
	c.P = c.P[n:]
	return b
}

// U8 reads one byte.
func (c *cursor) U8() byte {
	if b := c.Take(1); b != nil {
		return b[0]
	}
	return 0
}

// U32 reads four bytes.
func (c *cursor) U32() uint32 {
	if b := c.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Uvarint reads a number of at most limit in its shortest form.
func (c *cursor) Uvarint(name string, limit uint64) uint64 {
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
