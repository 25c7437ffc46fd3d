package cli

import (
	"context"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

// rowsJSON writes the rows of a tree one by one: of all rows only ordinals and lanes are in memory.
func (c *cli) rowsJSON(ctx context.Context, s *coppice.Session, t *transcript.Tree, o treeOptions) error {
	ro, _, err := rowOptions(ctx, s, t, o)
	if err != nil {
		return err
	}
	r, err := rows.New(t, ro)
	if err != nil {
		return err
	}
	start, some, err := startOf(t, ro, o.selected)
	if err != nil {
		return err
	}
	head := headOf(t, func(ordinal uint64) bool { _, ok := r.IndexOf(ordinal); return ok })
	if on, ok := nearestRow(t, r, start, some); ok {
		id := t.ID(on)
		head.Selected = &id
	}
	out := c.arrayAfter(head, "nodes")
	var at rows.Row
	for n := range t.NodesAt(func(yield func(uint64) bool) {
		for at = range r.At(0, r.Len()) {
			if !yield(at.Ordinal) {
				return
			}
		}
	}) {
		if n.ParentID = ""; at.HasParent {
			n.ParentID = t.ID(at.Parent)
		}
		extra := &row{
			Depth: at.Depth, Indent: at.Indent, Children: at.Children, Version: at.Version, Versions: at.Versions,
			Folded: at.Folded, Hidden: at.Hidden,
		}
		if n.Label != "" {
			if set := t.LabelTime(n.Ordinal); !set.IsZero() {
				extra.LabelTime = &set
			}
		}
		if err := out.add(nodeOf(n, extra)); err != nil {
			return err
		}
	}
	return out.end(nil)
}

// rowOptions returns what the flags of a tree mean for its rows, and what a search found, parents first, nil without
// one. A search reads the session once.
func rowOptions(
	ctx context.Context, s *coppice.Session, t *transcript.Tree, o treeOptions,
) (ro rows.Options, hits []uint64, err error) {
	ro = rows.Options{
		Order: rows.ActiveFirst, Filter: transcript.Filter(o.filter), Search: o.search, Folds: map[uint64]bool{},
	}
	if o.search != "" {
		ro.Found, hits = make([]uint64, t.Len()/64+1), []uint64{}
		for n, err := range t.SearchIn(o.search, s.Entries(ctx)) {
			if err != nil {
				return ro, nil, err
			}
			ro.Found[n.Ordinal/64] |= 1 << (n.Ordinal % 64)
			hits = append(hits, n.Ordinal)
		}
	}
	for _, id := range o.folded {
		ord, err := t.Ordinal(id)
		if err != nil {
			return ro, nil, err
		}
		ro.Folds[ord] = true
	}
	return ro, hits, nil
}

// startOf returns the entry that is selected, whether it is shown or not: the one that was asked for, else the head. An
// empty session has none; where the head is before every root it is where a selector comes to that is opened, and then
// given filter, search and folds.
func startOf(t *transcript.Tree, o rows.Options, selected string) (start uint64, some bool, err error) {
	if selected != "" {
		start, err = t.Ordinal(selected)
		return start, err == nil, err
	}
	if start, some = t.HeadOrdinal(); some {
		return start, true, nil
	}
	stages := []rows.Options{
		{Order: o.Order},
		{Order: o.Order, Filter: o.Filter},
		{Order: o.Order, Filter: o.Filter, Found: o.Found},
		o,
	}
	for _, stage := range stages {
		r, err := rows.New(t, stage)
		if err != nil {
			return 0, false, err
		}
		if on, ok := nearestRow(t, r, start, some); ok {
			start, some = on, true
		}
	}
	return start, some, nil
}

// nearestRow returns the entry itself if it has a row, else its nearest ancestor that has one, else that of the last
// row. false: there is none.
func nearestRow(t *transcript.Tree, r *rows.Rows, ord uint64, some bool) (uint64, bool) {
	for ok := some; ok; ord, ok = t.Parent(ord) {
		if _, shown := r.IndexOf(ord); shown {
			return ord, true
		}
	}
	for last := range r.At(r.Len()-1, 1) {
		return last.Ordinal, true
	}
	return 0, false
}
