package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/integration/faultproxy"
	"github.com/coppice-go/coppice/internal/proof"
	"github.com/coppice-go/coppice/internal/trace"
	"github.com/coppice-go/coppice/server"
)

// served starts a server on a store. It ends with the test.
func served(t *testing.T, b backend.Backend) string {
	t.Helper()
	url, end := serve(t, b)
	t.Cleanup(end)
	return url
}

// serve starts a server on a store. end ends it as a signal does: it completes the requests under way.
func serve(t *testing.T, b backend.Backend) (url string, end func()) {
	t.Helper()
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv)
	return h.URL, func() {
		srv.EndStreams()
		h.Close()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// request sends a request to a server, and returns the status and the body of the answer.
func request(t *testing.T, method, url, body string, headers ...string) (int, []byte) {
	status, raw, err := try(t, method, url, body, headers...)
	if err != nil {
		t.Error(err)
	}
	return status, raw
}

func try(t *testing.T, method, url, body string, headers ...string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, raw, err
}

const (
	serveSessions = 2
	serveClients  = 3
	serveTries    = 500 // of a turn
)

// Two servers share a store, and one of them is behind a network that refuses requests and loses answers, of one
// conditional PUT in four. Three clients commit to two sessions through both, each turn with a key until it is
// acknowledged, and then sometimes once more through the other server. Each turn is stored once, with the commit of its
// acknowledgement.
func TestProofServeS3(t *testing.T) {
	r := proof.Begin(t, "serve-s3")
	w := newWorld(t)
	urls := []string{served(t, w.direct), served(t, w.faulty)}
	for i := range serveSessions {
		url := fmt.Sprintf("%s/v1/sessions/shared-%d", urls[0], i)
		if status, body := request(t, http.MethodPut, url, `{}`, "If-None-Match: *"); status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	w.proxy.Decide(func(req *http.Request) faultproxy.Fault {
		if !faultproxy.Conditional(req) || rng.IntN(4) > 0 {
			return faultproxy.Fault{}
		}
		return []faultproxy.Fault{
			{Kind: faultproxy.LoseAnswer},
			{Kind: faultproxy.LoseRequest},
			{Kind: faultproxy.CutAnswer},
			{Kind: faultproxy.Refuse, Status: 503, Code: "SlowDown"},
		}[rng.IntN(4)]
	})
	c := &sharers{t: t, r: r, seed: seed, acked: map[string]map[string]string{}}
	for i := range urls {
		c.urls[i].Store(&urls[i])
	}
	var all sync.WaitGroup
	for i := range serveClients {
		all.Go(func() { c.commit(i, proof.Pick(t, 15, 60, 2000)) })
	}
	all.Wait()
	w.proxy.Decide(nil)
	c.check(w.direct)
	r.Figure("repeated", c.repeated)
	r.Figure("conflicts", c.conflicts)
	faults := 0
	for _, e := range w.proxy.Log() {
		if e.Fault.Kind != faultproxy.None {
			faults++
		}
	}
	r.Figure("faults", faults)
}

const (
	rollClients = 6
	rollTurns   = 10 // minimum acknowledged between two restarts
)

// Two servers of one bucket are restarted alternately and repeatedly, while clients commit through both: a server that
// is ended by a signal completes the requests under way, and a client whose request was cut off sends it again, with
// its key, to either. No turn is lost, and none is stored twice.
func TestProofServeRolling(t *testing.T) {
	r := proof.Begin(t, "serve-rolling")
	w := newWorld(t)
	c := &sharers{t: t, r: r, seed: rand.Uint64(), cut: true, acked: map[string]map[string]string{}}
	t.Logf("seed %d", c.seed)
	var ends [2]func()
	start := func(i int) {
		url, end := serve(t, w.direct)
		c.urls[i].Store(&url)
		ends[i] = end
	}
	start(0)
	start(1)
	for i := range serveSessions {
		url := fmt.Sprintf("%s/v1/sessions/shared-%d", *c.urls[0].Load(), i)
		if status, body := request(t, http.MethodPut, url, `{}`, "If-None-Match: *"); status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
	}
	var all sync.WaitGroup
	for i := range rollClients {
		all.Go(func() { c.commit(i, math.MaxInt) })
	}
	for n := range proof.Pick(t, 4, 12, 400) {
		c.progress(rollTurns)
		ends[n%2]()
		start(n % 2)
		r.Explored(1)
	}
	c.progress(rollTurns)
	c.over.Store(true)
	all.Wait()
	for _, end := range ends {
		end()
	}
	c.check(w.direct)
	acked := 0
	for _, turns := range c.acked {
		acked += len(turns)
	}
	r.Figure("acknowledged", acked)
	r.Figure("repeated", c.repeated)
}

// progress waits until the clients have received more answers.
func (c *sharers) progress(turns int64) {
	for want, begun := c.answers.Load()+turns, time.Now(); c.answers.Load() < want; time.Sleep(time.Millisecond) {
		if time.Since(begun) > time.Minute {
			c.r.Violation("seed %d: fewer than %d answers in a minute", c.seed, turns)
			return
		}
	}
}

// sharers are the clients, and their answers.
type sharers struct {
	t    *testing.T
	r    *proof.Report
	seed uint64
	urls [2]atomic.Pointer[string] // of the servers
	over atomic.Bool               // they commit no more turns
	cut  bool                      // a broken connection is no violation

	answers atomic.Int64

	mu                  sync.Mutex
	acked               map[string]map[string]string // by session: turn to commit
	repeated, conflicts int
}

func (c *sharers) commit(who, turns int) {
	rng := rand.New(rand.NewPCG(c.seed, uint64(who)+1))
	for n := 0; n < turns && !c.over.Load(); n++ {
		session, name := fmt.Sprintf("shared-%d", rng.IntN(serveSessions)), fmt.Sprintf("%d.%d", who, n)
		body := fmt.Sprintf(`{"entries":[{"role":"user","content":%q}],"state":{"turn":%q}}`, name, name)
		for again := rng.IntN(4) == 0; ; again = false {
			if !c.turn(rng, session, name, body) {
				return
			}
			if !again {
				break
			}
		}
		c.r.Explored(1)
	}
}

// turn sends a turn until it is acknowledged.
func (c *sharers) turn(rng *rand.Rand, session, name, body string) bool {
	for range serveTries {
		url := *c.urls[rng.IntN(2)].Load() + "/v1/sessions/" + session + "/commits"
		status, raw, err := try(c.t, http.MethodPost, url, body, "If-Match: *", "Idempotency-Key: "+name)
		if err != nil && c.cut {
			continue
		}
		var got struct {
			Commit   string
			Repeated bool
		}
		again := []int{http.StatusConflict, http.StatusPreconditionFailed, http.StatusServiceUnavailable}
		c.mu.Lock()
		switch {
		case status == http.StatusOK && json.Unmarshal(raw, &got) == nil:
			if c.acked[session] == nil {
				c.acked[session] = map[string]string{}
			}
			if was := c.acked[session][name]; was != "" && was != got.Commit {
				c.r.Violation("seed %d: turn %s was acknowledged by %s, and then by %s", c.seed, name, was, got.Commit)
			}
			c.acked[session][name] = got.Commit
			if got.Repeated {
				c.repeated++
			}
			c.mu.Unlock()
			c.answers.Add(1)
			return true
		case status == http.StatusPreconditionFailed:
			c.conflicts++
		}
		c.mu.Unlock()
		if !slices.Contains(again, status) {
			c.r.Violation("seed %d: turn %s: %d %s %v", c.seed, name, status, raw, err)
			return false
		}
	}
	c.r.Violation("seed %d: turn %s was not acknowledged in %d tries", c.seed, name, serveTries)
	return false
}

// check compares the sessions with the acknowledgements.
func (c *sharers) check(b backend.Backend) {
	st, err := coppice.New(b, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	for session, acked := range c.acked {
		s, err := st.Open(c.t.Context(), session, &coppice.SessionOptions{ReadOnly: true})
		if err != nil {
			c.t.Fatal(err)
		}
		have := map[string][]string{}
		for ch, err := range s.Watch(c.t.Context(), 0) {
			if err != nil {
				c.t.Fatal(err)
			}
			for _, e := range ch.Entries {
				if m, ok := e.Message(); ok {
					have[m.Text()] = append(have[m.Text()], ch.Commit.Commit)
				}
			}
			if ch.Commit.Seq == s.Head().Seq {
				break
			}
		}
		for name, commit := range acked {
			if got := have[name]; len(got) != 1 || got[0] != commit {
				c.r.Violation("seed %d: %s: turn %s was acknowledged by %s and stands in %v", c.seed, session, name, commit, got)
			}
		}
		if len(have) != len(acked) {
			c.r.Violation("seed %d: %s: %d turns are stored, %d were acknowledged", c.seed, session, len(have), len(acked))
		}
		if err := s.Close(); err != nil {
			c.t.Error(err)
		}
	}
	report, err := st.Verify(c.t.Context(), "", true)
	if err != nil || len(report.Problems) > 0 {
		c.r.Violation("seed %d: verify: %v, %v", c.seed, report.Problems, err)
	}
}

// The S3 requests of a server: a turn is one write, and no read while the session is open; a resume is one read.
func TestRequestsOfTheServer(t *testing.T) {
	w := newWorld(t)
	b := trace.New(w.direct)
	url := served(t, b) + "/v1/sessions/s"
	if status, body := request(t, http.MethodPut, url, `{}`, "If-None-Match: *"); status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	turn := func() {
		t.Helper()
		status, body := request(t, http.MethodPost, url+"/commits", `{"entries":[{"role":"user","content":"hello"}]}`, "If-Match: *")
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
	}
	cost := func(f func()) backend.IO {
		t.Helper()
		before := b.IO()
		f()
		io := b.IO().Sub(before)
		io.BytesRead, io.BytesWritten = 0, 0
		return io
	}
	if got := cost(turn); got != (backend.IO{Get: 1, Put: 1}) {
		t.Errorf("the first turn, which opens the session: %+v", got)
	}
	for range 5 {
		if got := cost(turn); got != (backend.IO{Put: 1}) {
			t.Errorf("a turn: %+v", got)
		}
	}
	if got := cost(func() {
		if status, body := request(t, http.MethodGet, url+"/resume", ""); status != http.StatusOK {
			t.Errorf("%d %s", status, body)
		}
	}); got != (backend.IO{Get: 1}) {
		t.Errorf("resume: %+v", got)
	}
}
