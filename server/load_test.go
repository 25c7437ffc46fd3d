package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	draft "github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/server"
	"github.com/coppice-go/coppice/transcript"
)

const ndjson = "Accept: application/x-ndjson"

// filled makes a session of so many entries: every tenth is a custom one.
func filled(t testing.TB, st *coppice.Store, id string, n int, o *coppice.SessionOptions) {
	t.Helper()
	s, err := st.Create(id, o)
	if err != nil {
		t.Fatal(err)
	}
	var drafts []transcript.Draft
	for i := range n {
		d := draft.User(fmt.Sprintf("message %d of %s", i, id))
		if i%10 == 9 {
			data := fmt.Sprintf(`{"step":%d,"of":{"source":"loop","even":%t}}`, i, i%20 == 19)
			d = draft.Custom("check", json.RawMessage(data))
		}
		if drafts = append(drafts, d); len(drafts) == 500 || i == n-1 {
			if _, err := s.Commit(t.Context(), coppice.Turn{Entries: drafts}); err != nil {
				t.Fatal(err)
			}
			drafts = nil
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// linesOf returns the entries of a session as the library has them, a line for each.
func linesOf(t testing.TB, st *coppice.Store, id string) []byte {
	t.Helper()
	s, err := st.Open(t.Context(), id, &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	var all bytes.Buffer
	for e, err := range s.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all.Write(append(slices.Clip(e.Raw), '\n'))
	}
	return all.Bytes()
}

// A whole session is one request, which asks of the backend what the library asks, and has every byte of each entry.
func TestAllEntriesAreOneRequest(t *testing.T) {
	testutil.SkipLong(t)
	for name, open := range map[string]func(testing.TB) backend.Backend{"disk": diskOf, "memory": memoryOf} {
		t.Run(name, func(t *testing.T) {
			b := trace.New(open(t))
			st, err := coppice.New(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			filled(t, st, "s", 2600, nil)
			before := b.IO()
			want := linesOf(t, st, "s")
			library := b.IO().Sub(before)
			s := siteOn(t, st)
			before = b.IO()
			r := s.do("GET", "/v1/sessions/s/entries?path=all&limit=all", "", ndjson)
			r.want(t, 200)
			if !bytes.Equal(r.body, want) {
				t.Errorf("%d bytes in %d lines, want %d", len(r.body), bytes.Count(r.body, []byte("\n")), len(want))
			}
			if used := b.IO().Sub(before); used != library {
				t.Errorf("the service asked for %+v, the library for %+v", used, library)
			}
			s.do("GET", "/v1/sessions/s/entries?path=all&limit=all&marks=true", "").want(t, 400)
			s.do("GET", "/v1/sessions/s/entries?path=all&limit=501", "").want(t, 400)
			s.do("GET", "/v1/sessions/s/entries?path=all&limit=0", "").want(t, 400)
			doc := s.do("GET", "/v1/sessions/s/entries?limit=all&order=desc", "").want(t, 200)
			if n := len(doc["entries"].([]any)); n != 2600 || doc["next"] != nil || doc["prev"] != nil {
				t.Errorf("the path has %d entries, next %v, prev %v", n, doc["next"], doc["prev"])
			}
		})
	}
}

func memoryOf(testing.TB) backend.Backend { return memory.New() }

func diskOf(t testing.TB) backend.Backend {
	t.Helper()
	b, err := local.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// Entries can be chosen by their type and by any member of their lines, on a path or in all branches, page by page in
// either direction.
func TestEntriesAreChosen(t *testing.T) {
	s := newSite(t, "mem:")
	filled(t, s.st, "s", 100, nil)
	steps := func(query string) (list []string, doc map[string]any) {
		doc = s.do("GET", "/v1/sessions/s/entries?"+query, "").want(t, 200)
		for _, e := range doc["entries"].([]any) {
			data, _ := e.(map[string]any)["data"].(map[string]any)
			list = append(list, fmt.Sprint(data["step"]))
		}
		return list, doc
	}
	for query, want := range map[string]string{
		"custom=check":                                       "9 19 29 39 49 59 69 79 89 99",
		"type=custom&limit=3&path=all":                       "9 19 29",
		"type=custom&limit=3&order=desc":                     "99 89 79",
		"match.data.of.even=true&limit=all&path=all":         "19 39 59 79 99",
		"match.data.of={\"even\":false,\"source\":\"loop\"}": "9 29 49 69 89",
		"match.data.step=29&match.type=\"custom\"":           "29",
		"match.data.step=\"29\"":                             "",
		"type=message&custom=check":                          "",
	} {
		got, _ := steps(strings.ReplaceAll(query, `"`, "%22"))
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	for _, path := range []string{"path=all", "path=head"} {
		query := path + "&custom=check&limit=3"
		first, doc := steps(query)
		second, then := steps(query + "&after=" + doc["next"].(string))
		back, _ := steps(query + "&before=" + then["prev"].(string))
		if fmt.Sprint(first, second, back) != "[9 19 29] [39 49 59] [9 19 29]" {
			t.Errorf("%s: %v, %v, back %v", path, first, second, back)
		}
	}
	for _, query := range []string{
		"match.=1", "match.a=", "match.a=x", "match.a=1&match.a=1", "limit=all&before=YQ", "mtch.a=1",
	} {
		s.do("GET", "/v1/sessions/s/entries?"+query, "").want(t, 400)
	}
}

// queried is a page of a query.
type queried struct {
	of           []string // session and step of each entry
	next, cursor string
	errors       int
}

func (s *site) query(query string, headers ...string) (q queried) {
	s.t.Helper()
	doc := s.do("GET", "/v1/entries?"+strings.ReplaceAll(query, `"`, "%22"), "", headers...).want(s.t, 200)
	q.next, _ = doc["next"].(string)
	for _, item := range doc["entries"].([]any) {
		item := item.(map[string]any)
		q.cursor = item["cursor"].(string)
		if item["error"] != nil {
			q.errors++
			continue
		}
		data, _ := item["entry"].(map[string]any)["data"].(map[string]any)
		q.of = append(q.of, fmt.Sprint(item["session"], ":", data["step"]))
	}
	return q
}

// A query over sessions is Store.Query: by metadata of the sessions, by type and members of the entries, the newest
// first or not, in pages.
func TestQueryOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		filled(t, s.st, "a1", 30, &coppice.SessionOptions{Meta: map[string]string{"team": "blue"}})
		filled(t, s.st, "a2", 30, &coppice.SessionOptions{Meta: map[string]string{"team": "red"}, Parent: "a1"})
		filled(t, s.st, "b1", 20, &coppice.SessionOptions{Meta: map[string]string{"team": "blue"}, Cwd: "/w"})
		for query, want := range map[string]string{
			"type=custom&custom=check":                     "[a1:9 a1:19 a1:29 a2:9 a2:19 a2:29 b1:9 b1:19]",
			"custom=check&order=desc&limit=3":              "[b1:19 b1:9 a2:29]",
			"custom=check&meta.team=blue&order=desc":       "[b1:19 b1:9 a1:29 a1:19 a1:9]",
			"custom=check&meta.team=blue&meta.team=red":    "[]",
			"match.data.of.even=true":                      "[a1:19 a2:19 b1:19]",
			"custom=check&prefix=a&limit=all":              "[a1:9 a1:19 a1:29 a2:9 a2:19 a2:29]",
			"custom=check&session=b1,none,a2":              "[a2:9 a2:19 a2:29 b1:9 b1:19]",
			"custom=check&parent=a1":                       "[a2:9 a2:19 a2:29]",
			"custom=check&cwd=/w":                          "[b1:9 b1:19]",
			"custom=check&before=0":                        "[]",
			"match.data.step=9&match.customType=\"check\"": "[a1:9 a2:9 b1:9]",
		} {
			if got := s.query(query); fmt.Sprint(got.of) != want {
				t.Errorf("%s: %v, want %s", query, got.of, want)
			}
		}
		var all []string
		last := queried{}
		for range 4 {
			page := s.query("custom=check&limit=3&after=" + last.next)
			all, last = append(all, page.of...), page
			if page.next == "" {
				break
			}
		}
		if fmt.Sprint(all) != "[a1:9 a1:19 a1:29 a2:9 a2:19 a2:29 b1:9 b1:19]" || last.next != "" {
			t.Errorf("pages: %v, then %q", all, last.next)
		}
		seven := s.query("custom=check&limit=7")
		if rest := s.query("custom=check&after=" + seven.cursor); fmt.Sprint(rest.of) != "[b1:19]" {
			t.Errorf("after the cursor of an entry: %v", rest.of)
		}
		nd := s.do("GET", "/v1/entries?type=message&limit=all", "", ndjson)
		lines := strings.Split(strings.TrimSpace(string(nd.body)), "\n")
		if len(lines) != 72 || !json.Valid([]byte(lines[71])) {
			t.Errorf("%d lines", len(lines))
		}
		for _, query := range []string{
			"after=x", "limit=501", "match.a=x", "session=..", "order=up", "after=" + last.cursor + "&order=desc",
		} {
			s.do("GET", "/v1/entries?"+query, "").want(t, 400)
		}
	})
}

// A session that is damaged is an item of a query, and hides no other.
func TestQueryOfDamaged(t *testing.T) {
	b := memory.New()
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	for _, id := range []string{"a", "b", "c"} {
		filled(t, st, id, 10, nil)
	}
	if _, err := b.Put(t.Context(), "checkpoint_latest/b", []byte("damaged"), backend.Cond{}); err != nil {
		t.Fatal(err)
	}
	s := siteOn(t, st)
	if q := s.query("custom=check"); fmt.Sprint(q.of) != "[a:9 c:9]" || q.errors != 1 {
		t.Errorf("%v, %d errors", q.of, q.errors)
	}
}

// A short-lived token for some sessions finds entries of these alone.
func TestQueryIsNarrowed(t *testing.T) {
	tokens := someTokens(t)
	s := newSite(t, "mem:", withTokens(tokens), func(o *server.Options) { o.Tokens = tokens })
	filled(t, s.st, "mine", 10, &coppice.SessionOptions{Meta: map[string]string{"user": "u1"}})
	filled(t, s.st, "other", 10, &coppice.SessionOptions{Meta: map[string]string{"user": "u2"}})
	token := func(body string) string {
		doc := s.do("POST", "/v1/tokens", body, "Authorization: Bearer issuer").want(t, 201)
		return "Authorization: Bearer " + doc["token"].(string)
	}
	narrow := token(`{"meta":{"user":"u1"}}`)
	if q := s.query("custom=check", narrow); fmt.Sprint(q.of) != "[mine:9]" {
		t.Errorf("%v", q.of)
	}
	if q := s.query("custom=check&meta.user=u2", narrow); len(q.of) != 0 {
		t.Errorf("%v", q.of)
	}
	s.do("GET", "/v1/entries", "", token(`{"session":"mine"}`)).want(t, 403)
}

// BenchmarkAllEntries compares all entries of a session by the library with one request, as NDJSON, to the handler.
func BenchmarkAllEntries(b *testing.B) {
	st, err := coppice.New(diskOf(b), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	filled(b, st, "s", 10_000, nil)
	b.Run("library", func(b *testing.B) {
		for b.Loop() {
			s, err := st.Open(b.Context(), "s", &coppice.SessionOptions{ReadOnly: true})
			if err != nil {
				b.Fatal(err)
			}
			for e, err := range s.Entries(b.Context()) {
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Discard.Write(e.Raw)
			}
			_ = s.Close()
		}
	})
	b.Run("http", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			srv, err := server.New(server.Options{Store: st}) // one that was used keeps the tree
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			r := httptest.NewRequest(http.MethodGet, "/v1/sessions/s/entries?path=all&limit=all", http.NoBody)
			r.Host = "localhost"
			r.Header.Set("Accept", "application/x-ndjson")
			w := &discarding{header: http.Header{}}
			srv.ServeHTTP(w, r)
			if w.n == 0 {
				b.Fatal("no answer")
			}
			_ = srv.Close()
		}
	})
}

// discarding counts the bytes of an answer.
type discarding struct {
	header http.Header
	n      int
}

func (w *discarding) Header() http.Header { return w.header }
func (w *discarding) WriteHeader(int)     {}
func (w *discarding) Write(p []byte) (int, error) {
	w.n += len(p)
	return len(p), nil
}
