// Package rawjson reads JSON where it lies, and makes small objects of pieces of it: no allocation, no
// recursion, one pass, nothing decoded that no one asked for. What it calls valid is what encoding/json
// calls valid, up to MaxDepth levels (FuzzParseLine of package transcript holds the two together).
//
// A value is a []byte that holds one JSON value; nil is a value that is absent. Where a Field occurs twice
// the last one counts. Functions are safe for concurrent use.
package rawjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
)

// MaxDepth bounds the nesting of a line, the line's own object included (I15).
const MaxDepth = 512

var (
	errDepth = fmt.Errorf("nested deeper than %d levels", MaxDepth)
	errEnd   = errors.New("unexpected end")
)

// SyntaxError says what is at p[i], where something else should.
func SyntaxError(p []byte, i int) error {
	if i >= len(p) {
		return errEnd
	}
	return fmt.Errorf("offset %d: unexpected %q", i, p[i])
}

// Space skips white space.
func Space(p []byte, i int) int {
	for i < len(p) && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// StringEnd returns the end of the string whose opening quote is p[i], and whether it holds an escape.
// Eight bytes a step: in each of the three tests below the lowest marked byte is exact.
func StringEnd(p []byte, i int) (end int, escaped bool, err error) {
	i++
	for {
		for i+8 <= len(p) {
			w := binary.LittleEndian.Uint64(p[i:])
			quote, slash := w^(ones*'"'), w^(ones*'\\')
			m := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
			if m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		switch {
		case i >= len(p):
			return 0, false, errEnd
		case p[i] == '"':
			return i + 1, escaped, nil
		case p[i] < ' ':
			return 0, false, SyntaxError(p, i)
		case p[i] == '\\':
			escaped = true
			if i, err = escapeEnd(p, i); err != nil {
				return 0, false, err
			}
		default:
			i++
		}
	}
}

// escapeEnd returns the end of the escape sequence whose backslash is p[i].
func escapeEnd(p []byte, i int) (int, error) {
	if i+1 >= len(p) {
		return 0, errEnd
	}
	switch p[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2, nil
	case 'u':
		for j := i + 2; j < i+6; j++ {
			if j >= len(p) {
				return 0, errEnd
			}
			if _, ok := HexDigit(p[j]); !ok {
				return 0, SyntaxError(p, j)
			}
		}
		return i + 6, nil
	}
	return 0, SyntaxError(p, i+1)
}

// HexDigit returns the value of a hexadecimal digit.
func HexDigit(c byte) (rune, bool) {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0'), true
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}

// numberEnd returns the end of the number that starts at p[i].
func numberEnd(p []byte, i int) (int, error) {
	digits := func() bool {
		from := i
		for i < len(p) && '0' <= p[i] && p[i] <= '9' {
			i++
		}
		return i > from
	}
	if i < len(p) && p[i] == '-' {
		i++
	}
	if i < len(p) && p[i] == '0' {
		i++
	} else if !digits() {
		return 0, SyntaxError(p, i)
	}
	if i < len(p) && p[i] == '.' {
		if i++; !digits() {
			return 0, SyntaxError(p, i)
		}
	}
	if i < len(p) && (p[i] == 'e' || p[i] == 'E') {
		i++
		if i < len(p) && (p[i] == '+' || p[i] == '-') {
			i++
		}
		if !digits() {
			return 0, SyntaxError(p, i)
		}
	}
	return i, nil
}

// ScalarEnd returns the end of the string, number or literal that starts at p[i].
func ScalarEnd(p []byte, i int) (int, error) {
	literal := ""
	switch p[i] {
	case '"':
		end, _, err := StringEnd(p, i)
		return end, err
	case 't':
		literal = "true"
	case 'f':
		literal = "false"
	case 'n':
		literal = "null"
	default:
		return numberEnd(p, i)
	}
	if len(p)-i < len(literal) || string(p[i:i+len(literal)]) != literal {
		return 0, SyntaxError(p, i)
	}
	return i + len(literal), nil
}

// keyEnd returns the place after the colon of the member whose key starts at p[i], and the key's end.
func keyEnd(p []byte, i int) (value, end int, escaped bool, err error) {
	if i >= len(p) || p[i] != '"' {
		return 0, 0, false, SyntaxError(p, i)
	}
	if end, escaped, err = StringEnd(p, i); err != nil {
		return 0, 0, false, err
	}
	if value = Space(p, end); value >= len(p) || p[value] != ':' {
		return 0, 0, false, SyntaxError(p, value)
	}
	return value + 1, end, escaped, nil
}

// ValueEnd returns the end of the value that starts at p[i], which may be nested to the given depth. It
// keeps one bit a level (set = object) and does not recurse.
func ValueEnd(p []byte, i, depth int) (end int, err error) {
	var stack [MaxDepth / 64]uint64
	level := 0
	for {
		i = Space(p, i)
		if i >= len(p) {
			return 0, errEnd
		}
		if c := p[i]; c == '{' || c == '[' {
			if level >= depth {
				return 0, errDepth
			}
			word, bit := level>>6, uint64(1)<<(level&63)
			level++
			i = Space(p, i+1)
			if c == '{' {
				stack[word] |= bit
			} else {
				stack[word] &^= bit
			}
			if i >= len(p) || p[i] != c+2 { // '{'+2 is '}', '['+2 is ']'
				if c == '{' {
					if i, _, _, err = keyEnd(p, i); err != nil {
						return 0, err
					}
				}
				continue
			}
			i++
			level--
		} else if i, err = ScalarEnd(p, i); err != nil {
			return 0, err
		}
		if i, level, err = closeLevels(p, i, level, &stack); err != nil || level == 0 {
			return i, err
		}
	}
}

// closeLevels goes on after a complete value: over closing brackets, and over the comma (and key) before
// the next value. Level 0 = the outermost value is complete.
func closeLevels(p []byte, i, level int, stack *[MaxDepth / 64]uint64) (int, int, error) {
	for level > 0 {
		i = Space(p, i)
		if i >= len(p) {
			return 0, 0, errEnd
		}
		object := stack[(level-1)>>6]>>((level-1)&63)&1 == 1
		switch c := p[i]; {
		case c == ',' && object:
			next, _, _, err := keyEnd(p, Space(p, i+1))
			return next, level, err
		case c == ',':
			return i + 1, level, nil
		case c == '}' && object, c == ']' && !object:
			i++
			level--
		default:
			return 0, 0, SyntaxError(p, i)
		}
	}
	return i, 0, nil
}

// skipString returns the end of a string without a look at what is in it.
func skipString(p []byte, i int) (int, error) {
	for at := i + 1; ; {
		n := bytes.IndexByte(p[at:], '"')
		if n < 0 {
			return 0, errEnd
		}
		end := at + n
		slashes := end
		for slashes > at && p[slashes-1] == '\\' {
			slashes--
		}
		if at = end + 1; (end-slashes)&1 == 0 {
			return at, nil
		}
	}
}

// skipEnd is ValueEnd for what is known to be valid: several times as fast. Of anything else it returns some
// place after i, or an error.
func skipEnd(p []byte, i int) (end int, err error) {
	for level := 0; i < len(p); {
		switch p[i] {
		case '{', '[':
			level++
			i++
		case '}', ']':
			level--
			i++
		case '"':
			if i, err = skipString(p, i); err != nil {
				return 0, err
			}
		case ' ', '\n', '\r', '\t', ',', ':':
			i++
			continue
		default:
			for i++; i < len(p) && p[i] > ' ' && p[i] != ',' && p[i] != ']' && p[i] != '}'; i++ {
			}
		}
		if level <= 0 {
			return i, nil
		}
	}
	return 0, errEnd
}
