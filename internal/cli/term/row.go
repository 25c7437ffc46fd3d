package term

import (
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

// openWidth is the column at which ids end if the width is unlimited.
const openWidth = 110

// row writes one entry of the tree on one line, with its id at the right end.
func (d *drawer) row(row rows.Row, mark string) {
	n := d.nodeAt(row.Ordinal)
	id := Line(d.short(n.ID))
	b := &line{s: d.s}
	if width := d.s.Width(); width > 0 {
		b.limit = max(width-d.idLen-1, width/2)
	}
	b.add(Dim, mark)
	bullet, style := "○ ", Dim
	if row.OnPath {
		bullet, style = "● ", Green
	}
	b.add(style, bullet)
	role := Speaker(n.Type, n.Role)
	b.add(roleStyle(role), fmt.Sprintf("%-9s", role))
	if row.Versions > 1 {
		b.add(Cyan, fmt.Sprintf(" ‹%d/%d›", row.Version, row.Versions))
	}
	if marks := Marks(n, false); marks != "" {
		b.add(Yellow, " ["+Line(marks)+"]")
	}
	if names := d.heads(n); names != "" {
		b.add(Green, " ("+names+")")
	}
	if row.Hidden > 0 {
		b.add(Cyan, fmt.Sprintf(" +%d", row.Hidden))
	}
	if n.Preview != "" {
		text := Plain
		if !row.OnPath {
			text = Dim
		}
		b.add(text, " "+Line(n.Preview))
	}
	column := b.limit
	if column == 0 {
		column = openWidth - d.idLen - 1
	}
	pad := strings.Repeat(" ", max(1, column+1-b.used))
	d.printf("%s%s%s\n", b.b.String(), pad, d.s.Paint(Dim, id))
}

// heads returns the marks of an entry: the head and the branches at it, and those at entries that are not shown, with
// that entry: "head, main at 0c1f77aa".
func (d *drawer) heads(n transcript.Node) string {
	var out strings.Builder
	on := n.ID
	end := func() {
		if on != n.ID {
			out.WriteString(" at " + Line(d.short(on)))
		}
	}
	for _, m := range d.marks[n.Ordinal] {
		name := d.nameOf(m.Branch)
		if name == "" || d.o.Only != nil && m.Entry != n.ID {
			continue // matches are a list, without a tree below them
		}
		if m.Entry != on {
			end()
		}
		if out.Len() > 0 {
			out.WriteString(", ")
		}
		on = m.Entry
		out.WriteString(Line(name))
	}
	end()
	return out.String()
}

// nameOf returns the text of a mark; "" = it is not drawn.
func (d *drawer) nameOf(branch string) string {
	if branch == "" {
		return "head"
	}
	return BranchName(branch, d.titles[branch])
}

// BranchName returns a branch's name, with its title if that differs; "" if there is no title: a branch without entries
// of its own is not shown.
func BranchName(name, title string) string {
	if title == "" || title == name {
		return title
	}
	return name + " “" + title + "”"
}

// line collects one line, cut to its limit; 0 = none.
type line struct {
	s     *Screen
	b     strings.Builder
	limit int
	used  int
	full  bool
}

// newLine returns an empty line as wide as the screen.
func newLine(s *Screen) *line { return &line{s: s, limit: s.Width()} }

func (l *line) add(style Style, text string) {
	if l.full {
		return
	}
	if left := l.limit - l.used; l.limit > 0 && Columns(text) > left {
		l.full = true
		if left <= 0 {
			return
		}
		text = Cut(text, left)
	}
	l.used += Columns(text)
	l.b.WriteString(l.s.Paint(style, text))
}

func (l *line) String() string { return strings.TrimRight(l.b.String(), " ") }

// shorter has short words for types with long names.
var shorter = map[string]string{
	"model_change": "model", "thinking_level_change": "thinking", "branch_summary": "summary",
	"custom_message": "note", "session_info": "title",
}

// Speaker returns, for people, the role of a message, or the type of any other entry.
func Speaker(typ, role string) string {
	name := typ
	switch {
	case typ == "message" && role == "toolResult":
		return "tool"
	case typ == "message" && role == "bashExecution":
		return "bash"
	case typ == "message" && role != "", typ == "custom_message" && role == "user":
		name = role
	case shorter[typ] != "":
		return shorter[typ]
	}
	return Cut(Line(name), 16)
}

func roleStyle(who string) Style {
	switch who {
	case "user":
		return Cyan
	case "assistant":
		return Plain
	case "compaction", "summary":
		return Blue
	}
	return Dim
}

// Marks returns the label of an entry, and whether it is amended or hidden, unless its original is shown.
func Marks(n transcript.Node, original bool) string {
	state := ""
	switch {
	case original:
	case n.Hidden:
		state = "hidden"
	case n.AmendedBy != "":
		state = "amended"
	}
	if n.Label != "" && state != "" {
		return n.Label + ", " + state
	}
	return n.Label + state
}
