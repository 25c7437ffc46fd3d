package term

import (
	"fmt"
	"strings"
)

// Column is one column of a table. A Flex column is narrowed if the lines are too long for the screen.
type Column struct {
	Head        string
	Right, Flex bool
}

// Cell is one cell of a table. If it is too long the part around its place is shown, or else its beginning.
type Cell struct {
	Text  string
	Style Style
	Place [2]int // from and to, in bytes
}

// gap separates two columns of a table.
const gap = "  "

// minFlex is the minimum width of a flexible column.
const minFlex = 12

// Table writes aligned rows below a line of headings. Cells must be single lines.
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
		heads[i] = Cell{Text: c.Head, Style: Bold}
	}
	var b strings.Builder
	for _, row := range append([][]Cell{heads}, rows...) {
		for len(row) > 1 && row[len(row)-1].Text == "" {
			row = row[:len(row)-1]
		}
		for i, cell := range row {
			text := Cut(cell.Text, widths[i])
			if cell.Place[1] > 0 {
				text, _ = Excerpt(cell.Text, cell.Place, widths[i])
			}
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

// squeeze narrows the widest flexible column until the lines fit, or all are at their minimum width.
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
