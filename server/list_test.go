package server_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// A client that deletes what it lists deletes everything, page by page, in each order; others create and commit
// meanwhile. By creation and by id it meets each session that was there at first, once.
func TestListWhileOthersWrite(t *testing.T) {
	onEach(t, func(t *testing.T, storeURL string) {
		for _, order := range []string{"", "activity", "created", "id"} {
			s := newSite(t, storeURL)
			var want, got []string
			for i := range 9 {
				want = append(want, fmt.Sprintf("%s-s%d", order, i))
				s.create(strings.TrimPrefix(want[i], "-"))
				want[i] = strings.TrimPrefix(want[i], "-")
			}
			query := url.Values{"limit": {"2"}, "order": {order}}
			if order == "" {
				query.Del("order")
			}
			for n := range 20 {
				r := s.do("GET", "/v1/sessions?"+query.Encode(), "")
				next := r.want(t, 200)["next"]
				for _, id := range r.ids(t, "sessions", "id") {
					got = append(got, id)
					s.do("DELETE", "/v1/sessions/"+id, "", "If-Match: *").want(t, 200)
				}
				if n == 0 && order != "" && order != "activity" {
					s.do("POST", "/v1/sessions/"+want[4]+"/commits", hello("x"), "If-Match: *").want(t, 200)
				}
				if next == nil {
					break
				}
				query.Set("after", next.(string))
			}
			if order != "id" {
				slices.Reverse(want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("order %q: %v, want %v", order, got, want)
			}
			if left := s.do("GET", "/v1/sessions", "").ids(t, "sessions", "id"); len(left) > 0 {
				t.Errorf("order %q: left: %v", order, left)
			}
		}
	})
}

// A cursor that is malformed, or of another order, is no first page.
func TestListRefusesCursors(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	s.create("t")
	next := s.do("GET", "/v1/sessions?limit=1&order=id", "").want(t, 200)["next"].(string)
	for _, path := range []string{"sessions", "usage"} {
		s.do("GET", "/v1/"+path+"?limit=1&order=id&after="+next, "").want(t, 200)
		for _, query := range []string{
			"after=s", "after=" + next, "order=created&after=" + next, "order=size", "after=%00",
		} {
			if p := s.do("GET", "/v1/"+path+"?"+query, "").want(t, 400); p["code"] != "usage" {
				t.Errorf("%s?%s: %v", path, query, p)
			}
		}
	}
}
