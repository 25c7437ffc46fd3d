package export

import (
	"regexp"
	"strings"
	"sync"
	"unicode"
)

// escapes matches terminal control sequences: colours, titles, links. Tool outputs often have them.
var escapes = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[ -/]*[0-~])" +
		"|\u009b[0-?]*[ -/]*[@-~]")
})

// plain removes terminal control sequences and makes all line ends "\n". Any other control character becomes U+FFFD.
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

// oneLine returns a text on one line, without control characters and without marks that change the writing direction.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, plain(text))
	return strings.Join(strings.Fields(text), " ")
}
