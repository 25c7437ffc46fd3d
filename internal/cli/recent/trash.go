package recent

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/cli/change"
	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/cli/upkeep"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/manager/trash"
)

// Delete is `coppice delete`, with a trash.
func Delete(a *program.App) *cobra.Command {
	c := &cli{a}
	cmd := upkeep.Delete(a)
	forGood := cmd.RunE
	var keep bool
	var dir string
	cmd.Flags().BoolVar(&keep, "trash", false, "keep a copy, which 'coppice trash restore' brings back")
	cmd.Flags().StringVar(&dir, "trash-dir", "", "where the trash is; default trash below $COPPICE_STATE")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !keep {
			return forGood(cmd, args)
		}
		return c.WithStore(cmd.Context(), func(st *program.Store) error {
			id, err := st.Resolve(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			t, err := c.trash(dir)
			if err != nil {
				return err
			}
			item, err := t.Put(cmd.Context(), st.Store, id, st.URL)
			if err != nil {
				return err
			}
			if c.JSON {
				return c.Emit(map[string]any{"session": id, "deleted": true, "trash": item.Name})
			}
			return c.Text("deleted %s; `coppice trash restore %s` brings it back", id, item.Name)
		})
	}
	return cmd
}

func (c *cli) trash(dir string) (*trash.Trash, error) {
	var err error
	if dir == "" {
		dir, err = c.state("trash")
	}
	return &trash.Trash{Path: dir, Now: c.Now}, err
}

// Trash is `coppice trash`.
func Trash(a *program.App) *cobra.Command {
	c := &cli{a}
	var dir, age string
	cmd := &cobra.Command{
		Use:   "trash",
		Short: "List what was deleted with --trash; restore it, or empty the trash",
		Long: `List what was deleted with ` + "`coppice delete --trash`" + `, newest first. Each item is a folder on this machine, below
$COPPICE_STATE, else $XDG_STATE_HOME/coppice, else ~/.local/state/coppice, with the session as a file that pi reads too.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.trashList(dir) },
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", "", "where the trash is")
	list := &cobra.Command{
		Use: "list", Short: "List what is in the trash", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.trashList(dir) },
	}
	restore := &cobra.Command{
		Use:   "restore ITEM",
		Short: "Bring a session back, by the item's name or the session's id",
		Long: `Bring a session back, by the item's name, the session's id, or a unique prefix of either: every entry of every
branch, the branches' names, the head and the agent's state. In the store from which it was deleted it gets a new id.
The log of its commits and its snapshots do not come back.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.trashRestore(cmd.Context(), dir, args[0]) },
	}
	empty := &cobra.Command{
		Use: "empty", Short: "Remove what is in the trash for good", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.trashEmpty(dir, age) },
	}
	empty.Flags().StringVar(&age, "older", "", "only what was deleted longer ago than this, as 30d or 12h")
	cmd.AddCommand(list, restore, empty)
	return cmd
}

func (c *cli) trashList(dir string) error {
	t, err := c.trash(dir)
	if err != nil {
		return err
	}
	items, err := t.List()
	if err != nil {
		return err
	}
	if c.JSON {
		return c.Emit(map[string]any{"items": program.OrList(items)})
	}
	for _, it := range items {
		if err := c.Text("%s  %s  %s  %s", it.Name, term.Count(it.Entries, "entry", "entries"), term.Line(it.Title),
			c.Out.Paint(term.Dim, term.Line(term.ShortenHome(it.Cwd, c.Home())))); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		c.Note("the trash is empty")
	}
	return nil
}

func (c *cli) trashRestore(ctx context.Context, dir, word string) error {
	t, err := c.trash(dir)
	if err != nil {
		return err
	}
	item, err := t.Find(word)
	if err != nil {
		return err
	}
	return c.WithStore(ctx, func(st *program.Store) error {
		s, err := t.Restore(ctx, st.Store, item.Name)
		if err != nil {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
			return err
		}
		id := s.ID()
		if err := s.Close(); err != nil {
			return err
		}
		if c.JSON {
			return c.Emit(map[string]string{"session": id, "was": item.Session})
		}
		return c.Text("%s", id)
	})
}

