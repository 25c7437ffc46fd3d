package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
)

func TestPages(t *testing.T) {
	ctx := context.Background()
	store, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Create("chat", &coppice.SessionOptions{Title: "a chat"})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := s.Append(ctx, entry.User("in Rust"), entry.Assistant("fn main"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(ctx, coppice.Turn{}); err != nil {
		t.Fatal(err)
	}
	web := handler(store)
	ask := func(method, path string, form url.Values) string {
		t.Helper()
		r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		web.ServeHTTP(w, r)
		body, err := io.ReadAll(w.Body)
		if err != nil || w.Code != http.StatusOK {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, body)
		}
		return string(body)
	}
	read := func() (messages []Message) {
		t.Helper()
		if err := json.Unmarshal([]byte(ask("GET", "/chat", nil)), &messages); err != nil {
			t.Fatal(err)
		}
		return messages
	}
	if !strings.Contains(ask("GET", "/", nil), "a chat") {
		t.Error("not listed")
	}
	ask("POST", "/chat/edit/"+ids[0], url.Values{"text": {"no, in Go"}})
	if m := read(); len(m) != 1 || m[0].Text != "no, in Go" || m[0].Version != 2 || m[0].Versions != 2 {
		t.Errorf("after the edit: %+v", m)
	}
	ask("POST", "/chat/switch/"+ids[0], nil)
	ask("POST", "/chat/label/"+ids[1], url.Values{"text": {"works"}})
	if m := read(); len(m) != 2 || m[0].Text != "in Rust" || m[0].Version != 1 || m[1].Label != "works" {
		t.Errorf("after the switch: %+v", m)
	}
	w := httptest.NewRecorder()
	web.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/nowhere", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("a chat that is not there: %d", w.Code)
	}
}
