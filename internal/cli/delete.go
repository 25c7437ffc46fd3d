package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

type deleteOptions struct {
	yes, trash, purge bool
	trashDir          string
}

func (c *cli) deleteCommand() *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use:   "delete SESSION",
		Short: "Delete a session permanently, or move it to the trash",
		Long: `Delete a session with all its branches, snapshots and images, and erase it in the search index. Its id is
used again on request alone. If it was imported, imports skip its file unless they have --again. On a terminal
the command asks for confirmation, unless --yes or --trash is given. Elsewhere a prefix of the id is not enough
without --yes or --trash.

What this machine keeps of the session goes too: its prompts in the history, its pin, the memory of terminals.
--purge removes also the items that --trash made of it, and names what keeps copies. It takes the whole id of a session
that was deleted before, too. If it breaks off, run it again.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withStore(cmd.Context(), func(st *countedStore) error {
				if o.trash && o.purge {
					return usageError("--purge removes what --trash keeps: use one of them")
				}
				id, err := c.delete(cmd.Context(), st, args[0], o)
				if err == nil && !o.purge {
					c.forgetDeleted(cmd.Context(), st, id)
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&o.trash, "trash", false, "keep a copy that 'coppice trash restore' can restore")
	cmd.Flags().BoolVar(&o.purge, "purge", false, "remove also what this machine keeps of the session, trash included")
	cmd.Flags().StringVar(&o.trashDir, "trash-dir", "", "folder of the trash; default: trash below $COPPICE_STATE")
	return cmd
}

// delete returns the id of the session that it deleted.
func (c *cli) delete(ctx context.Context, st *countedStore, word string, o deleteOptions) (string, error) {
	id, err := st.resolve(ctx, word)
	if id != word && layout.ValidID(word) == nil { // the id of a deleted session is not the prefix of another one
		err := c.finishDelete(ctx, st, word, o)
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, coppice.ErrDeleted) {
			return word, err
		}
	}
	switch {
	case err != nil:
		return "", err
	case o.trash:
		return id, c.deleteToTrash(ctx, st, id, o.trashDir)
	}
	return id, c.deleteForGood(ctx, st, id, word, o)
}

// finishDelete removes what an earlier deletion left: coppice.ErrDeleted if nothing is, fs.ErrNotExist if there was no
// such session.
func (c *cli) finishDelete(ctx context.Context, st *countedStore, id string, o deleteOptions) error {
	if o.trash {
		return c.deleteToTrash(ctx, st, id, o.trashDir)
	}
	return c.deleteBy(ctx, st, id, "", o, func() error { return st.DeleteAt(ctx, id, "") })
}

// deleteBy deletes a session by del, as an act of the audit log, and reports it.
func (c *cli) deleteBy(
	ctx context.Context, st *countedStore, id, note string, o deleteOptions, del func() error,
) error {
	if o.purge {
		return c.deletePurging(ctx, st, id, note, o, del)
	}
	err := c.recorded(ctx, st, audit.Act{Act: "delete", Session: id}, func() ([]string, error) { return nil, del() })
	if err != nil {
		return err
	}
	if c.json {
		return c.writeJSON(api.Deleted{Deleted: true, Session: id})
	}
	return c.textf("deleted %s%s", shortid.One(id), note)
}

// fileNote returns what the deletion of an imported session means for its file; "" = the session was not imported.
func fileNote(ctx context.Context, st *countedStore, id string) string {
	s, err := st.Open(ctx, id, readOnly())
	if err != nil {
		return "" // a damaged one can be deleted too
	}
	imported := s.Info().Source != nil
	if s.Close() != nil || !imported {
		return ""
	}
	return "; imports skip its file, unless with --again"
}

func (c *cli) deleteToTrash(ctx context.Context, st *countedStore, id, dir string) error {
	t, err := c.trash(dir)
	if err != nil {
		return err
	}
	note := fileNote(ctx, st, id)
	var item manager.TrashItem
	err = c.recorded(ctx, st, audit.Act{Act: "delete", Session: id}, func() ([]string, error) {
		item, err = t.Put(ctx, st.Store, id, st.url)
		return nil, err
	})
	if err != nil {
		return err
	}
	if c.json {
		return c.writeJSON(api.Deleted{Deleted: true, Session: id, Trash: item.Name})
	}
	short := shortid.Of([]string{item.Name}, trashName).Short(item.Name)
	return c.textf("deleted %s; `coppice trash restore %s` restores it%s", shortid.One(id), short, note)
}

// deleteForGood deletes the session that word names. Where the user cannot be asked, a prefix alone is not enough: it
// may be the prefix of another session than was meant.
func (c *cli) deleteForGood(ctx context.Context, st *countedStore, id, word string, o deleteOptions) error {
	f, ok := c.stdin.(*os.File)
	asks := ok && !c.json && term.IsTerminal(f) && c.stderr.Terminal()
	if word != id && !o.yes && !asks {
		return &api.Failure{
			Code: "usage", Hint: "--yes deletes it, --trash moves it to the trash",
			Err: fmt.Errorf("%s is only a prefix of the id of %s", word, c.described(ctx, st, id)),
		}
	}
	if asks && !o.yes {
		sure, err := c.confirm(ctx, fmt.Sprintf("permanently delete %s? [y/N] ", c.described(ctx, st, id)))
		if err != nil {
			return err
		}
		if !sure {
			return errors.New("nothing was deleted")
		}
	}
	note := fileNote(ctx, st, id)
	return c.deleteBy(ctx, st, id, note, o, func() error { return st.Delete(ctx, id) })
}

// described returns the id and the name of a session, by which a person knows it.
func (c *cli) described(ctx context.Context, st *countedStore, id string) string {
	text := "session " + shortid.One(id)
	s, err := st.Open(ctx, id, readOnly())
	if err != nil {
		return text // a damaged one can be deleted too
	}
	info := s.Info()
	if s.Close() != nil {
		return text
	}
	if name := titleOf(info); name != "" {
		text += fmt.Sprintf(" (%s, %s)", name, term.Count(info.Entries, "entry", "entries"))
	}
	return text
}

// confirm asks the person at the terminal and reports whether the answer is yes.
func (c *cli) confirm(ctx context.Context, question string) (bool, error) {
	if _, err := fmt.Fprint(c.stderr, question); err != nil {
		return false, err
	}
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(c.stdin).ReadString('\n')
		if err != nil {
			line = ""
		}
		answer <- line
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case a := <-answer:
		a = strings.ToLower(strings.TrimSpace(a))
		return a == "y" || a == "yes", nil
	}
}
