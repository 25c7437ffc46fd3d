// Package term draws for terminals: a session's tree and conversation, differences, tables, progress bars; and it
// formats sizes and times for people.
//
// Guarantees: text of a session is written to a terminal without its control characters, so that no transcript can move
// the cursor, change the title or hide text; and a stream that is not a terminal gets neither colours nor cut lines,
// unless COLUMNS requests them.
package term

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is a stream for people. Not safe for concurrent use.
type Screen struct {
	w     io.Writer
	tty   bool
	color bool
	width int
}

// New returns the screen of a stream. getenv reads the environment: NO_COLOR, TERM, and COLUMNS,
// the width of a stream that is not a terminal.
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

// NewTerminal returns a screen that is a terminal of this width, whatever w is.
func NewTerminal(w io.Writer, width int) *Screen {
	return &Screen{w: w, tty: true, color: true, width: width}
}

// minWidth is the minimum width, in columns, for which lines are cut.
const minWidth = 40

// Write writes p unchanged.
func (s *Screen) Write(p []byte) (int, error) { return s.w.Write(p) }

// File returns the terminal of the stream; nil = not a terminal.
func (s *Screen) File() *os.File {
	if f, ok := s.w.(*os.File); ok && s.tty {
		return f
	}
	return nil
}

// Terminal reports whether the stream is a terminal.
func (s *Screen) Terminal() bool { return s.tty }

// Width returns the width in columns; 0 = unlimited.
func (s *Screen) Width() int { return s.width }

// Rest returns the remaining columns of a line after its head, at least 20; with an unlimited width it returns none.
func (s *Screen) Rest(head string, none int) int {
	if s.width == 0 {
		return none
	}
	return max(20, s.width-Columns(head))
}

// Style is the look of text on a terminal with colours.
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

// Paint returns text in a style.
func (s *Screen) Paint(style Style, text string) string {
	if !s.color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + codes[style] + "m" + text + "\x1b[0m"
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
