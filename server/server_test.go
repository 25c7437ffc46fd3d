package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	_ "github.com/coppice-go/coppice/backend/local"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/server"
)

// site is a server on a store, over a real connection.
type site struct {
	t   testing.TB
	url string
	st  *coppice.Store
	srv *server.Server
}

func newSite(t testing.TB, storeURL string, change ...func(*server.Options)) *site {
	t.Helper()
	st, err := coppice.Open(t.Context(), storeURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return siteOn(t, st, change...)
}

// siteOn is newSite on a store that is open.
func siteOn(t testing.TB, st *coppice.Store, change ...func(*server.Options)) *site {
	t.Helper()
	o := server.Options{Store: st}
	for _, f := range change {
		f(&o)
	}
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv)
	t.Cleanup(func() {
		srv.EndStreams()
		h.Close()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return &site{t, h.URL, st, srv}
}

// onEach runs a test on a store that appends, and on one that replaces.
func onEach(t *testing.T, f func(t *testing.T, url string)) {
	t.Run("disk", func(t *testing.T) { f(t, "file://"+t.TempDir()) })
	t.Run("memory", func(t *testing.T) { f(t, "mem:"+strings.ReplaceAll(t.TempDir(), "/", ".")) })
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	body []byte
}

// do sends a request. Headers are "Name: value".
func (s *site) do(method, path, body string, headers ...string) reply {
	s.t.Helper()
	r, err := s.try(s.t.Context(), method, path, body, headers...)
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *site) try(ctx context.Context, method, path, body string, headers ...string) (reply, error) {
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, in)
	if err != nil {
		return reply{}, err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "Host":
			req.Host = value
			continue
		case "Transfer-Encoding": // chunked
			req.ContentLength = -1
			continue
		}
		req.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	return reply{resp, raw}, err
}

// want checks the status, and decodes the body.
func (r reply) want(t testing.TB, status int) map[string]any {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", r.Request.Method, r.Request.URL.Path, r.StatusCode, status, r.body)
	}
	var doc map[string]any
	if kind := r.Header.Get("Content-Type"); strings.HasSuffix(kind, "json") && !strings.HasSuffix(kind, "ndjson") &&
		len(r.body) > 0 && r.body[0] == '{' {
		if err := json.Unmarshal(r.body, &doc); err != nil {
			t.Fatalf("%s: %v", r.body, err)
		}
	}
	return doc
}

func (r reply) etag() string { return r.Header.Get("ETag") }

// stream returns the body of a GET, which ends with the test.
func (s *site) stream(path string) io.Reader {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.url+path, http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp.Body
}

// create creates a session and returns its ETag.
func (s *site) create(id string) string {
	s.t.Helper()
	r := s.do("PUT", "/v1/sessions/"+id, `{"title":"a session"}`, "If-None-Match: *")
	r.want(s.t, 201)
	return r.etag()
}

const commits = "/v1/sessions/s/commits"

func hello(text string) string {
	return `{"entries":[{"role":"user","content":"` + text + `"}],"state":{"said":"` + text + `"}}`
}

