package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/checkpoint"
)

// docQuery is the parameters of a read of one document.
type docQuery struct {
	request
	ID   string `path:"id" maxLength:"128" doc:"the session's id"`
	Name string `path:"name" doc:"the document's name, percent-encoded where it has a slash"`
	At   string `query:"at" doc:"a target, as at of state; default head"`
}

type docList struct {
	Docs map[string]json.RawMessage `json:"docs" doc:"by name; empty where the session has none"`
}

func (s *Server) describeDocs() {
	handle[stateQuery, docList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/docs", id: "docs", names: true,
		statuses: []int{304}, summary: "The documents of a session, now or at any time",
	}, s.docs)
	handle[docQuery, any](s, operation{
		method: "GET", path: "/v1/sessions/{id}/docs/{name}", id: "getDoc",
		statuses: []int{304}, summary: "One document, now or at any time; 404 where there is none of this name",
	}, s.doc)
}

func (s *Server) docs(ctx context.Context, q *stateQuery) (answer, error) {
	return docsAt(ctx, &q.request, q.At, func(v *coppice.View) (any, error) {
		return docList{maps.Collect(v.Docs())}, nil
	})
}

func (s *Server) doc(ctx context.Context, q *docQuery) (answer, error) {
	return docsAt(ctx, &q.request, q.At, func(v *coppice.View) (any, error) {
		for name, doc := range v.Docs() {
			if name == q.Name {
				return doc, nil
			}
		}
		return nil, fmt.Errorf("document %s: %w", q.Name, fs.ErrNotExist)
	})
}

// docsAt answers with some of the documents at a target.
func docsAt(
	ctx context.Context, q *request, text string, f func(*coppice.View) (any, error),
) (answer, error) {
	at, err := target("at", text)
	if err != nil {
		return answer{}, err
	}
	return read(ctx, q, func(h *coppice.Session) (answer, error) {
		v, err := h.At(ctx, at)
		if err != nil {
			return answer{}, err
		}
		doc, err := f(v)
		return answer{etag: v.Commit().Commit, lasting: fixed(at), doc: doc}, err
	})
}

// docNames returns the names in a list of them.
func docNames(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	if len(names) > checkpoint.MaxDocs {
		return nil, badInput("docs", fmt.Errorf("%d names, the limit is %d", len(names), checkpoint.MaxDocs))
	}
	for _, name := range names {
		if err := checkpoint.CheckDocName(name); err != nil {
			return nil, badInput("docs", err)
		}
	}
	return names, nil
}
