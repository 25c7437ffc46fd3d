package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/view"
)

type treeOptions struct {
	filter, search string
	full, short    bool
	view           bool
	folded         []string
	selected       string
}

var filters = []string{"default", "no-tools", "user-only", "labeled-only", "all"}

func (c *cli) treeCommand() *cobra.Command {
	var o treeOptions
	cmd := &cobra.Command{
		Use:   "tree SESSION",
		Short: "Draw the tree of a session with all its branches",
		Long: `Draw the tree of a session. The current path is on the left and marked ●; other versions branch off
it and are marked ○; ‹2/3› means version 2 of 3. Runs of tool calls and tool results are folded into
one line.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.tree(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVar(&o.filter, "filter", "default", "entries to show: "+strings.Join(filters, ", "))
	cmd.Flags().StringVar(&o.search, "search", "",
		"only entries whose text, label, role or type contains all these words")
	cmd.Flags().BoolVar(&o.full, "full", false, "show each tool call and tool result on its own line")
	cmd.Flags().BoolVar(&o.short, "short", false, "show only the ends of long runs without branches")
	cmd.Flags().BoolVar(&o.view, "view", false,
		"with --json: rows in drawing order, the current path first at each fork")
	cmd.Flags().StringSliceVar(&o.folded, "fold", nil, "hide the descendants of these entries")
	cmd.Flags().StringVar(&o.selected, "select", "",
		"with --view: select this entry, or its nearest ancestor that is shown; default: the head")
	completeFlag(cmd, "filter", filters...)
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

	AmendedBy string `json:"amendedBy,omitempty"`
	Withdrawn bool   `json:"withdrawn,omitempty"` // hidden by the amendment
	*row
}

// row is what a view adds to an entry.
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
		return usageError("unknown filter %q: want one of %s", o.filter, strings.Join(filters, ", "))
	}
	return c.withSession(ctx, id, readOnly(), func(_ *countedStore, s *coppice.Session) error {
		t, err := s.Tree(ctx)
		if err != nil {
			return err
		}
		if o.view && c.json {
			return c.rowsJSON(ctx, s, t, o)
		}
		ro, hits, err := textOptions(ctx, s, t, o)
		if err != nil {
			return err
		}
		if c.json {
			return c.treeJSON(t, ro)
		}
		ends := 0
		if o.short {
			ends = 3
		}
		opts := term.TreeOptions{Filter: ro.Filter, Only: hits, Full: o.full, Ends: ends, Folds: ro.Folds}
		if err := errors.Join(term.Title(c.stdout, s.Info(), t), term.Tree(c.stdout, t, opts)); err != nil {
			return err
		}
		if !shows(t, ro) {
			c.notef("%s", whyEmpty(o))
		}
		return nil
	})
}

// shows reports whether a drawing has a line.
func shows(t *transcript.Tree, o rows.Options) bool {
	for ord := range uint64(t.Len()) {
		if found(o, ord) && t.Shows(o.Filter, ord) {
			return true
		}
	}
	return false
}

// found reports whether a search found an entry, if there was one.
func found(o rows.Options, ord uint64) bool {
	return o.Found == nil || o.Found[ord/64]>>(ord%64)&1 == 1
}

// whyEmpty returns why a tree has nothing to show.
func whyEmpty(o treeOptions) string {
	switch {
	case o.search != "":
		return "nothing found"
	case o.filter != "default":
		return "the filter " + o.filter + " matches no entry"
	}
	return "the session has no entries to show"
}

func (c *cli) treeJSON(t *transcript.Tree, o rows.Options) error {
	shown := func(ordinal uint64) bool { return found(o, ordinal) && t.Shows(o.Filter, ordinal) }
	out := c.arrayAfter(headOf(t, shown), "nodes")
	for n := range t.Nodes(o.Filter) {
		if !found(o, n.Ordinal) {
			continue
		}
		if err := out.add(nodeOf(n, nil)); err != nil {
			return err
		}
	}
	return out.end(nil)
}

// headOf returns the heads of the session and of its branches, and for each that is not shown its
// nearest ancestor that is.
func headOf(t *transcript.Tree, shown func(ordinal uint64) bool) treeHead {
	at := map[string]*string{}
	for ordinal, marks := range view.Marks(t, shown) {
		id := t.ID(ordinal)
		for _, m := range marks {
			if m.Entry != id {
				at[m.Branch] = &id
			}
		}
	}
	head := treeHead{Head: orNull(t.Head()), HeadAt: at[""], Branches: []branchRef{}}
	for _, b := range t.Branches() {
		head.Branches = append(head.Branches, branchRef{b.Name, orNull(b.Head), at[b.Name]})
	}
	return head
}

func nodeOf(n transcript.Node, r *row) node {
	return node{
		n.ID, orNull(n.ParentID), n.Ordinal, n.Type, n.Role, n.Preview, n.Label, n.OnPath, n.Time, n.Size,
		n.AmendedBy, n.Hidden, r,
	}
}

// textOptions returns what the flags of a tree mean without --view, and what a search found, nil without one.
func textOptions(
	ctx context.Context, s *coppice.Session, t *transcript.Tree, o treeOptions,
) (rows.Options, []uint64, error) {
	switch {
	case o.view:
		return rows.Options{}, nil, usageError("--view needs --json; text output always has that order")
	case o.selected != "":
		return rows.Options{}, nil, usageError("--select needs --view")
	}
	return rowOptions(ctx, s, t, o)
}
