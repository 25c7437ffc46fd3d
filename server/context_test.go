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
}
