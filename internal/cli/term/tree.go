package term

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/coppice-go/coppice/internal/branch"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

// TreeOptions define how Tree draws.
type TreeOptions struct {
	Filter transcript.Filter
	Only   []uint64        // only these ordinals, as a list in this order; nil = all, as a tree
	Full   bool            // every step of a tool on a separate line
	Ends   int             // number of lines shown at either end of a straight run; 0 = all
	Folds  map[uint64]bool // ordinals of entries whose descendants are counted and not shown; a list shows them too
}

// Tree draws a tree with its root at the top. The current path is in the first column, marked ●. Other versions of an
// entry are below it, marked ○, each with its own path below. The head and the branches are named at their entries, or
// at the nearest ancestor that is drawn. Runs of tool calls and results become one line. Order and lanes are those of
// internal/rows; nodes are created one by one, only for drawn rows.
func Tree(s *Screen, t *transcript.Tree, o TreeOptions) error {
	w := bufio.NewWriterSize(s, 1<<16)
	d := &drawer{s: s, w: w, t: t, o: o, short: EntryIDs(t).Short}
	for ord := range uint64(t.Len()) {
		if t.Shows(o.Filter, ord) {
			d.idLen = max(d.idLen, len(d.short(t.ID(ord))))
		}
	}
	only, bits := d.only()
	r, err := rows.New(t, rows.Options{Filter: o.Filter, Folds: o.Folds, Found: bits})
	if err != nil {
		return fmt.Errorf("draw the tree: %w", err)
	}
	d.r = r
	d.head, _ = d.end()
	d.titles = branch.Titles(t)
	d.marks = view.Marks(t, func(ord uint64) bool {
		if bits != nil {
			return bits[ord/64]>>(ord%64)&1 == 1
		}
		_, ok := r.IndexOf(ord)
		return ok
	})
	// fetch requests a node, and d.node is that node when it returns.
	for d.node = range t.NodesAt(func(fetch func(uint64) bool) {
		if d.fetch = fetch; only != nil {
			d.list(only)
		} else {
			d.all()
		}
	}) {
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("draw the tree: %w", err)
	}
	return nil
}

// drawer writes one tree.
type drawer struct {
	s      *Screen
	w      io.Writer
	t      *transcript.Tree
	r      *rows.Rows
	head   rows.Row // see end
	o      TreeOptions
	short  func(string) string
	titles map[string]string      // of branches
	marks  map[uint64][]view.Mark // by the ordinal of the entry at which they are drawn
	idLen  int
	fetch  func(ordinal uint64) bool
	node   transcript.Node
	lanes  [maxGutter/2 + 1]string // gutters by indent; the last one is that of all wider indents
}

// only returns the entries of a list that pass the filter, and the same as bits; nil, nil: not a list.
func (d *drawer) only() (list, bits []uint64) {
	if d.o.Only == nil {
		return nil, nil
	}
	list, bits = []uint64{}, make([]uint64, d.t.Len()/64+1)
	for _, ord := range d.o.Only {
		if d.t.Shows(d.o.Filter, ord) {
			list, bits[ord/64] = append(list, ord), bits[ord/64]|1<<(ord%64)
		}
	}
	return list, bits
}

// list draws entries without a tree.
func (d *drawer) list(only []uint64) {
	for _, ord := range only {
		n := d.nodeAt(ord)
		row, _ := d.rowOf(ord)
		d.row(rows.Row{Ordinal: ord, OnPath: n.OnPath, Hidden: row.Hidden}, "")
	}
}

func (d *drawer) nodeAt(ord uint64) transcript.Node {
	if d.node.Ordinal != ord || d.node.ID == "" {
		d.fetch(ord)
	}
	return d.node
}

// rowOf returns the row of an entry; false: it has none.
func (d *drawer) rowOf(ord uint64) (rows.Row, bool) {
	if i, ok := d.r.IndexOf(ord); ok {
		for row := range d.r.At(i, 1) {
			return row, true
		}
	}
	return rows.Row{}, false
}

// maxGutter is the maximum indentation of lanes, in columns.
const maxGutter = 48

// all draws every row. Rows between two forks are drawn together, as one run.
func (d *drawer) all() {
	var first, last rows.Row // of the run
	from, i := 0, 0
	for row := range d.r.At(0, d.r.Len()) {
		// An entry below the head hangs, even if it is its only child.
		goes := i > 0 && last.Children == 1 && !last.Folded && row.Indent == last.Indent
		if !goes {
			d.run(first, from, i)
			first, from = row, i
		}
		last, i = row, i+1
	}
	d.run(first, from, i)
}

