package term

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// FuzzText draws any text: no control sequence reaches the terminal, and no line is too wide.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "\x1b[2J\x1b]0;title\x07", "\x9b31m", "\u202eabc", "a\r\nb\tc", "\xff\xfe", "日本語", "e\u0301", strings.Repeat("\u200d", 50), "😀 a\u00a0b", "\u2066x\u2069", "a\x00b\x08\x7f\u0085",
	} {
		f.Add(s, 7)
	}
	f.Fuzz(func(t *testing.T, text string, columns int) {
		columns &= 127
		for _, shown := range append(wrap(Text(text), columns), Line(text), Text(text), Cut(Line(text), columns)) {
			if strings.ContainsFunc(shown, func(r rune) bool {
				return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r))
			}) || !utf8.ValidString(shown) {
				t.Fatalf("%q is shown as %q", text, shown)
			}
		}
		if strings.ContainsAny(Line(text), "\n\t") {
			t.Fatalf("%q is more than a line", Line(text))
		}
		if cut := Cut(Line(text), columns); columns > 0 && Columns(cut) > columns {
			t.Fatalf("%q takes %d columns of %d", cut, Columns(cut), columns)
		}
		letters := func(s string) string {
			return strings.Map(func(r rune) rune {
				if unicode.IsSpace(r) {
					return -1
				}
				return r
			}, s)
		}
		if broken := strings.Join(wrap(Text(text), columns), "\n"); letters(broken) != letters(Text(text)) {
			t.Fatalf("%q is broken into %q", text, broken)
		}
	})
}
