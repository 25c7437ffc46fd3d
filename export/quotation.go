package export

import "strings"

// quote writes a message as a Markdown quotation: every line begins with ">". So everything that the message opens (a
// fence, a list, a table, a heading, an element of some dialect) ends with the quotation, and no heading in it is one
// of the document's. Three elements have an effect outside of a quotation and are escaped, except in code: HTML,
// definitions of links and footnotes, and external images, which would reveal to their server that the page is read.
// All line ends in the text must be "\n".
func quote(text string) string {
	var b strings.Builder
	for _, l := range tame(text) {
		b.WriteByte('>')
		if l != "" {
			b.WriteString(" " + l)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// tame returns the lines of a text, with elements that have an effect outside of a quotation escaped, except in code.
func tame(text string) []string {
	t := &tamer{}
	for l := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		t.line(l)
	}
	t.escapeAdded()
	if t.fence.size > 0 { // the answer was truncated
		t.out = append(t.out, t.margin()+strings.Repeat(string(t.fence.char), t.fence.size))
	}
	return t.out
}

// tamer processes the lines of a text by the rules of CommonMark that determine which lines are code.
type tamer struct {
	out   []string
	open  []container // open quotations and list items, outer ones first
	fence fence
	para  bool // a paragraph is open: the next line can continue it at any indentation
	chunk int  // out[chunk:] are text lines that are escaped together
	table bool // they can be a table, which not every reader supports
	lost  bool // nesting is too deep or irregular to identify code
}

// container is a list item, or a quotation within the message.
type container struct {
	quote  bool
	offset int  // of an item: indentation of its lines, in columns
	empty  bool // of an item: no text follows its mark
}

type fence struct {
	char byte
	size int // 0 = none is open
}

// nestMost bounds nested containers. At deeper levels nothing counts as code.
const nestMost = 64

// margin returns the prefix of a line in the open containers.
func (t *tamer) margin() string {
	var b strings.Builder
	for _, c := range t.open {
		if c.quote {
			b.WriteString("> ")
		} else {
			b.WriteString(strings.Repeat(" ", c.offset))
		}
	}
	return b.String()
}

// line processes the next line.
func (t *tamer) line(s string) {
	if t.lost {
		t.add(s)
		return
	}
	c := &cursor{rest: s}
	matched := t.reach(c)
	all := matched == len(t.open)
	if t.fence.size > 0 && all {
		if c.first() == t.fence.char {
			c.expand() // in a quotation tabs would have another width
		}
		if t.fence.closedBy(c) {
			t.fence = fence{}
		}
		t.code(c)
		return
	}
	t.fence = fence{}
	lazy := t.para
	leaf, begun := t.begin(c, matched, all)
	switch {
	case leaf == isCode:
		t.para = false
		t.code(c)
		return
	case leaf == isHeading:
		t.words(c, !all || begun || !lazy)
		t.para = false
		t.escapeAdded()
		return
	case c.blank():
		if !begun {
			t.open = t.open[:matched]
		}
		t.para = false
		t.escapeAdded()
		t.words(c, true)
		t.escapeAdded()
		return
	case !begun && !all && lazy: // continues the paragraph, with less indentation
		t.lost = t.lost || t.table
	case !begun:
		t.open = t.open[:matched]
	}
	t.words(c, begun || !lazy)
	t.para = true
	for i := range t.open {
		t.open[i].empty = false
	}
}

// reach reads the marks of the open containers and returns how many of them contain the line.
func (t *tamer) reach(c *cursor) int {
	for i, o := range t.open {
		switch {
		case o.quote:
			if c.indent() > 3 || c.first() != '>' {
				return i
			}
			c.take(c.indent())
			c.mark(1)
			if c.indent() > 0 {
				c.take(1)
			}
		case c.blank():
			if o.empty {
				return i
			}
		case c.indent() < o.offset:
			return i
		default:
			c.take(o.offset)
		}
	}
	return len(t.open)
}

// code adds a line of code, words a line of text. fresh = the line begins a new block.
func (t *tamer) code(c *cursor) {
	t.escapeAdded()
	t.out = append(t.out, c.done.String()+c.rest)
	t.chunk = len(t.out)
}

func (t *tamer) words(c *cursor, fresh bool) {
	if fresh {
		t.escapeAdded()
	}
	c.expand()
	t.add(c.done.String() + c.rest)
}

func (t *tamer) add(words string) {
	t.out = append(t.out, words)
	t.table = t.table || dashes().MatchString(words)
}

// escapeAdded escapes the text lines that were added since its last call.
func (t *tamer) escapeAdded() {
	defuse(t.out[t.chunk:], t.table, t.lost)
	t.chunk, t.table = len(t.out), false
}
