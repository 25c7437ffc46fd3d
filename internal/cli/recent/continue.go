package recent

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/draw"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/screen"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/manager/pick"
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

// Pick is `coppice pick`.
func Pick(a *program.App) *cobra.Command {
	c := &cli{a}
	var o pick.Options
	cmd := &cobra.Command{
		Use:   "pick [QUERY]",
		Short: "Look for a session by title, preview, folder and id",
		Long: `Look for a session by its title, the preview of its head, its folder and its id. QUERY is words, of which the
letters must occur in their order; "phrases" that stand there as they are; or re: and a regular expression. All must
fit; case does not matter. ` + "`coppice search`" + ` looks into what was said.`,
		Example: "  coppice pick tide tbl\n  coppice pick --sort threaded --named\n  coppice pick 're:fix(es)? #\\d+'",
		RunE: func(cmd *cobra.Command, args []string) error {
			for i, arg := range args { // what the shell kept together is a phrase
				if strings.Contains(arg, " ") && !strings.Contains(arg, `"`) && !strings.HasPrefix(arg, "re:") && len(args) > 1 {
					args[i] = `"` + arg + `"`
				}
			}
			o.Query = strings.Join(args, " ")
			return c.pick(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.Cwd, "cwd", "", "only sessions of this working directory")
	cmd.Flags().StringVar((*string)(&o.Sort), "sort", string(pick.Recent), "order: recent, relevance, threaded")
	cmd.Flags().BoolVar(&o.Named, "named", false, "only sessions that have a title")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "at most so many; 0 = all")
	_ = cmd.RegisterFlagCompletionFunc("sort", program.Words(string(pick.Recent), string(pick.Relevance), string(pick.Threaded)))
	return cmd
}

// picked is a session as the JSON shows it.
type picked struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	Cwd     string `json:"cwd"`
	Preview string `json:"preview"`
	Updated string `json:"updated"`
	Entries uint64 `json:"entries"`
	Parent  string `json:"parent,omitempty"`
	Depth   int    `json:"depth"`
}

func (c *cli) pick(ctx context.Context, o pick.Options) (err error) {
	if _, err := pick.Parse(o.Query); err != nil || o.Limit < 0 {
		return program.Usage("query %q, limit %d: %w", o.Query, o.Limit, err)
	}
	if o.Sort != pick.Recent && o.Sort != pick.Relevance && o.Sort != pick.Threaded {
		return program.Usage("unknown order %q; there are recent, relevance, threaded", o.Sort)
	}
	if o.Cwd, err = program.Absolute(o.Cwd); err != nil {
		return err
	}
	return c.WithStore(ctx, func(st *program.Store) error {
		out := c.Array("sessions")
		var rows []pick.Found
		tell, end := c.Listing()
		defer end()
		o.Progress = func(p pick.Progress) { tell(p.Looked, p.Total) }
		for f, err := range pick.Sessions(ctx, st.Store, o) {
			if err != nil {
				return out.End(err)
			}
			if !c.JSON {
				rows = append(rows, f)
				continue
			}
			at := f.Updated.UTC().Format("2006-01-02T15:04:05.999Z07:00")
			if err := out.Add(picked{f.ID, f.Title, f.Cwd, f.Preview, at, f.Entries, f.Parent, f.Depth}); err != nil {
				return err
			}
		}
		if end(); c.JSON {
			return out.End(nil)
		}
		return c.pickText(rows)
	})
}

func (c *cli) pickText(found []pick.Found) error {
	if len(found) == 0 {
		c.Note("nothing found")
		return nil
	}
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	short := draw.Short(ids)
	rows := make([][]screen.Cell, len(found))
	for i, f := range found {
		rows[i] = []screen.Cell{
			{Text: short(f.ID), Style: screen.Yellow},
			{Text: screen.Ago(c.Now(), f.Updated)},
			{Text: strings.Repeat("  ", min(f.Depth, 10)) + program.Title(f.Summary)},
			{Text: screen.Line(screen.Home(f.Cwd, c.Home())), Style: screen.Dim},
		}
	}
	return c.Out.Table([]screen.Column{{Head: "SESSION"}, {Head: "ACTIVE"}, {Head: "TITLE", Flex: true}, {Head: "FOLDER", Flex: true}}, rows)
}