// What was committed comes back byte for byte, with one read, and every write names the commit on which it was made.
func TestTurnOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		made := s.create("s")
		s.do("POST", commits, hello("a")).want(t, 428)
		raw := `{"role":"user","content":"<b>&\u2028 1","n":12345678901234567890.10}`
		state := `{"z":1,"a":9007199254740993,"h":"<&>"}`
		r := s.do("POST", commits, `{"entries":[`+raw+`],"state":`+state+`}`, "If-Match: "+made)
		doc := r.want(t, 200)
		if len(doc["entries"].([]any)) != 1 || r.etag() != `"`+doc["commit"].(string)+`"` {
			t.Errorf("%s, ETag %s", r.body, r.etag())
		}
		back := s.do("GET", "/v1/sessions/s/resume", "")
		back.want(t, 200)
		if !strings.Contains(string(back.body), `"context":[`+raw+`]`) ||
			!strings.Contains(string(back.body), `"state":`+state) || back.etag() != r.etag() {
			t.Errorf("resume: %s, ETag %s", back.body, back.etag())
		}
		s.do("GET", "/v1/sessions/s/resume", "", "If-None-Match: "+r.etag()).want(t, 304)
		lost := s.do("POST", commits, hello("b"), "If-Match: "+made)
		p := lost.want(t, 412)
		if p["code"] != "conflict" || p["winner"].(map[string]any)["commit"] != doc["commit"] ||
			!strings.Contains(string(lost.body), raw) || lost.etag() != r.etag() {
			t.Errorf("conflict: %s", lost.body)
		}
		kept := s.do("POST", commits, strings.Replace(hello("c"), "{", `{"onConflict":"keep-both",`, 1), "If-Match: "+made)
		if k := kept.want(t, 200); k["kept"] == nil {
			t.Errorf("keep-both: %s", kept.body)
		}
		more := s.do("POST", commits, hello("more"), "If-Match: "+kept.etag()).want(t, 200)
		if more["kept"] != kept.want(t, 200)["kept"] { // its client continues where it is
			t.Errorf("after keep-both: %v", more)
		}
		label := fmt.Sprintf(`{"entry":%q,"label":"x"}`, back.want(t, 200)["head"])
		s.do("POST", "/v1/sessions/s/label", label, "If-Match: "+kept.etag()).want(t, 200)
		s.do("POST", commits, hello("d"), "If-Match: *").want(t, 200)
		if got := s.do("GET", "/v1/sessions/s/state", "").body; string(got) != "{\"said\":\"d\"}\n" {
			t.Errorf("state %s", got)
		}
	})
}

// A commit with a key is stored once, through either of two servers, and its key is looked at before its condition.
func TestKeysOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		a, b := newSite(t, url), newSite(t, url)
		made := a.create("s")
		first := a.do("POST", commits, hello("a"), "If-Match: "+made, "Idempotency-Key: k").want(t, 200)
		for _, s := range []*site{a, b} {
			again := s.do("POST", commits, hello("a"), "If-Match: "+made, "Idempotency-Key: k").want(t, 200)
			if again["repeated"] != true || again["commit"] != first["commit"] ||
				again["entries"].([]any)[0] != first["entries"].([]any)[0] {
				t.Errorf("%v, first %v", again, first)
			}
			other := s.do("POST", commits, hello("b"), "If-Match: "+made, "Idempotency-Key: k").want(t, 422)
			if other["code"] != "key-reused" {
				t.Errorf("%v", other)
			}
		}
	})
}

// A key that is stored is answered with its receipt whatever If-Match is, and without one: a client that lost the
// answer may have lost its tag too.
func TestKeyIsLookedUpFirst(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		a, b := newSite(t, url), newSite(t, url)
		a.create("s")
		b.do("POST", commits, hello("z"), "If-Match: *").want(t, 200) // so that its handle is behind
		first := a.do("POST", commits, hello("a"), "If-Match: *", "Idempotency-Key: k").want(t, 200)
		for name, s := range map[string]*site{"the same": a, "another": b} {
			for _, header := range []string{"If-Match: nonsense", "If-Match: 00000000-0000-7000-8000-000000000000", "X-None: none"} {
				again := s.do("POST", commits, hello("a"), header, "Idempotency-Key: k").want(t, 200)
				if again["repeated"] != true || again["commit"] != first["commit"] ||
					again["entries"].([]any)[0] != first["entries"].([]any)[0] {
					t.Errorf("%s server, %s: %v, first %v", name, header, again, first)
				}
				s.do("POST", commits, hello("b"), header, "Idempotency-Key: k").want(t, 422)
			}
			s.do("POST", commits, hello("a"), "If-Match: nonsense", "Idempotency-Key: new").want(t, 412)
			if p := s.do("POST", commits, hello("a"), "Idempotency-Key: new").want(t, 428); p["code"] != "no-condition" {
				t.Errorf("%v", p)
			}
			s.do("POST", commits, hello("a")).want(t, 428)
		}
		if n := a.do("GET", "/v1/sessions/s", "").want(t, 200)["seq"]; n != 2.0 {
			t.Errorf("the newest commit is %v", n)
		}
	})
}

