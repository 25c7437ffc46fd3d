package tui

import (
	"cmp"
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript/view"
)

func (b *browser) View() tea.View {
	if b.width < minWidth || b.height < minHeight {
		return screenOf([]string{"the terminal is too small"})
	}
	left, right := b.panes(b.pane != paneNone)
	var body []string
	if left > 0 {
		body = column(b.drawn(left), 0, b.rows())
	}
	if right > 0 {
		b.below = max(0, min(b.below, len(b.text)-b.rows()))
		pane := column(b.text, b.below, b.rows())
		for i, line := range pane {
			if b.pane == paneHelp {
				pane[i] = term.Cut(line, right)
			}
		}
		if left > 0 {
			pane = beside(body, pane, left)
		}
		body = pane
	}
	info := b.s.Info()
	title := brush.Paint(term.Bold, term.Cut(term.Line(info.Name()), b.width-24))
	place := fmt.Sprintf("branch %s, commit %d", info.Branch, info.Seq)
	title += "  " + paint(term.Dim, place, b.width-visible(title)-2)
	return screenOf(append(append([]string{title}, body...), b.foot()))
}

// foot returns the last line: a question, the result of the last step, or the keys.
func (b *browser) foot() string {
	row, _ := b.selected()
	switch b.asks {
	case askLabel:
		return term.Cut("label of "+b.short(row.ID)+": "+b.input+"▏", b.width)
	case askSearch:
		return term.Cut("search: "+b.input+"▏", b.width)
	case askRollback:
		question := "roll back to " + b.short(row.ID) +
			"? state, context and head become those of its commit, on a new branch [y/N]"
		return paint(term.Yellow, question, b.width)
	case askSwitch:
		return paint(term.Yellow, "continue at "+b.short(row.ID)+"? the head moves there [y/N]", b.width)
	case askNothing:
	}
	if b.status != "" {
		style := term.Green
		if strings.HasPrefix(b.status, "failed") {
			style = term.Red
		}
		return paint(style, b.status, b.width)
	}
	const keys = "?: keys  enter: entry  s: state  ←→: versions  space: fold  l: label  r: roll back  q: leave"
	return paint(term.Dim, keys, b.width)
}

// drawn returns the visible rows of the tree.
func (b *browser) drawn(width int) []string {
	rows, at := b.v.Rows(), b.v.Selected()
	if len(rows) == 0 {
		return []string{paint(term.Dim, "nothing to show", width)}
	}
	b.from = scroll(b.from, max(at, 0), len(rows), b.rows())
	var out []string
	for i := b.from; i < min(len(rows), b.from+b.rows()); i++ {
		out = append(out, b.row(&rows[i], i == at, width-1))
	}
	return out
}

// maxIndent is the maximum indentation of a row, in columns.
const maxIndent = 24

// row draws one entry.
func (b *browser) row(r *view.Row, selected bool, width int) string {
	mark, bullet, style := "  ", "○", term.Dim
	if r.OnPath {
		bullet, style = "●", term.Plain
	}
	if r.Folded {
		bullet = "▸"
	}
	if selected {
		mark, style = "▌ ", term.Bold
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%*s%s %-9s", min(2*r.Indent, maxIndent), "", bullet, term.Speaker(r.Type, r.Role))
	if r.Versions > 1 {
		fmt.Fprintf(&text, " ‹%d/%d›", r.Version, r.Versions)
	}
	if r.Label != "" {
		text.WriteString(" [" + r.Label + "]")
	}
	for _, m := range r.Marks {
		text.WriteString(" (" + cmp.Or(m.Branch, "head") + ")")
	}
	if r.Folded {
		fmt.Fprintf(&text, " +%d", r.Hidden)
	}
	text.WriteString(" " + r.Preview)
	return brush.Paint(term.Cyan, mark) + paint(style, text.String(), width-2)
}
