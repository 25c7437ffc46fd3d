// Package view keeps what a selector of entries shows of a tree: rows in the order of drawing, of which one is
// selected, under a filter, a search and folds. It is data for user interfaces; it draws nothing.
//
// Guarantees:
//
//   - The line on which the head is comes first at every fork, the others oldest first.
//   - The place of the head or a branch is marked on its entry, or on the nearest ancestor that is shown.
//   - What is selected stays selected as long as it is shown. Where a filter or a fold hides it, the nearest
//     ancestor that is shown is selected, and where there is none, the last row.
//   - A filter or a search that shows nothing keeps the selection for the next one that does.
//   - A new search or filter unfolds everything, so that what it finds is seen.
//   - Time and memory are linear in the tree for each change, and no walk recurses.
//
// Use: New, then the methods as keys are pressed; Rows and Selected after each. Not safe for concurrent use.
package view

import (
	"time"

	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

// Row is one entry as it is shown.
type Row struct {
	transcript.Node           // ParentID: the nearest ancestor that is shown
	Depth           int       // ancestors that are shown
	Indent          int       // forks on the way from the root: what a drawing indents by
	Children        int       // entries that hang directly below, folded ones too
	Version         int       // from 1: its place among the rows with the same parent, the oldest first
	Versions        int       // how many of them there are: ‹Version/Versions›
	Folded          bool      // what hangs below is not shown
	Hidden          int       // of a folded row: how many entries that is
	LabelTime       time.Time // when its label was set; zero = it has none
	Marks           []Mark    // the head and the branches that stand here, or below on entries that are not shown
}

// View is what is shown of one tree.
type View struct {
	t        *transcript.Tree
	filter   transcript.Filter
	text     string
	whole    *hits           // of SearchIn; nil = the search is one of previews
	folded   map[uint64]bool // by ordinal, which stay as a tree grows
	selected uint64          // ordinal
	some     bool            // selected counts
	rows     []Row
	order    *rows.Rows
	at       int // place of the selection in rows; -1 = none
}

// New shows a tree under the default filter, its head selected.
func New(t *transcript.Tree) *View {
	v := &View{t: t, filter: transcript.FilterDefault, folded: map[uint64]bool{}}
	if ord, err := t.Ordinal(t.Head()); err == nil {
		v.selected, v.some = ord, true
	}
	v.build()
	return v
}

// Rows returns what is shown. The slice is the view's own: it must not be changed, and holds until the next
// method that changes the view.
func (v *View) Rows() []Row { return v.rows }

// Selected returns the place of the selected row; -1 where nothing is shown.
func (v *View) Selected() int { return v.at }

// Filter shows what another filter lets through.
func (v *View) Filter(f transcript.Filter) {
	if f == "" {
		f = transcript.FilterDefault
	}
	v.filter = f
	clear(v.folded)
	v.build()
}

// Grown shows the same of a later tree of the session.
func (v *View) Grown(t *transcript.Tree) {
	v.t = t
	v.build()
}

// Select goes to an entry, by its id or a unique prefix; where it is not shown, to its nearest ancestor that
// is. false: there is no such entry.
func (v *View) Select(id string) bool {
	ord, err := v.t.Ordinal(id)
	if err != nil {
		return false
	}
	v.selected, v.some = ord, true
	v.settle()
	return true
}

// Fold hides what hangs below entries that are shown. false: nothing does, or they are folded already.
func (v *View) Fold(ids ...string) bool { return v.fold(ids, true) }

// Unfold shows it again.
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