// Two servers on one store: what one committed is the base of the next commit through the other.
func TestTwoServers(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		a, b := newSite(t, url), newSite(t, url)
		tag := a.create("s")
		for i, s := range []*site{a, b, a, b, b, a} {
			r := s.do("POST", commits, hello(string(rune('a'+i))), "If-Match: "+tag)
			r.want(t, 200)
			tag = r.etag()
			for _, at := range []*site{a, b} {
				if got := at.do("GET", "/v1/sessions/s", "").etag(); got != tag {
					t.Errorf("turn %d: ETag %s, want %s", i, got, tag)
				}
			}
		}
	})
}

// A session is created once; the request that did it gets its answer again.
func TestCreateOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		body := `{"title":"t","cwd":"/w","meta":{"team":"blue"}}`
		s.do("PUT", "/v1/sessions/s", body).want(t, 428)
		first := s.do("PUT", "/v1/sessions/s", body, "If-None-Match: *", "Idempotency-Key: k")
		first.want(t, 201)
		s.do("PUT", "/v1/sessions/s", body, "If-None-Match: *").want(t, 412)
		again := s.do("PUT", "/v1/sessions/s", body, "If-None-Match: *", "Idempotency-Key: k")
		again.want(t, 201)
		if again.etag() != first.etag() || string(again.body) != string(first.body) {
			t.Errorf("%s %s, first %s %s", again.etag(), again.body, first.etag(), first.body)
		}
		s.do("PUT", "/v1/sessions/s", `{"title":"u"}`, "If-None-Match: *", "Idempotency-Key: k").want(t, 422)
		list := s.do("GET", "/v1/sessions?meta.team=blue&q=T", "").want(t, 200)
		if all := list["sessions"].([]any); len(all) != 1 || all[0].(map[string]any)["title"] != "t" {
			t.Errorf("%v", list)
		}
		changed := s.do("PATCH", "/v1/sessions/s", `{"title":"new"}`, "If-Match: "+first.etag())
		changed.want(t, 200)
		s.do("DELETE", "/v1/sessions/s?trash=1", "", "If-Match: "+changed.etag()).want(t, 400)
		s.do("DELETE", "/v1/sessions/s", "", "If-Match: "+changed.etag()).want(t, 200)
		s.do("GET", "/v1/sessions/s", "").want(t, 410)
	})
}

// frames reads events until n commits came, and returns their data.
func frames(t testing.TB, s *site, n int, headers ...string) (commits []map[string]any) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/sessions/s/events?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	sc := bufio.NewScanner(resp.Body)
	sc.Buffer(nil, 1<<20)
	kind := ""
	for len(commits) < n && sc.Scan() {
		line := sc.Text()
		if k, ok := strings.CutPrefix(line, "event: "); ok {
			kind = k
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok && kind == "commit" {
			var doc map[string]any
			if err := json.Unmarshal([]byte(data), &doc); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			commits = append(commits, doc)
		}
	}
	return commits
}

// A follower gets every commit once, from wherever it asks, with the entries and the patch of the state.
func TestEventsResume(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		tag := s.create("s")
		for i := range 100 { // more than a feed keeps
			r := s.do("POST", commits, hello(string(rune('a'+i%26))), "If-Match: "+tag)
			r.want(t, 200)
			tag = r.etag()
		}
		all := frames(t, s, 100)
		for i, c := range all {
			if c["seq"] != float64(i+1) || len(c["entries"].([]any)) != 1 || len(c["state"].([]any)) == 0 {
				t.Fatalf("event %d: %v", i, c)
			}
		}
		if rest := frames(t, s, 7, "Last-Event-ID: 93"); rest[0]["seq"] != float64(94) {
			t.Errorf("%v", rest[0])
		}
		poll := s.do("GET", "/v1/sessions/s/events?after=98&wait=1", "").want(t, 200)
		if poll["next"] != "100" || len(poll["commits"].([]any)) != 2 {
			t.Errorf("%v", poll)
		}
	})
}

// A stream names the commit at which it begins: a client that is cut off before the first event still knows after which
// one to go on, and one that asked for a commit that there is not (a reset) does not ask for it for ever.
func TestStreamNamesItsBeginning(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	s.do("POST", commits, hello("one"), "If-Match: *").want(t, 200)
	for query, want := range map[string]string{
		"": "retry: 1000, id: 1", "?after=1": "retry: 1000, id: 1",
		// the id comes with the reset or after it: a client that is cut off between the two would go on without one
		"?after=7": "retry: 1000, , event: reset, data: null, , id: 1",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/sessions/s/events"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
			if lines = append(lines, sc.Text()); strings.HasPrefix(sc.Text(), "id:") {
				break
			}
		}
		if got := strings.Join(lines, ", "); got != want {
			t.Errorf("%q: it begins with %q, want %q", query, got, want)
		}
		cancel()
		_ = resp.Body.Close() // cut off
	}
}

