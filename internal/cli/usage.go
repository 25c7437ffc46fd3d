package cli

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

// usage is the JSON of usage.
type usage struct {
	Session string        `json:"session"`
	Scope   string        `json:"scope"` // session, or path
	Entries int           `json:"entries"`
	Usage   manager.Usage `json:"usage"`
	Models  []modelUsage  `json:"models"`
}

type modelUsage struct {
	Model *string       `json:"model"`
	Usage manager.Usage `json:"usage"`
}

func (c *cli) usageCommand() *cobra.Command {
	var path bool
	var to string
	cmd := &cobra.Command{
		Use:   "usage SESSION",
		Short: "Sum up the tokens and the cost of a session or of one path",
		Long: `Sum up the tokens and the cost that answers of models report, in total and by model: of the whole
session with all branches, with --path of the current path, or with --to of the path to an entry or a
branch. The formats of pi, Anthropic, OpenAI, Bedrock and Gemini are supported. An answer that reports
no usage counts as an answer.`,
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
	return c.withSession(ctx, id, readOnly(), func(_ *countedStore, s *coppice.Session) error {
		out := usage{Session: s.ID(), Scope: "session", Models: []modelUsage{}}
		seq := s.Originals(ctx) // what was spent, whatever amendments say
		if path {
			out.Scope = "path"
			at, err := c.leaf(ctx, s, to)
			if err != nil {
				return err
			}
			seq = pathTo(ctx, s, at)
		}
		t, err := manager.SumUsage(seq)
		if err != nil {
			return err
		}
		out.Entries, out.Usage = t.Entries, t.Usage
		for _, name := range slices.Sorted(maps.Keys(t.Models)) {
			out.Models = append(out.Models, modelUsage{orNull(name), t.Models[name]})
		}
		if c.json {
			return c.writeJSON(out)
		}
		return c.usageText(out)
	})
}

// leaf returns the entry that a word names, by its id or as the head of a branch; "" names the head
// of the session.
func (c *cli) leaf(ctx context.Context, s *coppice.Session, word string) (string, error) {
	if word == "" {
		return s.Head().Entry, nil
	}
	t, err := s.Tree(ctx)
	if err != nil {
		return "", err
	}
	for _, b := range t.Branches() {
		if b.Name == word {
			return b.Head, nil
		}
	}
	return word, nil
}

// pathTo yields the entries of the line that ends at a leaf; none for the leaf "".
func pathTo(ctx context.Context, s *coppice.Session, leaf string) iter.Seq2[transcript.Entry, error] {
	if leaf == "" {
		return func(func(transcript.Entry, error) bool) {}
	}
	return s.Path(ctx, leaf)
}

func (c *cli) usageText(out usage) error {
	row := func(name string, u manager.Usage) []term.Cell {
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
