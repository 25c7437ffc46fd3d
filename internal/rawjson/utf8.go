package rawjson

import (
	"unicode/utf8"

	"github.com/coppice-go/coppice/codec"
)

// CheckText returns a *codec.TextError if a text is not valid UTF-8. Every text and all JSON of callers passes it
// before it is stored. An escaped lone surrogate, as in "\ud800", is valid: its escape is ASCII.
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

// ValidText returns a text, or JSON, with U+FFFD for each byte that is not valid UTF-8, as package json reads it; the
// text itself where all are. The result has at most three times the length.
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
