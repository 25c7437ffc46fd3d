package export

import (
	"strings"
)

// cursor is a position in a line after the marks of its containers. A tab extends to the next multiple of four columns.
// It becomes spaces if it is split, because in a quotation it would have another width.
type cursor struct {
	done strings.Builder
	rest string
	col  int
}

// indent returns the columns of white space ahead.
func (c *cursor) indent() int {
	col := c.col
	for i := range len(c.rest) {
		switch c.rest[i] {
		case ' ':
			col++
		case '\t':
			col += 4 - col%4
		default:
			return col - c.col
		}
	}
	return col - c.col
}

func (c *cursor) blank() bool { return strings.Trim(c.rest, " \t") == "" }

// first returns the first character that is not white space; 0 = none.
func (c *cursor) first() byte {
	if s := strings.TrimLeft(c.rest, " \t"); s != "" {
		return s[0]
	}
	return 0
}

// take skips columns of white space, which must exist.
func (c *cursor) take(columns int) {
	for columns > 0 && c.rest != "" {
		if c.rest[0] == '\t' {
			c.rest = strings.Repeat(" ", 4-c.col%4) + c.rest[1:]
		}
		c.mark(1)
		columns--
	}
}

// mark skips characters of one column each.
func (c *cursor) mark(n int) {
	c.done.WriteString(c.rest[:n])
	c.rest = c.rest[n:]
	c.col += n
}

// expand replaces the white space ahead by spaces.
func (c *cursor) expand() {
	n := c.indent()
	c.rest = strings.Repeat(" ", n) + strings.TrimLeft(c.rest, " \t")
}

// closedBy reports whether a line closes the fence.
func (f fence) closedBy(c *cursor) bool {
	s := strings.Trim(c.rest, " \t")
	return c.indent() <= 3 && len(s) >= f.size && strings.Trim(s, string(f.char)) == ""
}

// leaf is the kind of a line within its containers.
type leaf uint8

const (
	isWords leaf = iota
	isCode
	isHeading // a heading or a rule: it ends a paragraph
)

var (
	heading   = lazy(`^#{1,6}([ \t]|$)`)
	underline = lazy(`^(=+|-+)[ \t]*$`)
	rule      = lazy(`^(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$`)
	opening   = lazy("^(?:(`{3,})[^`]*|(~{3,}).*)$")
	bullet    = lazy(`^(?:[-+*]|([0-9]{1,9})[.)])(?:[ \t]|$)`)
)

// begin opens the containers that begin with this line, and returns the kind of the line; begun reports whether there
// are any. matched is the number of open containers that contain the line.
func (t *tamer) begin(c *cursor, matched int, all bool) (is leaf, begun bool) {
	para, lazy := t.para && all, t.para
	enter := func(o container) {
		t.open = append(t.open[:matched:matched], o)
		matched, para, lazy, begun, all = matched+1, false, false, true, true
		t.lost = t.lost || matched > nestMost
	}
	leave := func(l leaf) (leaf, bool) {
		t.open = t.open[:matched]
		for i := range t.open {
			t.open[i].empty = false
		}
		return l, begun
	}
	for !c.blank() && !t.lost {
		ahead := c.indent()
		text := strings.TrimLeft(c.rest, " \t")
		if para && t.table && (text[0] == '=' || bullet().MatchString(text)) {
			// Within a paragraph these lines have another meaning than after a table row.
			if _, ok := item(text, para); !ok {
				t.lost = true
				break
			}
		}
		if ahead > 3 {
			if lazy {
				break
			}
			c.take(4)
			return leave(isCode)
		}
		switch {
		case text[0] == '>':
			c.take(ahead)
			c.mark(1)
			if c.indent() > 0 {
				c.take(1)
			}
			enter(container{quote: true})
			continue
		case heading().MatchString(text):
			return leave(isHeading)
		case opening().MatchString(text):
			c.expand()
			t.fence = fence{char: text[0], size: len(text) - len(strings.TrimLeft(text, text[:1]))}
			return leave(isCode)
		case para && underline().MatchString(text), rule().MatchString(text):
			return leave(isHeading)
		}
		width, ok := item(text, para)
		if !ok {
			break
		}
		c.take(ahead)
		c.mark(width)
		o := container{offset: ahead + width + 1, empty: c.blank()}
		if in := c.indent(); !o.empty && in < 5 {
			o.offset = ahead + width + in
			c.take(in)
		} else if !o.empty {
			c.take(1)
		}
		enter(o)
	}
	return isWords, begun
}

// item returns the width of a list item's mark. Some marks cannot interrupt a paragraph.
func item(text string, para bool) (width int, ok bool) {
	m := bullet().FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	width = len(strings.TrimRight(m[0], " \t"))
	if para && (m[1] != "" && strings.TrimLeft(m[1], "0") != "1" || strings.Trim(text[width:], " \t") == "") {
		return 0, false
	}
	return width, true
}
