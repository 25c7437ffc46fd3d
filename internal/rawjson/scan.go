// Package rawjson reads JSON in place, and builds small objects: without allocation and recursion, in one pass,
// decoding only what is requested. Its notion of valid is that of encoding/json, up to MaxDepth levels (FuzzParseLine
// of package transcript compares the two).
//
// A value is a []byte with one JSON value; nil is an absent value. If a field occurs twice the last one counts.
// Functions are safe for concurrent use.
package rawjson

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// MaxDepth bounds the nesting of a line, the line's own object included (I15).
const MaxDepth = 512

// maxLevels bounds the depth argument of Scan: a document around JSON of MaxDepth levels has a few more.
const maxLevels = MaxDepth + 64

// ErrDepth is the error for a value that is nested too deeply.
var ErrDepth = fmt.Errorf("nested deeper than %d levels", MaxDepth)

var errEnd = errors.New("unexpected end")

// SyntaxError describes the unexpected byte at p[i].
func SyntaxError(p []byte, i int) error {
	if i >= len(p) {
		return errEnd
	}
	return fmt.Errorf("offset %d: unexpected %q", i, p[i])
}

// The scanners below return the end of the scanned part. A negative result is the complement of the index of invalid
// JSON, or tooDeep: errors are made once, by the exported functions, which keeps the scanners fast.
const tooDeep = math.MinInt

func errorAt(p []byte, end int) error {
	if end == tooDeep {
		return ErrDepth
	}
	return SyntaxError(p, ^end)
}

// Space skips white space.
func Space(p []byte, i int) int {
	for i < len(p) && p[i] <= ' ' && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// StringEnd returns the end of the string whose opening quote is p[i], and whether it contains an escape.
func StringEnd(p []byte, i int) (end int, escaped bool, err error) {
	if end, escaped = stringEnd(p, i); end < 0 {
		return 0, false, errorAt(p, end)
	}
	return end, escaped, nil
}

// stringEnd tests eight bytes a step: in each of the three tests below the lowest marked byte is exact.
func stringEnd(p []byte, i int) (end int, escaped bool) {
	for i++; i < len(p); {
		if i+8 <= len(p) {
			w := binary.LittleEndian.Uint64(p[i:])
			quote, slash := w^(ones*'"'), w^(ones*'\\')
			m := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*' ')&^w) & highs
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		switch c := p[i]; {
		case c == '"':
			return i + 1, escaped
		case c == '\\':
			escaped = true
			if i+1 < len(p) && shortEscapes[p[i+1]] {
				i += 2
			} else if i = unicodeEnd(p, i); i < 0 {
				return i, false
			}
		case c < ' ':
			return ^i, false
		default:
			i++
		}
	}
	return ^len(p), false
}

// shortEscapes are the characters that may follow a backslash, except u.
var shortEscapes = [256]bool{
	'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true,
}

