package recent

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/program"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/manager/pins"
)

// Pin is `coppice pin`.
func Pin(a *program.App) *cobra.Command {
	c := &cli{a}
	var remove bool
	cmd := &cobra.Command{
		Use:   "pin [SESSION]",
		Short: "Pin a session: `coppice pick` shows it first; without SESSION list the pins",
		Long: `Pin a session: ` + "`coppice pick`" + ` shows it first, whatever the order. Pins are this user's, and no part of the store: they
are kept in a small file below $COPPICE_STATE, else $XDG_STATE_HOME/coppice, else ~/.local/state/coppice; at most 1,000.`,
		Example:           "  coppice pin 019cadab\n  coppice pin --remove 019cadab",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: program.Complete(c.SessionIDs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remove && len(args) == 0 {
				return program.Usage("--remove: name the session")
			}
			return c.pin(cmd.Context(), strings.Join(args, ""), remove)
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "take the pin off")
	return cmd
}

// pinnedAt is a pin as the JSON shows it.
type pinnedAt struct {
	Session string    `json:"session"`
	Time    time.Time `json:"time"`
}

func (c *cli) pin(ctx context.Context, id string, remove bool) error {
	return c.WithStore(ctx, func(st *program.Store) error {
		f, err := c.pins()
		if err != nil {
			return err
		}
		store := nameOf(st.URL)
		said := ""
		switch {
		case remove:
			full := among(f.List(store), id) // one that is gone from the store, too
			if full == "" {
				if full, err = st.Resolve(ctx, id); err != nil {
					return err
				}
			}
			was, err := f.Remove(store, full)
			if err != nil {
				return err
			}
			said = "no longer pinned: " + full
			if !was {
				said = "it was not pinned: " + full
			}
		case id != "":
			full, err := st.Resolve(ctx, id)
			if err == nil {
				err = f.Add(store, full)
			}
			if err != nil {
				return err
			}
			said = "pinned " + full
		}
		return c.pinList(f.List(store), said)
	})
}

// pinList shows the pins, or for people what became of one.
func (c *cli) pinList(list []pins.Pin, said string) error {
	if c.JSON {
		out := []pinnedAt{}
		for _, p := range list {
			out = append(out, pinnedAt{p.Session, p.Time})
		}
		return c.Emit(map[string]any{"pins": out})
	}
	if said != "" {
		return c.Text("%s", term.Line(said))
	}
	if len(list) == 0 {
		c.Note("nothing is pinned")
	}
	for _, p := range list {
		if err := c.Text("%s  %s", term.Clock(p.Time), term.Line(p.Session)); err != nil {
			return err
		}
	}
	return nil
}

// among finds the one pin that a word names; "" = none, or several.
func among(list []pins.Pin, word string) string {
	found, n := "", 0
	for _, p := range list {
		if p.Session == word {
			return word
		}
		if word != "" && strings.HasPrefix(p.Session, word) {
			found = p.Session
			n++
		}
	}
	if n == 1 {
		return found
	}
	return ""
}

func (c *cli) pins() (*pins.File, error) {
	path, err := c.state("pins.json")
	return &pins.File{Path: path, Now: c.Now}, err
}

// pinned gives the ids of the sessions that are pinned. Picking goes on without.
func (c *cli) pinned(st *program.Store) []string {
	f, err := c.pins()
	if err != nil {
		return nil
	}
	var ids []string
	for _, p := range f.List(nameOf(st.URL)) {
		ids = append(ids, p.Session)
	}
	return ids
}

// nameOf is what a store is called in the pins: a folder by its whole path, however it was named.
func nameOf(url string) string {
	where := strings.TrimPrefix(url, "file://")
	if full, err := filepath.Abs(where); err == nil && !strings.Contains(where, "://") {
		return full
	}
	return where
}
