package codec

import (
	"encoding/binary"
	"fmt"
)

// Limits of one msgpack value. The library behind Unmarshal allocates by declared counts and recurses by depth, so a
// few hostile bytes would end the process; these limits are checked first.
const (
	maxDepth    = 64      // nested arrays and maps
	maxElements = 1 << 20 // elements declared in the whole value; a map's pair counts as two
)

// scan walks the structure of the one value that p has to be. It allocates nothing.
func scan(p []byte) error {
	var left [maxDepth]uint64 // remaining elements at each open level
	depth, elements := 0, uint64(0)
	for off := 0; ; {
		if off >= len(p) {
			return fmt.Errorf("cut off after %d bytes: %w", off, ErrFormat)
		}
		n, children, err := token(p[off:])
		if err != nil {
			return fmt.Errorf("at byte %d: %w", off, err)
		}
		off += n
		if children > 0 {
			if children > uint64(len(p)-off) {
				return fmt.Errorf("at byte %d: %d elements where %d bytes remain: %w", off, children, len(p)-off,
					ErrFormat)
			}
			if elements += children; elements > maxElements {
				return fmt.Errorf("at byte %d: %d elements, at most %d are allowed: %w", off, elements, maxElements,
					ErrLimit)
			}
			if depth == maxDepth {
				return fmt.Errorf("at byte %d: nested over %d deep: %w", off, maxDepth, ErrLimit)
			}
			left[depth] = children
			depth++
			continue
		}
		for depth > 0 {
			left[depth-1]--
			if left[depth-1] > 0 {
				break
			}
			depth--
		}
		if depth == 0 {
			if off != len(p) {
				return fmt.Errorf("%d bytes after the value: %w", len(p)-off, ErrFormat)
			}
			return nil
		}
	}
}

// token reads the code at the start of p: its length with payload, and the number of values that follow as its
// elements. p is not empty.
func token(p []byte) (n int, children uint64, err error) {
	c := p[0]
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3: // small integers, nil, false, true
		return 1, 0, nil
	case c <= 0x8f: // map of up to 15 pairs
		return 1, 2 * uint64(c&0x0f), nil
	case c <= 0x9f: // array of up to 15 elements
		return 1, uint64(c & 0x0f), nil
	case c <= 0xbf: // string of up to 31 bytes
		return payload(p, 1, uint64(c&0x1f))
	case c == 0xcc, c == 0xd0:
		return payload(p, 1, 1)
	case c == 0xcd, c == 0xd1:
		return payload(p, 1, 2)
	case c == 0xce, c == 0xd2, c == 0xca:
		return payload(p, 1, 4)
	case c == 0xcf, c == 0xd3, c == 0xcb:
		return payload(p, 1, 8)
	}
	var width int
	switch c {
	case 0xc4, 0xd9: // bin, str
		width = 1
	case 0xc5, 0xda, 0xdc, 0xde: // and array, map
		width = 2
	case 0xc6, 0xdb, 0xdd, 0xdf:
		width = 4
	case 0xc1:
		return 0, 0, fmt.Errorf("code c1, which is never used: %w", ErrFormat)
	default:
		return 0, 0, fmt.Errorf("code %02x, an ext type: %w", c, ErrFormat)
	}
	if len(p) < 1+width {
		return 0, 0, fmt.Errorf("cut off in a length: %w", ErrFormat)
	}
	var b [4]byte
	copy(b[4-width:], p[1:1+width])
	size := uint64(binary.BigEndian.Uint32(b[:]))
	switch c {
	case 0xdc, 0xdd:
		return 1 + width, size, nil
	case 0xde, 0xdf:
		return 1 + width, 2 * size, nil
	}
	return payload(p, 1+width, size)
}

// payload checks that size bytes follow a head of n bytes.
func payload(p []byte, n int, size uint64) (int, uint64, error) {
	if size > uint64(len(p)-n) {
		return 0, 0, fmt.Errorf("%d bytes where %d remain: %w", size, len(p)-n, ErrFormat)
	}
	return n + int(size), 0, nil
}
