package grove

import (
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/tree/view"
)

// viewOf gives the rows that a tree shows with these options; nil where none of them asks for rows.
func viewOf(t *transcript.Tree, o treeOptions) (*view.View, error) {
	if o.selected != "" && !o.view {
		return nil, program.Usage("--select goes with --view")
	}
	if !o.view && len(o.folded) == 0 {
		return nil, nil
	}
	v := view.New(t)
	v.Filter(transcript.Filter(o.filter))
	v.Search(o.search)
	for _, id := range o.folded {
		if _, err := t.Ordinal(id); err != nil {
			return nil, err
		}
		v.Fold(id)
	}
	if o.selected != "" {
		if _, err := t.Ordinal(o.selected); err != nil {
			return nil, err
		}
		v.Select(o.selected)
	}
	return v, nil
}

// viewJSON writes the rows of a view.
func (c *cli) viewJSON(t *transcript.Tree, v *view.View) error {
	head, rows := headOf(t), v.Rows()
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
