package term

import (
	"github.com/coppice-go/coppice/transcript"
)

// none is the absence of a row.
const none = -1

// item is one row of a drawn tree. Links are indices into forest.items.
type item struct {
	ord                       uint64
	parent, first, last, next int32
	children                  int32
	version                   int32 // from 1 among the items with the same parent
	onPath, step              bool  // step: nothing but calls and results of tools
}

// forest is the part of a tree that a filter shows, parents before children.
type forest struct {
	t           *transcript.Tree
	items       []item
	first, last int32 // roots
	roots       int32
}

// grow returns the forest of the entries that a filter and keep let through; keep nil = all.
func grow(t *transcript.Tree, f transcript.Filter, keep func(transcript.Node) bool) *forest {
	fo := &forest{t: t, first: none, last: none}
	talk := map[uint64]bool{}
	for n := range t.Nodes(transcript.FilterNoTools) {
		talk[n.Ordinal] = true
	}
	at := map[string]int32{} // the newest row so far with an id, so that there are no cycles
	for n := range t.Nodes(f) {
		if keep != nil && !keep(n) {
			continue
		}
		i := int32(len(fo.items))
		it := item{ord: n.Ordinal, parent: none, first: none, last: none, next: none, onPath: n.OnPath}
		it.step = n.Type == "message" && !talk[n.Ordinal]
		if p, ok := at[n.ParentID]; ok && n.ParentID != "" {
			it.parent = p
		}
		fo.items = append(fo.items, it)
		fo.link(i)
		at[n.ID] = i
	}
	fo.inTime()
	return fo
}

// inTime sorts siblings by time, as a view does.
func (fo *forest) inTime() {
	fo.sort(&fo.first, &fo.last)
	for i := range fo.items {
		fo.sort(&fo.items[i].first, &fo.items[i].last)
	}
}

// sort sorts the items of one list.
func (fo *forest) sort(first, last *int32) {
	if *first == *last {
		return
	}
	var nodes []transcript.Node
	place := map[uint64]int32{}
	for c := *first; c != none; c = fo.items[c].next {
		nodes = append(nodes, fo.t.NodeAt(fo.items[c].ord))
		place[fo.items[c].ord] = c
	}
	transcript.SortByTime(nodes)
	before := int32(none)
	for k, n := range nodes {
		c := place[n.Ordinal]
		fo.items[c].version, fo.items[c].next = int32(k+1), none
		if before == none {
			*first = c
		} else {
			fo.items[before].next = c
		}
		before = c
	}
	*last = before
}

// link appends an item to its siblings.
func (fo *forest) link(i int32) {
	first, last, count := &fo.first, &fo.last, &fo.roots
	if p := fo.items[i].parent; p != none {
		first, last, count = &fo.items[p].first, &fo.items[p].last, &fo.items[p].children
	}
	if *last == none {
		*first = i
	} else {
		fo.items[*last].next = i
	}
	*last = i
	*count++
	fo.items[i].version = *count
}

// siblings returns the number of items with the same parent.
func (fo *forest) siblings(i int32) int32 {
	if p := fo.items[i].parent; p != none {
		return fo.items[p].children
	}
	return fo.roots
}

// straight returns the child that continues the line of an item in the same column: the child on
// the current path, else, off that path, the newest one. none: the line ends here.
func (fo *forest) straight(first, last int32, ends bool) int32 {
	for c := first; c != none; c = fo.items[c].next {
		if fo.items[c].onPath {
			return c
		}
	}
	if ends {
		return none
	}
	return last
}
