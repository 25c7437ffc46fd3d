// Package recent has the commands that a session manager has beside those that every store needs: continue and
// pick find the session to go on with; rename, move, reset, navigate, compact and labels work on one; usage and
// settings tell what it used and how it is run; trash keeps what was deleted. It adds to fork and delete what
// belongs to these.
package recent

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

// cli is one run of a command.
type cli struct{ *program.App }

// moved is the JSON of a command that is a commit.
type moved struct {
	Head   *string `json:"head"`
	Branch string  `json:"branch"`
	Seq    uint64  `json:"seq"`
}

func movedTo(r coppice.Receipt) moved {
	return moved{Head: program.OrNull(r.Entry), Branch: r.Branch, Seq: r.Seq}
}

// state is the folder in which the program remembers things of its own, on this machine.
func (c *cli) state(name string) (string, error) {
	if dir := c.Getenv("COPPICE_STATE"); dir != "" {
		return filepath.Join(dir, name), nil
	}
	if dir := c.Getenv("XDG_STATE_HOME"); dir != "" {
		return filepath.Join(dir, "coppice", name), nil
	}
	home := c.Home()
	if home == "" {
		return "", program.Usage("no home folder: set COPPICE_STATE")
	}
	return filepath.Join(home, ".local", "state", "coppice", name), nil
}

// managed runs f with a manager that holds a session, by its id or a prefix of it.
func (c *cli) managed(ctx context.Context, id string, hooks manager.Hooks, f func(m *manager.Manager) error) error {
	return c.WithStore(ctx, func(st *program.Store) (err error) {
		full, err := st.Resolve(ctx, id)
		if err != nil {
			return err
		}
		m := manager.New(st.Store, &manager.Options{Hooks: hooks})
		if _, err := m.Open(ctx, full); err != nil {
			return err
		}
		defer func() {
			if cerr := m.Session().Close(); err == nil {
				err = cerr // after a failure the first error says more
			}
		}()
		return f(m)
	})
}

// said tells of a commit about the session itself.
func (c *cli) said(r coppice.Receipt, format string, args ...any) error {
	if c.JSON {
		return c.Emit(movedTo(r))
	}
	return c.Text(format, args...)
}

// Rename is `coppice rename`.
func Rename(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:               "rename SESSION [TITLE]",
		Aliases:           []string{"title"},
		Short:             "Give a session a title; without TITLE take it away",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			title := append(args, "")[1]
			return c.managed(cmd.Context(), args[0], manager.Hooks{}, func(m *manager.Manager) error {
				r, err := m.Rename(cmd.Context(), title)
				if err != nil {
					return err
				}
				if title == "" {
					return c.said(r, "seq %d: %s has no title", r.Seq, m.Session().ID())
				}
				return c.said(r, "seq %d: %s is %s", r.Seq, m.Session().ID(), term.Line(title))
			})
		},
	}
}

// Move is `coppice move`.
func Move(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:               "move SESSION DIR",
		Short:             "Move a session to another working directory",
		Long:              "Move a session to another working directory: it is listed and continued there. Its history stays as it is.",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := program.Absolute(args[1])
			if err != nil || dir == "" {
				return errors.Join(err, program.Usage("DIR is empty"))
			}
			return c.managed(cmd.Context(), args[0], manager.Hooks{}, func(m *manager.Manager) error {
				r, err := m.Move(cmd.Context(), dir)
				if err != nil {
					return err
				}
				return c.said(r, "seq %d: %s is in %s", r.Seq, m.Session().ID(), term.Line(dir))
			})
		},
	}
}

// Reset is `coppice reset`.
func Reset(a *program.App) *cobra.Command {
	c := &cli{a}
	return &cobra.Command{
		Use:               "reset SESSION",
		Short:             "Begin anew in a session: a new root comes next",
		Long:              "Begin anew in a session: a new root comes next, and the model starts with nothing. All that was said stays in the\ntree; `coppice switch` goes back to it.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.managed(cmd.Context(), args[0], manager.Hooks{}, func(m *manager.Manager) error {
				r, err := m.Reset(cmd.Context())
				if err != nil {
					return err
				}
				return c.said(r, "seq %d: before every root, branch %s", r.Seq, term.Line(r.Branch))
			})
		},
	}
}
