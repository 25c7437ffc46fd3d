package server_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// An export is refused, redacted or let go where the session has credentials, and what a model reads is redacted.
func TestCredentialsDoNotLeave(t *testing.T) {
	t.Parallel()
	const token = "gh" + "p_x7Kq2mZp9RtV4wYb8NcL3sDf6GhJ5kQaE1uT" // it has the form of one
	s := newSite(t, "mem:")
	s.create("s")
	s.do("POST", "/v1/sessions/s/commits", hello("use "+token), "If-Match: *").want(t, 200)
	for _, format := range []string{"pi", "codex", "html", "markdown"} {
		at := "/v1/sessions/s/export?format=" + format
		r := s.do("GET", at, "")
		if doc := r.want(t, 409); doc["code"] != "secrets" || strings.Contains(string(r.body), token) {
			t.Errorf("%s: %s", format, r.body)
		}
		r = s.do("GET", at+"&secrets=redact", "")
		r.want(t, 200)
		if text := string(r.body); strings.Contains(text, token) || !strings.Contains(text, "[secret: github-pat]") ||
			!strings.Contains(r.Trailer.Get("Coppice-Losses"), "credentials, replaced") {
			t.Errorf("%s: %s, losses %s", format, text, r.Trailer.Get("Coppice-Losses"))
		}
		r = s.do("GET", at+"&secrets=allow", "")
		if r.want(t, 200); !strings.Contains(string(r.body), token) {
			t.Errorf("%s: %s", format, r.body)
		}
	}
	for query, has := range map[string]bool{"": true, "&secrets=redact": false} {
		r := s.do("GET", "/v1/sessions/s/export?format=original"+query, "")
		if r.want(t, 200); strings.Contains(string(r.body), token) != has {
			t.Errorf("original%s: %s", query, r.body)
		}
	}
	s.do("GET", "/v1/sessions/s/export?secrets=some", "").want(t, 400)

	r := s.do("GET", "/v1/sessions/s/secrets", "")
	doc := r.want(t, 200)
	first := s.do("GET", "/v1/sessions/s/entries", "").ids(t, "entries", "id")[0]
	want := fmt.Sprintf("[map[count:1 entry:%s in:entry rule:github-pat]]", first)
	if fmt.Sprint(doc["secrets"]) != want || doc["next"] != nil || strings.Contains(string(r.body), token) {
		t.Errorf("%s, want %s", r.body, want)
	}

	read := `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"coppice://sessions/s"}}`
	for _, message := range []string{called("read_session", `{"session":"s"}`), called("list_sessions", `{}`), read} {
		r := s.do("POST", "/mcp", message, jsonType)
		if text := string(r.body); strings.Contains(text, token) || !strings.Contains(text, "[secret: github-pat]") {
			t.Errorf("%.80s: %s", message, text)
		}
	}
}

// A request looks at a bounded part of a session, and names the place where the next one continues.
func TestCredentialsInPages(t *testing.T) {
	t.Parallel()
	const token = "gh" + "p_x7Kq2mZp9RtV4wYb8NcL3sDf6GhJ5kQaE1uT" // it has the form of one
	s := newSite(t, "mem:")
	s.create("s")
	for i := range 4 {
		body := hello(strings.Repeat("tide ", 600_000) + token[:len(token)-1] + strconv.Itoa(i))
		s.do("POST", "/v1/sessions/s/commits", body, "If-Match: *").want(t, 200)
	}
	var pages []int
	for next := ""; len(pages) < 5; {
		doc := s.do("GET", "/v1/sessions/s/secrets?after="+next, "").want(t, 200)
		pages = append(pages, len(doc["secrets"].([]any)))
		if next, _ = doc["next"].(string); next == "" {
			break
		}
	}
	if fmt.Sprint(pages) != "[3 1]" {
		t.Errorf("entries of pages: %v", pages)
	}
	s.do("GET", "/v1/sessions/s/secrets?after=%21", "").want(t, 400)
}
