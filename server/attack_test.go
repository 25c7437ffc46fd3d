package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/server"
)

// newFaulty returns a server on a backend that fails on purpose.
func newFaulty(t *testing.T, below backend.Backend) (*site, fault.Backend) {
	t.Helper()
	b := fault.New(below, 1)
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Store: st, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv)
	t.Cleanup(func() {
		b.Clear()
		srv.EndStreams()
		h.Close()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		_ = st.Close()
		_ = b.Close()
	})
	return &site{t, h.URL, st, srv}, b
}

// On a full disk the answer is an error only where the new session, or what was added to it, is not stored. Only
// that the session could not be tidied up is no failure of the request.
func TestStoredOnAFullDisk(t *testing.T) {
	line := func(i int) string {
		return fmt.Sprintf(`{"type":"message","id":"m%d","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z",`+
			`"message":{"role":"user","content":"x"}}`+"\n", i)
	}
	file := `{"type":"session","version":3,"id":"f","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}` + "\n" + line(0)
	grown := file + line(1) + line(2)
	stream := "Content-Type: application/octet-stream"
	type test struct {
		before        string // imported before
		path, body    string
		header        string
		status        int
		made          string // session
		entries, full int    // of it; full: requests that succeed on a full disk
	}
	for name, tt := range map[string]*test{
		"import": {"", "/v1/import", grown, stream, 200, "f", 3, 0},
		"grow":   {file, "/v1/import", grown, stream, 200, "f", 3, 0},
		"fork":   {grown, "/v1/sessions/f/fork", `{"id":"k"}`, "If-Match: *", 201, "k", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			for n := range 20 { // writes that succeed
				s, b := newFaulty(t, memory.NewAppender())
				if tt.before != "" {
					s.do("POST", "/v1/import", tt.before, stream).want(t, 200)
				}
				b.Add(fault.Rule{
					When: func(c fault.Call) bool { return c.Op == "put" || c.Op == "append" },
					Skip: n, Count: -1, Outcome: backend.NotApplied, Err: syscall.ENOSPC,
				})
				r := s.do("POST", tt.path, tt.body, tt.header)
				faults := len(b.Faults())
				b.Clear()
				var list struct{ Entries []json.RawMessage }
				now := s.do("GET", "/v1/sessions/"+tt.made+"/entries?path=all", "")
				if now.StatusCode == http.StatusOK {
					if err := json.Unmarshal(now.body, &list); err != nil {
						t.Fatal(err)
					}
				}
				if stored := len(list.Entries) == tt.entries; stored != (r.StatusCode == tt.status) {
					t.Errorf("write %d: %d entries are stored, %d %s", n, len(list.Entries), r.StatusCode, r.body)
				}
				if faults == 0 {
					break
				}
				if r.StatusCode == tt.status {
					tt.full++
				}
			}
			if tt.full == 0 {
				t.Error("no request succeeds on a full disk")
			}
		})
	}
}

// A commit whose answer was lost is 504, with its id and the advice to send it again; sent again it is stored once.
// Other requests are not affected: the very next commit of another client goes through.
func TestOutcomeUnknown(t *testing.T) {
	for name, below := range map[string]func() backend.Backend{
		"append":  func() backend.Backend { return memory.NewAppender() },
		"replace": func() backend.Backend { return memory.New() },
	} {
		for _, kind := range []fault.Kind{fault.After, fault.Late} {
			t.Run(fmt.Sprintf("%s %s", name, kind), func(t *testing.T) {
				t.Parallel()
				s, b := newFaulty(t, below())
				s.create("s")
				s.do("POST", commits, hello("a"), "If-Match: *").want(t, 200)
				for _, op := range []string{"put", "append"} {
					b.Add(fault.Rule{When: fault.On(op, ""), Kind: kind, Count: -1})
				}
				b.Add(fault.Rule{When: fault.On("get", ""), Kind: fault.Before, Count: -1})
				lost := s.do("POST", commits, hello("b"), "If-Match: *", "Idempotency-Key: k")
				if p := lost.want(t, 504); p["commit"] == nil || p["code"] != "outcome-unknown" || lost.Header.Get("Retry-After") == "" {
					t.Errorf("%s", lost.body)
				}
				b.Clear()
				s.do("POST", commits, hello("c"), "If-Match: *").want(t, 200)
				s.do("POST", commits, hello("b"), "If-Match: *", "Idempotency-Key: k").want(t, 200)
				b.Deliver(t.Context())
				if n := count(t, s, "b"); n != 1 {
					t.Errorf("stored %d times", n)
				}
			})
		}
	}
}

