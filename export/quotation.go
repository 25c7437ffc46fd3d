package export

import "strings"

// quote writes what a participant said as a quotation of Markdown: every line of it begins with ">". So whatever it
// opens (a fence, a list, a table, a heading, what some dialect has besides) ends where the quotation ends, and it is
// never taken for the document's own headings. Three things would reach out of a quotation, and are taken away
// where they stand outside of code: HTML, the definitions of links and footnotes, and pictures of elsewhere, which
// would tell their server that the page is read. Code stays as it is. The text must have no other line ends than "\n".
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

// tame returns the lines of a text, those that are no code without what would reach out of a quotation.
func tame(text string) []string {
	t := &tamer{}
	for l := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		t.line(l)
	}
	t.settle()
	if t.fence.size > 0 { // an answer that was cut off
		t.out = append(t.out, t.margin()+strings.Repeat(string(t.fence.char), t.fence.size))
	}
	return t.out
}

// tamer goes through the lines of a text by the rules of CommonMark, as far as these say which lines are code.
type tamer struct {
	out   []string
	open  []container // quotations and items of lists that are open, the outer ones first
	fence fence
	para  bool // a paragraph is open: a line can go on with it wherever it is
	chunk int  // out[chunk:] are lines of words that are to be tamed together
	table bool // these can be a table, which not every reader knows
	lost  bool // nested too deeply, or too oddly, to say what is code
}

// container is an item of a list, or a quotation within what was said.
type container struct {
	quote  bool
	offset int  // of an item: how far its lines are indented, in columns
	empty  bool // of an item: nothing was after its mark
}

type fence struct {
	char byte
	size int // 0 = none is open
}

// nestMost bounds the containers in one another. Deeper, nothing counts as code any more.
const nestMost = 64

// margin is what is before a line in the containers that are open.
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

// line reads the next line.
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
			c.expand() // in a quotation, tabs would be of another width
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
		t.settle()
		return
	case c.blank():
		if !begun {
			t.open = t.open[:matched]
		}
		t.para = false
		t.settle()
		t.words(c, true)
		t.settle()
		return
	case !begun && !all && lazy: // goes on with the paragraph, though not indented as it is
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

// reach goes through the marks of the containers that are open and says how many of them the line is in.
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

// code adds a line of code, words a line of words; fresh: it begins something new.
func (t *tamer) code(c *cursor) {
	t.settle()
	t.out = append(t.out, c.done.String()+c.rest)
	t.chunk = len(t.out)
}

func (t *tamer) words(c *cursor, fresh bool) {
	if fresh {
		t.settle()
	}
	c.expand()
	t.add(c.done.String() + c.rest)
}

func (t *tamer) add(words string) {
	t.out = append(t.out, words)
	t.table = t.table || dashes().MatchString(words)
}

// settle tames the lines of words that were added since it was last called.
func (t *tamer) settle() {
	defuse(t.out[t.chunk:], t.table, t.lost)
	t.chunk, t.table = len(t.out), false
}
