package grove

import (
	"context"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/tree/view"
)

// viewOf gives the rows that a tree shows with these options, nil where none of them asks for rows, and what of a
// tree that is drawn or listed the search keeps, nil = all. A search goes over the session once.
func viewOf(ctx context.Context, s *coppice.Session, t *transcript.Tree, o treeOptions, asJSON bool) (*view.View, func(transcript.Node) bool, error) {
	switch {
	case o.view && !asJSON:
		return nil, nil, program.Usage("--view goes with --json: people see the tree in that order anyway")
	case o.selected != "" && !o.view:
		return nil, nil, program.Usage("--select goes with --view")
	}
	found := map[uint64]bool{}
	keep := func(n transcript.Node) bool { return found[n.Ordinal] }
	if !o.view && len(o.folded) == 0 {
		if o.search == "" {
			return nil, nil, nil
		}
		for n, err := range t.SearchIn(o.search, s.Entries(ctx)) {
			if err != nil {
				return nil, nil, err
			}
			found[n.Ordinal] = true
		}
		return nil, keep, nil
	}
	v := view.New(t)
	v.Filter(transcript.Filter(o.filter))
	if o.search == "" {
		return v, nil, arrange(v, t, o)
	}
	if err := v.SearchIn(o.search, s.Entries(ctx)); err != nil {
		return nil, nil, err
	}
	for _, r := range v.Rows() {
		found[r.Ordinal] = true
	}
	return v, keep, arrange(v, t, o)
}

// arrange folds what is to be folded, and selects.
func arrange(v *view.View, t *transcript.Tree, o treeOptions) error {
	for _, id := range o.folded {
		if _, err := t.Ordinal(id); err != nil {
			return err
		}
	}
	v.Fold(o.folded...)
	if o.selected == "" {
		v.Select(t.Head()) // which a filter before this one may have left
		return nil
	}
	if _, err := t.Ordinal(o.selected); err != nil {
		return err
	}
	v.Select(o.selected)
	return nil
}

// viewJSON writes the rows of a view.
func (c *cli) viewJSON(t *transcript.Tree, v *view.View) error {
	rows := v.Rows()
	shown := map[uint64]bool{}
	for i := range rows {
		shown[rows[i].Ordinal] = true
	}
	head := headOf(t, func(ordinal uint64) bool { return shown[ordinal] })
	if at := v.Selected(); at >= 0 {
		head.Selected = &rows[at].ID
	}
	out := c.ArrayAfter(head, "nodes")
	for i := range rows {
		r := &rows[i]
		extra := &row{
			Depth: r.Depth, Indent: r.Indent, Children: r.Children, Version: r.Version, Versions: r.Versions,
			Folded: r.Folded, Hidden: r.Hidden,
		}
		if !r.LabelTime.IsZero() {
			extra.LabelTime = &r.LabelTime
		}
		if err := out.Add(nodeOf(r.Node, extra)); err != nil {
			return err
		}
	}
	return out.End(nil)
}

// hidden gives for each entry that a view shows folded how many it hides, by ordinal.
func hidden(v *view.View) map[uint64]int {
	out := map[uint64]int{}
	for _, r := range v.Rows() {
		if r.Folded {
			out[r.Ordinal] = r.Hidden
		}
	}
	return out
}
