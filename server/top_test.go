package server_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
)

// Sessions are listed newest activity first. Those that no other one started can be asked for alone, forks among them,
// and those that one started by its id; pages of either have each session once.
func TestSessionsAndTheirAgents(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		var ticks atomic.Int64
		st, err := coppice.Open(t.Context(), url, &coppice.Options{Now: func() time.Time {
			return time.Date(2026, 1, 2, 3, 4, int(ticks.Add(1)), 0, time.UTC)
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		s := siteOn(t, st)
		put := func(id, body string) {
			t.Helper()
			s.do("PUT", "/v1/sessions/"+id, body, "If-None-Match: *").want(t, 201)
		}
		for i := range 5 {
			put(fmt.Sprint("t", i), `{"title":"top"}`)
			put(fmt.Sprint("a", i), fmt.Sprintf(`{"title":"agent","parent":"t%d","relation":"agent","meta":{"call":"c%d"}}`, i, i))
			put(fmt.Sprint("b", i), fmt.Sprintf(`{"parent":"a%d"}`, i))
		}
		s.do("POST", "/v1/sessions/t0/fork", `{"id":"f0"}`, "If-Match: *").want(t, 201)
		pages := func(query string) (ids []string) {
			for after, n := "", 0; n < 20; n++ {
				r := s.do("GET", "/v1/sessions?limit=2&"+query+"&after="+after, "")
				ids = append(ids, r.ids(t, "sessions", "id")...)
				next, ok := r.want(t, 200)["next"].(string)
				if !ok {
					break
				}
				after = next
			}
			return ids
		}
		for query, want := range map[string]string{
			"top=true":         "[f0 t4 t3 t2 t1 t0]",
			"top=true&q=fork":  "[]",
			"parent=t3":        "[a3]",
			"parent=a3":        "[b3]",
			"parent=t0":        "[f0 a0]",
			"meta.call=c2":     "[a2]",
			"top=false&q=top":  "[f0 t4 t3 t2 t1 t0]",
			"top=true&parent=": "[f0 t4 t3 t2 t1 t0]",
		} {
			if got := fmt.Sprint(pages(query)); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
		if all := pages(""); len(all) != 16 || all[0] != "f0" {
			t.Errorf("all: %v", all)
		}
	})
}
