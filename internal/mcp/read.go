package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/searchindex"
	"github.com/coppice-go/coppice/transcript"
)

// maxWords bounds the text of one entry of a page, in bytes.
const maxWords = 2 << 10

// passage is the text of an entry.
type passage struct {
	Entry string    `json:"entry"`
	Role  string    `json:"role,omitempty"`
	Type  string    `json:"type,omitempty"` // "" = message
	Time  time.Time `json:"time"`
	Text  string    `json:"text"`
	Bytes int       `json:"bytes,omitempty"` // of all of a text that is cut
}

// passages is a page of a conversation.
type passages struct {
	Session string    `json:"session"`
	Entries []passage `json:"entries"`
	Next    string    `json:"next,omitempty"`
}

// readSession returns a page of the conversation on a path.
func readSession(ctx context.Context, s *Server, g given) (any, error) {
	most, _ := strconv.Atoi(g["limit"]) // it is checked
	following := g["following"] == "true"
	q := url.Values{"images": {"ref"}, "order": {"desc"}, "limit": {strconv.Itoa(most + 1)}}
	for name, value := range map[string]string{"path": g["entry"], "from": g["from"]} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if following {
		q.Set("order", "asc")
		q.Set("below", "true")
		if g["from"] == "" {
			q.Set("from", g["entry"])
		}
	}
	path := []string{"v1", "sessions", g["session"], "entries"}
	doc, err := s.do(ctx, ask{method: http.MethodGet, path: path, query: q})
	if err != nil {
		return nil, err
	}
	var list struct {
		Entries []json.RawMessage `json:"entries"`
		Error   *problem          `json:"error"`
	}
	if err := json.Unmarshal(doc, &list); err != nil {
		return nil, err
	}
	if list.Error != nil && len(list.Entries) == 0 {
		return nil, list.Error
	}
	page, err := pageOf(list.Entries, most)
	if err != nil {
		return nil, err
	}
	if page.Session = g["session"]; !following {
		slices.Reverse(page.Entries)
	}
	return page, nil
}

// pageOf returns the passages of the first of some entries: of at most so many, and at most MaxResult bytes as JSON.
func pageOf(lines []json.RawMessage, most int) (passages, error) {
	page, size := passages{Entries: []passage{}}, 0
	for i, raw := range lines {
		line, err := transcript.ParseLine(raw)
		if err != nil {
			return page, err
		}
		one := wordsOf(line.Entry(0))
		if one.Text != "" {
			raw, err := json.Marshal(one)
			if err != nil {
				return page, err
			}
			size += len(raw) + 1
		}
		if i == most || i > 0 && size > MaxResult-(1<<10) { // the rest is for what surrounds the entries
			page.Next = line.ID
			break
		}
		if one.Text != "" {
			page.Entries = append(page.Entries, one)
		}
	}
	return page, nil
}

// wordsOf returns the passage of an entry; Text "" = it has none.
func wordsOf(e transcript.Entry) passage {
	text, role := searchindex.EntryText(e)
	one := passage{Entry: e.ID, Role: role, Time: e.Time, Text: clip(text, maxWords)}
	if len(one.Text) < len(text) {
		one.Bytes = len(text)
	}
	if e.Type != "message" {
		one.Type = e.Type
	}
	return one
}

// listBranches returns the branches and the labels of a session.
func listBranches(ctx context.Context, s *Server, g given) (any, error) {
	all := map[string]json.RawMessage{}
	for _, name := range []string{"branches", "labels"} {
		doc, err := s.do(ctx, ask{method: http.MethodGet, path: []string{"v1", "sessions", g["session"], name}})
		if err == nil {
			err = json.Unmarshal(doc, &all)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// labelEntry sets or removes the label of an entry.
func labelEntry(ctx context.Context, s *Server, g given) (any, error) {
	return s.do(ctx, ask{
		method: http.MethodPost, path: []string{"v1", "sessions", g["session"], "label"},
		body: map[string]any{"entry": g["entry"], "label": g["label"]},
	})
}

// beginBranch moves the head.
func beginBranch(ctx context.Context, s *Server, g given) (any, error) {
	a := ask{
		method: http.MethodPost, path: []string{"v1", "sessions", g["session"], "branch"}, commit: "*",
		body: map[string]any{"entry": g["entry"]},
	}
	if g["name"] != "" {
		a.body["name"] = g["name"]
	}
	if g["commit"] != "" {
		a.commit = strconv.Quote(g["commit"])
	}
	return s.do(ctx, a)
}