// Moves are commits with a condition of their own.
func TestMovesOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		made := s.create("s")
		one := s.do("POST", commits, hello("one"), "If-Match: "+made)
		entry := one.want(t, 200)["entries"].([]any)[0].(string)
		two := s.do("POST", commits, hello("two"), "If-Match: "+one.etag())
		two.want(t, 200)
		s.do("POST", "/v1/sessions/s/rollback", `{"to":"seq:1"}`, "If-Match: "+one.etag()).want(t, 412)
		back := s.do("POST", "/v1/sessions/s/rollback", `{"to":"seq:1"}`, "If-Match: "+two.etag()).want(t, 200)
		if back["kept"] == nil || back["state"].(map[string]any)["said"] != "one" {
			t.Errorf("%v", back)
		}
		label := s.do("POST", "/v1/sessions/s/label", `{"entry":"`+entry+`","label":"green"}`, "If-Match: *")
		label.want(t, 200)
		// A label moves nothing: what was made before it still counts.
		s.do("POST", commits, hello("three"), "If-Match: "+label.etag()).want(t, 200)
		s.do("POST", "/v1/sessions/s/edit", `{"entry":"`+entry+`","message":{"role":"user","content":"uno"}}`,
			"If-Match: *").want(t, 200)
		s.do("POST", "/v1/sessions/s/switch", `{"to":"`+back["kept"].(string)+`"}`, "If-Match: *").want(t, 200)
		s.do("POST", "/v1/sessions/s/snapshot", `{"tag":"t"}`, "If-Match: *").want(t, 200)
		s.do("POST", "/v1/sessions/s/claim", `{}`, "If-Match: *").want(t, 200)
		if got := s.do("GET", "/v1/sessions/s/state?at=tag:t", "").body; string(got) != "{\"said\":\"two\"}\n" {
			t.Errorf("state %s", got)
		}
		s.do("POST", "/v1/sessions/s/partial", `{"partial":{"role":"assistant"}}`).want(t, 204)
	})
}

// What is refused before anything is read or stored.
func TestRefused(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
	}{
		"another host":      {"GET", "/v1/sessions", "", []string{"Host: evil.example"}, 421},
		"cross-site post":   {"POST", commits, hello("a"), []string{"Origin: https://evil.example", "If-Match: *"}, 403},
		"cross-site fetch":  {"POST", commits, hello("a"), []string{"Sec-Fetch-Site: cross-site", "If-Match: *"}, 403},
		"a form":            {"POST", commits, "a=b", []string{"Content-Type: text/plain", "If-Match: *"}, 415},
		"not JSON":          {"POST", commits, "{", []string{"If-Match: *"}, 400},
		"deep":              {"POST", commits, `{"state":` + deep + `}`, []string{"If-Match: *"}, 400},
		"an unknown field":  {"POST", commits, `{"entry":[]}`, []string{"If-Match: *"}, 400},
		"not an entry":      {"POST", commits, `{"entries":[1]}`, []string{"If-Match: *"}, 400},
		"a path":            {"GET", "/v1/sessions/..%2f..%2fetc/resume", "", nil, 400},
		"a long id":         {"GET", "/v1/sessions/" + strings.Repeat("a", 200), "", nil, 400},
		"no session":        {"GET", "/v1/sessions/none/resume", "", nil, 404},
		"no commit":         {"POST", commits, hello("a"), []string{`If-Match: "01a1f8ca-2d92-7000-8c74-76d0504834fa"`}, 412},
		"a wrong parameter": {"GET", "/v1/sessions?limit=x", "", nil, 400},
		"too many":          {"GET", "/v1/sessions?limit=501", "", nil, 400},
		"a wrong target":    {"GET", "/v1/sessions/s/state?at=seq:x", "", nil, 400},
		"no such commit":    {"GET", "/v1/sessions/s/state?at=seq:77", "", nil, 422},
	} {
		t.Run(name, func(t *testing.T) {
			r := s.do(c.method, c.path, c.body, c.headers...)
			p := r.want(t, c.status)
			if r.Header.Get("Content-Type") != "application/problem+json" || p["code"] == "" || p["detail"] == "" ||
				p["status"] != float64(c.status) {
				t.Errorf("%s %s", r.Header.Get("Content-Type"), r.body)
			}
		})
	}
	if got := s.do("GET", "/v1/sessions/s", "").want(t, 200); got["seq"] != float64(0) {
		t.Errorf("something was stored: %v", got)
	}
}

