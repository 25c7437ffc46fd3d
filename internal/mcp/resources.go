package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/secrets"
)

// maxResource bounds the text of a resource, in bytes: resources do not come in pieces.
const maxResource = 1 << 20

// A resource is coppice://sessions/ID, or coppice://sessions/ID/entries/ENTRY.
const (
	resourceRoot = "coppice://sessions/"
	entriesPart  = "/entries/"
	jsonType     = "application/json"
)

// resource is a resource as it is listed.
type resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType"`
}

// templates are the resources that are not listed.
var templates = []map[string]string{
	{
		"uriTemplate": resourceRoot + "{session}", "name": "session", "mimeType": jsonType,
		"description": "the newest part of the conversation of a session",
	},
	{
		"uriTemplate": resourceRoot + "{session}" + entriesPart + "{entry}", "name": "entry", "mimeType": jsonType,
		"description": "an entry in full, as it is stored",
	},
}

// resources lists a page of the sessions, newest activity first.
func (s *Server) resources(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		Cursor string `json:"cursor"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	q := url.Values{"limit": {"50"}}
	if p.Cursor != "" {
		q.Set("after", p.Cursor)
	}
	doc, err := s.do(ctx, ask{method: http.MethodGet, path: []string{"v1", "sessions"}, query: q})
	if err != nil {
		return nil, failure(codeParams, "%v", err)
	}
	doc, _ = secrets.RedactJSON(doc)
	var list struct {
		Sessions []api.Session `json:"sessions"`
		Next     string        `json:"next"`
	}
	if err := json.Unmarshal(doc, &list); err != nil {
		return nil, err
	}
	all := []resource{}
	for _, one := range list.Sessions {
		r := resource{resourceRoot + url.PathEscape(one.ID), one.Title, one.Preview, jsonType}
		if r.Name == "" {
			r.Name = one.ID
		}
		all = append(all, r)
	}
	out := map[string]any{"resources": all}
	if list.Next != "" {
		out["nextCursor"] = list.Next
	}
	return out, nil
}

// place returns the session and the entry that a URI names; entry "" = none.
func place(uri string) (session, entry string, ok bool) {
	rest, ours := strings.CutPrefix(uri, resourceRoot)
	first, second, both := strings.Cut(rest, entriesPart)
	session, err := url.PathUnescape(first)
	if !ours || err != nil || session == "" || strings.Contains(first, "/") {
		return "", "", false
	}
	if entry, err = url.PathUnescape(second); both && entry == "" || err != nil {
		return "", "", false
	}
	return session, entry, true
}

func (s *Server) readResource(ctx context.Context, raw json.RawMessage) (any, error) {
	var p struct {
		URI string `json:"uri"`
	}
	if err := params(raw, &p); err != nil {
		return nil, err
	}
	session, entry, ok := place(p.URI)
	if !ok {
		return nil, noResource(p.URI, "there is no such resource")
	}
	var text []byte
	var err error
	if entry == "" {
		var page any
		if page, err = readSession(ctx, s, given{"session": session, "limit": "20"}); err == nil {
			text, err = api.Marshal(page)
		}
	} else {
		text, err = s.do(ctx, ask{
			method: http.MethodGet, path: []string{"v1", "sessions", session, "entries", entry},
			query: url.Values{"images": {"ref"}},
		})
	}
	switch {
	case err != nil:
		return nil, noResource(p.URI, err.Error())
	case len(text) > maxResource:
		return nil, noResource(p.URI, "the entry is too long for a resource: the tool read_entry has it in pieces")
	}
	text, _ = secrets.RedactJSON(text)
	return map[string]any{
		"contents": []map[string]string{{"uri": p.URI, "mimeType": jsonType, "text": string(text)}},
	}, nil
}

func noResource(uri, text string) *rpcError {
	err := failure(codeNoResource, "%s", text)
	err.Data = map[string]string{"uri": clip(uri, MaxResult)}
	return err
}
