package export

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// escapes matches the sequences that terminals obey: colours, titles, links. The output of tools is full of them.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[ -/]*[0-~])" +
		"|\u009b[0-?]*[ -/]*[@-~]")
})

// plain takes away what terminals obey, and makes lines end in one way: whatever a reader takes for the end of a
// line is one. Any other control character becomes the mark of an unknown one.
func plain(text string) string {
	if !strings.ContainsFunc(text, odd) {
		return text
	}
	text = escapes().ReplaceAllString(strings.ReplaceAll(text, "\r\n", "\n"), "")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\r', r == '\v', r == '\f', r == '\u0085', r == '\u2028', r == '\u2029':
			return '\n'
		case odd(r):
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

func odd(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\u2028' || r == '\u2029'
}

// oneLine is a text on one line: of controls, and of what turns the direction of writing around, it has none.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, plain(text))
	return strings.Join(strings.Fields(text), " ")
}
