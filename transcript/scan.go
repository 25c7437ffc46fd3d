package transcript

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
)

// The scanner reads JSON where it lies: no allocation, no recursion, one pass. What it calls valid is what
// encoding/json calls valid, up to maxDepth levels (FuzzParseLine holds the two together).

// maxDepth bounds the nesting of a line, the line's own object included (I15).
const maxDepth = 512

var (
	errDepth = fmt.Errorf("nested deeper than %d levels", maxDepth)
	errEnd   = errors.New("unexpected end")
)

func syntax(p []byte, i int) error {
	if i >= len(p) {
		return errEnd
	}
	return fmt.Errorf("offset %d: unexpected %q", i, p[i])
}

// space skips white space.
func space(p []byte, i int) int {
	for i < len(p) && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stringEnd gives the end of the string whose opening quote is p[i], and whether it holds an escape.
// Eight bytes a step: in each of the three tests below the lowest marked byte is exact.
func stringEnd(p []byte, i int) (end int, escaped bool, err error) {
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
			return 0, false, syntax(p, i)
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

// escapeEnd gives the end of the escape sequence whose backslash is p[i].
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
			if _, ok := hexDigit(p[j]); !ok {
				return 0, syntax(p, j)
			}
		}
		return i + 6, nil
	}
	return 0, syntax(p, i+1)
}

func hexDigit(c byte) (rune, bool) {
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

// numberEnd gives the end of the number that starts at p[i].
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
		return 0, syntax(p, i)
	}
	if i < len(p) && p[i] == '.' {
		if i++; !digits() {
			return 0, syntax(p, i)
		}
	}
	if i < len(p) && (p[i] == 'e' || p[i] == 'E') {
		i++
		if i < len(p) && (p[i] == '+' || p[i] == '-') {
			i++
		}
		if !digits() {
			return 0, syntax(p, i)
		}
	}
	return i, nil
}

// scalarEnd gives the end of the string, number or literal that starts at p[i].
func scalarEnd(p []byte, i int) (int, error) {
	literal := ""
	switch p[i] {
	case '"':
		end, _, err := stringEnd(p, i)
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
		return 0, syntax(p, i)
	}
	return i + len(literal), nil
}

// keyEnd gives the place after the colon of the member whose key starts at p[i], and the key's end.
func keyEnd(p []byte, i int) (value, end int, escaped bool, err error) {
	if i >= len(p) || p[i] != '"' {
		return 0, 0, false, syntax(p, i)
	}
	if end, escaped, err = stringEnd(p, i); err != nil {
		return 0, 0, false, err
	}
	if value = space(p, end); value >= len(p) || p[value] != ':' {
		return 0, 0, false, syntax(p, value)
	}
	return value + 1, end, escaped, nil
}

// valueEnd gives the end of the value that starts at p[i], which may be nested to the given depth. It
// keeps one bit a level (set = object) and does not recurse.
func valueEnd(p []byte, i, depth int) (end int, err error) {
	var stack [maxDepth / 64]uint64
	level := 0
	for {
		i = space(p, i)
		if i >= len(p) {
			return 0, errEnd
		}
		if c := p[i]; c == '{' || c == '[' {
			if level >= depth {
				return 0, errDepth
			}
			word, bit := level>>6, uint64(1)<<(level&63)
			level++
			i = space(p, i+1)
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
		} else if i, err = scalarEnd(p, i); err != nil {
			return 0, err
		}
		if i, level, err = closeLevels(p, i, level, &stack); err != nil || level == 0 {
			return i, err
		}
	}
}

// closeLevels goes on behind a complete value: over closing brackets, and over the comma (and key) before
// the next value. Level 0 = the outermost value is complete.
func closeLevels(p []byte, i, level int, stack *[maxDepth / 64]uint64) (int, int, error) {
	for level > 0 {
		i = space(p, i)
		if i >= len(p) {
			return 0, 0, errEnd
		}
		object := stack[(level-1)>>6]>>((level-1)&63)&1 == 1
		switch c := p[i]; {
		case c == ',' && object:
			next, _, _, err := keyEnd(p, space(p, i+1))
			return next, level, err
		case c == ',':
			return i + 1, level, nil
		case c == '}' && object, c == ']' && !object:
			i++
			level--
		default:
			return 0, 0, syntax(p, i)
		}
	}
	return i, 0, nil
}

// skipString gives the end of a string without a look at what is in it.
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

// skipEnd is valueEnd for what is known to be valid: several times as fast. Of anything else it gives some
// place behind i, or an error.
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

// members walks over the members of an object, or the elements of an array:
//
//	for m := walk(p); m.next(); { use m.key, m.val }
//
// What it walks over should be valid. If it is not, the walk is safe but may give nonsense, and m.err may
// say so; a strict walk stops at the first byte that is not JSON.
type members struct {
	p        []byte
	i        int
	strict   bool
	started  bool
	closing  byte   // '}' or ']'; 0 = neither object nor array, or at its end: no members
	key, val []byte // key unquoted, nil in an array; val is never empty
	err      error
}

func walk(p []byte) members {
	m := members{p: p, i: space(p, 0)}
	if m.i < len(p) && (p[m.i] == '{' || p[m.i] == '[') {
		m.closing = p[m.i] + 2
		m.i++
	}
	return m
}

func (m *members) next() bool {
	if m.err != nil || m.closing == 0 {
		return false
	}
	i := space(m.p, m.i)
	if i < len(m.p) && m.p[i] == m.closing {
		m.i, m.closing = i+1, 0
		return false
	}
	if m.started {
		if i >= len(m.p) || m.p[i] != ',' {
			m.err = syntax(m.p, i)
			return false
		}
		i = space(m.p, i+1)
	}
	m.started = true
	m.val = nil
	if m.closing == '}' {
		value, end, escaped, err := keyEnd(m.p, i)
		if err != nil {
			m.err = err
			return false
		}
		if m.key = m.p[i+1 : end-1]; escaped {
			m.key = []byte(text(m.p[i:end]))
		}
		i = space(m.p, value)
	}
	end := 0
	if m.strict {
		end, m.err = valueEnd(m.p, i, maxDepth-1)
	} else {
		end, m.err = skipEnd(m.p, i)
	}
	if m.err != nil {
		return false
	}
	m.val, m.i = m.p[i:end], end
	return true
}

// field gives the value of an object's field, the last one of that name as encoding/json has it; nil = none.
func field(object []byte, name string) []byte {
	var val []byte
	m := walk(object)
	for m.closing == '}' && m.next() {
		if string(m.key) == name {
			val = m.val
		}
	}
	return val
}

// text unquotes a JSON string; "" if the value is none.
func text(val []byte) string {
	if len(val) < 2 || val[0] != '"' {
		return ""
	}
	for _, c := range val[1 : len(val)-1] {
		if c == '\\' || c >= 0x80 {
			var s string
			if json.Unmarshal(val, &s) != nil {
				return ""
			}
			return s
		}
	}
	return string(val[1 : len(val)-1])
}
