package cli

import (
	"context"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

// pinnedAt is a pin as the JSON has it.
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
		if remove {
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
		} else {
			full, err := st.resolve(ctx, id)
			if err != nil {
				return err
			}
			if err := f.Add(store, full); err != nil {
				return err
			}
			said = "pinned " + shortid.One(full)
		}
		return c.pinsChanged(f.List(store), said)
	})
}

// pinsChanged reports a change of the pins.
func (c *cli) pinsChanged(list []manager.Pin, said string) error {
	if !c.json {
		return c.textf("%s", term.Line(said))
	}
	out := []pinnedAt{}
	for _, p := range list {
		out = append(out, pinnedAt{p.Session, p.Time})
	}
	return c.writeJSON(map[string]any{"pins": out})
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
