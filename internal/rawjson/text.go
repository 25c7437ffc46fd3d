package rawjson

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// Text unquotes a JSON string; "" if the value is not a string.
func Text(val []byte) string {
	if !IsString(val) {
		return ""
	}
	in := val[1 : len(val)-1]
	if plain(in) {
		return string(in)
	}
	var room [256]byte // most texts fit: those cost one allocation, that of the result
	return string(AppendText(room[:0], val))
}

// AppendText appends the text of a JSON string, as Text returns it; nothing if the value is not a string.
func AppendText(dst, val []byte) []byte {
	if !IsString(val) {
		return dst
	}
	in := val[1 : len(val)-1]
	if plain(in) {
		return append(dst, in...)
	}
	if end, _, err := StringEnd(val, 0); err != nil || end != len(val) {
		var s string // not JSON, or white space after it: handled like package json
		if json.Unmarshal(val, &s) != nil {
			return dst
		}
		return append(dst, s...)
	}
	in = ValidText(in)
	dst = slices.Grow(dst, len(in))
	for {
		i := bytes.IndexByte(in, '\\')
		if i < 0 {
			return append(dst, in...)
		}
		dst = append(dst, in[:i]...)
		c := in[i+1]
		in = in[i+2:]
		switch c {
		case 'u':
			var r rune
			r, in = escapedRune(in)
			dst = utf8.AppendRune(dst, r)
		case 'b', 'f', 'n', 'r', 't':
			dst = append(dst, controls[c-'b'])
		default:
			dst = append(dst, c)
		}
	}
}

// controls are the characters whose escape is a letter, from b on.
const controls = "\b   \f       \n   \r \t"

// plain reports whether the text between quotes is ASCII without escapes. It tests eight bytes a step.
func plain(in []byte) bool {
	for ; len(in) >= 8; in = in[8:] {
		w := binary.LittleEndian.Uint64(in)
		if slash := w ^ (ones * '\\'); ((slash-ones)&^slash|w)&highs != 0 {
			return false
		}
	}
	for _, c := range in {
		if c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// escapedRune decodes the digits of a \u, and of the one after it if the two are a surrogate pair; an unpaired
// surrogate is U+FFFD. The caller has checked the digits.
func escapedRune(in []byte) (r rune, rest []byte) {
	if r = digits(in); !utf16.IsSurrogate(r) {
		return r, in[4:]
	}
	if in = in[4:]; len(in) >= 6 && in[0] == '\\' && in[1] == 'u' {
		if pair := utf16.DecodeRune(r, digits(in[2:])); pair != utf8.RuneError {
			return pair, in[6:]
		}
	}
	return utf8.RuneError, in
}

func digits(p []byte) (r rune) {
	for _, c := range p[:4] {
		d, _ := HexDigit(c)
		r = r<<4 | d
	}
	return r
}
