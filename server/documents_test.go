package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/trace"
)

// Documents are read where state is: one or all of them, now or at any time, on resume, and what a commit changed of
// them by those who follow.
func TestDocumentsOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		for _, body := range []string{
			`{"docs":{"plan":{"n":1.10},"app/state":[1]}}`, `{"state":1}`, `{"docs":{"plan":{"n":2},"app/state":null}}`,
		} {
			s.do("POST", commits, body, "If-Match: *").want(t, 200)
		}
		newest := s.do("GET", "/v1/sessions/s", "").etag()
		for path, want := range map[string]string{
			"docs":                      `{"docs":{"plan":{"n":2}}}`,
			"docs?at=seq:1":             `{"docs":{"app/state":[1],"plan":{"n":1.10}}}`,
			"docs?at=seq:0":             `{"docs":{}}`,
			"docs/plan":                 `{"n":2}`,
			"docs/plan?at=seq:2":        `{"n":1.10}`,
			"docs/app%2Fstate?at=seq:1": `[1]`,
		} {
			r := s.do("GET", "/v1/sessions/s/"+path, "")
			r.want(t, 200)
			if got := strings.TrimSpace(string(r.body)); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
			if !strings.Contains(path, "?") && r.etag() != newest {
				t.Errorf("%s has the ETag %s, the session %s", path, r.etag(), newest)
			}
		}
		for _, path := range []string{"docs/app%2Fstate", "docs/none", "docs/a%20b", "docs/plan?at=seq:9"} {
			s.do("GET", "/v1/sessions/s/"+path, "").want(t, 404)
		}
		s.do("GET", "/v1/sessions/none/docs", "").want(t, 404)
		s.do("GET", "/v1/sessions/s/docs?at=seq:9", "").want(t, 422)
		docs := s.do("GET", "/v1/sessions/s/resume", "").want(t, 200)["docs"]
		if fmt.Sprint(docs) != "map[plan:map[n:2]]" {
			t.Errorf("resume has %v", docs)
		}
		var changed []string
		for _, c := range s.do("GET", "/v1/sessions/s/events?after=0&wait=1", "").want(t, 200)["commits"].([]any) {
			docs, err := json.Marshal(c.(map[string]any)["docs"])
			if err != nil {
				t.Fatal(err)
			}
			changed = append(changed, string(docs))
		}
		want := `{"app/state":[1],"plan":{"n":1.1}} null {"app/state":null,"plan":{"n":2}}`
		if strings.Join(changed, " ") != want {
			t.Errorf("events have %v, want %s", changed, want)
		}
	})
}

// A list has the documents that it is asked for: one request, and for each session the one read that its summary takes.
func TestListsHaveDocuments(t *testing.T) {
	b := trace.New(memoryOf(t))
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	const n = 200
	for i := range n {
		s, err := st.Create(fmt.Sprintf("s%03d", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		docs := map[string]any{"summary": map[string]int{"n": i}, "other": strings.Repeat("x", 5000)}
		if _, err := s.Commit(t.Context(), coppice.Turn{Docs: docs}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s := siteOn(t, st)
	before := b.IO()
	list := s.do("GET", "/v1/sessions?limit=500&docs=summary,none", "").want(t, 200)["sessions"].([]any)
	if got := b.IO().Sub(before).Get; got > n {
		t.Errorf("%d reads for %d sessions", got, n)
	}
	if len(list) != n {
		t.Fatalf("%d sessions", len(list))
	}
	for _, item := range list {
		item := item.(map[string]any)
		docs := item["docs"].(map[string]any)
		want := strings.TrimLeft(item["id"].(string), "s0") // of s000: nothing
		if got := fmt.Sprint(docs["summary"].(map[string]any)["n"]); got != max(want, "0") ||
			fmt.Sprint(slices.Collect(maps.Keys(docs))) != "[summary]" {
			t.Errorf("%v: %v", item["id"], docs)
		}
	}
	plain := s.do("GET", "/v1/sessions?limit=1", "").want(t, 200)["sessions"].([]any)[0]
	if docs := plain.(map[string]any)["docs"]; docs != nil {
		t.Errorf("not asked for: %v", docs)
	}
	s.do("GET", "/v1/sessions?docs=a%20b", "").want(t, 400)
	s.do("GET", "/v1/sessions?docs=a,", "").want(t, 400)
	s.do("GET", "/v1/sessions?docs=a"+strings.Repeat(",a", 64), "").want(t, 400)
	s.do("GET", "/v1/usage?docs=summary", "").want(t, 400)
}

// The head is in the answer to a commit, in the session and in a list of sessions: the entry from which the next one
// grows.
func TestAnswersNameTheHead(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		head := func() string {
			one := s.do("GET", "/v1/sessions/s", "").want(t, 200)
			listed := s.do("GET", "/v1/sessions", "").want(t, 200)["sessions"].([]any)[0].(map[string]any)
			if one["head"] != listed["head"] || one["branch"] != listed["branch"] {
				t.Errorf("the session has %v, the list %v", one["head"], listed["head"])
			}
			return fmt.Sprint(one["head"], " ", one["branch"])
		}
		if head() != "<nil> main" {
			t.Errorf("a new session: %s", head())
		}
		of := func(r map[string]any) string { return fmt.Sprint(r["head"], " ", r["branch"]) }
		first := s.do("POST", commits, hello("one"), "If-Match: *")
		r := first.want(t, 200)
		if want := fmt.Sprint(r["entries"].([]any)[0], " main"); of(r) != want || head() != want {
			t.Errorf("after a turn: %s and %s, want %s", of(r), head(), want)
		}
		state := s.do("POST", commits, `{"state":1}`, "If-Match: *").want(t, 200)
		if of(state) != of(r) {
			t.Errorf("a state moved the head: %s", of(state))
		}
		won := s.do("POST", commits, hello("two"), "If-Match: *").want(t, 200)
		kept := s.do("POST", commits, `{"entries":[{"role":"user","content":"three"}],"onConflict":"keep-both"}`,
			"If-Match: "+first.etag()).want(t, 200)
		if want := fmt.Sprint(kept["entries"].([]any)[0], " ", kept["kept"]); of(kept) != want || head() != of(won) {
			t.Errorf("a turn that was kept: %s, want %s; the session is at %s", of(kept), want, head())
		}
	})
}
