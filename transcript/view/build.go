package view

import (
	"github.com/coppice-go/coppice/internal/rows"
)

// build computes the rows.
func (v *View) build() {
	o := rows.Options{Order: rows.ActiveFirst, Filter: v.filter, Folds: v.folded}
	if found := v.hits(); found != nil {
		o.Found = found.bits
	}
	v.rows = v.rows[:0]
	order, err := rows.New(v.t, o)
	if v.order = order; err != nil {
		order = &rows.Rows{} // a tree that is too large has no rows
		v.order = order
	}
	var at rows.Row
	for n := range v.t.NodesAt(func(yield func(uint64) bool) {
		for at = range order.At(0, order.Len()) {
			if !yield(at.Ordinal) {
				return
			}
		}
	}) {
		row := Row{
			Node: n, Depth: at.Depth, Indent: at.Indent, Children: at.Children, Version: at.Version,
			Versions: at.Versions, Folded: at.Folded, Hidden: at.Hidden,
		}
		if row.ParentID = ""; at.HasParent {
			row.ParentID = v.t.ID(at.Parent)
		}
		if row.Label != "" {
			label, _ := v.t.LabelOf(n.Ordinal)
			row.LabelTime = label.Time
		}
		v.rows = append(v.rows, row)
	}
	for ordinal, marks := range Marks(v.t, v.shows) {
		if i, ok := order.IndexOf(ordinal); ok {
			v.rows[i].Marks = marks
		}
	}
	v.fixSelection()
}

// shows reports whether an entry has a row.
func (v *View) shows(ordinal uint64) bool {
	_, ok := v.order.IndexOf(ordinal)
	return ok
}

// fixSelection selects the row of the selected entry, else that of its nearest ancestor with a row, else the last row.
// Without rows the selection stays for later.
func (v *View) fixSelection() {
	v.at = none
	if len(v.rows) == 0 {
		return
	}
	v.at = len(v.rows) - 1
	for ord, ok := v.selected, v.some; ok; ord, ok = v.t.Parent(ord) {
		if i, shown := v.order.IndexOf(ord); shown {
			v.at = i
			break
		}
	}
	v.selected, v.some = v.rows[v.at].Ordinal, true
}
