package rawjson

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/coppice-go/coppice/codec"
)

// CheckText returns a *codec.TextError if a text is not valid UTF-8. Every text and all JSON of callers passes it
// before it is stored. An escaped unpaired surrogate, as in "\ud800", is valid: its escape is ASCII.
func CheckText[T string | []byte](what string, text T) error {
	valid := false
	switch t := any(text).(type) {
	case string:
		valid = utf8.ValidString(t)
	case []byte:
		valid = utf8.Valid(t)
	}
	if valid {
		return nil
	}
	s, at := string(text), 0
	for {
		r, size := utf8.DecodeRuneInString(s[at:])
		if r == utf8.RuneError && size <= 1 {
			return &codec.TextError{What: what, Offset: int64(at)}
		}
		at += size
	}
}

// ValidText returns a text, or JSON, with U+FFFD for each byte that is not valid UTF-8, as package json reads it; if
// all are valid it returns text itself. The result has at most three times the length.
func ValidText(text []byte) []byte {
	if utf8.Valid(text) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		out, text = utf8.AppendRune(out, r), text[size:]
	}
	return out
}

// Whole returns JSON in which U+FFFD replaces each byte that is not valid UTF-8 and each escape of an unpaired
// surrogate, such as "\ud83d" alone, and the number of replacements. No provider accepts them, and package json reads
// them the same way. If there are none, it returns val itself.
func Whole(val []byte) (out []byte, n int) {
	out = ValidText(val)
	n = (len(out) - len(val)) / 2 // three bytes instead of one
	if !bytes.Contains(out, []byte(`\ud`)) && !bytes.Contains(out, []byte(`\uD`)) {
		return out, n
	}
	own := n > 0
	for i := 0; ; {
		next := bytes.IndexByte(out[i:], '\\')
		if i += next; next < 0 || i+len(`\u0000`) > len(out) {
			return out, n
		}
		size := escapeSize(out[i:])
		if size > 0 {
			i += size
			continue
		}
		if !own {
			out, own = bytes.Clone(out), true
		}
		copy(out[i:], `\ufffd`)
		n++
	}
}

// escapeSize returns the length of the escape, or of the pair of escapes, at the start of a text of at least six bytes;
// 0 = it is an unpaired surrogate.
func escapeSize(p []byte) int {
	const size = len(`\u0000`)
	if p[1] != 'u' {
		return len(`\n`)
	}
	r := digits(p[2:])
	if !utf16.IsSurrogate(r) {
		return size
	}
	if len(p) >= 2*size && p[size] == '\\' && p[size+1] == 'u' &&
		utf16.DecodeRune(r, digits(p[size+2:])) != utf8.RuneError {
		return 2 * size
	}
	return 0
}
