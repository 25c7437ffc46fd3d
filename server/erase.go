package server

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/manager"
)

// eraseBody names what goes: the content of entries, values within states, small documents.
type eraseBody struct {
	Entries    []string `json:"entries" maxItems:"10000" doc:"ids, or unique prefixes of ids; may be empty"`
	States     []string `json:"states,omitempty" maxItems:"10000" doc:"JSON pointers into the state of every commit"`
	Docs       []string `json:"docs,omitempty" maxItems:"10000" doc:"names of small documents"`
	Reason     string   `json:"reason,omitempty" maxLength:"256" doc:"kept with each stub; nothing of what is erased"`
	Everywhere bool     `json:"everywhere,omitempty" doc:"also in forks, and in other imports of the same file"`
	PurgeTrash bool     `json:"purgeTrash,omitempty" doc:"remove items of the trash that have any of it"`
	DryRun     bool     `json:"dryRun,omitempty" doc:"change nothing: the answer is what it would be"`
}

func (s *Server) describeErase() {
	handle[sessionPath, api.Erased](s, operation{
		method: "POST", path: "/v1/sessions/{id}/erase", id: "erase", heavy: true, names: true, size: sizeNote,
		summary: "Remove the content of entries for good, and leave stubs",
		text: "It is a conflict for no writer. If it fails in the middle readers see the entries or the stubs, and a " +
			"repeat completes it; a repeat after it is done changes nothing. Not reached are quotations in other " +
			"entries and other values of states, exported files, backups, and older versions that a store keeps.",
		body: reflect.TypeFor[eraseBody](), errors: []int{http.StatusConflict},
	}, s.erase)
}

// eraseRate is how many bytes of a session an erasure reads in a second, at least: it may take as much longer than a
// commit.
const eraseRate = 4 << 20

// took returns how much longer than a commit what handles so many bytes may take.
func took(size int64) time.Duration { return time.Duration(size/eraseRate) * time.Second }

func (s *Server) erase(ctx context.Context, q *sessionPath) (answer, error) {
	var b eraseBody
	if err := decode(q.r, &b); err != nil {
		return answer{}, err
	}
	seenOf(q.r).dry = b.DryRun
	narrow := q.on.Only != (Only{})
	switch {
	case len(b.Entries)+len(b.States)+len(b.Docs) == 0:
		return answer{}, badInput("entries", errors.New("want at least one, or states or docs"))
	case narrow && (b.Everywhere || b.PurgeTrash): // it may not see all of them
		return answer{}, ErrForbidden
	}
	size := int64(0)
	_, err := read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		size = h.Info().Bytes
		return answer{}, nil
	})
	if err != nil {
		return answer{}, err
	}
	most := s.o.Timeout + took(size)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	r, err := q.on.Store.Erase(ctx, q.id, b.Entries, &coppice.EraseOptions{
		States: b.States, Docs: b.Docs, Reason: b.Reason, Everywhere: b.Everywhere, DryRun: b.DryRun,
	})
	if !b.DryRun { // also what a part of it changed
		s.unlearn(ctx, q, r)
	}
	if err != nil {
		return answer{}, halfDone(ctx, err)
	}
	doc := api.ErasedOf(r, b.DryRun)
	if narrow {
		doc.Others = []api.Relative{}
	} else if err = s.eraseTrash(ctx, q, &doc, &b); err != nil {
		return answer{}, err
	}
	return answer{doc: doc}, nil
}

// halfDone returns the error of an erasure, or of an act of retention: where it may have begun, the one that it has to
// be repeated.
func halfDone(ctx context.Context, err error) error {
	_, ofStore := errors.AsType[*backend.Error](err)
	if ctx.Err() == nil && (!ofStore || backend.OutcomeOf(err) != backend.Unknown) {
		return err
	}
	return retry(newProblem(http.StatusGatewayTimeout, "outcome-unknown",
		"repeat the request: it completes what was begun, and changes nothing if that was all", err))
}

// unlearn drops what the server keeps of sessions in which entries were erased.
func (s *Server) unlearn(ctx context.Context, q *sessionPath, r coppice.Erased) {
	others := api.ErasedIn(r)
	seen := seenOf(q.r) // the audit log names what was erased, and where
	seen.ids = slices.Concat(seen.ids, others, r.Entries, r.States, r.Docs)
	for _, id := range append(others, q.id) {
		s.drop(ctx, q.on.Store, q.r.PathValue("tenant"), id)
	}
}

// drop forgets what the server keeps of a session: its index, trees and contexts, and the handle that writes it.
func (s *Server) drop(ctx context.Context, st *coppice.Store, tenant, id string) {
	s.indexes.erase(ctx, st, tenant, id)
	key := writerKey{st, id}
	s.writers.deleted(key)
	gone := func(of writerKey) bool { return of == key }
	s.views.forget(gone)
	s.contexts.forget(gone)
}

// eraseTrash finds the items of the server's trash that have what an erasure names, and removes them if asked to.
func (s *Server) eraseTrash(ctx context.Context, q *sessionPath, doc *api.Erased, b *eraseBody) error {
	if s.o.Trash == "" {
		return nil
	}
	t := s.trash(q.r.PathValue("tenant"))
	var items []manager.TrashItem
	_, err := read(ctx, &q.request, func(h *coppice.Session) (a answer, err error) {
		o := &coppice.EraseOptions{States: b.States, Docs: b.Docs}
		items, err = t.Having(ctx, h, slices.Concat(doc.Entries, doc.Already), o)
		return a, err
	})
	if err != nil {
		return err
	}
	doc.Purged = b.PurgeTrash && !doc.DryRun && len(items) > 0
	for _, it := range items {
		doc.Trash = append(doc.Trash, it.Name)
	}
	if !doc.Purged {
		return nil
	}
	return t.Remove(items...)
}

// trash returns the trash of a tenant on this server's machine; without one it is empty.
func (s *Server) trash(tenant string) *manager.Trash {
	if s.o.Trash == "" {
		return &manager.Trash{Now: s.o.Now}
	}
	return &manager.Trash{Path: filepath.Join(s.o.Trash, tenant), Now: s.o.Now}
}