// unicodeEnd returns the end of the escape sequence \uXXXX whose backslash is p[i].
func unicodeEnd(p []byte, i int) int {
	if i++; i >= len(p) || p[i] != 'u' {
		return ^i
	}
	for range 4 {
		if i++; i >= len(p) {
			return ^i
		}
		if _, ok := HexDigit(p[i]); !ok {
			return ^i
		}
	}
	return i + 1
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
func numberEnd(p []byte, i int) int {
	if p[i] == '-' {
		i++
	}
	from := i
	if i = digitsEnd(p, i); i == from {
		return ^i
	}
	if p[from] == '0' {
		i = from + 1 // digits after a leading zero do not belong to the number
	}
	if i < len(p) && p[i] == '.' {
		from = i + 1
		if i = digitsEnd(p, from); i == from {
			return ^i
		}
	}
	if i < len(p) && (p[i] == 'e' || p[i] == 'E') {
		if i++; i < len(p) && (p[i] == '+' || p[i] == '-') {
			i++
		}
		from = i
		if i = digitsEnd(p, from); i == from {
			return ^i
		}
	}
	return i
}

func digitsEnd(p []byte, i int) int {
	for i < len(p) && '0' <= p[i] && p[i] <= '9' {
		i++
	}
	return i
}

// ScalarEnd returns the end of the string, number or literal that starts at p[i].
func ScalarEnd(p []byte, i int) (int, error) {
	end := scalarEnd(p, i)
	if end < 0 {
		return 0, errorAt(p, end)
	}
	return end, nil
}

func scalarEnd(p []byte, i int) int {
	switch p[i] {
	case '"':
		end, _ := stringEnd(p, i)
		return end
	case 't':
		return literalEnd(p, i, "true")
	case 'f':
		return literalEnd(p, i, "false")
	case 'n':
		return literalEnd(p, i, "null")
	}
	return numberEnd(p, i)
}

func literalEnd(p []byte, i int, literal string) int {
	if end := i + len(literal); end <= len(p) && string(p[i:end]) == literal {
		return end
	}
	return ^i
}

// keyEnd returns the index after the colon of the member whose key starts at p[i], and the amount of white space before
// the colon.
func keyEnd(p []byte, i int) (value, spaces int) {
	if i >= len(p) || p[i] != '"' {
		return ^i, 0
	}
	end, _ := stringEnd(p, i)
	if end < 0 {
		return end, 0
	}
	if value = Space(p, end); value >= len(p) || p[value] != ':' {
		return ^value, 0
	}
	return value + 1, value - end
}

// ValueEnd returns the end of the value that starts at p[i], after white space. It may be nested to the given depth.
func ValueEnd(p []byte, i, depth int) (end int, err error) {
	end, _, err = Scan(p, i, depth)
	return end, err
}

// Scan is ValueEnd, and reports whether there is no white space in the value or before it. depth is at most a few
// levels over MaxDepth. It checks the whole grammar, and does not recurse: bytes that may be hostile pass it before any
// library that recurses (I15). Like encoding/json it accepts invalid UTF-8 in strings.
func Scan(p []byte, i, depth int) (end int, compact bool, err error) {
	end, spaces := scan(p, i, min(depth, maxLevels))
	if end < 0 {
		return 0, false, errorAt(p, end)
	}
	return end, spaces == 0, nil
}

// scan keeps one bit for each level: set = object.
func scan(p []byte, i, depth int) (end, spaces int) {
	var outer [maxLevels / 64]uint64 // of the levels around that of p[i]
	level, object := 0, false
	for {
		from := i
		i = Space(p, i)
		spaces += i - from
		if i >= len(p) {
			return ^i, 0
		}
		if c := p[i]; c != '{' && c != '[' {
			if i = scalarEnd(p, i); i < 0 {
				return i, 0
			}
		} else {
			if level >= depth {
				return tooDeep, 0
			}
			bit := uint64(1) << (level & 63)
			if outer[level>>6] &^= bit; object {
				outer[level>>6] |= bit
			}
			level++
			object = c == '{'
			from = i + 1
			i = Space(p, from)
			spaces += i - from
			if i >= len(p) || p[i] != c+2 { // '{'+2 is '}', '['+2 is ']'
				if object {
					value, gap := keyEnd(p, i)
					if value < 0 {
						return value, 0
					}
					i, spaces = value, spaces+gap
				}
				continue
			}
		}
		for { // a value, or the last member of an object or array, ends at p[i]
			if level == 0 {
				return i, spaces
			}
			from = i
			i = Space(p, i)
			spaces += i - from
			if i >= len(p) {
				return ^i, 0
			}
			c := p[i]
			if c == ',' {
				break
			}
			if c != '}' && c != ']' || object != (c == '}') {
				return ^i, 0
			}
			i++
			level--
			object = outer[level>>6]>>(level&63)&1 == 1
		}
		if i++; object {
			from = i
			i = Space(p, i)
			value, gap := keyEnd(p, i)
			if value < 0 {
				return value, 0
			}
			i, spaces = value, spaces+i-from+gap
		}
	}
}

// SkipString returns the end of the string that begins at p[i], without checking its content.
func SkipString(p []byte, i int) (end int, err error) {
	const short = 16 // bytes that are tested one by one: most strings are names and ids
	at := i + 1
	for to := min(len(p), at+short); at < to && p[at] != '\\'; at++ {
		if p[at] == '"' {
			return at + 1, nil
		}
	}
	for {
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

// SkipEnd is ValueEnd for input known to be valid, without white space before it: several times as fast. For anything
// else it returns some index after i, or an error.
func SkipEnd(p []byte, i int) (end int, err error) {
	for level := 0; i < len(p); {
		switch p[i] {
		case '{', '[':
			level++
			i++
		case '}', ']':
			level--
			i++
		case '"':
			if i, err = SkipString(p, i); err != nil {
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
