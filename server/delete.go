package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/manager"
)

// textOfDeletion describes what the parameters of a deletion cannot.
const textOfDeletion = "`coppice trash` lists what is in the trash, and restores it. With children=true, sessions " +
	"that it started are deleted before it, and those that they started, but no forks. If that fails in the middle, " +
	"left names those that are not deleted, and a repeat continues."

// deleteQuery is the parameters of a deletion.
type deleteQuery struct {
	request
	ID       string `path:"id" maxLength:"128" doc:"the session's id"`
	Trash    bool   `query:"trash" doc:"keep a copy in the trash of the server"`
	Children bool   `query:"children" doc:"delete the sessions that it started too"`
}

func (s *Server) remove(ctx context.Context, q *deleteQuery) (answer, error) {
	for name := range q.r.URL.Query() {
		if name != "trash" && name != "children" { // a deletion that was to be another one is none
			return answer{}, badInput(name, errors.New("a deletion does not have this parameter"))
		}
	}
	if q.Trash && s.o.Trash == "" {
		return answer{}, badInput("trash", errors.New("the server has no trash"))
	}
	if q.Children && q.on.Only != (Only{}) {
		return answer{}, ErrForbidden // it may not see all of them
	}
	a, err := s.own(ctx, &q.request, func(ctx context.Context, h *coppice.Session) (coppice.Receipt, any, error) {
		doc, err := s.deleteAll(ctx, q, h.Head().Commit)
		return coppice.Receipt{}, doc, err
	})
	if err == nil || !errors.Is(err, coppice.ErrDeleted) {
		return a, err
	}
	ctx, cancel := s.detached(ctx)
	defer cancel()
	doc, err := s.deleteAll(ctx, q, "") // of an earlier deletion, which perhaps did not finish
	return answer{doc: doc}, err
}

// deleteAll deletes a session whose newest commit is the one that is named, or what is left of one that was deleted,
// and before it, if that is asked for, those that it started.
func (s *Server) deleteAll(ctx context.Context, q *deleteQuery, commit string) (doc api.Deleted, err error) {
	var left, done []string
	if q.Children {
		if left, err = family(ctx, q.on.Store, q.id); err != nil {
			return doc, err
		}
	}
	for n := len(left); n > 0; n-- { // those that were started last
		id := left[n-1]
		if _, err := s.delete(ctx, q, id, ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return doc, unfinished(left[:n], q.id, err)
		}
		done = append(done, id)
	}
	if len(done) == maxFamily {
		err := fmt.Errorf("%w: it has more than %d children", coppice.ErrDeleteUnfinished, maxFamily)
		return doc, unfinished(nil, q.id, err)
	}
	doc, err = s.delete(ctx, q, q.id, commit)
	if errors.Is(err, coppice.ErrDeleted) && len(done) > 0 { // the session was, and its children were not
		doc, err = api.Deleted{Session: q.id, Deleted: true}, nil
	}
	doc.Children = done
	return doc, err
}

// maxFamily bounds how many sessions a deletion deletes with the one that it names.
const maxFamily = 10_000

// family returns the sessions that a session has started, and those that these have, each after the one that started
// it: at most maxFamily. Forks are none. It lists the store once for each generation.
func family(ctx context.Context, st *coppice.Store, id string) (ids []string, err error) {
	known := map[string]bool{id: true}
	for more := true; more; {
		more = false
		var born []string
		for sum, err := range st.List(ctx, coppice.ListOptions{Exact: true}) {
			if err != nil {
				return nil, err
			}
			if sum.Relation == "fork" || !known[sum.Parent] || known[sum.ID] {
				continue
			}
			if born = append(born, sum.ID); len(ids)+len(born) == maxFamily {
				return append(ids, born...), nil
			}
		}
		for _, child := range born {
			known[child], more = true, true
		}
		ids = append(ids, born...)
	}
	return ids, nil
}

// unfinished is the error of a deletion with children that failed in the middle.
func unfinished(left []string, id string, err error) error {
	p := problemOf(err)
	p.Left = append(slices.Clone(left), id)
	p.Hint = "repeat the request: it continues; a child whose deletion had begun is finished by a DELETE of its own"
	return p
}

// delete deletes a session whose newest commit is the one that is named ("" = whichever), or what is left of one that
// was deleted.
func (s *Server) delete(ctx context.Context, q *deleteQuery, id, commit string) (api.Deleted, error) {
	doc := api.Deleted{Session: id, Deleted: true}
	tenant := q.r.PathValue("tenant")
	st := q.on.Store
	var err error
	switch {
	case q.Trash:
		var item manager.TrashItem
		item, err = s.trash(tenant).Put(ctx, st, id, tenant)
		doc.Trash = item.Name
	case commit == "" && id != q.id:
		err = st.Delete(ctx, id)
	default:
		err = st.DeleteAt(ctx, id, commit)
	}
	if err == nil {
		if seen := seenOf(q.r); id != q.id {
			seen.ids = append(seen.ids, id)
		}
		s.drop(ctx, st, tenant, id)
	}
	return doc, err
}
