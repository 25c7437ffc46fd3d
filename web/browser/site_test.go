package browser

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/examples/session"
	"github.com/coppice-go/coppice/internal/cli/demostore"
	"github.com/coppice-go/coppice/server"
	"github.com/coppice-go/coppice/transcript"
)

// site is a server of the viewer, and what it was asked for.
type site struct {
	t     testing.TB
	store *coppice.Store
	url   string
	conns *conns

	mu    sync.Mutex
	asked []string       // method, path and query of each request, in order
	under map[string]int // requests whose answer has not ended
	held  func(request string) bool
	away  func(request string) bool
	lost  func(request string) bool
	gone  chan struct{} // closed when requests are no longer held
}

// newSite serves a store until the test ends.
func newSite(t testing.TB, st *coppice.Store, set ...func(*server.Options)) *site {
	t.Helper()
	o := server.Options{Store: st}
	for _, f := range set {
		f(&o)
	}
	srv, err := server.New(o)
	ok(t, err)
	s := &site{t: t, store: st, conns: &conns{open: map[net.Conn]bool{}}, under: map[string]int{}}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	s.conns.Listener = listener
	web := &httptest.Server{Listener: s.conns, Config: &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			end := s.note(r)
			defer end()
			switch {
			case s.isAway(r):
				w.WriteHeader(http.StatusServiceUnavailable)
			case s.loses(r):
				srv.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			default:
				srv.ServeHTTP(w, r)
			}
		}),
		ReadHeaderTimeout: time.Minute,
	}}
	web.Start()
	s.url = web.URL
	t.Cleanup(func() {
		srv.EndStreams()
		s.cut()
		web.Close()
		ok(t, srv.Close())
	})
	return s
}

