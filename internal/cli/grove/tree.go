// Package grove has the command that shows the tree of a session, as a drawing, as a list, or as the rows of a view.
package grove

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/draw"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/transcript"
)

type treeOptions struct {
	filter, search string
	full, short    bool
	view           bool
	folded         []string
	selected       string
}

var filters = []string{"default", "no-tools", "user-only", "labeled-only", "all"}

// cli is one run of a command.
type cli struct{ *program.App }

// Tree is `coppice tree`.
func Tree(a *program.App) *cobra.Command {
	c := &cli{a}
	var o treeOptions
	cmd := &cobra.Command{
		Use:   "tree SESSION",
		Short: "Draw the tree of a session with all its branches",
		Long: `Draw the tree of a session. The current path keeps to the left and is marked ●; other versions hang on it, ○,
and ‹2/3› counts them. Runs of nothing but calls and results of tools are folded into one line.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.tree(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.filter, "filter", "default", "what to show: "+strings.Join(filters, ", "))
	cmd.Flags().StringVar(&o.search, "search", "", "only entries whose preview or label has all these words")
	cmd.Flags().BoolVar(&o.full, "full", false, "each step of a tool on a line of its own")
	cmd.Flags().BoolVar(&o.short, "short", false, "of long straight runs only the ends")
	cmd.Flags().BoolVar(&o.view, "view", false, "with --json: rows in the order of drawing, the current line first at each fork")
	cmd.Flags().StringSliceVar(&o.folded, "fold", nil, "hide what hangs below these entries")
	cmd.Flags().StringVar(&o.selected, "select", "", "with --view: select this entry, or its nearest ancestor that is shown; default the head")
	_ = cmd.RegisterFlagCompletionFunc("filter", program.Words(filters...))
	return cmd
}

// node is an entry of the tree as the JSON shows it.
type node struct {
	ID       string    `json:"id"`
	ParentID *string   `json:"parentId"`
	Ordinal  uint64    `json:"ordinal"`
	Type     string    `json:"type"`
	Role     string    `json:"role"`
	Preview  string    `json:"preview"`
	Label    string    `json:"label"`
	OnPath   bool      `json:"onPath"`
	Time     time.Time `json:"time"`
	Size     int       `json:"size"`
	*row
}

// row is what a view says of an entry beside the entry itself.
type row struct {
	Depth     int        `json:"depth"`
	Indent    int        `json:"indent"`
	Children  int        `json:"children"`
	Version   int        `json:"version"`
	Versions  int        `json:"versions"`
	Folded    bool       `json:"folded"`
	Hidden    int        `json:"hidden"`
	LabelTime *time.Time `json:"labelTime"`
}

type branchRef struct {
	Name string  `json:"name"`
	Head *string `json:"head"`
}

type treeHead struct {
	Head     *string     `json:"head"`
	Branches []branchRef `json:"branches"`
	Selected *string     `json:"selected,omitempty"`
}

func (c *cli) tree(ctx context.Context, id string, o treeOptions) error {
	if !slices.Contains(filters, o.filter) {
		return program.Usage("unknown filter %q; there are %s", o.filter, strings.Join(filters, ", "))
	}
	return c.WithSession(ctx, id, program.Reading(), func(_ *program.Store, s *coppice.Session) error {
		t, err := s.Tree(ctx)
		if err != nil {
			return err
		}
		v, err := viewOf(t, o)
		if err != nil {
			return err
		}
		if c.JSON && o.view {
			return c.viewJSON(t, v)
		}
		var keep func(transcript.Node) bool
		if o.search != "" {
			hits := map[uint64]bool{}
			for n := range t.Search(o.search) {
				hits[n.Ordinal] = true
			}
			keep = func(n transcript.Node) bool { return hits[n.Ordinal] }
		}
		if c.JSON {
			return c.treeJSON(t, transcript.Filter(o.filter), keep)
		}
		ends := 0
		if o.short {
			ends = 3
		}
		opts := draw.TreeOptions{Filter: transcript.Filter(o.filter), Keep: keep, Full: o.full || keep != nil, Ends: ends}
		if len(o.folded) > 0 {
			opts.Hidden = hidden(v)
		}
		return errors.Join(draw.Title(c.Out, s.Info(), t), draw.Tree(c.Out, t, opts))
	})
}

func (c *cli) treeJSON(t *transcript.Tree, f transcript.Filter, keep func(transcript.Node) bool) error {
	out := c.ArrayAfter(headOf(t), "nodes")
	for n := range t.Nodes(f) {
		if keep != nil && !keep(n) {
			continue
		}
		if err := out.Add(nodeOf(n, nil)); err != nil {
			return err
		}
	}
	return out.End(nil)
}

func headOf(t *transcript.Tree) treeHead {
	head := treeHead{Head: program.OrNull(t.Head()), Branches: []branchRef{}}
	for _, b := range t.Branches() {
		head.Branches = append(head.Branches, branchRef{b.Name, program.OrNull(b.Head)})
	}
	return head
}

func nodeOf(n transcript.Node, r *row) node {
	return node{
		n.ID, program.OrNull(n.ParentID), n.Ordinal, n.Type, n.Role, n.Preview, n.Label, n.OnPath, n.Time, n.Size, r,
	}
}
