package term

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wide are the ranges of runes that take two columns, approximately: East Asian wide and full width, and emoji.
var wide = [...][2]rune{
	{0x1100, 0x115f},
	{0x2e80, 0x303e},
	{0x3041, 0x33ff},
	{0x3400, 0x4dbf},
	{0x4e00, 0x9fff},
	{0xa000, 0xa4cf},
	{0xa960, 0xa97f},
	{0xac00, 0xd7a3},
	{0xf900, 0xfaff},
	{0xfe30, 0xfe6f},
	{0xff00, 0xff60},
	{0xffe0, 0xffe6},
	{0x1f300, 0x1f64f},
	{0x1f680, 0x1f6ff},
	{0x1f900, 0x1f9ff},
	{0x1fa70, 0x1faff},
	{0x20000, 0x3fffd},
}

func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case r == 0x200d || r >= 0xfe00 && r <= 0xfe0f || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < wide[0][0]:
		return 1
	}
	for _, w := range wide {
		if r >= w[0] && r <= w[1] {
			return 2
		}
	}
	return 1
}

// Columns returns the width of a text in columns.
func Columns(text string) int {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= 0x300 }) {
		return utf8.RuneCountInString(text)
	}
	n := 0
	for _, r := range text {
		n += runeWidth(r)
	}
	return n
}

// Cut truncates a text to a number of columns, with the mark "…"; 0 or less = not at all.
func Cut(text string, columns int) string {
	if columns <= 0 || Columns(text) <= columns {
		return text
	}
	n := 0
	for i, r := range text {
		w := runeWidth(r)
		if n+w > columns-1 {
			return strings.TrimRight(text[:i], " ") + "…"
		}
		n += w
	}
	return text
}

// Excerpt truncates a line to a number of columns. The place, from and to in bytes, is always shown, in the middle if
// there is text on both sides. It returns that place in the result; 0 or fewer columns = all of the line.
func Excerpt(text string, place [2]int, columns int) (string, [2]int) {
	if columns <= 0 || Columns(text) <= columns {
		return text, place
	}
	before, found, after := text[:place[0]], text[place[0]:place[1]], text[place[1]:]
	found = Cut(found, columns-2)
	room := columns - Columns(found)
	left := min(Columns(before), max(room/2, room-Columns(after)))
	before = cutLeft(before, left)
	after = Cut(after, max(1, room-Columns(before)))
	if room-Columns(before) <= 0 {
		after = ""
	}
	return before + found + after, [2]int{len(before), len(before) + len(found)}
}

// cutLeft truncates a text to its last columns, with the mark "…".
func cutLeft(text string, columns int) string {
	have := Columns(text)
	if have <= columns {
		return text
	}
	if columns <= 0 {
		return ""
	}
	for i, r := range text {
		if have <= columns-1 {
			return "…" + strings.TrimLeft(text[i:], " ")
		}
		have -= runeWidth(r)
	}
	return "…"
}

// Line returns external text on one line: white space becomes single spaces; control characters and marks that change
// the reading direction are removed.
func Line(text string) string {
	return strings.Join(strings.FieldsFunc(Text(text), unicode.IsSpace), " ")
}

// Typed returns typed text on one line: each white space is a space; control characters and marks that change the
// reading direction are removed.
func Typed(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, Text(text))
}

// Text removes from external text everything that is not for reading: control characters other than line feeds and
// tabs, marks that change the reading direction, invalid UTF-8.
func Text(text string) string {
	if !strings.ContainsFunc(text, unreadable) && utf8.ValidString(text) {
		return text
	}
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if unreadable(r) {
			return -1
		}
		return r
	}, text)
}

func unreadable(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// wrap breaks a text into lines of at most a number of columns, at spaces if possible; 0 or less = only at its own line
// ends. Indentation is kept.
func wrap(text string, columns int) []string {
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " ")
		whole := true
		for columns > 0 && Columns(line) > columns {
			whole = false
			at := breakAt(line, columns)
			out = append(out, strings.TrimRight(line[:at], " "))
			line = strings.TrimLeft(line[at:], " ")
		}
		if whole || line != "" {
			out = append(out, line)
		}
	}
	return out
}

// breakAt returns the byte offset of the best break of a line that is too long.
func breakAt(line string, columns int) int {
	n, space, started := 0, 0, false
	for i, r := range line {
		if r == ' ' && started {
			space = i
		}
		started = started || r != ' '
		if n += runeWidth(r); n > columns {
			if space > 0 {
				return space
			}
			return max(i, utf8.RuneLen(r))
		}
	}
	return len(line)
}
