package cli

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) trash(dir string) (*manager.Trash, error) {
	var err error
	if dir == "" {
		dir, err = c.stateFile("trash")
	}
	return &manager.Trash{Path: dir, Now: c.now}, err
}

func (c *cli) trashCommand() *cobra.Command {
	var dir, age string
	cmd := &cobra.Command{
		Use:   "trash",
		Short: "List or restore sessions deleted with --trash, or empty the trash",
		Long: `List the sessions deleted with ` + "`coppice delete --trash`" + `, newest first. Each item is a folder on
this machine, below $COPPICE_STATE, or $XDG_STATE_HOME/coppice, or ~/.local/state/coppice. It contains
the session as a store of its own, and as a file that pi can read.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.trashList(dir) },
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", "", "folder of the trash")
	list := &cobra.Command{
		Use: "list", Short: "List the sessions in the trash", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.trashList(dir) },
	}
	restore := &cobra.Command{
		Use:   "restore ITEM",
		Short: "Restore a session from the trash and print its id",
		Long: `Restore a session from the trash and print its id. ITEM is the name of the item, the id of the session,
or a unique prefix of either. Restored is all of the session: entries and branches, commits with their
states, snapshots with their tags. In the store from which it was deleted the session gets a new id; an
import of its file continues in it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.trashRestore(cmd.Context(), dir, args[0]) },
	}
	empty := &cobra.Command{
		Use: "empty", Short: "Permanently remove the sessions in the trash", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.trashEmpty(cmd.Context(), dir, age) },
	}
	empty.Flags().StringVar(&age, "older", "", "only sessions deleted longer ago than this, such as 30d or 12h")
	cmd.AddCommand(list, restore, empty)
	return cmd
}

// trashName is the least length of an item's name: the time, and the beginning of the session's id.
const trashName = len("20261120T114921Z-") + shortid.Least

func (c *cli) trashList(dir string) error {
	t, err := c.trash(dir)
	if err != nil {
		return err
	}
	items, err := t.List()
	if err != nil {
		return err
	}
	if c.json {
		return c.writeJSON(map[string]any{"items": orList(items)})
	}
	names := make([]string, len(items))
	for i, it := range items {
		names[i] = it.Name
	}
	ids := shortid.Of(names, trashName)
	for _, it := range items {
		if err := c.textf("%-*s  %s  %s  %s", ids.Width(), ids.Short(it.Name),
			term.Count(it.Entries, "entry", "entries"), term.Line(it.Title),
			c.stdout.Paint(term.Dim, term.Line(term.ShortenHome(it.Cwd, c.home())))); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		c.notef("the trash is empty")
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
	return c.withStore(ctx, func(st *countedStore) error {
		var s *coppice.Session
		err := c.recorded(ctx, st, audit.Act{Act: "restore", Session: item.Session}, func() (ids []string, err error) {
			if s, err = t.Restore(ctx, st.Store, item.Name); s != nil {
				ids = []string{s.ID()}
			}
			return ids, err
		})
		if err != nil {
			if s != nil {
				err = errors.Join(err, s.Close())
			}
			return err
		}
		id, title := s.ID(), titleOf(s.Info())
		if err := s.Close(); err != nil {
			return err
		}
		if c.json {
			return c.writeJSON(map[string]string{"session": id, "was": item.Session})
		}
		c.notef("restored %s", title)
		return c.textf("%s", st.short(ctx, id))
	})
}

func (c *cli) trashEmpty(ctx context.Context, dir, age string) error {
	before := c.now().Add(time.Hour) // also what a clock that was ahead has deleted
	if age != "" {
		d, err := ageOf("older", age)
		if err != nil {
			return err
		}
		before = c.now().Add(-d)
	}
	t, err := c.trash(dir)
	if err != nil {
		return err
	}
	var gone []manager.TrashItem
	err = c.recorded(ctx, nil, audit.Act{Act: "empty trash"}, func() (ids []string, err error) {
		gone, err = t.Empty(before)
		for _, item := range gone {
			ids = append(ids, item.Session)
		}
		return ids, err
	})
	if err != nil {
		return err
	}
	if c.json {
		return c.writeJSON(map[string]any{"removed": orList(gone)})
	}
	return c.textf("removed %s", term.Count(len(gone), "session", "sessions"))
}

// ageOf parses the duration of a flag, which may be in days.
func ageOf(flag, text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 16); err == nil {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, usageError("--%s %q: want a duration such as 30d or 12h", flag, text)
	}
	return d, nil
}
