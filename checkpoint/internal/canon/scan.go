package canon

import (
	"encoding/binary"
	"math/bits"
)

// MaxDepth is how deep the JSON that a user gives may nest. EnvelopeDepth bounds a whole document or
// patch: what is wrapped around user JSON is a few levels deep.
const (
	MaxDepth      = 512
	EnvelopeDepth = MaxDepth + 8
)

// Scan finds the end of the JSON value that starts at p[i], after optional white space. compact
// reports whether there was no white space in or before it. It checks the whole grammar of RFC 8259,
// does not recurse, and stops above depth limit (at most EnvelopeDepth): no library that might die of
// hostile nesting sees the bytes before this did (I15). Like encoding/json it leaves invalid UTF-8 in
// strings alone.
func Scan(p []byte, i, limit int) (end int, compact bool, err error) {
	var object [EnvelopeDepth + 1]bool // is the container at this depth an object?
	depth, start, tokens := 0, i, i    // tokens: what i would be without white space
	for {
		if i = skip(p, i); i >= len(p) {
			return 0, false, Malformed("JSON value at byte %d: ends too early", start)
		}
		switch c := p[i]; c {
		case '{', '[':
			if depth++; depth > limit {
				return 0, false, &LimitError{What: "nesting of JSON", Limit: int64(limit), Value: int64(depth)}
			}
			object[depth] = c == '{'
			i, tokens = skip(p, i+1), tokens+1
			if i < len(p) && p[i] == c+2 { // '}' and ']' are two above their opening
				break
			}
			if c == '{' {
				if i, tokens = scanName(p, i, tokens); i < 0 {
					return 0, false, Malformed("JSON value at byte %d: member name", start)
				}
			}
			continue
		default:
			from := i
			if i = ScanScalar(p, i); i < 0 {
				return 0, false, Malformed("JSON value at byte %d: scalar", start)
			}
			tokens += i - from
		}
		for { // a value, or the last member of a container, is after us
			if depth == 0 {
				return i, tokens == i, nil
			}
			if i = skip(p, i); i >= len(p) {
				return 0, false, Malformed("JSON value at byte %d: ends too early", start)
			}
			if p[i] != '}' && p[i] != ']' || object[depth] != (p[i] == '}') {
				break
			}
			depth--
			i, tokens = i+1, tokens+1
		}
		if p[i] != ',' {
			return 0, false, Malformed("JSON value at byte %d: comma or end expected", start)
		}
		i, tokens = i+1, tokens+1
		if object[depth] {
			if i, tokens = scanName(p, i, tokens); i < 0 {
				return 0, false, Malformed("JSON value at byte %d: member name", start)
			}
		}
	}
}

// skip steps over white space.
func skip(p []byte, i int) int {
	for i < len(p) && p[i] <= ' ' && (p[i] == ' ' || p[i] == '\n' || p[i] == '\t' || p[i] == '\r') {
		i++
	}
	return i
}

// scanName steps over a member's name and its colon; i < 0 = there is none.
func scanName(p []byte, i, tokens int) (int, int) {
	if i = skip(p, i); i >= len(p) || p[i] != '"' {
		return -1, 0
	}
	end := ScanString(p, i)
	if end < 0 {
		return -1, 0
	}
	tokens += end - i
	if i = skip(p, end); i >= len(p) || p[i] != ':' {
		return -1, 0
	}
	return i + 1, tokens + 1
}

// ScanScalar returns the index after the string, number or literal at p[i], or -1.
func ScanScalar(p []byte, i int) int {
	switch p[i] {
	case '"':
		return ScanString(p, i)
	case 't':
		return scanWord(p, i, "true")
	case 'f':
		return scanWord(p, i, "false")
	case 'n':
		return scanWord(p, i, "null")
	default:
		return scanNumber(p, i)
	}
}

func scanWord(p []byte, i int, word string) int {
	if end := i + len(word); end <= len(p) && string(p[i:end]) == word {
		return end
	}
	return -1
}

// ScanString returns the index after the string at p[i], or -1. It takes eight bytes at a time, and
// finds in them the first that needs a look: a quote, a backslash or a control character.
func ScanString(p []byte, i int) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for i++; i < len(p); {
		if i+8 <= len(p) {
			w := binary.LittleEndian.Uint64(p[i:])
			q, b := w^('"'*ones), w^('\\'*ones)
			found := ((w-0x20*ones)&^w | (q-ones)&^q | (b-ones)&^b) & high
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8 // borrows reach only what is after the first
		}
		switch c := p[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = scanEscape(p, i); i < 0 {
				return -1
			}
		case c < 0x20:
			return -1
		default:
			i++
		}
	}
	return -1
}

func scanEscape(p []byte, i int) int {
	if i+1 >= len(p) {
		return -1
	}
	switch p[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(p) {
			return -1
		}
		for _, c := range p[i+2 : i+6] {
			if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'f') {
				return -1
			}
		}
		return i + 6
	}
	return -1
}

func scanNumber(p []byte, i int) int {
	digits := func() bool {
		from := i
		for i < len(p) && p[i] >= '0' && p[i] <= '9' {
			i++
		}
		return i > from
	}
	if p[i] == '-' {
		i++
	}
	if i < len(p) && p[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(p) && p[i] == '.' {
		if i++; !digits() {
			return -1
		}
	}
	if i < len(p) && p[i]|0x20 == 'e' {
		if i++; i < len(p) && (p[i] == '+' || p[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}
