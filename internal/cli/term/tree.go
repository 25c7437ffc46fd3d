package term

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// TreeOptions say how Tree draws.
type TreeOptions struct {
	Filter transcript.Filter
	Keep   func(transcript.Node) bool // only these, as a list; nil = all, as a tree
	Full   bool                       // every step of a tool on a line of its own
	Ends   int                        // of a straight run only so many lines at either end; 0 = all
	Hidden map[uint64]int             // folded entries, by ordinal: how many hang below and are not shown
}

// Tree draws a tree with its root at the top. The current path is in the first column, marked ●.
// Other versions of an entry hang on it, marked ○, each with its own line below. The head and the
// branches are named at their entries, or at the nearest ancestor that is drawn. Runs of tool calls
// and results become one line.
func Tree(s *Screen, t *transcript.Tree, o TreeOptions) error {
	w := bufio.NewWriterSize(s, 1<<16)
	d := &drawer{s: s, w: w, fo: grow(t, o.Filter, o.Keep), o: o, short: EntryIDs(t).Short}
	d.marks = view.Marks(t, d.shown())
	d.all()
	if err := w.Flush(); err != nil {
		return fmt.Errorf("draw the tree: %w", err)
	}
	return nil
}

// drawer writes one forest.
type drawer struct {
	s     *Screen
	w     io.Writer
	fo    *forest
	o     TreeOptions
	short func(string) string
	marks map[uint64][]view.Mark // by the ordinal of the entry that carries them
	idLen int
}

// shown returns a function that reports whether an entry is drawn, alone or as part of a folded
// run: whether it is below no folded entry.
func (d *drawer) shown() func(ordinal uint64) bool {
	shown := map[uint64]bool{}
	for i := range d.fo.items { // parents come first
		it := &d.fo.items[i]
		shown[it.ord] = true
		if p := it.parent; p != none && d.o.Keep == nil {
			above := d.fo.items[p].ord
			shown[it.ord] = shown[above] && d.o.Hidden[above] == 0
		}
	}
	return func(ordinal uint64) bool { return shown[ordinal] }
}

// lane is a line of the tree that is not drawn yet. It starts at an item, after a gutter.
type lane struct {
	at     int32
	gutter string // for all its lines but the first
	mark   string // in front of its first line: the gutter and how it hangs on its parent
}

// maxGutter bounds how deep lanes are indented, in columns.
const maxGutter = 48

// all draws every lane. Pending lanes are a stack: depth needs no recursion.
func (d *drawer) all() {
	for n := range d.fo.t.Nodes(d.o.Filter) {
		d.idLen = max(d.idLen, len(d.short(n.ID)))
	}
	if d.o.Keep != nil {
		for i := range d.fo.items {
			d.row(int32(i), "")
		}
		return
	}
	var stack []lane
	var roots []lane
	main := d.fo.straight(d.fo.first, d.fo.last, false)
	for r := d.fo.first; r != none; r = d.fo.items[r].next {
		if r != main {
			roots = append(roots, lane{at: r})
		}
	}
	if main != none {
		roots = append(roots, lane{at: main})
	}
	for i := len(roots) - 1; i >= 0; i-- {
		stack = append(stack, roots[i])
	}
	for len(stack) > 0 {
		l := stack[len(stack)-1]
		stack = d.lane(l, stack[:len(stack)-1])
	}
}

// lane draws a line down to its next fork, and pushes what follows onto the stack.
func (d *drawer) lane(l lane, stack []lane) []lane {
	run := d.run(l.at)
	d.rows(run, l)
	end := run[len(run)-1]
	it := d.fo.items[end]
	if it.children == 0 || d.o.Hidden[it.ord] > 0 {
		return stack
	}
	// Nothing continues the line of the head itself: its children are not on the current path.
	main := d.fo.straight(it.first, it.last, it.onPath)
	var side []lane
	for c := it.first; c != none; c = d.fo.items[c].next {
		if c != main {
			side = append(side, d.hang(l.gutter, main == none && c == it.last, c))
		}
	}
	if main != none {
		stack = append(stack, lane{at: main, gutter: l.gutter, mark: l.gutter})
	}
	for i := len(side) - 1; i >= 0; i-- {
		stack = append(stack, side[i])
	}
	return stack
}

