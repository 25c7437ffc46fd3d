package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) usageCommand() *cobra.Command {
	var path bool
	var to string
	cmd := &cobra.Command{
		Use:   "usage SESSION",
		Short: "Sum up the tokens and the cost of a session or of one path",
		Long: `Sum up the tokens and the cost that answers of models report, in total and by model: of the whole
session with all branches, with --path of the current path, or with --to of the path to an entry or a
branch. A response of a provider counts once, in the session that received it: what forks, resumed
copies and agents hold of other sessions is listed apart. The formats of pi, Anthropic, OpenAI, Bedrock
and Gemini are supported. An answer that reports no usage counts as an answer.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.usage(cmd.Context(), args[0], to, path || to != "")
		},
	}
	cmd.Flags().BoolVar(&path, "path", false, "only the current path")
	cmd.Flags().StringVar(&to, "to", "", "only the path to this entry or branch")
	return cmd
}

func (c *cli) usage(ctx context.Context, id, to string, path bool) error {
	return c.withSession(ctx, id, readOnly(), func(st *countedStore, s *coppice.Session) error {
		out, err := usageOf(ctx, manager.NewUsageReader(st.Store, nil), s, to, path)
		if err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(out)
		}
		return c.usageText(out)
	})
}

// usageOf returns the usage of a session, or of the path to an entry or a branch.
func usageOf(
	ctx context.Context, r *manager.UsageReader, s *coppice.Session, to string, path bool,
) (api.Usage, error) {
	if !path {
		return api.UsageOfSession(ctx, r, s)
	}
	leaf, err := api.Leaf(ctx, s, to)
	if err != nil {
		return api.Usage{}, err
	}
	return api.UsageOfPath(ctx, r, s, leaf)
}

func (c *cli) usageText(out api.Usage) error {
	row := func(name string, u api.Tokens) []term.Cell {
		cost := ""
		if u.Cost > 0 {
			cost = fmt.Sprintf("%.4f", u.Cost)
		}
		return []term.Cell{
			{Text: term.Line(name)},
			{Text: term.Number(uint64(u.Answers))},
			{Text: term.Number(uint64(u.Input))},
			{Text: term.Number(uint64(u.Output))},
			{Text: term.Number(uint64(u.CacheRead))},
			{Text: term.Number(uint64(u.CacheWrite))},
			{Text: term.Number(uint64(u.Total))},
			{Text: cost},
		}
	}
	var rows [][]term.Cell
	for _, m := range out.Models {
		name := "(unknown)"
		if m.Model != nil {
			name = *m.Model
		}
		rows = append(rows, row(name, m.Usage))
	}
	rows = append(rows, row("total of the "+out.Scope, out.Usage))
	if out.Inherited != (api.Tokens{}) {
		rows = append(rows, row("copied from other sessions", out.Inherited))
	}
	return c.stdout.Table([]term.Column{
		{Head: "MODEL", Flex: true},
		{Head: "ANSWERS", Right: true},
		{Head: "INPUT", Right: true},
		{Head: "OUTPUT", Right: true},
		{Head: "CACHE READ", Right: true},
		{Head: "CACHE WRITE", Right: true},
		{Head: "TOTAL", Right: true},
		{Head: "COST", Right: true},
	}, rows)
}
