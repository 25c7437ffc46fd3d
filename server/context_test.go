package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// A context comes in pages of messages, of at most 4 MiB each, whatever is committed between them.
func TestContextInPages(t *testing.T) {
	s := newSite(t, "mem:")
	longer(s, 7)
	all := fmt.Sprint(s.do("GET", "/v1/sessions/s/context", "").want(t, 200)["messages"])
	for _, query := range []string{"limit=3", "limit=3&at=seq:7", "limit=3&provider=openai-chat"} {
		want := all
		if strings.Contains(query, "provider") {
			whole := s.do("GET", "/v1/sessions/s/context?at=seq:7&provider=openai-chat", "").want(t, 200)
			want = fmt.Sprint(whole["messages"])
		}
		var got []any
		var sizes []int
		next := ""
		for range 5 {
			page := s.do("GET", "/v1/sessions/s/context?"+query+"&after="+next, "").want(t, 200)
			messages := page["messages"].([]any)
			got, sizes = append(got, messages...), append(sizes, len(messages))
			if next, _ = page["next"].(string); next == "" {
				break
			}
			s.do("POST", commits, hello("later"), "If-Match: *").want(t, 200)
		}
		if fmt.Sprint(got) != want || fmt.Sprint(sizes) != "[3 3 1]" {
			t.Errorf("%s: %v in pages of %v, want %v", query, got, sizes, want)
		}
		s.do("POST", "/v1/sessions/s/rollback", `{"to":"seq:7"}`, "If-Match: *").want(t, 200)
	}
	first := s.do("GET", "/v1/sessions/s/context?limit=1", "").want(t, 200)["next"].(string)
	s.do("GET", "/v1/sessions/s/context?at=seq:2&after="+first, "").want(t, 400)
	s.do("GET", "/v1/sessions/s/context?after=YQ", "").want(t, 400)

	for range 3 {
		s.do("POST", commits, hello(strings.Repeat("x", 3<<20)), "If-Match: *").want(t, 200)
	}
	page := s.do("GET", "/v1/sessions/s/context?limit=500", "").want(t, 200)
	if n := len(page["messages"].([]any)); n != 8 || page["next"] == nil {
		t.Errorf("%d messages in a page, next %v", n, page["next"])
	}

	// What the working context leaves out is named, at each target.
	left := page["omitted"].(map[string]any)
	window := s.do("GET", "/v1/sessions/s/resume", "").want(t, 200)["window"].(map[string]any)
	if left["count"] != window["omittedEntries"] || left["from"] != 0.0 || left["to"] != left["count"] {
		t.Errorf("%v is left out of the context, the window is %v", left, window)
	}
	path := s.do("GET", "/v1/sessions/s/entries?order=asc&type=message", "").want(t, 200)["entries"].([]any)
	id := func(i float64) any { return path[int(i)].(map[string]any)["id"] }
	if left["first"] != id(0) || left["last"] != id(left["to"].(float64)-1) {
		t.Errorf("from %v to %v, of %v", left["first"], left["last"], path)
	}
	if early := s.do("GET", "/v1/sessions/s/context?at=seq:7", "").want(t, 200); early["omitted"] != nil {
		t.Errorf("of a short context %v is left out", early["omitted"])
	}
}
