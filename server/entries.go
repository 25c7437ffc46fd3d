package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/transcript"
)

// entriesQuery is the parameters of a page of entries.
type entriesQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	Path   string `query:"path" doc:"head (the default), all = every entry as appended, or the entry at the path's end"`
	Order  string `query:"order" enum:"asc,desc" default:"asc" doc:"asc: root first, or as appended"`
	After  string `query:"after" doc:"next of another page"`
	Before string `query:"before" doc:"prev of another page"`
	Limit  string `query:"limit" default:"50"`
	From   string `query:"from" doc:"the entry to begin with, in this order; 422 if it is not on the path"`
	Type   string `query:"type" doc:"only entries of this type: message, custom, ..."`
	Custom string `query:"custom" doc:"only entries with this customType"`
	Below  bool   `query:"below" doc:"the path continues to the newest leaf below its entry, as switch does"`
	IDs    string `query:"ids" doc:"only these entries, in this order, separated by commas"`
	Images string `query:"images" enum:"inline,ref" default:"inline" doc:"ref: images over 24 KiB as references"`
	Marks  bool   `query:"marks" doc:"beside the entries, which versions and continuations each has; not as NDJSON"`

	most  int      // of Limit; 0 = all
	wants filter   // of Type, Custom and the members to match
	shown []uint64 // ordinals of the entries that were written, for their marks
}

type entryList struct {
	Entries []any      `json:"entries" doc:"the lines of the entries"`
	Marks   []api.Mark `json:"marks,omitempty" doc:"with marks: one for each entry, in their order"`
	Next    string     `json:"next,omitempty" doc:"after of the page that follows; absent at the end"`
	Prev    string     `json:"prev,omitempty" doc:"before of the page before"`
	Error   *Problem   `json:"error,omitempty" doc:"why the list is cut short after its first item"`
}

// entryPath names an entry of a session.
type entryPath struct {
	request
	ID    string `path:"id" maxLength:"128" doc:"the session's id"`
	Entry string `path:"entry" doc:"the entry's id, or a unique prefix of it"`
}

// entryQuery names an entry of a session, and how it is shown.
type entryQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	Entry  string `path:"entry" doc:"the entry's id, or a unique prefix of it"`
	Images string `query:"images" enum:"inline,ref" default:"inline" doc:"ref: images over 24 KiB as references"`
}

// versions are the entries that grow from the same parent.
type versions struct {
	Versions []api.Node `json:"versions" doc:"oldest first"`
	At       int        `json:"at" doc:"the place of the entry that was asked for, from 0"`
}

func (s *Server) describeEntries() {
	list := operation{
		method: "GET", path: "/v1/sessions/{id}/entries", id: "listEntries", names: true,
		statuses: []int{304}, match: true,
		summary: "Entries of a path or of all branches, in either direction", types: []string{"application/x-ndjson"},
		text: "With limit=all the answer has every entry, and is written while they are read. " + textOfMatches +
			" With images=ref the base64 text of an image of more than 24 KiB is coppice-blob:sha256:HEX:BYTES, of " +
			"which blobs/HEX has the bytes; other text that begins so has =: after the colon.",
	}
	handle[entriesQuery, entryList](s, list, s.entries)
	s.orAll(list)
	handle[entryQuery, map[string]any](s, operation{
		method: "GET", path: "/v1/sessions/{id}/entries/{entry}", id: "getEntry",
		statuses: []int{304}, summary: "One entry, as amendments have it",
	}, s.entry)
	handle[entryPath, versions](s, operation{
		method: "GET", path: "/v1/sessions/{id}/versions/{entry}", id: "versions",
		statuses: []int{304}, summary: "The versions of an entry: what grows from the same parent",
	}, s.versions)
}

// cursor returns an opaque, URL-safe name of a place.
func cursor(place string) string { return base64.RawURLEncoding.EncodeToString([]byte(place)) }

// place is the place that a cursor names; "" = none was given.
func place(name, text string) (string, error) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return "", badInput(name, fmt.Errorf("%.40q is no cursor of this API", text))
	}
	return string(raw), nil
}

// page returns what the parameters ask of Session.Page; back = the page is read backwards, and turned round.
func (q *entriesQuery) page() (p coppice.Page, back bool, err error) {
	after, err := place("after", q.After)
	if err != nil {
		return p, false, err
	}
	before, err := place("before", q.Before)
	if err != nil {
		return p, false, err
	}
	if after != "" && before != "" {
		return p, false, badInput("before", errors.New("use only one of after and before"))
	}
	if q.From != "" && q.After+q.Before != "" {
		return p, false, badInput("from", errors.New("use only one of from, after and before"))
	}
	if q.most, err = mostOf(q.Limit); err != nil {
		return p, false, err
	}
	if q.most == 0 && (before != "" || q.Marks) {
		return p, false, badInput("limit", errors.New("all goes with neither before nor marks"))
	}
	if q.wants, err = filterOf(q.r, q.Type, q.Custom); err != nil {
		return p, false, err
	}
	p = coppice.Page{All: q.Path == "all", Reverse: q.Order == "desc", From: q.From}
	if q.most > 0 && q.wants.none() {
		p.Limit = q.most + 1
	}
	if q.Path != "all" && q.Path != "head" {
		p.To = q.Path
	}
	if q.Below && p.To == "" {
		return p, false, badInput("below", errors.New("it needs path=ENTRY"))
	}
	switch {
	case before != "":
		p.After, p.Reverse, back = before, !p.Reverse, true
	case after != "":
		p.After = after
	}
	return p, back, nil
}

