package operator

import (
	"bytes"
	"encoding/binary"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// cursor goes over a value from its first byte to its last, into what it is asked to go into, so that no byte
// is passed twice: a walk over members finds the end of each before it can be looked into. What it goes over
// is valid, for transcript.ParseLine has read it. Of anything else it returns nonsense, and ends.
type cursor struct {
	p    []byte
	i    int
	from int  // where the member begins whose key was given last
	same bool // its key is one that we would write as it is written, and no white space is between it and its value
}

// enter steps into an object or an array, as open says; false: the value is none.
func (c *cursor) enter(open byte) bool {
	c.i = rawjson.Space(c.p, c.i)
	if c.i < len(c.p) && c.p[c.i] == open {
		c.i++
		return true
	}
	return false
}

// more continues to the next member or element. false: there is none, and the cursor is after the bracket.
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
		all |= c.p[end] | (c.p[end] + 1) // the highest bit: not ASCII, or DEL
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
		c.i = rawjson.Space(c.p, c.i+1) // over the colon
	}
	if c.same = all < 0x80 && c.i == end+2; escaped {
		c.same = false
		return []byte(rawjson.Text(c.p[c.from:min(end+1, len(c.p))]))
	}
	return c.p[min(from, end):end]
}

// member appends the member whose key and value were given last, a comma in front.
func (c *cursor) member(dst, key, val []byte) []byte {
	if c.same {
		return append(append(dst, ','), c.p[c.from:c.i]...)
	}
	dst = append(rawjson.AppendString(append(dst, ','), string(key)), ':')
	return append(dst, val...)
}

// value returns a value, and passes it.
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

// stringBytes returns what is in a string, nothing if the value is none, and whether that is what the file has.
func stringBytes(val []byte) (s []byte, plain bool) {
	if !rawjson.IsString(val) {
		return nil, true
	}
	if isPlain(val) {
		return val[1 : len(val)-1], true
	}
	return []byte(rawjson.Text(val)), false
}

// isPlain reports a string that is written in one way only, as far as this module writes them: ASCII, nothing
// escaped.
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
	for ; i+8 <= len(val); i += 8 { // an image has megabytes
		all |= binary.LittleEndian.Uint64(val[i:])
	}
	for ; i < len(val); i++ {
		all |= uint64(val[i])
	}
	return all&highs == 0 && bytes.IndexByte(val, '\\') < 0 && bytes.IndexByte(val, 0x7f) < 0
}

// appendMember appends a member, a comma in front. The name needs no escape.
func appendMember(dst []byte, name string, val []byte) []byte {
	dst = append(append(append(dst, ',', '"'), name...), '"', ':')
	return append(dst, val...)
}

// appendText appends a string of which Text gave a piece, as JSON.
func appendText(dst, piece []byte, plain bool) []byte {
	if plain {
		return append(append(append(dst, '"'), piece...), '"')
	}
	return rawjson.AppendString(dst, string(piece))
}
