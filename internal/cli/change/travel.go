package change

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
)

// Rollback is `coppice rollback`.
func Rollback(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:   "rollback SESSION TARGET",
		Short: "Go back: state, context and head exactly as they were",
		Long: `Go back to a TARGET: state, context and head are exactly those of then, as a new commit on a new branch. The
line that is left stays, as a branch; ` + "`coppice switch`" + ` goes there again.`,
		Example:           "  coppice rollback 019a seq:12\n  coppice rollback 019a tag:green\n  coppice rollback 019a 2026-03-02T09:15:00Z",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: program.Complete(c.SessionIDs, c.Places(true)),
		RunE:              func(cmd *cobra.Command, args []string) error { return c.rollback(cmd.Context(), args[0], args[1]) },
	}
}

// rolledBack is the JSON of rollback.
type rolledBack struct {
	moved
	State json.RawMessage `json:"state"`
}

func (c *cli) rollback(ctx context.Context, id, to string) error {
	t, err := program.ParseTarget(to)
	if err != nil {
		return err
	}
	return c.WithSession(ctx, id, nil, func(_ *program.Store, s *coppice.Session) error {
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
		if c.JSON {
			return c.Emit(rolledBack{movedTo(r), program.OrNullJSON(state)})
		}
		if err := c.movedText(r, before); err != nil || len(state) == 0 {
			return err
		}
		return c.Text("state: %s", term.Cut(term.Line(string(state)), 200))
	})
}

// Fork is `coppice fork`.
func Fork(a *program.App) *cobra.Command {
	c := &cli{a}
	var at, id, title string
	cmd := &cobra.Command{
		Use:               "fork SESSION",
		Short:             "Make a session of its own of the way to a TARGET",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.fork(cmd.Context(), args[0], at, id, title)
		},
	}
	cmd.Flags().StringVar(&at, "at", "head", "TARGET where it ends")
	cmd.Flags().StringVar(&id, "session", "", "id of the new session; default a new one")
	cmd.Flags().StringVar(&title, "title", "", "its title; default that of the old one")
	return cmd
}

func (c *cli) fork(ctx context.Context, from, at, id, title string) error {
	t, err := program.ParseTarget(at)
	if err != nil {
		return err
	}
	return c.WithSession(ctx, from, program.Reading(), func(st *program.Store, s *coppice.Session) (err error) {
		var o *coppice.SessionOptions
		if title != "" {
			o = &coppice.SessionOptions{Title: title, Cwd: s.Info().Cwd}
		}
		f, err := s.Fork(ctx, t, id, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if c.JSON {
			return c.Emit(map[string]string{"session": f.ID()})
		}
		return c.Text("%s  %s", f.ID(), term.Count(f.Info().Entries, "entry", "entries"))
	})
}
