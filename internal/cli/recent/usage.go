package recent

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/manager/tally"
	"github.com/coppice-go/coppice/transcript"
)

// usage is the JSON of usage.
type usage struct {
	Session string       `json:"session"`
	Scope   string       `json:"scope"` // session, or path
	Entries int          `json:"entries"`
	Usage   tally.Usage  `json:"usage"`
	Models  []modelUsage `json:"models"`
}

type modelUsage struct {
	Model *string     `json:"model"`
	Usage tally.Usage `json:"usage"`
}

// Usage is `coppice usage`.
func Usage(a *program.App) *cobra.Command {
	c := &cli{a}
	var path bool
	var to string
	cmd := &cobra.Command{
		Use:   "usage SESSION",
		Short: "Add up tokens and cost: of a session, or of one line of it",
		Long: `Add up the tokens and the cost that the answers of models say, and by model: of the whole session with all its
branches, with --path of the current line, or with --to of the line to an entry or a branch. The shapes of pi,
Anthropic, OpenAI, Bedrock and Gemini are understood. An answer that says none is counted as an answer.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.usage(cmd.Context(), args[0], to, path || to != "")
		},
	}
	cmd.Flags().BoolVar(&path, "path", false, "only the current line")
	cmd.Flags().StringVar(&to, "to", "", "only the line to this entry or branch")
	return cmd
}

func (c *cli) usage(ctx context.Context, id, to string, path bool) error {
	return c.WithSession(ctx, id, program.Reading(), func(_ *program.Store, s *coppice.Session) error {
		out := usage{Session: s.ID(), Scope: "session", Models: []modelUsage{}}
		seq := s.Entries(ctx)
		if path {
			out.Scope = "path"
			at, err := c.leaf(ctx, s, to)
			if err != nil {
				return err
			}
			seq = line(ctx, s, at)
		}
		t, err := tally.Sum(seq)
		if err != nil {
			return err
		}
		out.Entries, out.Usage = t.Entries, t.Usage
		for _, name := range slices.Sorted(maps.Keys(t.Models)) {
			out.Models = append(out.Models, modelUsage{program.OrNull(name), t.Models[name]})
		}
		if c.JSON {
			return c.Emit(out)
		}
		return c.usageText(out)
	})
}

// leaf gives the entry that a word names, a branch or an entry; "" = the head, or before every root.
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

// line gives the entries of a line; that before every root is empty.
func line(ctx context.Context, s *coppice.Session, leaf string) iter.Seq2[transcript.Entry, error] {
	if leaf == "" {
		return func(func(transcript.Entry, error) bool) {}
	}
	return s.Path(ctx, leaf)
}

func (c *cli) usageText(out usage) error {
	row := func(name string, u tally.Usage) []term.Cell {
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
		name := "(not said)"
		if m.Model != nil {
			name = *m.Model
		}
		rows = append(rows, row(name, m.Usage))
	}
	rows = append(rows, row("all of the "+out.Scope, out.Usage))
	return c.Out.Table([]term.Column{
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

// settings is the JSON of settings.
type settings struct {
	Session string `json:"session"`
	tally.Settings
}

// Settings is `coppice settings`.
func Settings(a *program.App) *cobra.Command {
	c := &cli{a}
	var to, profile string
	cmd := &cobra.Command{
		Use:               "settings SESSION",
		Short:             "How the session is run: models, thinking, mode, service tier",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			p := transcript.Profile(strings.TrimPrefix(profile, "coppice"))
			if !p.Valid() {
				return program.Usage("unknown profile %q; there are coppice, pi, omp, atomic, operator", profile)
			}
			return c.WithSession(ctx, args[0], program.Reading(), func(_ *program.Store, s *coppice.Session) error {
				at, err := c.leaf(ctx, s, to)
				var path []transcript.Entry
				if err == nil && at != "" {
					path, err = manager.Path(ctx, s, at)
				}
				if err != nil {
					return err
				}
				return c.settings(settings{s.ID(), tally.InForce(path, p)})
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "at this entry, or the head of this branch; default the head")
	cmd.Flags().StringVar(&profile, "profile", "", "whose rules: coppice, pi, omp, atomic, operator")
	_ = cmd.RegisterFlagCompletionFunc("profile", program.Words("coppice", "pi", "omp", "atomic", "operator"))
	return cmd
}

func (c *cli) settings(out settings) error {
	if c.JSON {
		return c.Emit(out)
	}
	rows := [][2]string{{"thinking", out.ThinkingLevel}, {"mode", out.Mode}, {"tier", out.ServiceTier}, {"title", out.Title}}
	for _, role := range slices.Sorted(maps.Keys(out.Models)) {
		rows = append(rows, [2]string{"model", role + "  " + out.Models[role]})
	}
	for _, r := range rows {
		if r[1] == "" {
			continue
		}
		if err := c.Text("%-9s %s", r[0], term.Line(r[1])); err != nil {
			return err
		}
	}
	return nil
}
