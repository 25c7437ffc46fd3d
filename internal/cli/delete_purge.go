package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
	"github.com/coppice-go/coppice/manager"
)

// purgedDoc is the document of coppice delete --purge.
type purgedDoc struct {
	api.Deleted
	Purged purged `json:"purged"`
	Copies copies `json:"copies"`
}

// purged is what this machine kept of a session and was removed.
type purged struct {
	Pin    bool     `json:"pin"`
	Crumbs int      `json:"crumbs"` // terminals that remembered it
	Trash  []string `json:"trash"`  // names of items
}

// copies are what still has entries of a session.
type copies struct {
	Sessions []string `json:"sessions"`
	Trash    []string `json:"trash"` // names of items of other sessions, or of other stores
}

// deletePurging deletes a session by del, and removes what this machine keeps of it. It does the second also if the
// session was deleted before, so it completes a call that broke off.
func (c *cli) deletePurging(
	ctx context.Context, st *countedStore, id, note string, o deleteOptions, del func() error,
) error {
	t, err := c.trash(o.trashDir)
	if err != nil {
		return err
	}
	doc := purgedDoc{Deleted: api.Deleted{Deleted: true, Session: id}}
	if doc.Copies, err = findCopies(ctx, st, t, id); err != nil {
		return fmt.Errorf("nothing was deleted: %w", err)
	}
	err = c.recorded(ctx, st, audit.Act{Act: "delete", Session: id}, func() ([]string, error) {
		if err := del(); err != nil && !errors.Is(err, coppice.ErrDeleted) {
			return nil, err
		}
		doc.Purged, err = c.purgeMachine(ctx, st, t, id)
		if err != nil {
			err = fmt.Errorf("session %s is deleted in the store, and this machine may keep parts of it: %w", id, err)
		}
		return doc.Purged.Trash, err
	})
	if err != nil {
		return err
	}
	doc.Copies.Trash = slices.DeleteFunc(doc.Copies.Trash, func(name string) bool {
		return slices.Contains(doc.Purged.Trash, name)
	})
	if c.json {
		return c.writeJSON(doc)
	}
	if err := c.textf("deleted %s, and what this machine kept of it%s", shortid.One(id), note); err != nil {
		return err
	}
	return c.textf("%s", term.Line(doc.Copies.text()))
}

// text returns one line that names what still has entries of the session.
func (k copies) text() string {
	var b strings.Builder
	b.WriteString("copies stay in ")
	if len(k.Sessions) > 0 {
		word := "session"
		if len(k.Sessions) > 1 {
			word = "sessions"
		}
		fmt.Fprintf(&b, "%s %s; ", word, strings.Join(k.Sessions, ", "))
	}
	if len(k.Trash) > 0 {
		fmt.Fprintf(&b, "the trash: %s; ", strings.Join(k.Trash, ", "))
	}
	b.WriteString("exported and imported files, backups, and older versions that an object store keeps, if any")
	return b.String()
}

// findCopies returns what has entries of a session, before it is deleted: items of the trash that are its own are
// among them.
func findCopies(ctx context.Context, st *countedStore, t *manager.Trash, id string) (copies, error) {
	found := copies{Sessions: []string{}, Trash: []string{}}
	sessions, err := st.Copies(ctx, id)
	if err != nil {
		return found, err
	}
	found.Sessions = append(found.Sessions, sessions...)
	s, err := st.Open(ctx, id, readOnly())
	if err != nil {
		return found, ctx.Err() // a damaged session can be deleted too
	}
	items, err := t.Having(ctx, s, nil, nil)
	for _, it := range items {
		found.Trash = append(found.Trash, it.Name)
	}
	return found, closeAfter(s, err)
}

// purgeMachine removes what this machine keeps of a session outside of the store: its items of the trash, its pin, the
// crumbs of terminals, and its rows in the search index, which are the history of its prompts too. Each is tried,
// also after an error. The list of sessions forgets it where it is deleted in the store.
func (c *cli) purgeMachine(ctx context.Context, st *countedStore, t *manager.Trash, id string) (purged, error) {
	p := purged{Trash: []string{}}
	store := localPath(st.url)
	same := func(name string) bool { return name == "" || localPath(name) == store }
	items, err := t.Purge(id, same)
	for _, it := range items {
		p.Trash = append(p.Trash, it.Name)
	}
	errs := []error{err}
	pins, err := c.pins()
	if err == nil {
		p.Pin, err = pins.Remove(store, id)
	}
	errs = append(errs, err)
	dir, err := c.stateFile("terminals")
	if err == nil {
		p.Crumbs, err = (&manager.Crumbs{Path: dir, Now: c.now}).ForgetSession(id, same)
	}
	return p, errors.Join(append(errs, err, c.eraseIndex(ctx, st, id))...)
}