// An answer is the same in every encoding, and so is its ETag.
func TestEncodings(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	s.do("POST", commits, hello(strings.Repeat("long ", 1000)), "If-Match: *").want(t, 200)
	plain := s.do("GET", "/v1/sessions/s/resume", "", "Accept-Encoding: identity")
	for _, name := range []string{"gzip", "zstd"} {
		r := s.do("GET", "/v1/sessions/s/resume", "", "Accept-Encoding: "+name)
		if r.Header.Get("Content-Encoding") != name || r.etag() != plain.etag() || len(r.body) > len(plain.body)/10 {
			t.Errorf("%s: %s of %d bytes, ETag %s, want %s", name, r.Header.Get("Content-Encoding"), len(r.body), r.etag(),
				plain.etag())
		}
		s.do("GET", "/v1/sessions/s/resume", "", "Accept-Encoding: "+name, "If-None-Match: "+r.etag()).want(t, 304)
	}
}

// The id of a deleted session is never used again, and the answer reports it; an id that never was is called by its
// name.
func TestDeletedOverHTTP(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		for _, r := range []reply{s.do("GET", "/v1/sessions/trip", ""), s.do("GET", "/v1/sessions/trip/rows", "")} {
			if detail := r.want(t, 404)["detail"].(string); strings.Count(detail, "open trip") != 1 {
				t.Errorf("%s", detail)
			}
		}
		made := s.create("trip")
		newest := s.do("POST", commits[:len("/v1/sessions/")]+"trip/commits", hello("x"), "If-Match: "+made)
		newest.want(t, 200)
		s.do("DELETE", "/v1/sessions/trip", "", "If-Match: "+made).want(t, 412)
		s.do("DELETE", "/v1/sessions/trip", "", "If-Match: "+newest.etag()).want(t, 200)
		s.do("POST", "/v1/sessions/trip/partial", `{"partial":1}`).want(t, 410)
		for _, key := range []string{"Accept: */*", "Idempotency-Key: k"} {
			doc := s.do("PUT", "/v1/sessions/trip", `{}`, "If-None-Match: *", key).want(t, 410)
			if doc["code"] != "deleted" {
				t.Errorf("%v", doc)
			}
		}
		s.create("s")
		fork := s.do("POST", "/v1/sessions/s/fork", `{"id":"trip"}`, "If-Match: *").want(t, 410)
		imported := s.do("POST", "/v1/import?session=trip", piFile).want(t, 410)
		if fork["code"] != "deleted" || imported["code"] != "deleted" {
			t.Errorf("%v, %v", fork, imported)
		}
		fork = s.do("POST", "/v1/sessions/s/fork", `{"id":"s"}`, "If-Match: *").want(t, 409)
		imported = s.do("POST", "/v1/import?session=s", piFile).want(t, 409)
		if fork["code"] != "exists" || imported["code"] != "exists" {
			t.Errorf("%v, %v", fork, imported)
		}
	})
}

