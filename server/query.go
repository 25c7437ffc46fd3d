package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
)

// queryQuery is the parameters of a query of entries.
type queryQuery struct {
	request
	Session string `query:"session" doc:"only these sessions, separated by commas; absent ones are passed over"`
	Prefix  string `query:"prefix" doc:"only sessions whose ids begin so"`
	Cwd     string `query:"cwd" doc:"only sessions of this working directory"`
	Parent  string `query:"parent" doc:"only sessions that this one started"`
	Type    string `query:"type" doc:"only entries of this type: message, custom, ..."`
	Custom  string `query:"custom" doc:"only entries with this customType; with type=custom no other body is read"`
	Before  string `query:"before" doc:"only entries whose ids sort before this one, byte by byte"`
	Order   string `query:"order" enum:"asc,desc" default:"asc" doc:"desc: newest first, sessions by their ids"`
	After   string `query:"after" doc:"next of another page, or cursor of an entry, of the same query"`
	Limit   string `query:"limit" default:"50"`
	Images  string `query:"images" enum:"inline,ref" default:"inline" doc:"ref: images over 24 KiB as references"`
}

// found is an entry of a query.
type found struct {
	Session string          `json:"session"`
	Entry   json.RawMessage `json:"entry,omitempty" doc:"its line, as it was stored"`
	Cursor  string          `json:"cursor" doc:"after of what follows it"`
	Error   *Problem        `json:"error,omitempty" doc:"why no more of the session can be read; it has no entry"`
}

type foundList struct {
	Entries []found  `json:"entries"`
	Next    string   `json:"next,omitempty" doc:"after of the page that follows; absent at the end"`
	Error   *Problem `json:"error,omitempty" doc:"why the list is cut short after its first item"`
}

func (s *Server) describeQuery() {
	op := operation{
		method: "GET", path: "/v1/entries", id: "queryEntries", heavy: true, narrows: true,
		meta: true, match: true,
		summary: "Entries of many sessions, by their type and by any member", types: []string{"application/x-ndjson"},
		text: "Session by session in the order of their ids, and within one in the order of appending. Amendments " +
			"are entries of their own, and nothing is hidden. " + textOfLists + " " + textOfMatches,
	}
	handle[queryQuery, foundList](s, op, s.query)
	s.orAll(op)
}

// options returns what the parameters ask of Store.Query, and how many results a page has; 0 = all.
func (q *queryQuery) options() (o coppice.QueryOptions, most int, err error) {
	if most, err = mostOf(q.Limit); err != nil {
		return o, 0, err
	}
	f, err := filterOf(q.r, q.Type, q.Custom)
	if err != nil {
		return o, 0, err
	}
	o = coppice.QueryOptions{
		Prefix: q.Prefix, Cwd: q.Cwd, Parent: q.Parent, Type: q.Type, Custom: q.Custom, Before: q.Before,
		Newest: q.Order == "desc", Cursor: q.After, Match: map[string]any{},
	}
	if q.Session != "" {
		o.Sessions = strings.Split(q.Session, ",")
	}
	if len(o.Sessions) > maxPage {
		return o, 0, badInput("session", errors.New("more than 500 sessions"))
	}
	for path, want := range f.match {
		o.Match[path] = want
	}
	return o, most, nil
}

func (s *Server) query(ctx context.Context, q *queryQuery) (answer, error) {
	o, most, err := q.options()
	if err != nil {
		return answer{}, err
	}
	meta, possible := metaOf(&q.request)
	o.Meta = meta
	ctx = imagesOf(ctx, q.Images)
	n, last, more := 0, "", false
	items := func(yield func(any, error) bool) {
		if !possible {
			return
		}
		for m, err := range q.on.Store.Query(ctx, o) {
			switch {
			case err != nil && api.Describe(err).Status == http.StatusBadRequest:
				yield(nil, badInput("the query", err))
				return
			case err != nil:
				yield(nil, err)
				return
			case n == most && most > 0:
				more = true
				return
			}
			q.find()
			n, last = n+1, m.Cursor
			item := found{Session: m.Session, Entry: m.Entry.Raw, Cursor: m.Cursor}
			if m.Err != nil {
				p := problemOf(m.Err).Problem
				item.Error = &p
			}
			if !yield(item, nil) {
				return
			}
		}
	}
	return answer{list: &list{name: "entries", items: items, ndjson: wantsNDJSON(q.r), more: func() (string, string) {
		if more {
			return last, ""
		}
		return "", ""
	}}}, nil
}
