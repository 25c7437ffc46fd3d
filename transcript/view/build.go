package view

import (
	"slices"

	"github.com/coppice-go/coppice/transcript"
)

// none is no item.
const none = -1

// item is an entry that filter and search let through; the links are places in the list of items.
type item struct {
	ordinal             uint64
	parent, first, last int32
	next                int32
	children, version   int32
	row                 int32 // its place among the rows, once it has one
	active              bool  // the head hangs below it, or is it
}

// build makes the rows anew.
func (v *View) build() {
	items := v.items()
	v.rows = slices.Grow(v.rows[:0], len(items)-1)
	type open struct{ at, depth, indent int32 }
	var stack []open
	push := func(top, depth, indent int32) {
		// The stack hands out the last one first: what comes last goes on first, the active one at the very end.
		if items[top].children > 1 {
			indent++
		}
		begin, active := len(stack), int32(none)
		for at := items[top].first; at != none; at = items[at].next {
			if items[at].active && active == none {
				active = at
			} else {
				stack = append(stack, open{at, depth, indent})
			}
		}
		slices.Reverse(stack[begin:])
		if active != none {
			stack = append(stack, open{active, depth, indent})
		}
	}
	push(0, 0, 0)
	for len(stack) > 0 {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		it := &items[o.at]
		row := Row{
			Node: v.t.NodeAt(it.ordinal), Depth: int(o.depth), Indent: int(o.indent), Children: int(it.children),
			Version: int(it.version), Versions: int(items[it.parent].children),
		}
		row.ParentID = ""
		if it.parent != 0 {
			row.ParentID = v.rows[items[it.parent].row].ID
		}
		if row.Label != "" {
			row.LabelTime = v.t.LabelTime(it.ordinal)
		}
		if row.Folded = v.folded[it.ordinal] && it.children > 0; row.Folded {
			row.Hidden = below(items, o.at)
		} else {
			push(o.at, o.depth+1, o.indent)
		}
		it.row = int32(len(v.rows))
		v.rows = append(v.rows, row)
	}
	v.places = slices.Repeat([]int32{none}, v.t.Len())
	for i := range v.rows {
		v.places[v.rows[i].Ordinal] = int32(i)
	}
	for ordinal, marks := range Marks(v.t, v.shows) {
		v.rows[v.places[ordinal]].Marks = marks
	}
	v.settle()
}

// items returns what is shown as a forest; the first item is above all roots.
func (v *View) items() []item {
	hit := v.hits()
	items := []item{{parent: none, first: none, last: none, next: none}}
	// By ordinal: the nearest item on the way up, itself included; none = it was not asked for yet.
	place := slices.Repeat([]int32{none}, v.t.Len())
	for n := range v.t.Nodes(v.filter) {
		if hit != nil && !hit.has(n.Ordinal) {
			continue
		}
		it := item{ordinal: n.Ordinal, first: none, last: none, next: none}
		if p, ok := v.t.Parent(n.Ordinal); ok {
			it.parent = v.nearest(p, place)
		}
		at := int32(len(items))
		place[n.Ordinal] = at
		items = append(items, it)
		hang(items, at)
	}
	v.inTime(items)
	if ord, err := v.t.Ordinal(v.t.Head()); err == nil {
		for at := v.nearest(ord, place); at > 0; at = items[at].parent {
			items[at].active = true
		}
	}
	return items
}

// hang puts an item after the others below its parent.
func hang(items []item, at int32) {
	top := &items[items[at].parent]
	top.children++
	items[at].version, items[at].next = top.children, none
	if top.last == none {
		top.first = at
	} else {
		items[top.last].next = at
	}
	top.last = at
}

// inTime puts the items below each into the order of their times.
func (v *View) inTime(items []item) {
	var nodes []transcript.Node
	for top := range items {
		if items[top].children < 2 {
			continue
		}
		nodes = nodes[:0]
		at := make(map[uint64]int32, items[top].children)
		for k := items[top].first; k != none; k = items[k].next {
			nodes = append(nodes, v.t.NodeAt(items[k].ordinal))
			at[items[k].ordinal] = k
		}
		transcript.SortByTime(nodes)
		items[top].first, items[top].last, items[top].children = none, none, 0
		for _, n := range nodes {
			hang(items, at[n.Ordinal])
		}
	}
}

// nearest returns the item of an entry or of its nearest ancestor that has one; 0 = none has. It remembers what it
// passes, so all look-ups together are linear in the tree.
func (v *View) nearest(ord uint64, place []int32) int32 {
	var passed []uint64
	found := int32(0)
	for {
		if place[ord] != none {
			found = place[ord]
			break
		}
		passed = append(passed, ord)
		p, ok := v.t.Parent(ord)
		if !ok {
			break
		}
		ord = p
	}
	for _, ord := range passed {
		place[ord] = found
	}
	return found
}

// below counts what hangs below an item.
func below(items []item, top int32) int {
	n := 0
	stack := []int32{top}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for c := items[at].first; c != none; c = items[c].next {
			n++
			stack = append(stack, c)
		}
	}
	return n
}

// shows says whether an entry has a row.
func (v *View) shows(ordinal uint64) bool {
	return ordinal < uint64(len(v.places)) && v.places[ordinal] != none
}

// settle finds the selected row: the entry's own, else that of its nearest ancestor that is shown, else the
// last. Where nothing is shown the selection stays for later.
func (v *View) settle() {
	v.at = none
	if len(v.rows) == 0 {
		return
	}
	v.at = len(v.rows) - 1
	for ord, ok := v.selected, v.some; ok; ord, ok = v.t.Parent(ord) {
		if v.shows(ord) {
			v.at = int(v.places[ord])
			break
		}
	}
	v.selected, v.some = v.rows[v.at].Ordinal, true
}
