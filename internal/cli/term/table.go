package term

import (
	"fmt"
	"strings"
)

// Column is one column of a table. A Flex column gives way where the lines are longer than the screen is
// wide.
type Column struct {
	Head        string
	Right, Flex bool
}

// Cell is one cell of a table.
type Cell struct {
	Text  string
	Style Style
}

// gap is what stands between two columns of a table.
const gap = "  "

// minFlex is what is left of a flexible column, in columns of the
const minFlex = 12

// Table writes rows below a line of heads, aligned. Cells must be single lines.
func (s *Screen) Table(columns []Column, rows [][]Cell) error {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = Columns(c.Head)
		for _, row := range rows {
			widths[i] = max(widths[i], Columns(row[i].Text))
		}
	}
	s.squeeze(columns, widths)
	heads := make([]Cell, len(columns))
	for i, c := range columns {
		heads[i] = Cell{c.Head, Bold}
	}
	var b strings.Builder
	for _, row := range append([][]Cell{heads}, rows...) {
		for len(row) > 1 && row[len(row)-1].Text == "" {
			row = row[:len(row)-1]
		}
		for i, cell := range row {
			text := Cut(cell.Text, widths[i])
			pad := strings.Repeat(" ", max(0, widths[i]-Columns(text)))
			text = s.Paint(cell.Style, text)
			switch {
			case columns[i].Right:
				text = pad + text
			case i < len(row)-1:
				text += pad
			}
			if i > 0 {
				b.WriteString(gap)
			}
			b.WriteString(text)
		}
		b.WriteByte('\n')
	}
	_, err := fmt.Fprint(s, b.String())
	return err
}

// squeeze takes from the widest flexible column until the lines fit, or none has anything to give.
func (s *Screen) squeeze(columns []Column, widths []int) {
	if s.width == 0 {
		return
	}
	total := len(gap) * (len(columns) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > s.width; total-- {
		widest := -1
		for i, c := range columns {
			if c.Flex && widths[i] > minFlex && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}
