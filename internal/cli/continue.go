package cli

import (
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

type continueOptions struct {
	cwd, terminal string
	fresh         bool
}

func (c *cli) continueCommand() *cobra.Command {
	var o continueOptions
	cmd := &cobra.Command{
		Use:   "continue",
		Short: "Print the id of the session to continue, or create one",
		Long: `Print the id of the session to continue: the last one of this terminal, if it belongs to this
directory; else the one with the newest activity in the directory; else a new session.

The last session of each terminal is kept in a file below $COPPICE_STATE, or $XDG_STATE_HOME/coppice,
or ~/.local/state/coppice. The id of the terminal comes from --terminal or from the environment
(tmux, kitty, WezTerm, iTerm and others set one).`,
		Example: "  coppice resume \"$(coppice continue)\"\n  coppice continue --new",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.continueSession(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.cwd, "cwd", "", "working directory; default: the current one")
	cmd.Flags().StringVar(&o.terminal, "terminal", "",
		"id of the terminal; none = neither use nor store its last session")
	cmd.Flags().BoolVar(&o.fresh, "new", false, "always create a new session")
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

func (c *cli) continueSession(ctx context.Context, o continueOptions) (err error) {
	if o.cwd, err = directory(o.cwd); err != nil {
		return err
	}
	return c.withStore(ctx, func(st *countedStore) (err error) {
		opts, reason, err := c.terminalOptions(st, o.terminal)
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
		defer func() { err = closeAfter(s, err) }()
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
		if c.json {
			return c.writeJSON(continued{s.ID(), found, info.Cwd, info.Title, info.Seq, orNull(info.Entry)})
		}
		if found == "new" {
			c.notef("created a new session in %s", term.Line(term.ShortenHome(info.Cwd, c.home())))
		}
		return c.textf("%s", st.short(ctx, s.ID()))
	})
}

// terminalOptions returns the options of a manager that remembers this terminal, and a variable in
// which the manager stores how it found its session.
func (c *cli) terminalOptions(st *countedStore, id string) (*manager.Options, *string, error) {
	reason := new(string)
	o := &manager.Options{Store: st.url, Terminal: id, Hooks: manager.Hooks{
		Start: func(_ context.Context, _ *coppice.Session, why string) { *reason = why },
	}}
	if id == "" {
		o.Terminal = manager.TerminalID(c.getenv)
	}
	if id == "none" || o.Terminal == "" {
		o.Terminal = ""
		return o, reason, nil
	}
	dir, err := c.stateFile("terminals")
	o.Crumbs = &manager.Crumbs{Path: dir, Now: c.now}
	return o, reason, err
}

// rememberInTerminal makes `coppice continue` go on with a session in this terminal, if the
// terminal has an id. A failure does not fail the command.
func (c *cli) rememberInTerminal(ctx context.Context, session, id string) {
	_ = c.withStore(ctx, func(st *countedStore) error {
		o, _, err := c.terminalOptions(st, id)
		if err != nil || o.Terminal == "" {
			return err
		}
		full, err := st.resolve(ctx, session)
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