// hang makes the lane of a version that leaves the line at gutter.
func (d *drawer) hang(gutter string, last bool, at int32) lane {
	if Columns(gutter) >= maxGutter {
		return lane{at: at, gutter: gutter, mark: gutter}
	}
	if last {
		return lane{at: at, gutter: gutter + "  ", mark: gutter + "╰─"}
	}
	return lane{at: at, gutter: gutter + "│ ", mark: gutter + "├─"}
}

// run returns the items from one on until the line forks or ends.
func (d *drawer) run(at int32) []int32 {
	run := []int32{at}
	for d.fo.items[at].children == 1 && d.o.Hidden[d.fo.items[at].ord] == 0 {
		it := d.fo.items[at]
		if it.onPath && !d.fo.items[it.first].onPath {
			break // the head: what grows on it hangs
		}
		at = it.first
		run = append(run, at)
	}
	return run
}

// rows writes the items of a run, steps and long stretches folded.
func (d *drawer) rows(run []int32, l lane) {
	mark := l.mark
	rows := d.fold(run)
	skip, hidden := 0, 0
	if n := d.o.Ends; n > 0 && len(rows) > 2*n+1 {
		skip = n
		for _, r := range rows[n : len(rows)-n] {
			hidden += len(r)
		}
	}
	for i := 0; i < len(rows); i++ {
		if skip > 0 && i == skip {
			d.printf("%s%s\n", d.gutter(mark), d.s.Paint(Dim, "┊ "+Count(hidden, "more entry", "more entries")))
			i = len(rows) - d.o.Ends - 1
			mark = l.gutter
			continue
		}
		if len(rows[i]) > 1 {
			d.printf("%s%s\n", d.gutter(mark), d.s.Paint(Dim, "┊ "+d.steps(rows[i])))
		} else {
			d.row(rows[i][0], mark)
		}
		mark = l.gutter
	}
}

// fold groups the steps between messages. Labelled items, heads of branches, and the first and last
// item of the run stay alone.
func (d *drawer) fold(run []int32) [][]int32 {
	var rows [][]int32
	open := false
	for i, at := range run {
		n := d.fo.t.NodeAt(d.fo.items[at].ord)
		inner := i > 0 && i < len(run)-1
		quiet := inner && d.fo.items[at].step && !d.o.Full && n.Label == "" && d.marks[n.Ordinal] == nil
		if quiet && open {
			rows[len(rows)-1] = append(rows[len(rows)-1], at)
		} else {
			rows = append(rows, []int32{at})
		}
		open = quiet
	}
	return rows
}

// steps describes a run of steps: the number of results, and the tools.
func (d *drawer) steps(run []int32) string {
	results := 0
	var names []string
	seen := map[string]bool{}
	for _, at := range run {
		n := d.fo.t.NodeAt(d.fo.items[at].ord)
		if n.Role != "assistant" {
			results++
			continue
		}
		for _, name := range toolNames(n.Preview) {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	text := Count(results, "tool result", "tool results")
	if results == 0 {
		text = Count(len(run), "tool call", "tool calls")
	}
	if len(names) > 5 {
		names = append(names[:5], "…")
	}
	if len(names) > 0 {
		text += " · " + strings.Join(names, ", ")
	}
	return text
}

// toolNames finds the names in the preview of calls: "read(a.go), bash(ls)".
func toolNames(preview string) []string {
	var names []string
	for part := range strings.SplitSeq(preview, "), ") {
		name, _, ok := strings.Cut(part, "(")
		if ok && name != "" && !strings.ContainsAny(name, " \t.,;:") {
			names = append(names, name)
		}
	}
	return names
}

func (d *drawer) gutter(text string) string { return d.s.Paint(Dim, text) }

func (d *drawer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(d.w, format, args...); err != nil {
		return // Flush returns the error
	}
}
