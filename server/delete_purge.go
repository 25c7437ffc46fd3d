package server

import (
	"context"
	"errors"
	"fmt"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
)

// purge deletes a session for good, and removes what this server keeps of it. It does the second also if the session
// was deleted before, so a repeat completes a request that broke off.
func (s *Server) purge(ctx context.Context, q *deleteQuery, doc *api.Deleted, commit string) error {
	tenant, id := q.r.PathValue("tenant"), doc.Session
	t := s.trash(tenant)
	sessions, items, err := t.Copies(ctx, q.on.Store, id)
	if err != nil {
		return fmt.Errorf("nothing was deleted: %w", err)
	}
	if err := deleteAt(ctx, q, id, commit); err != nil && !errors.Is(err, coppice.ErrDeleted) {
		return err
	}
	s.drop(ctx, q.on.Store, tenant, id)
	doc.Purged, doc.Copies = &api.Purged{Trash: []string{}}, &api.Copies{Sessions: sessions, Trash: []string{}}
	gone, err := t.Purge(id, func(name string) bool { return name == tenant })
	for _, it := range gone {
		doc.Purged.Trash = append(doc.Purged.Trash, it.Name)
	}
	for _, it := range items {
		if !slices.Contains(doc.Purged.Trash, it.Name) { // of another session, or of another store with that session
			doc.Copies.Trash = append(doc.Copies.Trash, it.Name)
		}
	}
	var other error
	doc.Purged.Pin, doc.Purged.Crumbs, other = s.forgetHere(ctx, tenant, id)
	seen := seenOf(q.r)
	if seen.ids = append(seen.ids, doc.Purged.Trash...); id != q.id {
		seen.ids = append(seen.ids, id)
	}
	if err = errors.Join(err, other); err != nil {
		err = fmt.Errorf("%w: this server may keep parts of session %s: %w", coppice.ErrDeleteUnfinished, id, err)
	}
	return err
}

// purge adds up what was purged of sessions that were deleted together.
type purge struct {
	gone   []string // their ids
	purged api.Purged
	copies api.Copies
}

func (p *purge) add(of api.Deleted) {
	p.gone = append(p.gone, of.Session)
	if of.Purged != nil {
		p.purged.Pin, p.purged.Crumbs = p.purged.Pin || of.Purged.Pin, p.purged.Crumbs+of.Purged.Crumbs
		p.purged.Trash = append(p.purged.Trash, of.Purged.Trash...)
		p.copies.Sessions = append(p.copies.Sessions, of.Copies.Sessions...)
		p.copies.Trash = append(p.copies.Trash, of.Copies.Trash...)
	}
}

// into makes the sum that of an answer.
func (p *purge) into(doc *api.Deleted) {
	without := func(list, less []string) []string {
		list = slices.DeleteFunc(append([]string{}, list...), func(s string) bool { return slices.Contains(less, s) })
		slices.Sort(list)
		return slices.Compact(list)
	}
	doc.Purged = &api.Purged{Pin: p.purged.Pin, Crumbs: p.purged.Crumbs, Trash: without(p.purged.Trash, nil)}
	doc.Copies = &api.Copies{
		Sessions: without(p.copies.Sessions, p.gone), Trash: without(p.copies.Trash, p.purged.Trash),
	}
}