func (s *Server) entries(ctx context.Context, q *entriesQuery) (answer, error) {
	p, back, err := q.page()
	if err != nil {
		return answer{}, err
	}
	ctx = imagesOf(ctx, q.Images)
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		l := &list{name: "entries", ndjson: wantsNDJSON(q.r)}
		etag := h.Head().Commit
		if q.Marks {
			if l.ndjson {
				return answer{}, badInput("marks", errors.New("a line of NDJSON has no place for them"))
			}
			q.mark(ctx, h, l)
		}
		if q.IDs != "" {
			ids := strings.Split(q.IDs, ",")
			if len(ids) > maxPage {
				return answer{}, badInput("ids", fmt.Errorf("%d ids, the limit is %d", len(ids), maxPage))
			}
			l.items = q.lines(q.wants.of(h.Entries(ctx, ids...)))
			return answer{list: l, etag: etag}, nil
		}
		if q.Below {
			if p.To, err = newestBelow(ctx, h, p.To); err != nil {
				return answer{}, err
			}
		}
		if p.Reverse && p.To != "" && p.After != "" && !p.All && back {
			p.To = "" // what comes before a place on a path does not depend on where the path ends
		}
		if back {
			return q.pageBack(ctx, h, p, l, etag)
		}
		q.ahead(l, q.wants.of(chosen(ctx, h, p)))
		return answer{list: l, etag: etag}, nil
	})
}

// chosen returns the entries of a page: all of a session in the order of appending in one pass over its segments.
func chosen(ctx context.Context, h *coppice.Session, p coppice.Page) iter.Seq2[transcript.Entry, error] {
	if p == (coppice.Page{All: true}) {
		return h.Entries(ctx)
	}
	return h.Page(ctx, p)
}

// ahead makes a list of the first entries of some, which are written while they are read.
func (q *entriesQuery) ahead(l *list, entries iter.Seq2[transcript.Entry, error]) {
	first, last, n, more := "", "", 0, false
	l.items = func(yield func(any, error) bool) {
		for e, err := range entries {
			if err == nil && n == q.most && q.most > 0 {
				more = true
				return
			}
			if n++; n == 1 {
				first = e.ID
			}
			last = e.ID
			if !yield(q.line(e), err) {
				return
			}
		}
	}
	l.more = func() (next, prev string) {
		if more {
			next = cursor(last)
		}
		if first != "" && q.After+q.From != "" && q.most > 0 {
			prev = cursor(first)
		}
		return next, prev
	}
}

// newestBelow returns the id of the newest leaf below an entry.
func newestBelow(ctx context.Context, h *coppice.Session, entry string) (string, error) {
	t, err := h.Tree(ctx)
	if err != nil {
		return "", err
	}
	ord, err := t.Ordinal(entry)
	if err != nil {
		return "", err
	}
	leaf, ok := t.Newest(t.ID(ord))
	if !ok {
		return "", fmt.Errorf("below entry %s: %w", entry, fs.ErrNotExist)
	}
	return leaf.ID, nil
}

// pageBack answers with the page before a place: it is read backwards, and only what the page has is in memory.
func (q *entriesQuery) pageBack(
	ctx context.Context, h *coppice.Session, p coppice.Page, l *list, etag string,
) (answer, error) {
	var found []transcript.Entry
	for e, err := range q.wants.of(h.Page(ctx, p)) {
		if err != nil {
			return answer{}, err
		}
		if found = append(found, e); len(found) > q.most {
			break
		}
	}
	more := len(found) > q.most
	found = found[:min(len(found), q.most)]
	slices.Reverse(found)
	l.items = func(yield func(any, error) bool) {
		for _, e := range found {
			if !yield(q.line(e), nil) {
				return
			}
		}
	}
	l.more = func() (next, prev string) {
		if len(found) > 0 {
			next = cursor(found[len(found)-1].ID)
			if more {
				prev = cursor(found[0].ID)
			}
		}
		return next, prev
	}
	return answer{list: l, etag: etag}, nil
}

// mark makes a list have marks.
func (q *entriesQuery) mark(ctx context.Context, h *coppice.Session, l *list) {
	l.also = func() (string, any, error) {
		t, err := h.Tree(ctx)
		if err != nil {
			return "", nil, err
		}
		return "marks", api.Marks(t, q.shown), nil
	}
}

// line returns the line of an entry of a page.
func (q *entriesQuery) line(e transcript.Entry) json.RawMessage {
	if q.Marks {
		q.shown = append(q.shown, e.Ordinal)
	}
	return e.Raw
}

// imagesOf returns the context of a read of entries with their images, or with references to them.
func imagesOf(ctx context.Context, images string) context.Context {
	if images == "ref" {
		return coppice.ImageRefs(ctx)
	}
	return ctx
}

// lines yields the lines of entries.
func (q *entriesQuery) lines(entries iter.Seq2[transcript.Entry, error]) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for e, err := range entries {
			if !yield(q.line(e), err) {
				return
			}
		}
	}
}

func (s *Server) entry(ctx context.Context, q *entryQuery) (answer, error) {
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		etag := h.Head().Commit
		e, err := h.Entry(imagesOf(ctx, q.Images), q.Entry)
		return answer{etag: etag, doc: e.Raw}, err
	})
}

func (s *Server) versions(ctx context.Context, q *entryPath) (answer, error) {
	return s.readTree(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		etag := h.Head().Commit
		t, err := h.Tree(ctx)
		if err != nil {
			return answer{}, err
		}
		ord, err := t.Ordinal(q.Entry)
		if err != nil {
			return answer{}, err
		}
		nodes, at := t.Siblings(t.ID(ord))
		doc := versions{Versions: []api.Node{}, At: at}
		for _, n := range nodes {
			doc.Versions = append(doc.Versions, api.NodeOf(n))
		}
		return answer{etag: etag, doc: doc}, nil
	})
}
