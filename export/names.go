package export

import (
	"fmt"
	"iter"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/transcript"
)

// names maps entry IDs to the names of the branches that end there.
type names struct {
	ends   []end
	heads  map[string][]string // by the head of the branch
	along  map[string][]string // by the first entry of the line with the head
	within map[string][]string // by the first entry of each version that has the head below it
}

// end is the end of a branch: its head, or the entry shown in its place.
type end struct{ Name, ID string }

// namesMost bounds the names listed at one place; a note follows if there are more.
const namesMost = 5

// name finds the ends of the named branches. A head that the filter hides counts for its nearest shown ancestor. A head
// that is not on Options.Line is dropped.
func (f *forest) name(t *transcript.Tree) names {
	out := names{heads: map[string][]string{}, along: map[string][]string{}, within: map[string][]string{}}
	branches := t.Branches()
	if len(branches) < 2 {
		return out // a single branch needs no names
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
			continue // the branch is empty
		}
		if len(out.ends) < maxLinks {
			out.ends = append(out.ends, end{oneLine(b.Name), head})
		}
		enlist(out.heads, head, b.Name)
		at := up.version(head)
		enlist(out.along, at, b.Name)
		// If a list is full, so are the lists above it: they have the same branches and more.
		for ; at != "" && enlist(out.within, at, b.Name); at = up.version(up.parent[at]) {
		}
	}
	return out
}

// climber walks from entries to the root.
type climber struct {
	parent map[string]string // by id
	other  map[string]bool   // begins a version that is not on its parent's main line
	known  map[string]string // results of version
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

// nearest returns the first shown entry of a walk; "" = none.
func (c *climber) nearest(up iter.Seq[transcript.Node]) string {
	for n := range up {
		if _, ok := c.parent[n.ID]; ok {
			return n.ID
		}
	}
	return ""
}

// version returns the nearest entry, id or above it, that begins a version in other; "" = none.
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

// enlist adds a name to a list unless it is full.
func enlist(lists map[string][]string, id, name string) bool {
	l := lists[id]
	if id == "" || len(l) > namesMost {
		return false
	}
	lists[id] = append(l, name)
	return true
}

// named returns the names of branches in a format's form; "" for none.
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

// about describes a document by name, type and size.
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

// size returns a number of bytes in readable form.
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