func (c *cli) trashEmpty(dir, age string) error {
	before := c.Now().Add(time.Hour) // of a clock that was a little ahead too
	if age != "" {
		d, err := ageOf(age)
		if err != nil {
			return err
		}
		before = c.Now().Add(-d)
	}
	t, err := c.trash(dir)
	if err != nil {
		return err
	}
	gone, err := t.Empty(before)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.Emit(map[string]any{"removed": program.OrList(gone)})
	}
	return c.Text("removed %s", term.Count(len(gone), "session", "sessions"))
}

// ageOf reads a length of time, in days too.
func ageOf(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, program.Usage("--older %q: want a time as 30d or 12h", text)
	}
	return d, nil
}

// forked is the JSON of fork with what a session manager adds.
type forked struct {
	Session string  `json:"session"`
	Text    *string `json:"text,omitempty"`
}

// Fork is `coppice fork`, into another directory, from before a message, or of a whole session.
func Fork(a *program.App) *cobra.Command {
	c := &cli{a}
	cmd := change.Fork(a)
	plain := cmd.RunE
	var cwd, before string
	var all bool
	cmd.Long = "Make a session of its own of the way to a TARGET, of the way to before a message, or with --all of a whole session: every\n" +
		"branch with its name, the labels, the head and the state there. The log of commits and the snapshots stay with the old one."
	cmd.Flags().StringVar(&cwd, "cwd", "", "its working directory; default that of the old one")
	cmd.Flags().StringVar(&before, "before", "", "a user's message: it ends before that, and the text comes back for editing")
	cmd.Flags().BoolVar(&all, "all", false, "every branch, not one line alone")
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if cwd == "" && before == "" && !all {
			return plain(cmd, args)
		}
		if cwd, err = program.Absolute(cwd); err != nil {
			return err
		}
		if all {
			if cmd.Flags().Changed("at") || before != "" {
				return program.Usage("--all takes neither --at nor --before")
			}
			return c.copyAll(cmd, args[0], cwd)
		}
		if cmd.Flags().Changed("at") && before != "" {
			return program.Usage("give --at or --before, not both")
		}
		return c.fork(cmd, args[0], cwd, before)
	}
	return cmd
}

func (c *cli) fork(cmd *cobra.Command, from, cwd, before string) error {
	ctx := cmd.Context()
	get := func(name string) string { return cmd.Flag(name).Value.String() }
	t, err := program.ParseTarget(get("at"))
	if err != nil {
		return err
	}
	return c.WithSession(ctx, from, program.Reading(), func(st *program.Store, s *coppice.Session) (err error) {
		o := &coppice.SessionOptions{Title: get("title")}
		var out forked
		if before != "" {
			e, text, err := manager.Before(ctx, s, before)
			if err != nil {
				return err
			}
			if e.ParentID == "" {
				return program.Usage("entry %s has nothing before it: a new session does as well", e.ID)
			}
			out.Text, t = &text, coppice.Target{Entry: e.ParentID}
		}
		if cwd == "" {
			cwd = s.Info().Cwd
		}
		f, err := manager.Fork(ctx, s, t, get("session"), cwd, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if out.Session = f.ID(); c.JSON {
			return c.Emit(out)
		}
		if out.Text != nil {
			c.Note("%s", f.ID())
			return c.Text("%s", term.Text(*out.Text))
		}
		return c.Text("%s  %s", f.ID(), term.Count(f.Info().Entries, "entry", "entries"))
	})
}

// copyAll is fork --all.
func (c *cli) copyAll(cmd *cobra.Command, from, cwd string) error {
	ctx := cmd.Context()
	return c.WithStore(ctx, func(st *program.Store) (err error) {
		full, err := st.Resolve(ctx, from)
		if err != nil {
			return err
		}
		o := &coppice.SessionOptions{ID: cmd.Flag("session").Value.String(), Title: cmd.Flag("title").Value.String()}
		f, err := manager.Copy(ctx, st.Store, full, cwd, o)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		if c.JSON {
			return c.Emit(forked{Session: f.ID()})
		}
		return c.Text("%s  %s", f.ID(), term.Count(f.Info().Entries, "entry", "entries"))
	})
}
