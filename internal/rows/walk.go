package rows

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sort"
)

// open is a line that is not drawn yet.
type open struct{ slot, depth, indent uint32 }

// walk lays the rows down. What is open is a stack: depth needs no recursion.
func (r *Rows) walk() {
	var one [1]uint32
	stack := r.push(nil, r.children(0, &one), open{})
	for len(stack) > 0 {
		o := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		r.lay(o)
		kids := r.children(o.slot, &one)
		if len(kids) > 0 && r.o.Folds[uint64(o.slot-1)] {
			r.hidden[o.slot] = r.below(o.slot)
			continue
		}
		stack = r.push(stack, kids, open{o.slot, o.depth + 1, o.indent})
	}
}

// lay appends a row, in the run of the row before it if it continues that.
func (r *Rows) lay(o open) {
	row, on := uint32(len(r.order)), r.isActive(o.slot)
	r.order = append(r.order, o.slot)
	r.place[o.slot] = row
	if n := len(r.runs); n > 0 {
		last := &r.runs[n-1]
		if last.indent == o.indent && last.onPath == on && last.depth+row-last.row == o.depth {
			return
		}
	}
	r.runs = append(r.runs, run{row, o.depth, o.indent, on})
}

// push puts the children of top onto the stack, which hands out the last one first. at has their depth.
func (r *Rows) push(stack []open, kids []uint32, at open) []open {
	if len(kids) == 0 {
		return stack
	}
	main := slices.IndexFunc(kids, r.isActive)
	side := at.indent + 1
	if r.o.Order == ActiveFirst {
		if len(kids) < 2 {
			side = at.indent
		}
		for i, s := range slices.Backward(kids) {
			if i != main {
				stack = append(stack, open{s, at.depth, side})
			}
		}
		if main >= 0 {
			stack = append(stack, open{kids[main], at.depth, side})
		}
		return stack
	}
	if main < 0 && (at.slot == 0 || !r.isActive(at.slot)) {
		main = len(kids) - 1 // nothing continues the line of the head itself
	}
	if at.slot == 0 {
		side = at.indent
	}
	if main >= 0 {
		stack = append(stack, open{kids[main], at.depth, at.indent})
	}
	for i, s := range slices.Backward(kids) {
		if i != main {
			stack = append(stack, open{s, at.depth, side})
		}
	}
	return stack
}

// below counts what is shown below a slot, were it not folded.
func (r *Rows) below(top uint32) (n int) {
	var one [1]uint32
	stack := []uint32{top}
	for len(stack) > 0 {
		s := stack[len(stack)-1]
		kids := r.children(s, &one)
		n += len(kids)
		stack = append(stack[:len(stack)-1], kids...)
	}
	return n
}

// Len is the number of rows.
func (r *Rows) Len() int { return len(r.order) }

// At yields the rows from one on, at most count of them.
func (r *Rows) At(from, count int) iter.Seq[Row] {
	return func(yield func(Row) bool) {
		if from < 0 || from >= len(r.order) || count <= 0 {
			return
		}
		at := r.runAt(from)
		for i := from; i < len(r.order) && i-from < count; i++ {
			for at+1 < len(r.runs) && int(r.runs[at+1].row) <= i {
				at++
			}
			if !yield(r.row(i, &r.runs[at])) {
				return
			}
		}
	}
}

// runAt returns the run of a row.
func (r *Rows) runAt(row int) int {
	return sort.Search(len(r.runs), func(k int) bool { return int(r.runs[k].row) > row }) - 1
}

func (r *Rows) row(i int, in *run) Row {
	s := r.order[i]
	p := r.parent(s)
	row := Row{
		Ordinal: uint64(s - 1), Depth: int(in.depth) + i - int(in.row), Indent: int(in.indent), OnPath: in.onPath,
		Version: 1, Versions: 1,
	}
	if p != 0 {
		row.Parent, row.HasParent = uint64(p-1), true
	}
	if l := r.link[p]; l&forked != 0 && l != none {
		f := r.forks[l&^forked]
		k, _ := slices.BinarySearch(r.byOrd[f.from:f.to], s)
		row.Version, row.Versions = int(r.ranks[int(f.from)+k])+1, int(f.to-f.from)
	}
	switch l := r.link[s]; {
	case l == none:
	case l&forked != 0:
		f := r.forks[l&^forked]
		row.Children = int(f.to - f.from)
	default:
		row.Children = 1
	}
	row.Hidden, row.Folded = r.hidden[s]
	return row
}

// IndexOf returns the row of an entry; false: it has none.
func (r *Rows) IndexOf(ordinal uint64) (row int, ok bool) {
	if ordinal+1 >= uint64(len(r.place)) || r.place[ordinal+1] == none {
		return 0, false
	}
	return int(r.place[ordinal+1]), true
}

// MaxBuckets bounds Buckets.
const MaxBuckets = 2048

// Bucket sums up a stretch of rows, for a map of all of them.
type Bucket struct {
	From, Count int // rows
	Forks       int // rows with several children
	OnPath      int // rows on the way to the head
	Indent      int // the widest lane
}

// Buckets divides the rows into at most n stretches of the same length, but for one row; n is at most MaxBuckets.
func (r *Rows) Buckets(n int) []Bucket {
	total := len(r.order)
	if n = min(n, MaxBuckets, total); n <= 0 {
		return nil
	}
	list := make([]Bucket, n)
	for i := range list {
		list[i].From = i * total / n
		list[i].Count = (i+1)*total/n - list[i].From
	}
	k := 0
	for i := range list {
		b := &list[i]
		for end := b.From + b.Count; k < len(r.runs); k++ {
			in, until := &r.runs[k], total
			if k+1 < len(r.runs) {
				until = int(r.runs[k+1].row)
			}
			if part := min(until, end) - max(int(in.row), b.From); part > 0 {
				b.Indent = max(b.Indent, int(in.indent))
				if in.onPath {
					b.OnPath += part
				}
			}
			if until > end {
				break
			}
		}
	}
	for _, f := range r.forks {
		if p := r.parent(r.kids[f.from]); p != 0 && r.place[p] != none {
			at := sort.Search(n, func(i int) bool { return list[i].From > int(r.place[p]) }) - 1
			list[at].Forks++
		}
	}
	return list
}

// Key names these rows: equal keys of one session mean equal rows.
func (r *Rows) Key() string {
	h := sha256.New()
	_, err := fmt.Fprintf(h, "%d %q %d %q %q", r.o.Order, r.o.Filter, r.t.Len(), r.t.Head(), r.o.Search)
	for _, ord := range slices.Sorted(maps.Keys(r.o.Folds)) {
		if r.o.Folds[ord] && err == nil {
			_, err = fmt.Fprintf(h, " %d", ord)
		}
	}
	if err != nil {
		return "" // a hash takes every write
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
