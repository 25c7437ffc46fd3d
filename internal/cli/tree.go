package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/rows"
	"github.com/coppice-go/coppice/transcript"
)

type treeOptions struct {
	filter, search string
	full, short    bool
	view           bool
	folded         []string
	selected       string
}

func (o treeOptions) query() api.TreeQuery {
	return api.TreeQuery{Filter: transcript.Filter(o.filter), Search: o.search, Folded: o.folded}
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

func (c *cli) tree(ctx context.Context, id string, o treeOptions) error {
	if !slices.Contains(filters, o.filter) {
		return oneOf("filter", o.filter, filters)
	}
	return c.withSession(ctx, id, pastDamage(), func(_ *countedStore, s *coppice.Session) error {
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
			head := api.TreeHeadOf(t, func(ordinal uint64) bool { return shown(t, ro, ordinal) })
			head.Missing = s.Info().Missing
			return c.treeJSON(t, ro, head, damageOf(s))
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
		return damageOf(s)
	})
}

// shows reports whether a drawing has a line.
func shows(t *transcript.Tree, o rows.Options) bool {
	for ord := range uint64(t.Len()) {
		if shown(t, o, ord) {
			return true
		}
	}
	return false
}

// shown reports whether a drawing has an entry.
func shown(t *transcript.Tree, o rows.Options, ordinal uint64) bool {
	return found(o, ordinal) && t.Shows(o.Filter, ordinal)
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

func (c *cli) treeJSON(t *transcript.Tree, o rows.Options, head api.TreeHead, damage error) error {
	out := c.arrayAfter(head, "nodes")
	for n := range t.Nodes(o.Filter) {
		if !found(o, n.Ordinal) {
			continue
		}
		if err := out.add(api.NodeOf(n)); err != nil {
			return err
		}
	}
	return out.end(damage)
}

// rowsJSON writes the rows of a tree one by one: of all rows only ordinals and lanes are in memory.
func (c *cli) rowsJSON(ctx context.Context, s *coppice.Session, t *transcript.Tree, o treeOptions) error {
	ro, _, err := api.RowOptions(ctx, s, t, o.query())
	if err != nil {
		return err
	}
	r, err := rows.New(t, ro)
	if err != nil {
		return err
	}
	head, err := api.RowsHead(t, r, ro, o.selected)
	if err != nil {
		return err
	}
	head.Missing = s.Info().Missing
	out := c.arrayAfter(head, "nodes")
	for row := range api.Rows(t, r, 0, r.Len()) {
		if err := out.add(row); err != nil {
			return err
		}
	}
	return out.end(damageOf(s))
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
	return api.RowOptions(ctx, s, t, o.query())
}
