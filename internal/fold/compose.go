package fold

import (
	"slices"
	"sync"
	"unicode"
)

// Composed returns a text with letters and their marks as single letters where there are such, as in NFC: a program
// that names files by the composed form finds those of a text that macOS took apart. Tibetan, signs of mathematics and
// some rare scripts stay as they are.
func Composed(text string) string {
	if isASCII(text) {
		return text
	}
	out := make([]rune, 0, len(text))
	start := -1 // where the letter begins to which marks belong
	for _, r := range text {
		if start >= 0 {
			if one, ok := joined(out[start], r, start == len(out)-1); ok {
				out[start] = one
				continue
			}
		}
		if out = append(out, r); !unicode.Is(unicode.M, r) || unicode.Is(unicode.Mc, r) {
			start = len(out) - 1
		}
	}
	return string(out)
}

// joined returns the letter that another one and a mark are, or the parts of a syllable, which follow each other.
func joined(letter, mark rune, next bool) (rune, bool) {
	if next {
		v, t := mark-vowel, mark-trail
		if l := letter - leading; 0 <= l && l < 19 && 0 <= v && v < vowels {
			return syllables + (l*vowels+v)*trails, true
		}
		if n := letter - syllables; 0 <= n && letter <= lastSyllable && n%trails == 0 && 0 < t && t < trails {
			return letter + t, true
		}
	}
	if letter == 'I' && mark == 0x307 {
		return 0x130, true
	}
	low := unicode.ToLower(letter)
	one, ok := pairs()[[2]rune{low, mark}]
	if ok && low != letter {
		if up := unicode.ToUpper(one); up != one {
			return up, true
		}
		return 0, false
	}
	return one, ok
}

// composable are the ranges of letters that NFC composes.
var composable = [...][2]rune{
	{0xC0, 0x934},
	{0x9CB, 0x9CC},
	{0xB48, 0xB4C},
	{0xB94, 0xDDE},
	{0x1026, 0x1026},
	{0x1B06, 0x1B43},
	{0x1E00, 0x1FFF},
	{0x3040, 0x30FF},
}

// pairs are the letters of the table that are another letter and a mark.
var pairs = sync.OnceValue(func() map[[2]rune]rune {
	is := map[string]rune{} // by what it is taken apart into
	eachLetter(func(parts string, r rune) {
		in := func(span [2]rune) bool { return span[0] <= r && r <= span[1] }
		if is[parts] == 0 && slices.ContainsFunc(composable[:], in) { // the first is the one of NFC
			is[parts] = r
		}
	})
	out := map[[2]rune]rune{}
	for parts, r := range is {
		all := []rune(parts)
		last := len(all) - 1
		if last == 0 || !unicode.Is(unicode.M, all[last]) {
			continue
		}
		first := all[0]
		if last > 1 {
			first = is[string(all[:last])]
		}
		out[[2]rune{first, all[last]}] = r
	}
	return out
})
