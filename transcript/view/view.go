// Package view is the model of a list that shows a tree of entries: rows in display order, one of them selected, under
// a filter, a search and folds. It is for user interfaces; it draws nothing.
//
// Guarantees:
//
//   - At every fork the line with the head comes first, then the others, oldest first.
//   - The head and the branches are marked at their entries, or at the nearest shown ancestors.
//   - The selection stays as long as its row is shown. If a filter or a fold hides it, the nearest shown ancestor is
//     selected, or else the last row.
//   - A filter or a search without rows keeps the selection for the next one with rows.
//   - A new search or filter unfolds everything, so that all its rows are visible.
//   - Each change takes time and memory linear in the tree, and no walk is recursive.
//
// Use New, then the methods as keys are pressed; read Rows and Selected after each. A View is not safe for concurrent
// use.
package view

import (
	"time"

	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

// Row is one entry of the list.
type Row struct {
	transcript.Node           // ParentID: the nearest shown ancestor
	Depth           int       // number of shown ancestors
	Indent          int       // number of forks on the path from the root: the indentation
	Children        int       // number of direct children, including folded ones
	Version         int       // from 1: number among the rows with the same parent, oldest first
	Versions        int       // number of these rows: ‹Version/Versions›
	Folded          bool      // the entries below are hidden
	Hidden          int       // of a folded row: the number of hidden entries
	LabelTime       time.Time // time of its label; zero = no label
	Marks           []Mark    // head and branches at this entry, or at hidden entries below it
}

// View is the list of one tree.
type View struct {
	t        *transcript.Tree
	filter   transcript.Filter
	text     string
	whole    *hits           // of SearchIn; nil = only previews are searched
	folded   map[uint64]bool // by ordinal, which stays valid as a tree grows
	selected uint64          // ordinal
	some     bool            // selected is set
	rows     []Row
	order    *rows.Rows
	at       int // index of the selection in rows; -1 = none
}

// New returns a view of a tree with the default filter and its head selected.
func New(t *transcript.Tree) *View {
	v := &View{t: t, filter: transcript.FilterDefault, folded: map[uint64]bool{}}
	if ord, err := t.Ordinal(t.Head()); err == nil {
		v.selected, v.some = ord, true
	}
	v.build()
	return v
}

// Rows returns the rows. The slice belongs to the view: it must not be changed, and is valid until the next method that
// changes the view.
func (v *View) Rows() []Row { return v.rows }

// Selected returns the index of the selected row; -1 = there are no rows.
func (v *View) Selected() int { return v.at }

// Filter sets the filter.
func (v *View) Filter(f transcript.Filter) {
	if f == "" {
		f = transcript.FilterDefault
	}
	v.filter = f
	clear(v.folded)
	v.build()
}

// Grown replaces the tree by a later one of the same session.
func (v *View) Grown(t *transcript.Tree) {
	v.t = t
	v.build()
}

// Select selects an entry, by its ID or a unique prefix; if it is hidden, its nearest shown ancestor. It returns false
// if there is no such entry.
func (v *View) Select(id string) bool {
	ord, err := v.t.Ordinal(id)
	if err != nil {
		return false
	}
	v.selected, v.some = ord, true
	v.fixSelection()
	return true
}

// Fold hides the entries below shown entries. It returns false if there are none, or if they are already folded.
func (v *View) Fold(ids ...string) bool { return v.fold(ids, true) }

// Unfold reverses Fold.
func (v *View) Unfold(ids ...string) bool { return v.fold(ids, false) }

func (v *View) childless(ord uint64) bool {
	at, ok := v.order.IndexOf(ord)
	return !ok || v.rows[at].Children == 0
}

func (v *View) fold(ids []string, folded bool) (changed bool) {
	for _, id := range ids {
		ord, err := v.t.Ordinal(id)
		if err != nil || v.folded[ord] == folded || v.childless(ord) {
			continue
		}
		changed = true
		if folded {
			v.folded[ord] = true
		} else {
			delete(v.folded, ord)
		}
	}
	if changed {
		v.build()
	}
	return changed
}
