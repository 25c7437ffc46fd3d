package transcript

import (
	"unicode"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// previewMax is the length of a preview in bytes, the mark of a cut included.
const previewMax = 80

const cutMark = "…"

// preview gathers one line of text for people: runs of white space become one space, control characters
// (escape sequences of terminals among them) and broken UTF-8 go. It stops reading when it is full, so
// that a long message costs no more than a short one.
type preview struct {
	buf  [previewMax]byte
	n    int
	keep int // n at the last place where the mark would still fit
	gap  bool
	full bool
}

// Rune adds one rune.
func (v *preview) Rune(r rune) {
	switch {
	case v.full:
		return
	case r > ' ' && r < 0x7f:
	case r == utf8.RuneError:
		return
	case unicode.IsSpace(r):
		v.gap = v.n > 0
		return
	case unicode.IsControl(r), r == '\u2028', r == '\u2029', unicode.Is(unicode.Bidi_Control, r):
		return
	}
	size := utf8.RuneLen(r)
	if v.gap {
		size++
	}
	if v.n+size > previewMax {
		v.n = v.keep + copy(v.buf[v.keep:], cutMark)
		v.full = true
		return
	}
	if v.gap {
		v.buf[v.n] = ' '
		v.n++
		v.gap = false
	}
	v.n += utf8.EncodeRune(v.buf[v.n:], r)
	if v.n+len(cutMark) <= previewMax {
		v.keep = v.n
	}
}

// Add adds text.
func (v *preview) Add(s string) {
	for _, r := range s {
		if v.Rune(r); v.full {
			return
		}
	}
}

// Literal adds a JSON string, unquoted on the way; firstLine stops at its first line that is not blank.
func (v *preview) Literal(lit []byte, firstLine bool) {
	if !rawjson.IsString(lit) {
		return
	}
	s := lit[1 : len(lit)-1]
	start := v.n
	for i := 0; i < len(s) && !v.full; {
		r, size := utf8.DecodeRune(s[i:])
		if r == '\\' {
			r, size = unescape(s[i:])
		}
		if r == '\n' && firstLine && v.n > start {
			return
		}
		v.Rune(r)
		i += size
	}
}

// Generated is Literal for a text that a program wrote: it shows the contents of XML elements without their tags.
func (v *preview) Generated(lit []byte, firstLine bool) {
	if len(lit) < len(`"<>"`) || lit[1] != '<' && lit[1] > ' ' && lit[1] != '\\' {
		v.Literal(lit, firstLine)
		return
	}
	if words, ok := message.About(lit); ok {
		v.Add(words)
		return
	}
	v.Literal(lit, firstLine)
}

// unescape decodes the escape sequence at the start of s: the rune and the bytes that it takes.
func unescape(s []byte) (rune, int) {
	if len(s) < 2 {
		return utf8.RuneError, len(s)
	}
	switch s[1] {
	case 'n':
		return '\n', 2
	case 't', 'r', 'f':
		return ' ', 2
	case 'b':
		return '\b', 2
	case 'u':
		hi := hex4(s)
		if hi >= 0xd800 && hi < 0xdc00 && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if lo := hex4(s[6:]); lo >= 0xdc00 && lo < 0xe000 {
				return (hi-0xd800)<<10 + (lo - 0xdc00) + 0x10000, 12
			}
		}
		if hi >= 0xd800 && hi < 0xe000 {
			hi = utf8.RuneError
		}
		return hi, min(6, len(s))
	}
	return rune(s[1]), 2
}

// hex4 reads the digits of \uXXXX.
func hex4(s []byte) rune {
	if len(s) < 6 {
		return utf8.RuneError
	}
	var r rune
	for _, c := range s[2:6] {
		d, _ := rawjson.HexDigit(c)
		r = r<<4 | d
	}
	return r
}

// Empty reports that nothing was added that shows.
func (v *preview) Empty() bool { return v.n == 0 }

// String is the line.
func (v *preview) String() string { return string(v.buf[:v.n]) }

// The arguments that describe a call best, in order.
var tellingArgs = [...]string{"path", "file_path", "filePath", "command", "cmd", "pattern", "query", "url", "name"}

// Call adds a call as name(argument).
func (v *preview) Call(c callParts) {
	if !v.Empty() {
		v.Add(", ")
	}
	v.Literal(c.Name, false)
	v.Add("(")
	v.argument(c.Args)
	v.Add(")")
}

// argument adds the most telling argument of a call: one of the usual names, else the first string.
func (v *preview) argument(args []byte) {
	if rawjson.IsString(args) { // OpenAI: a string that holds the object
		args = []byte(rawjson.Text(args))
	}
	var val []byte
	best := len(tellingArgs) + 1
	m := rawjson.Walk(args)
	for m.Closing == '}' && m.Next() {
		if !rawjson.IsString(m.Val) {
			continue
		}
		rank := len(tellingArgs)
		for i, name := range tellingArgs {
			if string(m.Key) == name {
				rank = i
			}
		}
		if rank < best {
			best, val = rank, m.Val
		}
	}
	v.Literal(val, true)
}
