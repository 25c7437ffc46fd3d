package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

func (c *cli) pinCommand() *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "pin [SESSION]",
		Short: "Pin a session; without SESSION list the pins",
		Long: `Pin a session: ` + "`coppice pick`" + ` lists it first, in every order. Pins belong to the user,
not to the store: they are kept in a file below $COPPICE_STATE, or $XDG_STATE_HOME/coppice, or
~/.local/state/coppice; at most 1,000.`,
		Example: "  coppice pin 019cadab\n  coppice pin --remove 019cadab",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if remove && len(args) == 0 {
				return usageError("--remove needs a SESSION")
			}
			return c.pin(cmd.Context(), strings.Join(args, ""), remove)
		},
	}
	cmd.Flags().BoolVar(&remove, "remove", false, "remove the pin")
	return cmd
}

// pinnedAt is a pin as the JSON shows it.
type pinnedAt struct {
	Session string    `json:"session"`
	Time    time.Time `json:"time"`
}

func (c *cli) pin(ctx context.Context, id string, remove bool) error {
	return c.withStore(ctx, func(st *countedStore) error {
		f, err := c.pins()
		if err != nil {
			return err
		}
		store := localPath(st.url)
		said := ""
		switch {
		case remove:
			full := pinNamed(f.List(store), id) // one that is gone from the store, too
			if full == "" {
				if full, err = st.resolve(ctx, id); err != nil {
					return err
				}
			}
			was, err := f.Remove(store, full)
			if err != nil {
				return err
			}
			said = "no longer pinned: " + shortid.One(full)
			if !was {
				said = "was not pinned: " + shortid.One(full)
			}
		case id != "":
			full, err := st.resolve(ctx, id)
			if err != nil {
				return err
			}
			if err := f.Add(store, full); err != nil {
				return err
			}
			said = "pinned " + shortid.One(full)
		}
		return c.pinList(f.List(store), said)
	})
}

// pinList reports the pins; for people only the change of one.
func (c *cli) pinList(list []manager.Pin, said string) error {
	if c.json {
		out := []pinnedAt{}
		for _, p := range list {
			out = append(out, pinnedAt{p.Session, p.Time})
		}
		return c.writeJSON(map[string]any{"pins": out})
	}
	if said != "" {
		return c.textf("%s", term.Line(said))
	}
	if len(list) == 0 {
		c.notef("no session is pinned")
	}
	sessions := make([]string, len(list))
	for i, p := range list {
		sessions[i] = p.Session
	}
	ids := shortid.Of(sessions, shortid.Least)
	for _, p := range list {
		if err := c.textf("%s  %s", term.Clock(p.Time), ids.Short(p.Session)); err != nil {
			return err
		}
	}
	return nil
}

// pinNamed returns the session of the one pin that an id or a prefix names; "" = none, or several.
func pinNamed(list []manager.Pin, word string) string {
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

func (c *cli) pins() (*manager.Pins, error) {
	path, err := c.stateFile("pins.json")
	return &manager.Pins{Path: path, Now: c.now}, err
}

// pinned returns the ids of the pinned sessions; none if they cannot be read.
func (c *cli) pinned(st *countedStore) []string {
	f, err := c.pins()
	if err != nil {
		return nil
	}
	var ids []string
	for _, p := range f.List(localPath(st.url)) {
		ids = append(ids, p.Session)
	}
	return ids
}
