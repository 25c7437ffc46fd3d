package fold

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The forms of a text, the composed, the decomposed and those of other widths and cases, fold to one.
func TestTextOfAllForms(t *testing.T) {
	t.Parallel()
	for _, forms := range [][]string{
		{"caf\u00e9", "cafe\u0301", "CAF\u00c9", "cafe", "ca\u00adfe\u200b"},
		{"\u0141\u00f3d\u017a", "\u0141o\u0301dz\u0301", "lodz"},
		{"\ud559\uc810\uc778\uc815", "\u1112\u1161\u11a8\u110c\u1165\u11b7\u110b\u1175\u11ab\u110c\u1165\u11bc"},
		{"\u304c\u30d1", "\u304b\u3099\u30cf\u309a"},
		{"\u30ac", "\uff76\uff9e"},
		{"\u0130STANBUL", "I\u0307stanbul", "istanbul", "\u0131stanbul"},
		{"Stra\u00dfe", "STRASSE", "stra\u1e9ee"},
		{"\uff26\uff35\uff2c\uff2c\uff17", "full7"},
		{"\u1ec7", "e\u0323\u0302", "e\u0302\u0323", "\u1eb9\u0302"},
		{"\u03ac\u03c2", "\u03b1\u0301\u03a3", "\u1f71\u03c3"},
		{"\u0451\u0439", "\u0435\u0308\u0438\u0306"},
		{"\u0958", "\u0915\u093c"},
		{"\u0623\u064e", "\u0627\u064e\u0654", "\u0627"},
		{"\ufb2c", "\u05e9\u05c1\u05bc", "\u05e9\u05bc\u05c1"},
		{"\uf900", "\u8c48"},
		{"\U0002f800", "\u4e3d"},
		{"\ufb01", "fi"},
		{"\u212a\u2126\u212b", "k\u03c9a"},
		{"\u2260", "=\u0338"},
	} {
		want := Text(forms[0])
		for _, form := range forms {
			if got := Text(form); got != want || Text(got) != got {
				t.Errorf("%+q folds to %+q, and %+q to %+q", form, got, forms[0], want)
			}
		}
	}
	for _, c := range [][2]string{{"\u304c", "\u304b"}, {"=", "\u2260"}, {"\u30cf", "\u30d1"}, {"\u6f6e", "\u6c50"}} {
		if Text(c[0]) == Text(c[1]) {
			t.Errorf("%+q and %+q fold to the same", c[0], c[1])
		}
	}
}

// A text that was taken apart comes together again, and one that is composed stays as it is.
func TestComposed(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"/Users/me/Cafe\u0301", "/Users/me/Caf\u00e9"},
		{"E\u0302\u0301 I\u0307 J\u030c j\u030c", "\u1ebe \u0130 J\u030c \u01f0"},
		{"\u1112\u1161\u11a8\u110c\u1165\u11b7\u1112\u1161", "\ud559\uc810\ud558"},
		{"\u30c8\u3099\u30e9\u30a4\u30d5\u3099", "\u30c9\u30e9\u30a4\u30d6"},
		{"a\u0316\u0301", "\u00e1\u0316"},
		{"\u0438\u0306 \u03b1\u0301", "\u0439 \u03ac"},
		{"\u0915\u093c", "\u0915\u093c"},
		{"\u0301a", "\u0301a"},
		{"plain", "plain"},
	} {
		if got := Composed(c[0]); got != c[1] || Composed(c[1]) != c[1] {
			t.Errorf("%+q: %+q, want %+q", c[0], got, c[1])
		}
	}
}

// A word is not found where it is only the beginning of a letter.
func TestIndexOfWholeLetters(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, word string
		want       bool
	}{
		{"\u304c\u304d", "\u304b", false},
		{"\u304c\u304b", "\u304b", true},
		{"\u304c\u304d", "\u304c", true},
		{"\ud559\uc810", "\ud559", true},
		{"\ud559\uc810", "\ud558", false},
		{"a \u2260 b", "=", false},
		{"a == b", "=", true},
		{"caf\u00e9s", "cafe", true},
		{"anything", "", true},
		{"", "x", false},
	} {
		if got := Index(Text(c.text), Text(c.word)) >= 0; got != c.want {
			t.Errorf("%q in %q: %v", c.word, c.text, got)
		}
	}
}

// The place of what was found is that of whole letters, with the marks on them.
func TestSpan(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, word, want string }{
		{"the cafe\u0301 there", "caf\u00e9", "cafe\u0301"},
		{"die Stra\u00dfe 12", "strasse", "Stra\u00dfe"},
		{"die Stra\u00dfe 12", "ras", "ra\u00df"},
		{"\u0130\u0130 a NEEDLE", "needle", "NEEDLE"},
		{"\u1112\u1161\u11a8\u110c\u1165\u11b7", "\ud559", "\u1112\u1161\u11a8"},
		{"\uff26\uff35\uff2c\uff2c", "ull", "\uff35\uff2c\uff2c"},
	} {
		low, word := Text(c.text), Text(c.word)
		at := Index(low, word)
		if from, to := Span(c.text, at, at+len(word)); c.text[from:to] != c.want {
			t.Errorf("%+q in %+q: %+q", c.word, c.text, c.text[from:to])
		}
	}
}

// Whatever the text: a part of it is found in it, folding ends, and places are those of whole runes.
func FuzzText(f *testing.F) {
	f.Add("a\u0301\ud559 \u304b\u3099=\u0338", 1, 4)
	f.Fuzz(func(t *testing.T, text string, from, to int) {
		low := Text(text)
		if Text(low) != low || !utf8.ValidString(low) || len(low) > 3*len(text) {
			t.Fatalf("%+q folds to %+q", text, low)
		}
		if from < 0 || to < from || to > len(text) || !utf8.ValidString(text) || !utf8.ValidString(text[from:to]) {
			return
		}
		if !strings.Contains(low, Text(text[from:to])) {
			t.Fatalf("%+q is not in %+q", text[from:to], text)
		}
		at := len(Text(text[:from]))
		start, end := Span(text, at, at+len(Text(text[from:to])))
		if start > end || !utf8.ValidString(text[start:end]) {
			t.Fatalf("%d to %d of %+q", start, end, text)
		}
	})
}