// Clients that name themselves are told apart: a claim fences the others, and not its own client.
func TestWritersByName(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	first := s.do("POST", commits, hello("x"), "If-Match: *")
	s.do("POST", "/v1/sessions/s/claim", "{}", "Coppice-Writer: anna").want(t, 200) // on no commit in particular
	s.do("POST", commits, hello("y"), "If-Match: "+first.etag(), "Coppice-Writer: ben").want(t, 409)
	s.do("PATCH", "/v1/sessions/s", `{"title":"t"}`, "If-Match: "+first.etag(), "Coppice-Writer: ben").want(t, 409)
	s.do("POST", commits, hello("y"), "If-Match: "+first.etag(), "Coppice-Writer: anna").want(t, 200)
	r := s.do("PATCH", "/v1/sessions/s", `{"title":"t"}`, "Coppice-Writer: ben", "Idempotency-Key: k")
	again := s.do("PATCH", "/v1/sessions/s", `{"title":"t"}`, "Coppice-Writer: ben", "Idempotency-Key: k")
	if r.want(t, 200)["seq"] != again.want(t, 200)["seq"] || r.etag() != "" {
		t.Errorf("%s, again %s, ETag %s of a client that has seen no commit", r.body, again.body, r.etag())
	}
	list := s.do("GET", commits, "").want(t, 200)["commits"].([]any)
	if writer := list[0].(map[string]any)["writer"]; writer != "ben" {
		t.Errorf("the newest commit is of %v", writer)
	}
}

// After a claim a commit that was made on an earlier one is refused, though all clients of the server share a handle;
// so are losing turns that were to be kept, unless a fenced one is to be. What was stored before is answered again.
func TestClaimFencesClients(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		first := s.do("POST", commits, hello("x"), "If-Match: *", "Idempotency-Key: k")
		first.want(t, 200)
		claim := s.do("POST", "/v1/sessions/s/claim", "{}", "If-Match: *")
		claim.want(t, 200)
		keep := `{"entries":[{"role":"user","content":"z"}],"onConflict":"keep-both"}`
		for _, body := range []string{hello("y"), keep} {
			if doc := s.do("POST", commits, body, "If-Match: "+first.etag()).want(t, 409); doc["code"] != "fenced" {
				t.Errorf("%v", doc)
			}
		}
		keep = strings.Replace(keep, "keep-both", "keep-fenced", 1)
		if doc := s.do("POST", commits, keep, "If-Match: "+first.etag()).want(t, 200); doc["kept"] == nil {
			t.Errorf("%v", doc)
		}
		s.do("POST", commits, hello("x"), "If-Match: "+first.etag(), "Idempotency-Key: k").want(t, 200)
		mine := s.do("POST", commits, hello("mine"), "If-Match: "+claim.etag())
		mine.want(t, 200)
		s.do("POST", commits, hello("y"), "If-Match: "+claim.etag()).want(t, 412)
		s.do("POST", commits, hello("any"), "If-Match: *").want(t, 200)
		if got := s.do("GET", "/v1/sessions/s/entries", "").ids(t, "entries", "id"); len(got) != 3 {
			t.Errorf("%d entries on the path, want x, mine and any", len(got))
		}
		other, err := s.st.Open(t.Context(), "s", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Commit(t.Context(), coppice.Turn{State: 1}); err != nil { // of another epoch, without a claim
			t.Fatal(err)
		}
		s.do("POST", commits, hello("y"), "If-Match: "+mine.etag()).want(t, 412)
	})
}

// A turn that loses, and meets a claim when it is kept, is fenced: its client learns of the claim.
func TestClaimWhileATurnIsKept(t *testing.T) {
	b := memory.New()
	other, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	write := func(f func(h *coppice.Session) error) {
		h, err := other.Open(t.Context(), "s", nil)
		if err == nil {
			err = errors.Join(f(h), h.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
	puts, claimed := -1, false // -1 = not counted
	st, err := coppice.New(fault.New(b, 1, fault.Rule{When: func(c fault.Call) bool {
		if puts >= 0 && fault.On("put", "checkpoint_latest/")(c) {
			puts++
		}
		if puts == 2 && !claimed { // the turn has lost, and is sent to be kept
			claimed = true
			write(func(h *coppice.Session) error {
				_, err := h.Claim(context.WithoutCancel(t.Context()))
				return err
			})
		}
		return false
	}}), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := siteOn(t, st)
	s.create("s")
	made := s.do("POST", commits, hello("x"), "If-Match: *").etag()
	write(func(h *coppice.Session) error {
		_, err := h.Commit(t.Context(), coppice.Turn{State: 1})
		return err
	})
	puts = 0
	keep := strings.Replace(hello("y"), "{", `{"onConflict":"keep-both",`, 1)
	if doc := s.do("POST", commits, keep, "If-Match: "+made).want(t, 409); !claimed || doc["code"] != "fenced" {
		t.Errorf("claimed: %v, %v", claimed, doc)
	}
}
