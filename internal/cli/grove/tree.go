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
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/tree/view"
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
	cmd.Flags().StringVar(&o.search, "search", "", "only entries whose text, label, role or type has all these words")
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
	At   *string `json:"at,omitempty"` // where the head is not shown: its nearest ancestor that is
}

type treeHead struct {
	Head     *string     `json:"head"`
	HeadAt   *string     `json:"headAt,omitempty"` // as branchRef.At
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
		v, keep, err := viewOf(ctx, s, t, o, c.JSON)
		if err != nil {
			return err
		}
		if o.view {
			return c.viewJSON(t, v)
		}
		if c.JSON {
			return c.treeJSON(t, transcript.Filter(o.filter), keep)
		}
		ends := 0
		if o.short {
			ends = 3
		}
		opts := term.TreeOptions{Filter: transcript.Filter(o.filter), Keep: keep, Full: o.full || keep != nil, Ends: ends}
		if len(o.folded) > 0 {
			opts.Hidden = hidden(v)
		}
		err = errors.Join(term.Title(c.Out, s.Info(), t), term.Tree(c.Out, t, opts))
		if err == nil && !shows(t, opts) {
			c.Note("%s", nothing(o))
		}
		return err
	})
}

// shows tells that a drawing has a line.
func shows(t *transcript.Tree, o term.TreeOptions) bool {
	for n := range t.Nodes(o.Filter) {
		if o.Keep == nil || o.Keep(n) {
			return true
		}
	}
	return false
}

// nothing says why a tree is empty.
func nothing(o treeOptions) string {
	switch {
	case o.search != "":
		return "nothing found"
	case o.filter != "default":
		return "no entry is shown by the filter " + o.filter
	}
	return "nothing was said yet"
}

func (c *cli) treeJSON(t *transcript.Tree, f transcript.Filter, keep func(transcript.Node) bool) error {
	shown := make([]bool, t.Len())
	for n := range t.Nodes(f) {
		shown[n.Ordinal] = keep == nil || keep(n)
	}
	out := c.ArrayAfter(headOf(t, func(ordinal uint64) bool { return shown[ordinal] }), "nodes")
	for n := range t.Nodes(f) {
		if !shown[n.Ordinal] {
			continue
		}
		if err := out.Add(nodeOf(n, nil)); err != nil {
			return err
		}
	}
	return out.End(nil)
}

// headOf says where the head and the branches stand, and where that is not shown the nearest ancestor that is.
func headOf(t *transcript.Tree, shown func(ordinal uint64) bool) treeHead {
	at := map[string]*string{}
	for ordinal, marks := range view.Marks(t, shown) {
		id := t.NodeAt(ordinal).ID
		for _, m := range marks {
			if m.Entry != id {
				at[m.Branch] = &id
			}
		}
	}
	head := treeHead{Head: program.OrNull(t.Head()), HeadAt: at[""], Branches: []branchRef{}}
	for _, b := range t.Branches() {
		head.Branches = append(head.Branches, branchRef{b.Name, program.OrNull(b.Head), at[b.Name]})
	}
	return head
}

func nodeOf(n transcript.Node, r *row) node {
	return node{
		n.ID, program.OrNull(n.ParentID), n.Ordinal, n.Type, n.Role, n.Preview, n.Label, n.OnPath, n.Time, n.Size, r,
	}
}
