package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager"
)

type forkOptions struct {
	at, before string // a TARGET; an entry
	session    string
	title, cwd string
	all        bool
}

func (c *cli) forkCommand() *cobra.Command {
	var o forkOptions
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Copy the path to a TARGET, or a whole session, to a new session",
		Long: `Create a new session and print its id. It contains the path to a TARGET, or with --before the path to
the entry before a message, or with --all the whole session: every branch with its name, the labels,
the head and the state there. The log of commits and the snapshots are not copied.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if o.cwd, err = absolutePath(o.cwd); err != nil {
				return err
			}
			at := cmd.Flags().Changed("at")
			switch {
			case o.all && (at || o.before != ""):
				return usageError("--all cannot be combined with --at or --before")
			case o.all:
				return c.copySession(cmd.Context(), args[0], o)
			case at && o.before != "":
				return usageError("use --at or --before, not both")
			}
			return c.fork(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().StringVar(&o.at, "at", "head", "TARGET at which the new session ends")
	cmd.Flags().StringVar(&o.session, "session", "", "id of the new session; default: a new id")
	cmd.Flags().StringVar(&o.title, "title", "", "title of the new session; default: the title of SESSION")
	cmd.Flags().StringVar(&o.cwd, "cwd", "", "working directory of the new session; default: that of SESSION")
	cmd.Flags().StringVar(&o.before, "before", "",
		"user message: end before it, and print its text to standard error, for editing")
	cmd.Flags().BoolVar(&o.all, "all", false, "copy every branch, not only one path")
	return cmd
}

func (c *cli) fork(ctx context.Context, from string, o forkOptions) error {
	t, err := parseTarget(o.at)
	if err != nil {
		return err
	}
	return c.withSession(ctx, from, readOnly(), func(st *countedStore, s *coppice.Session) error {
		f, text, err := forkAt(ctx, s, t, o)
		if err != nil {
			return whatExists(ctx, s, t, err)
		}
		return closeAfter(f, c.reportFork(ctx, st, f, text))
	})
}

// forkAt makes the new session. text is that of the message in --before, else nil.
func forkAt(
	ctx context.Context, s *coppice.Session, t coppice.Target, o forkOptions,
) (f *coppice.Session, text *string, err error) {
	if o.cwd == "" && o.before == "" {
		var so *coppice.SessionOptions
		if o.title != "" {
			so = &coppice.SessionOptions{Title: o.title, Cwd: s.Info().Cwd}
		}
		f, err = s.Fork(ctx, t, o.session, so)
		return f, nil, err
	}
	if o.before != "" {
		e, prompt, err := manager.Before(ctx, s, o.before)
		if err != nil {
			return nil, nil, err
		}
		if e.ParentID == "" {
			return nil, nil, usageError("entry %s is a root: nothing comes before it", e.ID)
		}
		text, t = &prompt, coppice.Target{Entry: e.ParentID}
	}
	cwd := cmp.Or(o.cwd, s.Info().Cwd)
	f, err = manager.Fork(ctx, s, t, o.session, cwd, &coppice.SessionOptions{Title: o.title})
	return f, text, err
}

// copySession is fork --all.
func (c *cli) copySession(ctx context.Context, from string, o forkOptions) error {
	return c.withStore(ctx, func(st *countedStore) error {
		full, err := st.resolve(ctx, from)
		if err != nil {
			return err
		}
		f, err := manager.Copy(ctx, st.Store, full, o.cwd, &coppice.SessionOptions{ID: o.session, Title: o.title})
		if err != nil {
			return err
		}
		return closeAfter(f, c.reportFork(ctx, st, f, nil))
	})
}

// reportFork writes the id of the new session, which a script reads, to the standard output, and the rest as remarks.
func (c *cli) reportFork(ctx context.Context, st *countedStore, f *coppice.Session, text *string) error {
	switch {
	case c.json:
		return c.writeJSON(api.Fork{Session: f.ID(), Text: text})
	case text != nil:
		c.notef("%s", term.Text(*text))
	}
	c.notef("%s, %s", titleOf(f.Info()), term.Count(f.Info().Entries, "entry", "entries"))
	return c.textf("%s", st.short(ctx, f.ID()))
}
