package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
)

type deleteOptions struct {
	yes, trash bool
	trashDir   string
}

func (c *cli) deleteCommand() *cobra.Command {
	var o deleteOptions
	cmd := &cobra.Command{
		Use:   "delete SESSION",
		Short: "Delete a session for good",
		Long: `Delete a session for good: all its branches, snapshots and images. Its id is never used again. On a terminal it
asks first.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withStore(cmd.Context(), func(st *countedStore) error {
				id, err := st.resolve(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				if o.trash {
					return c.deleteToTrash(cmd.Context(), st, id, o.trashDir)
				}
				return c.deleteForGood(cmd.Context(), st, id, o.yes)
			})
		},
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.trash, "trash", false, "keep a copy, which 'coppice trash restore' brings back")
	cmd.Flags().StringVar(&o.trashDir, "trash-dir", "", "where the trash is; default trash below $COPPICE_STATE")
	return cmd
}

func (c *cli) deleteToTrash(ctx context.Context, st *countedStore, id, dir string) error {
	t, err := c.trash(dir)
	if err != nil {
		return err
	}
	item, err := t.Put(ctx, st.Store, id, st.url)
	if err != nil {
		return err
	}
	if c.json {
		return c.writeJSON(map[string]any{"session": id, "deleted": true, "trash": item.Name})
	}
	return c.textf("deleted %s; `coppice trash restore %s` brings it back", id, item.Name)
}

func (c *cli) deleteForGood(ctx context.Context, st *countedStore, id string, yes bool) error {
	if f, ok := c.stdin.(*os.File); ok && !yes && !c.json && term.IsTerminal(f) && c.stderr.Terminal() {
		sure, err := c.confirm(ctx, fmt.Sprintf("delete session %s for good? [y/N] ", id))
		if err != nil {
			return err
		}
		if !sure {
			return errors.New("nothing was deleted")
		}
	}
	if err := st.Delete(ctx, id); err != nil {
		return err
	}
	if c.json {
		return c.writeJSON(map[string]any{"session": id, "deleted": true})
	}
	return c.textf("deleted %s", id)
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
