// Package tui holds the full-screen programs of the command line: Find, which picks a session, and Browse, which shows
// the tree of one session and moves its head.
//
// Guarantees: a program draws on the terminal that it is given and restores it when it ends, also when its context is
// cancelled; text of a session is drawn without control characters; viewing changes nothing in a store, and each step
// that does asks first. Reads run outside of the loop that handles keys, so that a slow store does not block it, and an
// outdated result is dropped.
package tui

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-go/coppice/internal/cli/term"
)

// Terminal is the input and output of a program.
type Terminal struct {
	In     io.Reader
	Out    io.Writer
	Getenv func(string) string
}

// run runs a program until it quits, or its context ends.
func run(ctx context.Context, t Terminal, m tea.Model) (tea.Model, error) {
	var env []string
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR"} {
		if value := t.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(t.In), tea.WithOutput(t.Out),
		tea.WithEnvironment(env), tea.WithoutSignalHandler())
	end, err := p.Run()
	switch {
	case ctx.Err() != nil:
		return end, ctx.Err()
	case err != nil:
		return end, fmt.Errorf("draw on the terminal: %w", err)
	}
	return end, nil
}

// Minimum size of a terminal for a program, and the width from which a second pane is shown.
const (
	minWidth  = 20
	minHeight = 5
	wide      = 100
)

// screen returns the output of draw for a terminal of a width, line by line, none wider.
func screen(width int, draw func(s *term.Screen) error) ([]string, error) {
	var b bytes.Buffer
	if err := draw(term.NewTerminal(&b, max(width, minWidth))); err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = clip(lines[i], width)
	}
	return lines, nil
}

// paint styles text on one line, without control characters, and cuts it to a width.
func paint(style term.Style, text string, width int) string {
	text = strings.ReplaceAll(term.Text(text), "\n", " ")
	return brush.Paint(style, term.Cut(text, max(width, 0)))
}

var brush = term.NewTerminal(io.Discard, 0)

// column pads or cuts lines of plain or styled text to a height. The caller has cut the lines to the width of the pane.
func column(lines []string, from, height int) []string {
	out := make([]string, height)
	for i := range out {
		if at := from + i; at >= 0 && at < len(lines) {
			out[i] = lines[at]
		}
	}
	return out
}

// beside joins two columns line by line; left is width columns wide.
func beside(left, right []string, width int) []string {
	out := make([]string, max(len(left), len(right)))
	for i := range out {
		l := ""
		if i < len(left) {
			l = left[i]
		}
		out[i] = l + strings.Repeat(" ", max(0, width-visible(l)))
		if i < len(right) {
			out[i] += brush.Paint(term.Dim, "│ ") + right[i]
		}
	}
	return out
}

// visible returns the width of a line with colours, in columns.
func visible(line string) (n int) {
	for text := range pieces(line) {
		n += term.Columns(text)
	}
	return n
}

// clip cuts a line with colours to a width.
func clip(line string, width int) string {
	if visible(line) <= width {
		return line
	}
	var out strings.Builder
	for text, color := range pieces(line) {
		if left := width; term.Columns(text) > left {
			text = term.Cut(text, left)
		}
		width -= term.Columns(text)
		out.WriteString(text + color)
	}
	return out.String()
}

// pieces yields the texts of a line, each with the colour sequence after it.
func pieces(line string) iter.Seq2[string, string] {
	return func(yield func(text, color string) bool) {
		for line != "" {
			text, after, colored := strings.Cut(line, "\x1b[")
			color := ""
			if colored {
				color, line, _ = strings.Cut(after, "m")
				color = "\x1b[" + color + "m"
			} else {
				line = ""
			}
			if !yield(text, color) {
				return
			}
		}
	}
}

// screenOf returns the lines as a whole screen.
func screenOf(lines []string) tea.View {
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}

// scroll returns the first line to show so that the line at is among height lines, moving from as little as possible.
func scroll(from, at, count, height int) int {
	from = min(from, at)
	if at >= from+height {
		from = at - height + 1
	}
	return max(0, min(from, count-height))
}