// run draws the rows [from:to]; first is the first of them.
func (d *drawer) run(first rows.Row, from, to int) {
	if from == to {
		return
	}
	at := min(first.Indent, len(d.lanes)-1)
	mark := d.lanes[at]
	if above, ok := d.rowOf(first.Parent); ok && first.HasParent && first.Indent > above.Indent {
		mark = d.hang(first, above)
	}
	d.rows(from, to, mark, d.lanes[at])
}

// hang begins the lane of a version that leaves the path of the entry above it, and returns the text before its first
// line.
func (d *drawer) hang(first, above rows.Row) (mark string) {
	if first.Indent >= len(d.lanes) {
		return d.lanes[len(d.lanes)-1]
	}
	gutter := d.lanes[above.Indent]
	if first.Version == first.Versions && above.OnPath && above.Ordinal == d.head.Ordinal {
		d.lanes[first.Indent] = gutter + "  "
		return gutter + "╰─"
	}
	d.lanes[first.Indent] = gutter + "│ "
	return gutter + "├─"
}

// end returns the head, or the nearest shown ancestor: no row continues its path.
func (d *drawer) end() (row rows.Row, ok bool) {
	for ord, on := d.t.HeadOrdinal(); on && !ok; ord, on = d.t.Parent(ord) {
		row, ok = d.rowOf(ord)
	}
	return row, ok
}

// rows writes the rows of a run, with steps and long stretches folded.
func (d *drawer) rows(from, to int, mark, gutter string) {
	skip, until := -1, -1 // groups
	if n := d.o.Ends; n > 0 {
		total := 0
		for range d.groups(from, to) {
			total++
		}
		if total > 2*n+1 {
			skip, until = n, total-n
		}
	}
	k, hidden := 0, 0
	for first, count := range d.groups(from, to) {
		switch {
		case k >= skip && k < until:
			if hidden += count; k == until-1 {
				d.printf("%s%s\n", d.gutter(mark), d.s.Paint(Dim, "┊ "+Count(hidden, "more entry", "more entries")))
			}
		case count > 1:
			d.printf("%s%s\n", d.gutter(mark), d.s.Paint(Dim, "┊ "+d.steps(first, count)))
		default:
			for row := range d.r.At(first, 1) {
				d.row(row, mark)
			}
		}
		mark = gutter
		k++
	}
}

// groups divides the rows of a run into groups with one line each: the steps between messages, and each other row
// alone. Labelled entries, heads of branches, and the first and last row of the run stay alone. It yields the first row
// of a group and their number.
func (d *drawer) groups(from, to int) iter.Seq2[int, int] {
	return func(yield func(first, count int) bool) {
		i, quiet := from, 0
		for row := range d.r.At(from, to-from) {
			if i > from && i < to-1 && d.quiet(row.Ordinal) {
				quiet++
			} else {
				if quiet > 0 && !yield(i-quiet, quiet) || !yield(i, 1) {
					return
				}
				quiet = 0
			}
			i++
		}
	}
}

// quiet reports whether an entry is a step: it has only calls and results of tools, and no label or mark.
func (d *drawer) quiet(ord uint64) bool {
	if d.o.Full || d.marks[ord] != nil || d.t.Shows(transcript.FilterNoTools, ord) ||
		d.t.Shows(transcript.FilterLabeledOnly, ord) {
		return false
	}
	if typ, _ := d.t.Kind(ord); typ != "message" {
		return false
	}
	// An amendment hides a message that the default filter leaves out: its label is not drawn.
	return d.t.Shows(transcript.FilterDefault, ord) || d.nodeAt(ord).Label == ""
}

// steps describes a run of steps: the number of results, and the tools.
func (d *drawer) steps(first, count int) string {
	results := 0
	var names []string
	seen := map[string]bool{}
	for row := range d.r.At(first, count) {
		n := d.nodeAt(row.Ordinal)
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
		text = Count(count, "tool call", "tool calls")
	}
	if len(names) > 5 {
		names = append(names[:5], "…")
	}
	if len(names) > 0 {
		text += " · " + strings.Join(names, ", ")
	}
	return text
}

// toolNames returns the names in the preview of calls: "read(a.go), bash(ls)".
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
