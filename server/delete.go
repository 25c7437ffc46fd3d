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
	"left names those that are not deleted, and a repeat continues. purge=true needs the right erase too: it also " +
	"removes the items of the trash that are of the session, its pin and what terminals remember, names what keeps " +
	"copies, and completes an earlier deletion."

// deleteQuery is the parameters of a deletion.
type deleteQuery struct {
	request
	ID       string `path:"id" maxLength:"128" doc:"the session's id"`
	Trash    bool   `query:"trash" doc:"keep a copy in the trash of the server"`
	Children bool   `query:"children" doc:"delete the sessions that it started too"`
	Purge    bool   `query:"purge" doc:"remove also what the server keeps of it, and name what keeps copies"`
}

func (s *Server) remove(ctx context.Context, q *deleteQuery) (answer, error) {
	for name := range q.r.URL.Query() {
		if name != "trash" && name != "children" && name != "purge" { // a deletion that was to be another one is none
			return answer{}, badInput(name, errors.New("a deletion does not have this parameter"))
		}
	}
	if q.Trash && s.o.Trash == "" {
		return answer{}, badInput("trash", errors.New("the server has no trash"))
	}
	if q.Trash && q.Purge {
		return answer{}, badInput("purge", errors.New("it removes what trash=true keeps"))
	}
	if q.Purge && q.on.Rights&Erase == 0 || (q.Children || q.Purge) && q.on.Only != (Only{}) {
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
	var all purge
	if q.Children {
		if left, err = family(ctx, q.on.Store, q.id); err != nil {
			return doc, err
		}
	}
	for n := len(left); n > 0; n-- { // those that were started last
		id := left[n-1]
		of, err := s.delete(ctx, q, id, "")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return doc, unfinished(left[:n], q.id, err)
		}
		all.add(of)
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
	if all.add(doc); err == nil && q.Purge {
		all.into(&doc)
	}
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
	case q.Purge:
		err = s.purge(ctx, q, &doc, commit)
		return doc, err
	case q.Trash:
		var item manager.TrashItem
		item, err = s.trash(tenant).Put(ctx, st, id, tenant)
		doc.Trash = item.Name
	default:
		err = deleteAt(ctx, q, id, commit)
	}
	if err == nil {
		if seen := seenOf(q.r); id != q.id {
			seen.ids = append(seen.ids, id)
		}
		s.drop(ctx, st, tenant, id)
		s.forgetHere(ctx, tenant, id)
	}
	return doc, err
}

// deleteAt deletes a session for good.
func deleteAt(ctx context.Context, q *deleteQuery, id, commit string) error {
	if commit == "" && id != q.id {
		return q.on.Store.Delete(ctx, id)
	}
	return q.on.Store.DeleteAt(ctx, id, commit)
}

// forgetHere removes what this machine keeps of a deleted session apart from the store, the index and the trash.
func (s *Server) forgetHere(ctx context.Context, tenant, id string) (pin bool, crumbs int, err error) {
	if s.o.Forget == nil {
		return false, 0, nil
	}
	if pin, crumbs, err = s.o.Forget(tenant, id); err != nil {
		s.o.Logger.WarnContext(ctx, "this machine may keep the pin of a deleted session, or what terminals remember",
			"session", id, "error", err.Error())
	}
	return pin, crumbs, err
}