// A commit whose answer was lost, and of which the server can find out whether it is stored, is answered as any other.
func TestLostAnswerIsSettled(t *testing.T) {
	for name, below := range map[string]func() backend.Backend{
		"append":  func() backend.Backend { return memory.NewAppender() },
		"replace": func() backend.Backend { return memory.New() },
	} {
		for _, kind := range []fault.Kind{fault.After, fault.Late} {
			t.Run(fmt.Sprintf("%s %s", name, kind), func(t *testing.T) {
				s, b := newFaulty(t, below())
				s.create("s")
				first := s.do("POST", commits, hello("a"), "If-Match: *")
				for _, op := range []string{"put", "append"} {
					b.Add(fault.Rule{When: fault.On(op, ""), Kind: kind, Count: 1})
				}
				r := s.do("POST", commits, hello("b"), "If-Match: "+first.etag())
				if ids := r.want(t, 200)["entries"].([]any); len(ids) != 1 {
					t.Errorf("%s", r.body)
				}
				b.Clear()
				b.Deliver(t.Context())
				s.do("POST", commits, hello("c"), "If-Match: "+r.etag()).want(t, 200)
				if n := count(t, s, "b"); n != 1 {
					t.Errorf("stored %d times", n)
				}
			})
		}
	}
}

// count returns how often a text is stored in the session s.
func count(t testing.TB, s *site, text string) (n int) {
	t.Helper()
	h, err := s.st.Open(t.Context(), "s", &coppice.SessionOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close() }()
	for e, err := range h.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Raw), `"`+text+`"`) {
			n++
		}
	}
	return n
}

