package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
)

func (c *cli) rollbackCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "rollback SESSION TARGET",
		Short: "Go back: state, context and head exactly as they were",
		Long: `Go back to a TARGET: state, context and head are exactly those of then, as a new commit on a new branch. The
line that is left stays, as a branch; ` + "`coppice switch`" + ` goes there again.`,
		Example: `  coppice rollback 019a seq:12
  coppice rollback 019a tag:green
  coppice rollback 019a 2026-03-02T09:15:00Z`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return c.rollback(cmd.Context(), args[0], args[1]) },
	}
}

// rolledBack is the JSON of rollback.
type rolledBack struct {
	moved
	State json.RawMessage `json:"state"`
}

func (c *cli) rollback(ctx context.Context, id, to string) error {
	t, err := parseTarget(to)
	if err != nil {
		return err
	}
	return c.withSession(ctx, id, nil, func(_ *countedStore, s *coppice.Session) error {
		before := s.Head().Seq
		r, err := s.Rollback(ctx, t)
		if err != nil {
			return err
		}
		v, err := s.At(ctx, coppice.Target{})
		if err != nil {
			return err
		}
		state := v.Document().State
		if c.json {
			return c.writeJSON(rolledBack{movedTo(r), orNullJSON(state)})
		}
		if err := c.movedText(r, before); err != nil || len(state) == 0 {
			return err
		}
		return c.textf("state: %s", term.Cut(term.Line(string(state)), 200))
	})
}
