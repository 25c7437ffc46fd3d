// Package term writes text for people: colours where they are wanted, lines cut to the width of the
// terminal, aligned tables, sizes and times in human words, a progress bar for what takes long.
//
// What it guarantees: text that comes from a session reaches a terminal without its control characters,
// so that no transcript can move the cursor, change the title or hide what it says; and a stream that
// is no terminal gets neither colours nor cuts.
package term

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is a stream that people may be reading. Not safe for concurrent use.
type Screen struct {
	w     io.Writer
	tty   bool
	color bool
	width int
}

// New looks at what w is. getenv reads the environment: NO_COLOR, TERM, and COLUMNS, which stands in for
// the width of what is no terminal.
func New(w io.Writer, getenv func(string) string) *Screen {
	s := &Screen{w: w}
	if f, ok := w.(*os.File); ok && IsTerminal(f) {
		s.tty = true
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			s.width = width
		}
	}
	if n, err := strconv.Atoi(getenv("COLUMNS")); err == nil && n > 0 && s.width == 0 {
		s.width = n
	}
	if s.width > 0 && s.width < minWidth {
		s.width = minWidth
	}
	s.color = s.tty && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

// NewTerminal is a screen on a terminal of so many columns; nothing is asked of w.
func NewTerminal(w io.Writer, width int) *Screen {
	return &Screen{w: w, tty: true, color: true, width: width}
}

// minWidth is the least width, in columns, for which lines are cut.
const minWidth = 40

// Write passes p on as it is.
func (s *Screen) Write(p []byte) (int, error) { return s.w.Write(p) }

// Terminal tells whether a person is looking.
func (s *Screen) Terminal() bool { return s.tty }

// Width is the width in columns; 0 = unlimited.
func (s *Screen) Width() int { return s.width }

// Behind gives the columns that are left of a line behind its head, at least 20; without a width so many as none
// says.
func (s *Screen) Rest(head string, none int) int {
	if s.width == 0 {
		return none
	}
	return max(20, s.width-Columns(head))
}

// Style is how a piece of text looks, on a terminal that shows colours.
type Style uint8

// The styles.
const (
	Plain Style = iota
	Bold
	Dim
	Red
	Green
	Yellow
	Blue
	Cyan
)

var codes = [...]string{Bold: "1", Dim: "2", Red: "31", Green: "32", Yellow: "33", Blue: "34", Cyan: "36"}

// Paint gives text in a style.
func (s *Screen) Paint(style Style, text string) string {
	if !s.color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + codes[style] + "m" + text + "\x1b[0m"
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
