package operator

import (
	"bytes"
	"encoding/binary"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// cursor reads a value from its first byte to its last, and enters nested values on request, so that no byte is read
// twice. (A walk over members has to find the end of each before it can look inside.) The input must be valid, as
// transcript.ParseLine checks. For other input the results are undefined, but finite.
type cursor struct {
	p    []byte
	i    int
	from int  // start of the member whose key was returned last
	same bool // the key is in canonical form, and no white space is between it and its value
}

// enter steps into an object or an array, as open requires, or returns false.
func (c *cursor) enter(open byte) bool {
	c.i = rawjson.Space(c.p, c.i)
	if c.i < len(c.p) && c.p[c.i] == open {
		c.i++
		return true
	}
	return false
}

// more moves to the next member or element. At the end it returns false, and the cursor is after the bracket.
func (c *cursor) more() bool {
	i := rawjson.Space(c.p, c.i)
	if i < len(c.p) && c.p[i] == ',' {
		i = rawjson.Space(c.p, i+1)
	}
	if i >= len(c.p) || c.p[i] == '}' || c.p[i] == ']' {
		c.i = min(i+1, len(c.p))
		return false
	}
	c.i = i
	return true
}

// key returns the name of a member, unquoted, and stops at its value.
func (c *cursor) key() []byte {
	from, all := c.i+1, byte(0)
	end := from
	for end < len(c.p) && c.p[end] != '"' && c.p[end] != '\\' {
		all |= c.p[end] | (c.p[end] + 1) // highest bit: not ASCII, or DEL
		end++
	}
	escaped := end < len(c.p) && c.p[end] == '\\'
	if escaped {
		after, err := rawjson.SkipString(c.p, c.i)
		if err != nil {
			after = len(c.p)
		}
		end = after - 1
	}
	c.from = c.i
	if c.i = rawjson.Space(c.p, end+1); c.i < len(c.p) {
		c.i = rawjson.Space(c.p, c.i+1) // after the colon
	}
	if c.same = all < 0x80 && c.i == end+2; escaped {
		c.same = false
		return []byte(rawjson.Text(c.p[c.from:min(end+1, len(c.p))]))
	}
	return c.p[min(from, end):end]
}

// member appends the member whose key and value were returned last, with a leading comma.
func (c *cursor) member(dst, key, val []byte) []byte {
	if c.same {
		return append(append(dst, ','), c.p[c.from:c.i]...)
	}
	dst = append(rawjson.AppendString(append(dst, ','), string(key)), ':')
	return append(dst, val...)
}

// value returns a value and moves past it.
func (c *cursor) value() []byte {
	from := c.i
	if from >= len(c.p) {
		return []byte("null")
	}
	end, err := rawjson.SkipEnd(c.p, from)
	if err != nil {
		end = len(c.p)
	}
	c.i = end
	return c.p[from:end]
}

// stringBytes returns the content of a string, nothing for other values, and whether it is a slice of the file.
func stringBytes(val []byte) (s []byte, plain bool) {
	if !rawjson.IsString(val) {
		return nil, true
	}
	if isPlain(val) {
		return val[1 : len(val)-1], true
	}
	return []byte(rawjson.Text(val)), false
}

// isPlain reports whether a string has only one form in the output of this module: ASCII without escapes.
func isPlain(val []byte) bool {
	const short, highs = 64, 0x8080808080808080
	if len(val) <= short {
		for _, c := range val {
			if c >= 0x7f || c == '\\' {
				return false
			}
		}
		return true
	}
	all, i := uint64(0), 0
	for ; i+8 <= len(val); i += 8 { // 8 bytes at a time: an image has megabytes
		all |= binary.LittleEndian.Uint64(val[i:])
	}
	for ; i < len(val); i++ {
		all |= uint64(val[i])
	}
	return all&highs == 0 && bytes.IndexByte(val, '\\') < 0 && bytes.IndexByte(val, 0x7f) < 0
}

// appendMember appends a member with a leading comma. The name needs no escape.
func appendMember(dst []byte, name string, val []byte) []byte {
	dst = append(append(append(dst, ',', '"'), name...), '"', ':')
	return append(dst, val...)
}

// appendText appends a piece of a string's content as JSON.
func appendText(dst, piece []byte, plain bool) []byte {
	if plain {
		return append(append(append(dst, '"'), piece...), '"')
	}
	return rawjson.AppendString(dst, string(piece))
}
