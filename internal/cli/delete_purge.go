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

// deletePurging deletes a session by del, and removes what this machine keeps of it. It does the second also if the
// session was deleted before, so it completes a call that broke off.
func (c *cli) deletePurging(
	ctx context.Context, st *countedStore, id, note string, o deleteOptions, del func() error,
) error {
	t, err := c.trash(o.trashDir)
	if err != nil {
		return err
	}
	doc := api.Deleted{Deleted: true, Session: id, Copies: &api.Copies{Sessions: []string{}, Trash: []string{}}}
	sessions, items, err := t.Copies(ctx, st.Store, id)
	if err != nil {
		return fmt.Errorf("nothing was deleted: %w", err)
	}
	doc.Copies.Sessions = append(doc.Copies.Sessions, sessions...)
	for _, it := range items {
		doc.Copies.Trash = append(doc.Copies.Trash, it.Name)
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
	return c.textf("%s", term.Line(copiesText(doc.Copies)))
}

// copiesText returns one line that names what still has entries of the session.
func copiesText(k *api.Copies) string {
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

// purgeMachine removes what this machine keeps of a session outside of the store: its items of the trash, its pin, the
// crumbs of terminals, and its rows in the search index, which are the history of its prompts too. Each is tried,
// also after an error. The list of sessions forgets it where it is deleted in the store.
func (c *cli) purgeMachine(ctx context.Context, st *countedStore, t *manager.Trash, id string) (*api.Purged, error) {
	p := &api.Purged{Trash: []string{}}
	items, err := t.Purge(id, sameStore(st.url))
	for _, it := range items {
		p.Trash = append(p.Trash, it.Name)
	}
	errs := []error{err}
	p.Pin, p.Crumbs, err = c.forget(st.url, id)
	return p, errors.Join(append(errs, err, c.eraseIndex(ctx, st, id))...)
}

// sameStore returns whether a store that a file of this machine names is one with an address.
func sameStore(url string) func(name string) bool {
	store := localPath(url)
	return func(name string) bool { return name == "" || localPath(name) == store }
}

// forget removes the pin of a session that was deleted, and the crumbs of terminals that were in it. Both are tried.
func (c *cli) forget(url, id string) (pin bool, crumbs int, err error) {
	pins, err := c.pins()
	if err == nil {
		pin, err = pins.Remove(localPath(url), id)
	}
	dir, other := c.stateFile("terminals")
	if other == nil {
		crumbs, other = (&manager.Crumbs{Path: dir, Now: c.now}).ForgetSession(id, sameStore(url))
	}
	return pin, crumbs, errors.Join(err, other)
}

// forgetDeleted takes deleted sessions out of what this machine keeps of them. Those that are restored from the trash
// have other ids.
func (c *cli) forgetDeleted(ctx context.Context, st *countedStore, ids ...string) {
	c.unindex(ctx, st, ids...)
	for _, id := range ids {
		if _, _, err := c.forget(st.url, id); err != nil {
			c.notef("%s may still be pinned, or remembered by a terminal: %s", shortid.One(id), term.Line(err.Error()))
		}
	}
}
