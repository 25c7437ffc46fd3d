package recent

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/look"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/manager/terminal"
)

type continueOptions struct {
	cwd, terminal string
	fresh         bool
}

// Continue is `coppice continue`.
func Continue(a *program.App) *cobra.Command {
	c := &cli{a}
	var o continueOptions
	cmd := &cobra.Command{
		Use:   "continue",
		Short: "Find the session to go on with, or begin one",
		Long: `Find the session to go on with: the one that this terminal was in, if it was in this directory; else the one of
the directory that had the newest activity; else a new one. What the terminal was in is kept in a small file below
$COPPICE_STATE, else $XDG_STATE_HOME/coppice, else ~/.local/state/coppice; its id comes from the environment
(tmux, kitty, WezTerm, iTerm and others set one), or from --terminal.`,
		Example: "  coppice resume \"$(coppice continue)\"\n  coppice continue --new",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.goOn(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.cwd, "cwd", "", "the directory; default the present one")
	cmd.Flags().StringVar(&o.terminal, "terminal", "", "the terminal's id; none = remember nothing")
	cmd.Flags().BoolVar(&o.fresh, "new", false, "begin a new session")
	return cmd
}

// continued is the JSON of continue.
type continued struct {
	Session string  `json:"session"`
	Found   string  `json:"found"` // terminal, directory, new
	Cwd     string  `json:"cwd"`
	Title   string  `json:"title"`
	Seq     uint64  `json:"seq"`
	Head    *string `json:"head"`
}

func (c *cli) goOn(ctx context.Context, o continueOptions) (err error) {
	if o.cwd == "" {
		o.cwd, err = os.Getwd()
	} else {
		o.cwd, err = program.Absolute(o.cwd)
	}
	if err != nil {
		return err
	}
	return c.WithStore(ctx, func(st *program.Store) (err error) {
		opts, reason, err := c.crumbs(st, o.terminal)
		if err != nil {
			return err
		}
		m := manager.New(st.Store, opts)
		if o.fresh {
			_, err = m.Create(ctx, o.cwd, "")
		} else {
			_, err = m.Continue(ctx, o.cwd)
		}
		if err != nil {
			return err
		}
		s := m.Session()
		defer func() {
			if cerr := s.Close(); err == nil {
				err = cerr
			}
		}()
		if *reason == "new" {
			if _, err := s.Commit(ctx, coppice.Turn{Reason: "create"}); err != nil {
				return err
			}
		}
		found := map[string]string{"continue": "directory"}[*reason]
		if found == "" {
			found = *reason
		}
		info := s.Info()
		if c.JSON {
			return c.Emit(continued{s.ID(), found, info.Cwd, info.Title, info.Seq, program.OrNull(info.Entry)})
		}
		return c.Text("%s", s.ID())
	})
}

// crumbs are the options of a manager that remembers this terminal, and where it says how it found its session.
func (c *cli) crumbs(st *program.Store, id string) (*manager.Options, *string, error) {
	reason := new(string)
	o := &manager.Options{Store: st.URL, Terminal: id, Hooks: manager.Hooks{
		Start: func(_ context.Context, _ *coppice.Session, why string) { *reason = why },
	}}
	if id == "" {
		o.Terminal = terminal.ID(c.Getenv)
	}
	if id == "none" || o.Terminal == "" {
		o.Terminal = ""
		return o, reason, nil
	}
	dir, err := c.state("terminals")
	o.Crumbs = &terminal.Dir{Path: dir, Now: c.Now}
	return o, reason, err
}

// Resume is `coppice resume`, which the terminal remembers.
func Resume(a *program.App) *cobra.Command {
	c := &cli{a}
	cmd := look.Resume(a)
	plain := cmd.RunE
	var id string
	cmd.Long += " Where the terminal is known `coppice continue` goes on with\nthis session there from now on; that costs a second read."
	cmd.Flags().StringVar(&id, "terminal", "", "the terminal's id; none = remember nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := plain(cmd, args); err != nil {
			return err
		}
		c.remember(cmd.Context(), args[0], id)
		return nil
	}
	return cmd
}

// remember leaves a crumb for a terminal, if there is one. That it cannot is no fault of the command.
func (c *cli) remember(ctx context.Context, session, id string) {
	_ = c.WithStore(ctx, func(st *program.Store) error {
		o, _, err := c.crumbs(st, id)
		if err != nil || o.Terminal == "" {
			return err
		}
		full, err := st.Resolve(ctx, session)
		if err != nil {
			return err
		}
		o.Session.ReadOnly = true
		m := manager.New(st.Store, o)
		if _, err := m.Open(ctx, full); err != nil {
			return err
		}
		return m.Close(ctx)
	})
}
