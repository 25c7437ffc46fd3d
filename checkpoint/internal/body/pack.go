package body

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/codec"
)

// Cut truncates s to at most limit bytes, on a rune boundary and with a mark. limit is at least 3.
func Cut(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(mark)
	for i := 0; i < utf8.UTFMax-1 && end > 0 && !utf8.RuneStart(s[end]); i++ {
		end--
	}
	return s[:end] + mark
}

// Split cuts data into parts of the given sizes. It returns false unless these add up to len(data). The parts share the
// memory of data.
func Split(data []byte, sizes []uint32) ([][]byte, bool) {
	if len(sizes) == 0 {
		return nil, len(data) == 0
	}
	parts := make([][]byte, len(sizes))
	for i, n := range sizes {
		if uint64(n) > uint64(len(data)) {
			return nil, false
		}
		parts[i], data = data[:n:n], data[n:]
	}
	return parts, len(data) == 0
}

// Sums returns the ordinals whose differences to their predecessors are diffs; the first one is its own difference.
func Sums(diffs []int64) []uint64 {
	if len(diffs) == 0 {
		return nil
	}
	out := make([]uint64, len(diffs))
	var last uint64
	for i, d := range diffs {
		last += uint64(d)
		out[i] = last
	}
	return out
}

// Unlist decodes a list that is a separate msgpack value, after its header has shown that it has at most limit
// elements. what names it in errors.
func Unlist[T any](what string, p []byte, limit int) (list []T, err error) {
	n := -1
	switch {
	case len(p) == 1 && p[0] == 0xc0: // nil
		return nil, nil
	case len(p) > 0 && p[0]&0xf0 == 0x90:
		n = int(p[0] & 0x0f)
	case len(p) > 2 && p[0] == 0xdc:
		n = int(binary.BigEndian.Uint16(p[1:]))
	case len(p) > 4 && p[0] == 0xdd:
		n = int(binary.BigEndian.Uint32(p[1:]))
	}
	if n < 0 {
		return nil, canon.Malformed("%s: not a list", what)
	}
	if err := canon.AtMost(what, n, limit); err != nil {
		return nil, err
	}
	if err := codec.Unmarshal(p, &list); err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %w", what, err)
	}
	return list, nil
}
