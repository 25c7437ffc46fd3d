// Package fold makes texts comparable, whatever their case and their Unicode normal form: a keyboard writes "é" as one
// letter, and macOS names a file with "e" and a mark.
//
// Each letter folds by itself, whatever is before or after it. So what a text holds, the folded text holds as well:
//
//   - case is ignored, "ß" is "ss", and letters of full and of half width are those of the usual width;
//   - marks on Latin, Greek and Cyrillic letters and the vowels of Hebrew and Arabic are ignored: "cafe" finds "café";
//   - other letters with marks, and the syllables of Hangul, are taken apart, as in NFD;
//   - what is not seen is ignored: variation selectors, joiners, soft hyphens.
package fold

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Text returns a text as it is compared. It is at most three times as long.
func Text(text string) string {
	if isASCII(text) {
		return strings.ToLower(text)
	}
	var b strings.Builder
	b.Grow(len(text))
	var parts [utf8.UTFMax * 3]byte
	for _, r := range text {
		b.Write(add(parts[:0], r))
	}
	return b.String()
}

// Index returns the first place of a folded word in a folded text at which the word does not end within a letter; -1 =
// there is none. An empty word is at the beginning.
func Index(text, word string) int {
	last, _ := utf8.DecodeLastRuneInString(word)
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return -1
		}
		at += from
		next, _ := utf8.DecodeRuneInString(text[at+len(word):])
		if !Continues(last) || !continued(next) {
			return at
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		from = at + size
	}
}

// Continues reports whether more of a letter may follow after r.
func Continues(r rune) bool {
	return r != utf8.RuneError && (r > unicode.MaxASCII || strings.ContainsRune("<=>", r))
}

// continued reports whether r is a part of the letter before it: a mark that is not ignored, a vowel, or the end of a
// syllable.
func continued(r rune) bool {
	return r == 0x3099 || r == 0x309A || r == overlay || 0x1160 <= r && r <= 0x11FF
}

// Span returns the place in a text of a place in the text folded: whole letters, with the marks on them.
func Span(text string, from, to int) (start, end int) {
	start, end = len(text), len(text)
	var parts [utf8.UTFMax * 3]byte
	place := 0
	for i, r := range text {
		n := len(add(parts[:0], r))
		if n > 0 && place >= to && start < len(text) {
			return start, i
		}
		if place+n > from && start == len(text) {
			start = i
		}
		place += n
	}
	return start, end
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] > unicode.MaxASCII {
			return false
		}
	}
	return true
}

// overlay is the stroke of "≠", which does not mean "=".
const overlay = 0x338

// dropped reports whether a rune is ignored.
func dropped(r rune) bool {
	switch {
	case r < 0x370:
		return r >= 0x300 && r != overlay || r == 0xAD
	case r < 0x5D0: // of Hebrew; U+05BE is a hyphen, U+05C0 and U+05C3 to U+05C6 are signs
		return 0x591 <= r && r <= 0x5BD || r == 0x5BF || r == 0x5C1 || r == 0x5C2 || r == 0x5C7
	case r < 0x700: // of Arabic
		return 0x64B <= r && r <= 0x655 || r == 0x670
	}
	return 0x200B <= r && r <= 0x200D || r == 0x2060 || 0xFE00 <= r && r <= 0xFE0F || r == 0xFEFF
}

// Hangul: a syllable is a leading consonant, a vowel, and a trailing consonant or none.
const (
	syllables, lastSyllable = 0xAC00, 0xD7A3
	leading, vowel, trail   = 0x1100, 0x1161, 0x11A7
	vowels, trails          = 21, 28
)

// add appends what a rune folds to.
func add(b []byte, r rune) []byte {
	switch {
	case r <= unicode.MaxASCII:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(b, byte(r))
	case 0x4E00 <= r && r <= 0x9FFF: // most of Chinese and Japanese
		return utf8.AppendRune(b, r)
	case dropped(r):
		return b
	case syllables <= r && r <= lastSyllable:
		n := r - syllables
		b = utf8.AppendRune(b, leading+n/trails/vowels)
		b = utf8.AppendRune(b, vowel+n/trails%vowels)
		if n %= trails; n > 0 {
			b = utf8.AppendRune(b, trail+n)
		}
		return b
	case 0xFF01 <= r && r <= 0xFF5E: // of full width
		return add(b, r-0xFF01+'!')
	}
	r = unicode.ToLower(r)
	if to, ok := table()[r]; ok {
		return append(b, to...)
	}
	if r <= unicode.MaxASCII { // "K" of the Kelvin sign
		return append(b, byte(r))
	}
	return utf8.AppendRune(b, r)
}

// eachLetter runs f on the letters of the table, each with what it is taken apart into.
func eachLetter(f func(parts string, r rune)) {
	for group := range strings.SplitSeq(strings.TrimSpace(letters), " ") {
		at := 1 + strings.IndexByte(group[1:], '=')
		for _, r := range group[at+1:] {
			f(group[:at], r)
		}
	}
}

// table is what letters fold to that are not computed.
var table = sync.OnceValue(func() map[rune]string {
	t := map[rune]string{}
	eachLetter(func(parts string, r rune) { t[r] = parts })
	for r, parts := range t { // without marks, and down to the last part
		var b strings.Builder
		for _, p := range parts {
			if to, more := t[p]; more {
				b.WriteString(to)
			} else if !dropped(p) {
				b.WriteRune(p)
			}
		}
		t[r] = b.String()
	}
	inTurn := func(first rune, all string) {
		for _, to := range all {
			t[first] = string(to)
			first++
		}
	}
	inTurn(0xF900, ideographs)
	inTurn(0x2F800, moreIdeographs)
	inTurn(0xFF61, halfWidth)
	return t
})
