package cli

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/cli/tui"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) tuiCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "tui [SESSION]",
		Short: "Browse the tree of a session in the terminal",
		Long: `Browse the tree of a session on the whole terminal: fold it, compare versions, search, read entries and
the agent's state at any commit, set labels, continue at an entry, roll back. Looking changes nothing;
a step that changes the session asks first. ? lists the keys. Without SESSION pick one first.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, ok := c.terminal()
			if !ok || c.json {
				return usageError("tui needs a terminal; `coppice tree` prints the tree")
			}
			return c.withStore(cmd.Context(), func(st *countedStore) (err error) {
				id := ""
				if len(args) > 0 {
					id = args[0]
				} else if id, err = c.find(cmd.Context(), t, st, pickOptions{}); err != nil {
					return err
				}
				s, err := st.session(cmd.Context(), id, nil)
				if err != nil {
					return err
				}
				return c.endSession(s, tui.Browse(cmd.Context(), t, s))
			})
		},
	}
}

// terminal returns the terminal of a person who can answer: the standard input, and the standard error, so that the
// standard output is free for the result. false: there is none.
func (c *cli) terminal() (tui.Terminal, bool) {
	in, ok := c.stdin.(*os.File)
	out := c.stderr.File()
	if !ok || !term.IsTerminal(in) || out == nil || c.getenv("TERM") == "dumb" {
		return tui.Terminal{}, false
	}
	return tui.Terminal{In: in, Out: out, Getenv: c.getenv}, true
}

// find has the person pick a session, and returns its id.
func (c *cli) find(ctx context.Context, t tui.Terminal, st *countedStore, o pickOptions) (string, error) {
	query := o.Query
	o.Query = ""
	id, err := tui.Find(ctx, t, tui.FindOptions{
		Query: query, Now: c.now, Home: c.home(),
		Matches: func(ctx context.Context, query string) (map[string]string, error) {
			quiet := *c // a remark would run across the screen
			quiet.stderr = term.New(io.Discard, c.getenv)
			return quiet.sessionsSaying(ctx, st, query, o.Cwd, nil)
		},
		Sessions: func(ctx context.Context) (list []manager.Found, err error) {
			for f, err := range manager.Pick(ctx, st.Store, o.PickOptions) {
				if err != nil {
					return nil, err
				}
				list = append(list, f)
			}
			return list, nil
		},
		Preview: func(ctx context.Context, id string, s *term.Screen) error {
			session, err := st.Open(ctx, id, readOnly())
			if err != nil {
				return err
			}
			t, err := session.Tree(ctx)
			if err == nil {
				err = errors.Join(term.Title(s, session.Info(), t), term.Tree(s, t, term.TreeOptions{Ends: 3}))
			}
			return closeAfter(session, err)
		},
	})
	if err == nil && id == "" {
		err = reported(context.Canceled) // left without a choice
	}
	return id, err
}