// Clients of two servers on one store send turns of two entries each, cancel at random, and send again with the same
// key until they have an answer: each turn is stored once, its entries side by side, nothing of another's between. Only
// a client's own request, of which it did not wait for the answer, can be in the way of its next one.
func TestCancelledClients(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		sites := []*site{newSite(t, url), newSite(t, url)}
		sites[0].create("s")
		const clients, turns = 4, 12
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(7, uint64(c)))
				for i := range turns {
					body := fmt.Sprintf(`{"entries":[{"role":"user","content":"q%d.%d"},{"role":"assistant","content":"a%d.%d"}],`+
						`"onConflict":"keep-both"}`, c, i, c, i)
					for try := 0; ; try++ {
						if try == 10_000 { // some seconds: the first request ended long ago
							t.Errorf("client %d, turn %d: no answer", c, i)
							return
						}
						ctx, cancel := context.WithCancel(t.Context())
						leaves := rnd.IntN(2) == 0 && try < 3
						if leaves {
							go cancel() // at any time of the request, or after it
						}
						r, err := sites[rnd.IntN(2)].try(ctx, "POST", commits, body, "If-Match: *",
							fmt.Sprintf("Idempotency-Key: %d.%d", c, i))
						cancel()
						if err == nil && r.StatusCode == http.StatusOK {
							break
						}
						if err == nil || !leaves {
							t.Errorf("client %d, turn %d, try %d: %v %s", c, i, try, err, r.body)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		h, err := sites[0].st.Open(t.Context(), "s", &coppice.SessionOptions{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = h.Close() }()
		parents, seen := map[string]string{}, map[string]int{}
		for e, err := range h.Entries(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			var line struct {
				ID       string
				ParentID string `json:"parentId"`
				Message  struct{ Content string }
			}
			if err := json.Unmarshal(e.Raw, &line); err != nil {
				t.Fatal(err)
			}
			if line.Message.Content == "" {
				continue
			}
			seen[line.Message.Content]++
			parents[line.ID] = line.Message.Content
			if q, ok := strings.CutPrefix(line.Message.Content, "a"); ok && parents[line.ParentID] != "q"+q {
				t.Errorf("%s grows from %q", line.Message.Content, parents[line.ParentID])
			}
		}
		for c := range clients {
			for i := range turns {
				for _, kind := range "qa" {
					if n := seen[fmt.Sprintf("%c%d.%d", kind, c, i)]; n != 1 {
						t.Errorf("%c%d.%d is stored %d times", kind, c, i, n)
					}
				}
			}
		}
	})
}

// A follower gets at once what this process commits and streams, however seldom the store is asked for commits of
// others. Only commits have an id. One that resumes after a commit that the session has not is told to begin again.
func TestEventsOfPartials(t *testing.T) {
	st, err := coppice.New(memory.New(), &coppice.Options{Poll: 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	s := siteOn(t, st)
	s.create("s")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/sessions/s/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Last-Event-ID", "7") // of another copy of the store
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	in := bufio.NewScanner(resp.Body)
	next := func() string {
		var lines []string
		for in.Scan() && (in.Text() != "" || len(lines) == 0) {
			if in.Text() != "" && in.Text() != ": " {
				lines = append(lines, in.Text())
			}
		}
		return strings.Join(lines, "\n")
	}
	is := func(want string) {
		t.Helper()
		if got := next(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	is("retry: 1000")
	is("event: reset\ndata: null")
	is("id: 0")
	const half = `{"role":"assistant","content":"so f"}`
	s.do("POST", "/v1/sessions/s/partial", `{"partial":`+half+`}`).want(t, 204)
	is("event: partial\ndata: " + half)
	s.do("POST", commits, hello("so far"), "If-Match: *").want(t, 200)
	commit := next()
	if strings.HasPrefix(commit, "event: partial") { // that nothing is streamed any more comes before or after the commit
		commit = next()
	} else {
		is("event: partial\ndata: null")
	}
	if !strings.HasPrefix(commit, "event: commit\nid: 1\ndata: {\"seq\":1,") {
		t.Errorf("%q", commit)
	}
}

// A stream ends when its time is over, in a way that clients take for its end, and resumes after the last event.
func TestStreamsEnd(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	server.SetStreamed(s.srv, time.Millisecond)
	for i := range 3 {
		s.do("POST", commits, hello("x"), "If-Match: *").want(t, 200)
		r := s.do("GET", "/v1/sessions/s/events", "", fmt.Sprintf("Last-Event-ID: %d", i)) // reads to its end
		if r.want(t, 200); strings.Count(string(r.body), "event: commit") != 1 || !strings.Contains(string(r.body), fmt.Sprintf("id: %d\n", i+1)) {
			t.Errorf("%s", r.body)
		}
	}
}

// Followers of a session share one watch: a commit is read once, however many there are.
func TestFollowersShareAWatch(t *testing.T) {
	if io := costOfFollowers(t, 100); io.Get > 1 || io.Put != 1 {
		t.Errorf("a commit that a hundred follow costs %+v: want one write, and at most one read by the watch", io)
	}
}

func costOfFollowers(t *testing.T, followers int) backend.IO {
	t.Helper()
	b := trace.New(memory.New())
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv)
	defer h.Close()
	defer srv.EndStreams()
	s := &site{t, h.URL, st, srv}
	s.create("s")
	s.do("POST", commits, hello("x"), "If-Match: *").want(t, 200)
	var list []*bufio.Scanner
	for range followers {
		list = append(list, bufio.NewScanner(s.stream("/v1/sessions/s/events?after=0")))
	}
	each := func(id string) {
		for _, sc := range list {
			for sc.Scan() && sc.Text() != "id: "+id {
				if strings.HasPrefix(sc.Text(), "id: ") {
					t.Fatalf("%s, want id: %s", sc.Text(), id)
				}
			}
		}
	}
	each("0") // where the stream begins
	each("1")
	s.do("POST", commits, hello("y"), "If-Match: *").want(t, 200)
	each("2")
	before := b.IO()
	s.do("POST", commits, hello("z"), "If-Match: *").want(t, 200)
	each("3")
	return b.IO().Sub(before)
}

// A long poll after a commit that the session has not is answered at once, as a stream is; one after the newest waits.
func TestPollIsReset(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		s.do("POST", commits, hello("one"), "If-Match: *").want(t, 200)
		const poll = "/v1/sessions/s/events?wait=60&after="
		doc := s.do("GET", poll+"7", "").want(t, 200)
		if doc["reset"] != true || doc["next"] != "1" || len(doc["commits"].([]any)) != 0 {
			t.Errorf("%v", doc)
		}
		if doc := s.do("GET", poll+"0", "").want(t, 200); doc["reset"] != nil || doc["next"] != "1" {
			t.Errorf("%v", doc)
		}
	})
}

// A list of sessions has what was committed before it: in its order, in what it chooses by, and in what it shows, while
// the writer continues, and on another server too.
func TestListIsNow(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		other := newSite(t, url)
		for _, id := range []string{"a", "b"} {
			s.create(id)
		}
		s.do("POST", "/v1/sessions/a/commits", hello("hello cafe\u0301"), "If-Match: *").want(t, 200)
		s.do("PATCH", "/v1/sessions/a", `{"title":"renamed","meta":{"k":"v"}}`, "If-Match: *").want(t, 200)
		for name, on := range map[string]*site{"the same": s, "another": other} {
			for query, want := range map[string]string{
				"": "a b", "?q=renamed": "a", "?q=hello": "a", "?q=caf%C3%A9": "a", "?meta.k=v": "a", "?limit=1": "a",
			} {
				var ids []string
				doc := on.do("GET", "/v1/sessions"+query, "").want(t, 200)
				for _, item := range doc["sessions"].([]any) {
					m := item.(map[string]any)
					ids = append(ids, m["id"].(string))
					if m["id"] == "a" && (m["title"] != "renamed" || m["seq"] != 2.0 || m["entries"] == 0.0) {
						t.Errorf("%s server, %q: %v", name, query, m)
					}
				}
				if got := strings.Join(ids, " "); got != want {
					t.Errorf("%s server, %q: %s, want %s", name, query, got, want)
				}
			}
		}
	})
}
