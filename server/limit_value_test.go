package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/internal/testutil"
)

// A value of exactly the limit is stored, whether it is a text or structured JSON, and one byte more is 413: of a state
// and of a document.
func TestValuesOfTheLimit(t *testing.T) {
	testutil.SkipLong(t)
	{
		s := newSite(t, "mem:")
		s.create("s")
		text := func(n int) string { return `"` + strings.Repeat("QUJD", n)[:n-2] + `"` }
		list := func(n int) string {
			item := `{"role":"user","content":"` + strings.Repeat("x", 60) + `"},`
			items := strings.Repeat(item, n/len(item))
			rest := n - len(`{"a":[`) - len(items) - len(`""]}`)
			if rest < 0 {
				items = items[len(item):]
				rest += len(item)
			}
			return `{"a":[` + items + `"` + strings.Repeat("y", rest) + `"]}`
		}
		for name, form := range map[string]func(int) string{"text": text, "list": list} {
			for member, most := range map[string]int{"state": checkpoint.MaxState, "doc": checkpoint.MaxDoc} {
				body := func(n int) string {
					value := form(n)
					if len(value) != n {
						t.Fatalf("%d bytes, want %d", len(value), n)
					}
					if member == "doc" {
						return `{"docs":{"d":` + value + `}}`
					}
					return `{"state":` + value + `}`
				}
				for _, n := range []int{most - 1, most, most} {
					s.do("POST", commits, body(n), "If-Match: *").want(t, http.StatusOK)
				}
				if p := s.do("POST", commits, body(most+1), "If-Match: *").want(t, 413); p["code"] != "too-large" {
					t.Errorf("%s %s: %v", name, member, p)
				}
				if member == "state" {
					got := string(s.do("GET", "/v1/sessions/s/state", "").body)
					if strings.TrimSuffix(got, "\n") != form(most) {
						t.Errorf("%s: %d bytes came back", name, len(got))
					}
				}
				s.do("POST", commits, `{"state":null,"docs":{"d":null}}`, "If-Match: *").want(t, http.StatusOK)
			}
		}
	}
}