// note keeps a request, and waits if it is held. It returns what is called after the answer.
func (s *site) note(r *http.Request) (end func()) {
	request := r.Method + " " + r.URL.RequestURI()
	s.mu.Lock()
	s.asked = append(s.asked, request)
	var gone chan struct{}
	if s.held != nil && s.held(request) {
		gone = s.gone
	}
	s.under[request]++
	s.mu.Unlock()
	if gone != nil {
		select {
		case <-gone:
		case <-r.Context().Done():
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.under[request]--; s.under[request] == 0 {
			delete(s.under, request)
		}
	}
}

// hold makes requests that a function chooses wait until release is called, or the test ends.
func (s *site) hold(choose func(request string) bool) (release func()) {
	gone := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.gone = choose, gone
	release = sync.OnceFunc(func() { close(gone) })
	s.t.Cleanup(release)
	return release
}

// isAway reports whether a request is answered as by a proxy whose server is away.
func (s *site) isAway(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away != nil && s.away(r.Method+" "+r.URL.RequestURI())
}

// refuse makes requests that a function chooses fail. nil = none.
func (s *site) refuse(choose func(request string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = choose
}

// lose makes requests that a function chooses take effect, and cuts the connection in place of the answer. nil = none.
func (s *site) lose(choose func(request string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = choose
}

func (s *site) loses(r *http.Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost != nil && s.lost(r.Method+" "+r.URL.RequestURI())
}

// traffic returns how many requests there were, those whose answer has not ended, and how many streams of events there are.
func (s *site) traffic() (all int, under []string, streams int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for request, n := range s.under {
		if strings.Contains(request, "/events?") {
			streams += n
		} else {
			under = append(under, request)
		}
	}
	return len(s.asked), under, streams
}

// requests returns what was asked for so far whose method, path and query contain all words.
func (s *site) requests(words ...string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
next:
	for _, r := range s.asked {
		for _, w := range words {
			if !strings.Contains(r, w) {
				continue next
			}
		}
		list = append(list, r)
	}
	return list
}

// readOnly refuses writes.
func readOnly(o *server.Options) { o.ReadOnly = true }

// readers allows everyone to read, and no one to write.
func readers(o *server.Options) {
	o.Authorize = func(*http.Request) (server.Access, error) { return server.Access{Rights: server.Read}, nil }
}

// forget drops what was asked for.
func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = nil
}

// cut closes every connection.
func (s *site) cut() { s.conns.cut() }

// open opens a session for reading, as another program would.
func (s *site) open(id string) *coppice.Session {
	s.t.Helper()
	h, err := s.store.Open(s.t.Context(), id, &coppice.SessionOptions{ReadOnly: true})
	ok(s.t, err)
	return h
}

// head returns the newest commit of a session.
func (s *site) head(id string) checkpoint.Head {
	s.t.Helper()
	h := s.open(id)
	defer func() { ok(s.t, h.Close()) }()
	return h.Head()
}

// path returns the ids of the entries from an entry ("" = the head) to the root.
func (s *site) path(id, entry string) (ids []string) {
	s.t.Helper()
	h := s.open(id)
	defer func() { ok(s.t, h.Close()) }()
	for e, err := range h.Path(s.t.Context(), entry) {
		ok(s.t, err)
		ids = append(ids, e.ID)
	}
	return ids
}

// prompts returns the ids of a line's entries that are a message with one text of the user, by that text.
func (s *site) prompts(id string) map[string]string {
	s.t.Helper()
	h := s.open(id)
	defer func() { ok(s.t, h.Close()) }()
	ids := map[string]string{}
	for e, err := range h.Path(s.t.Context(), "") {
		ok(s.t, err)
		var m struct {
			Message struct {
				Role    string
				Content []struct{ Text string }
			}
		}
		if json.Unmarshal(e.Raw, &m) == nil && m.Message.Role == "user" && len(m.Message.Content) == 1 {
			ids[m.Message.Content[0].Text] = e.ID
		}
	}
	return ids
}

// conns are the connections of a server, so that they can be cut.
type conns struct {
	net.Listener
	mu   sync.Mutex
	open map[net.Conn]bool
}

func (c *conns) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := &closing{Conn: conn, of: c}
	c.open[counted] = true
	return counted, nil
}

func (c *conns) cut() {
	c.mu.Lock()
	list := make([]net.Conn, 0, len(c.open))
	for conn := range c.open {
		list = append(list, conn)
	}
	c.mu.Unlock()
	for _, conn := range list {
		_ = conn.Close()
	}
}

type closing struct {
	net.Conn
	of *conns
}

func (c *closing) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// stored returns a store on a backend until the test ends.
func stored(t testing.TB, b backend.Backend) *coppice.Store {
	t.Helper()
	st, err := coppice.New(b, &coppice.Options{Writer: "tester:1"})
	ok(t, err)
	t.Cleanup(func() { ok(t, st.Close()) })
	return st
}

// bundled is the session of 305 entries that comes with the repository.
const bundled = "019cadab-3a54-7c1e-9d42-6f0e8b7a51c3"

// newest is the last message of the bundled session.
const newest = "Then the sea has read its table. Have a good sail, both of you."

// withBundled serves a store that has the bundled session alone.
func withBundled(t testing.TB, set ...func(*server.Options)) *site {
	t.Helper()
	st := stored(t, memory.New())
	imported(t, st)
	return newSite(t, st, set...)
}

func imported(t testing.TB, st *coppice.Store) {
	t.Helper()
	h, err := st.Import(t.Context(), func(yield func(transcript.Draft, error) bool) {
		for line := range strings.Lines(string(session.JSONL())) {
			if !yield(transcript.Draft{Raw: []byte(strings.TrimSpace(line))}, nil) {
				return
			}
		}
	}, &coppice.SessionOptions{ID: bundled})
	ok(t, err)
	ok(t, h.Close())
}

// demo is a site that serves the demo store.
type demo struct{ *site }

// withDemo serves the store of `coppice serve --demo`.
func withDemo(t testing.TB, set ...func(*server.Options)) *demo {
	t.Helper()
	b, err := demoStore()
	ok(t, err)
	return &demo{newSite(t, stored(t, b.Crash(0)), set...)}
}

// demoStore makes the demo store once. Crash copies it: no write is outstanding.
var demoStore = sync.OnceValues(func() (*memory.Backend, error) {
	b := memory.New()
	return b, demostore.Build(context.Background(), b)
})

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// within returns a context that ends after a time, which only a test that fails needs.
func within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

func drafts(d ...transcript.Draft) []transcript.Draft { return d }

// jsonText is a state that is stored as it is written.
func jsonText(text string) json.RawMessage { return json.RawMessage(text) }
