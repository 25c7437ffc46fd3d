package rawjson

import (
	"math/bits"
	"slices"
	"unicode/utf8"
)

// AppendString appends s as a JSON string, byte for byte like package json; but a text of printable ASCII without a
// quote or a backslash is not escaped, including <, > and &.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(slices.Grow(dst, len(s)+2), '"')
	if isPlain(s) {
		return append(append(dst, s...), '"')
	}
	for done, i := 0, 0; ; {
		var size int
		if i, size = special(s, i); size == 0 {
			return append(append(dst, s[done:]...), '"')
		}
		dst = append(dst, s[done:i]...)
		c := s[i]
		i += size
		done = i
		switch as := letters[c]; {
		case as != 0:
			dst = append(dst, '\\', as)
		case size == 3:
			dst = append(append(dst, `\u202`...), s[i-1]&1|'8')
		case c >= utf8.RuneSelf:
			dst = append(dst, `\ufffd`...)
		default:
			const hex = "0123456789abcdef"
			dst = append(append(dst, `\u00`...), hex[c>>4], hex[c&15])
		}
	}
}

// letters are the ASCII characters whose escape is a letter.
var letters = [256]byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't', '"': '"', '\\': '\\'}

// AppendKey appends the name of an object's member, and the colon after it.
func AppendKey[T string | []byte](dst []byte, name T) []byte {
	return append(AppendString(dst, name), ':')
}

func word[T string | []byte](s T, i int) uint64 {
	p := s[i : i+8]
	return uint64(p[0]) | uint64(p[1])<<8 | uint64(p[2])<<16 | uint64(p[3])<<24 |
		uint64(p[4])<<32 | uint64(p[5])<<40 | uint64(p[6])<<48 | uint64(p[7])<<56
}

// isPlain reports whether s is printable ASCII without a quote or a backslash. It tests eight bytes a step, like
// StringEnd; w+ones marks 0x7f.
func isPlain[T string | []byte](s T) bool {
	i := 0
	for ; i+8 <= len(s); i += 8 {
		w := word(s, i)
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		if ((quote-ones)&^quote|(slash-ones)&^slash|(w-ones*' ')&^w|w|(w+ones))&highs != 0 {
			return false
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return false
		}
	}
	return true
}

// special returns the index and the size of the first character from i that may need an escape; size 0 = none. The
// lowest marked bit of a word is exact.
func special[T string | []byte](s T, i int) (at, size int) {
	for i < len(s) {
		if i+8 <= len(s) {
			w := word(s, i)
			quote, slash, amp, angle := w^(ones*'"'), w^(ones*'\\'), w^(ones*'&'), w&^(ones*2)^(ones*'<')
			m := (quote-ones)&^quote | (slash-ones)&^slash | (amp-ones)&^amp | (angle-ones)&^angle
			m = (m | (w-ones*' ')&^w | w) & highs
			if m == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(m) >> 3
		}
		switch c := s[i]; {
		case c >= utf8.RuneSelf:
			if i, size = beyondASCII(s, i); size > 0 {
				return i, size
			}
		case c < ' ', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return i, 1
		default:
			i++
		}
	}
	return i, 0
}

// beyondASCII skips the non-ASCII characters from s[i] that need no escape. If size > 0 the one at index at needs one:
// it is invalid UTF-8, or one of the two line separators that a script cannot have in a text.
func beyondASCII[T string | []byte](s T, i int) (at, size int) {
	for i < len(s) && s[i] >= utf8.RuneSelf {
		switch c, left := s[i], len(s)-i; {
		case 0xc2 <= c && c <= 0xdf && left >= 2 && s[i+1]&0xc0 == 0x80:
			i += 2
			continue
		case 0xe1 <= c && c <= 0xef && c != 0xed && left >= 3 && s[i+1]&0xc0 == 0x80 && s[i+2]&0xc0 == 0x80:
			if c == 0xe2 && s[i+1] == 0x80 && s[i+2]&^1 == 0xa8 {
				return i, 3
			}
			i += 3
			continue
		}
		r, n := utf8.DecodeRune([]byte(s[i:min(i+utf8.UTFMax, len(s))]))
		if r == utf8.RuneError && n == 1 {
			return i, 1
		}
		i += n
	}
	return i, 0
}
