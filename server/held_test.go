package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
)

// held is a site whose store can hold a commit.
type held struct {
	*site
	*holding
	asked chan *http.Request
}

// holding is a store that holds the next commit once it is armed.
type holding struct {
	backend.Backend
	armed atomic.Bool
	begun chan struct{} // closed when a commit waits
	goOn  chan struct{} // to be closed
}

func (b *holding) Put(ctx context.Context, key string, p []byte, c backend.Cond) (backend.Info, error) {
	if strings.HasPrefix(key, "checkpoint_latest/") && b.armed.CompareAndSwap(true, false) {
		close(b.begun)
		<-b.goOn
	}
	return b.Backend.Put(ctx, key, p, c)
}

// newHeld returns such a site. Each request that has the header Watched is sent to asked.
func newHeld(t *testing.T) held {
	t.Helper()
	h := held{
		holding: &holding{Backend: memory.New(), begun: make(chan struct{}), goOn: make(chan struct{})},
		asked:   make(chan *http.Request, 1),
	}
	st, err := coppice.New(h.holding, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Watched") != "" {
			h.asked <- r
		}
		srv.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		web.Close()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		_ = st.Close()
	})
	h.site = &site{t, web.URL, st, srv}
	return h
}

// A request with a key whose commit is under way waits for it, and gets its answer. A key belongs to its session: in
// another one it is another key.
func TestKeyInFlight(t *testing.T) {
	s := newHeld(t)
	s.create("s")
	s.create("other")
	s.armed.Store(true)
	var wg sync.WaitGroup
	answers := make([]reply, 2)
	send := func(i int) {
		wg.Go(func() {
			var err error
			answers[i], err = s.try(t.Context(), "POST", commits, hello("slow"), "If-Match: *", "Idempotency-Key: k")
			if err != nil {
				t.Error(err)
			}
		})
	}
	send(0)
	<-s.begun
	send(1)
	s.do("POST", "/v1/sessions/other/commits", hello("x"), "If-Match: *", "Idempotency-Key: k").want(t, 200)
	close(s.goOn)
	wg.Wait()
	first, again := answers[0].want(t, 200), answers[1].want(t, 200)
	if again["commit"] != first["commit"] || again["repeated"] != true || first["repeated"] != nil {
		t.Errorf("%v, again %v", first, again)
	}
}

// A commit that has begun is stored, though its client left before its end.
func TestCommitOutlivesItsClient(t *testing.T) {
	s := newHeld(t)
	s.create("s")
	s.armed.Store(true)
	ctx, leave := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if r, err := s.try(ctx, "POST", commits, hello("slow"), "If-Match: *", "Watched: yes"); err == nil {
			t.Errorf("the client got %s", r.body)
		}
	})
	<-s.begun
	leave()
	wg.Wait()
	<-(<-s.asked).Context().Done() // the server knows that the client is gone
	close(s.goOn)
	// The next write waits for the handle: it comes after the commit.
	if doc := s.do("POST", commits, hello("next"), "If-Match: *").want(t, 200); doc["seq"] != 2.0 {
		t.Errorf("the next commit is %v: that of the client which left is not stored", doc["seq"])
	}
}

// gatedBackend is one whose reads of segments wait at a gate, if there is one.
type gatedBackend struct {
	backend.Backend
	mu   sync.Mutex
	gate *gate
}

type gate struct{ reached, open chan struct{} }

// close makes the next read of a segment wait until the gate is opened.
func (b *gatedBackend) close() *gate {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gate = &gate{make(chan struct{}), make(chan struct{})}
	return b.gate
}

func (b *gatedBackend) Get(ctx context.Context, key string, r backend.Range) ([]byte, backend.Info, error) {
	b.mu.Lock()
	g := b.gate
	if g != nil && strings.Contains(key, "/transcript/") {
		b.gate = nil
	} else {
		g = nil
	}
	b.mu.Unlock()
	if g != nil {
		close(g.reached)
		<-g.open
	}
	return b.Backend.Get(ctx, key, r)
}

// The ETag of what was read is that of the session before the read: a commit that comes meanwhile, and that another
// request shows, is not in the body.
func TestTagIsNotNewerThanTheBody(t *testing.T) {
	b := &gatedBackend{Backend: memory.New()}
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	s := siteOn(t, st)
	s.create("s")
	var first string
	for i := range 4 { // more than a segment
		doc := s.do("POST", commits, hello(fmt.Sprint(i, strings.Repeat("x", 1<<20))), "If-Match: *").want(t, 200)
		if i == 0 {
			first = doc["entries"].([]any)[0].(string)
		}
	}
	s.do("GET", "/v1/sessions/s/branches", "").want(t, 200) // the tree is read
	before := s.do("GET", "/v1/sessions/s", "").etag()
	g := b.close()
	var got reply
	var wg sync.WaitGroup
	wg.Go(func() { got, err = s.try(t.Context(), "GET", "/v1/sessions/s/entries/"+first, "") })
	<-g.reached
	s.do("POST", commits, hello("meanwhile"), "If-Match: *").want(t, 200)
	if now := s.do("GET", "/v1/sessions/s/branches", "").etag(); now == before {
		t.Error("the shared handle does not show the commit")
	}
	close(g.open)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if got.want(t, 200); got.etag() != before {
		t.Errorf("ETag %s, want %s", got.etag(), before)
	}
}

// A follower that comes back far behind another one, who keeps the feed of the session alive, misses nothing: the feed
// has the newest 64 commits, and the others are read from the store.
func TestFollowerFarBehind(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	const total = 80
	follow := func() *bufio.Scanner {
		return bufio.NewScanner(s.stream("/v1/sessions/s/events?after=0"))
	}
	all := func(in *bufio.Scanner) {
		t.Helper()
		want := 0 // where the stream begins
		for want <= total && in.Scan() {
			if id, ok := strings.CutPrefix(in.Text(), "id: "); ok {
				if id != fmt.Sprint(want) {
					t.Fatalf("id %s, want %d", id, want)
				}
				want++
			}
		}
	}
	there := follow()
	for i := range total {
		s.do("POST", commits, hello(fmt.Sprint(i)), "If-Match: *").want(t, 200)
	}
	all(there)
	all(follow())
}

// The first page has no prev, also where a client comes back to it.
func TestFirstPageHasNoPrev(t *testing.T) {
	s := newSite(t, "mem:")
	longer(s, 12)
	page := func(query string) map[string]any {
		return s.do("GET", "/v1/sessions/s/entries?limit=5"+query, "").want(t, 200)
	}
	first := page("")
	second := page(fmt.Sprint("&after=", first["next"]))
	back := page(fmt.Sprint("&before=", second["prev"]))
	if first["prev"] != nil || back["prev"] != nil {
		t.Errorf("prev of the first page: %v; on the way back: %v", first["prev"], back["prev"])
	}
	if fmt.Sprint(back["entries"]) != fmt.Sprint(first["entries"]) || back["next"] != first["next"] {
		t.Errorf("the first page on the way back is %v", back)
	}
}
