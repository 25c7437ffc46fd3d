package export

import (
	"fmt"
	"iter"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/transcript"
)

// names says which named branches end where, by id of an entry.
type names struct {
	ends   []end
	heads  map[string][]string // of the entry that is a branch's head
	along  map[string][]string // of the entry that begins the line on which the head is
	within map[string][]string // of each entry that begins a version, if the head is in what grows on it
}

// end is where a branch ends: the entry that is its head, or what is shown of it.
type end struct{ Name, ID string }

// namesMost limits the names that are listed at one place; a remark follows if there are more.
const namesMost = 5

// name finds where the named branches end. A head that the filter does not let through counts for the nearest
// entry above it that it does; a head that is not on Options.Line is left out.
func (f *forest) name(t *transcript.Tree) names {
	out := names{heads: map[string][]string{}, along: map[string][]string{}, within: map[string][]string{}}
	branches := t.Branches()
	if len(branches) < 2 {
		return out // the only one is above everything
	}
	up := f.climb()
	for _, b := range branches {
		head := b.Head
		if ord, err := t.Ordinal(head); f.line != nil && (err != nil || !f.line[ord]) {
			continue
		}
		if _, ok := up.parent[head]; !ok {
			head = up.nearest(t.Up(b.Head))
		}
		if head == "" {
			continue // it is empty
		}
		if len(out.ends) < maxLinks {
			out.ends = append(out.ends, end{oneLine(b.Name), head})
		}
		enlist(out.heads, head, b.Name)
		at := up.version(head)
		enlist(out.along, at, b.Name)
		// What is full below is full above: there, the same branches end and more.
		for ; at != "" && enlist(out.within, at, b.Name); at = up.version(up.parent[at]) {
		}
	}
	return out
}

// climber goes up the forest.
type climber struct {
	parent map[string]string // by id
	other  map[string]bool   // begins a version that the line above does not go on with
	known  map[string]string // answers of version
}

func (f *forest) climb() *climber {
	c := &climber{map[string]string{}, map[string]bool{}, map[string]string{}}
	for parent, all := range f.children {
		on := chosen(all)
		for i, n := range all {
			c.parent[n.ID] = parent
			if i != on {
				c.other[n.ID] = true
			}
		}
	}
	return c
}

// nearest is the first entry of a way up that is shown; "" = none is.
func (c *climber) nearest(up iter.Seq[transcript.Node]) string {
	for n := range up {
		if _, ok := c.parent[n.ID]; ok {
			return n.ID
		}
	}
	return ""
}

// version is the nearest entry, this one or above it, that begins a version which is not the line's own; "" = none.
func (c *climber) version(id string) string {
	var passed []string
	for id != "" && !c.other[id] {
		if v, ok := c.known[id]; ok {
			id = v
			break
		}
		passed = append(passed, id)
		id = c.parent[id]
	}
	for _, p := range passed {
		c.known[p] = id
	}
	return id
}

// enlist adds a name to a list, unless it is full.
func enlist(lists map[string][]string, id, name string) bool {
	l := lists[id]
	if id == "" || len(l) > namesMost {
		return false
	}
	lists[id] = append(l, name)
	return true
}

// named returns the names of branches as a format writes them; "" for none.
func named(list []string, write func(string) string) string {
	if len(list) == 0 {
		return ""
	}
	out := "branch "
	if len(list) > 1 {
		out = "branches "
	}
	for i, n := range list {
		if i == namesMost {
			return out + " and others"
		}
		if i > 0 {
			out += ", "
		}
		out += write(n)
	}
	return out
}

// about describes a document: its name, its kind, its size.
func about(f message.Media) string {
	var out []string
	for _, s := range []string{oneLine(f.Name), oneLine(f.Mime)} {
		if s != "" {
			out = append(out, s)
		}
	}
	if f.Size >= 0 {
		out = append(out, size(f.Size))
	}
	if len(out) == 0 {
		out = []string{"without a name"}
	}
	return "attached: " + strings.Join(out, " · ")
}

// size is a number of bytes for people.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, exp := float64(n)/unit, 0
	for f >= unit {
		f /= unit
		exp++
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTPE"[exp])
}
