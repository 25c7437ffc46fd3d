package view

import (
	"github.com/coppice-go/coppice/transcript/tree"
)

// none is no item.
const none = -1

// item is an entry that filter and search let through; the links are places in the list of items.
type item struct {
	node                tree.Node
	parent, first, last int
	next                int
	children, version   int
	active              bool // the head hangs below it, or is it
}

// build makes the rows anew.
func (v *View) build() {
	items := v.items()
	v.rows = v.rows[:0]
	type open struct{ at, depth, indent int }
	var stack []open
	push := func(first, last, depth, indent int) {
		// The stack hands out the last one first: what comes last goes on first, the active one at the very end.
		var list []int
		active := none
		for at := first; at != none; at = items[at].next {
			if items[at].active && active == none {
				active = at
			} else {
				list = append(list, at)
			}
		}
		if first != last {
			indent++
		}
		for i := len(list) - 1; i >= 0; i-- {
			stack = append(stack, open{list[i], depth, indent})
		}
		if active != none {
			stack = append(stack, open{active, depth, indent})
		}
	}
	roots := items[0]
	push(roots.first, roots.last, 0, 0)
	for len(stack) > 0 {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		it := items[o.at]
		row := Row{
			Node: it.node, Depth: o.depth, Indent: o.indent, Children: it.children,
			Version: it.version, Versions: items[it.parent].children,
		}
		if it.node.Label != "" {
			row.LabelTime = v.t.LabelTime(it.node.Ordinal)
		}
		if row.Folded = v.folded[it.node.Ordinal] && it.children > 0; row.Folded {
			row.Hidden = below(items, o.at)
		} else {
			push(it.first, it.last, o.depth+1, o.indent)
		}
		v.rows = append(v.rows, row)
	}
	v.settle()
}

// items gives what is shown as a forest; the first item stands above all roots.
func (v *View) items() []item {
	hit := v.hits()
	items := []item{{parent: none, first: none, last: none, next: none}}
	place := map[uint64]int{} // ordinal of any entry that was asked for: the nearest item on the way up, itself included
	for n := range v.t.Nodes(v.filter) {
		if hit != nil && !hit[n.Ordinal] {
			continue
		}
		it := item{node: n, first: none, last: none, next: none}
		if p, ok := v.t.Parent(n.Ordinal); ok {
			it.parent = v.nearest(p, place)
		}
		it.node.ParentID = items[it.parent].node.ID
		at := len(items)
		top := &items[it.parent]
		top.children++
		it.version = top.children
		if top.first == none {
			top.first = at
		} else {
			items[top.last].next = at
		}
		top.last = at
		place[n.Ordinal] = at
		items = append(items, it)
	}
	if ord, err := v.t.Ordinal(v.t.Head()); err == nil {
		for at := v.nearest(ord, place); at > 0; at = items[at].parent {
			items[at].active = true
		}
	}
	return items
}

// hits are the entries that the search finds; nil = there is none.
func (v *View) hits() map[uint64]bool {
	if v.text == "" {
		return nil
	}
	hit := map[uint64]bool{}
	for n := range v.t.Search(v.text) {
		hit[n.Ordinal] = true
	}
	return hit
}

// nearest gives the item of an entry or of its nearest ancestor that has one; 0 = none has. It remembers what it
// passes, so all look-ups together are linear in the tree.
func (v *View) nearest(ord uint64, place map[uint64]int) int {
	var passed []uint64
	found := 0
	for {
		if at, ok := place[ord]; ok {
			found = at
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
func below(items []item, top int) int {
	n := 0
	stack := []int{top}
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

// settle finds the selected row: the entry's own, else that of its nearest ancestor that is shown, else the
// last. Where nothing is shown the selection stays for later.
func (v *View) settle() {
	v.at = none
	if len(v.rows) == 0 {
		return
	}
	rows := make(map[uint64]int, len(v.rows))
	for i := range v.rows {
		rows[v.rows[i].Ordinal] = i
	}
	v.at = len(v.rows) - 1
	for ord, ok := v.selected, v.some; ok; ord, ok = v.t.Parent(ord) {
		if i, shown := rows[ord]; shown {
			v.at = i
			break
		}
	}
	v.selected, v.some = v.rows[v.at].Ordinal, true
}
