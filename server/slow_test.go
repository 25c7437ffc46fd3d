package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
	"github.com/coppice-go/coppice/transcript"
)

// brief makes the times of clients short: those that the tests wait for, and heartbeats by which they count time.
func brief(o *server.Options) { o.ReadTimeout, o.Heartbeat = 20*time.Millisecond, 10*time.Millisecond }

// partly sends a request of which only the beginning comes: by its head, the body has a thousand bytes.
func (s *site) partly(t *testing.T, method, path, body string, headers ...string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := s.dial(t)
	head := append([]string{method + " " + path + " HTTP/1.1", "Host: localhost", "Content-Length: 1000"}, headers...)
	if _, err := conn.Write([]byte(strings.Join(head, "\r\n") + "\r\n\r\n" + body)); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// status reads an answer and what follows, until the server closes the connection. 0 = there was no answer.
func status(t *testing.T, in *bufio.Reader) (status int, body string) {
	t.Helper()
	if resp, err := http.ReadResponse(in, nil); err == nil {
		raw, _ := io.ReadAll(resp.Body)
		status, body = resp.StatusCode, string(raw)
	}
	_, _ = io.Copy(io.Discard, in)
	return status, body
}

// A body that stops coming is given up, and so is its connection: nothing is stored, and nothing else waits.
func TestSlowBody(t *testing.T) {
	s := newSite(t, "mem:", brief)
	etag := s.create("s")
	for _, c := range []struct {
		method, path, header string
		status               int
	}{
		{"POST", commits, "If-Match: *", 408},
		{"PUT", "/v1/sessions/x", "If-None-Match: *", 408},
		{"PATCH", "/v1/sessions/s", "If-Match: *", 408},
		{"POST", "/v1/sessions/s/rollback", "If-Match: *", 408},
		{"POST", "/v1/import", "X-None: 1", 408},
		// Answered without the body, of which the connection still waits for the rest.
		{"POST", commits, "X-None: 1", 428},
		{"POST", commits, "Origin: https://evil.example", 403},
		{"POST", "/nowhere", "If-Match: *", 404},
		{"GET", "/v1/sessions/s", "X-None: 1", 200},
	} {
		_, in := s.partly(t, c.method, c.path, `{"`, c.header)
		got, body := status(t, in)
		if got != c.status {
			t.Errorf("%s %s, %s: %d %s", c.method, c.path, c.header, got, body)
		}
		if c.status == http.StatusRequestTimeout && !strings.Contains(body, `"code":"slow-body"`) {
			t.Errorf("%s", body)
		}
	}
	if r := s.do("GET", "/v1/sessions/s", ""); r.etag() != etag {
		t.Errorf("something was stored: %s, was %s", r.etag(), etag)
	}
	s.do("GET", "/v1/sessions/x", "").want(t, 404)
	s.do("POST", commits, hello("next"), "If-Match: *").want(t, 200)
}

// deadlines is a ResponseWriter that notes the deadlines for reading which are set on it.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// A body has a second more for each 64 KiB that came, however long it is, and no limit is left after it.
func TestBodyHasTimeByItsLength(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	const size = 4 << 20
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, commits,
		strings.NewReader(hello("a")+strings.Repeat(" ", size)))
	req.Host = "localhost"
	req.Header.Set("If-Match", "*")
	s.srv.ServeHTTP(w, req)
	if w.Code != http.StatusOK || len(w.set) < 3 {
		t.Fatalf("%d, %d deadlines: %s", w.Code, len(w.set), w.Body)
	}
	last := w.set[len(w.set)-1]
	if given := w.set[len(w.set)-2].Sub(w.set[0]); !last.IsZero() || given.Round(time.Second) != 64*time.Second {
		t.Errorf("%v more for 4 MiB, and then a deadline at %v", given, last)
	}
}

// beats reads a stream of events until so many heartbeats came, or a line that begins as given.
func beats(t *testing.T, in *bufio.Scanner, n int, until string) {
	t.Helper()
	for n > 0 && in.Scan() {
		switch {
		case until != "" && strings.HasPrefix(in.Text(), until):
			return
		case in.Text() == ": ":
			n--
		}
	}
	if err := in.Err(); err != nil || n > 0 || until != "" {
		t.Errorf("the stream ended %d heartbeats early, without %q: %v", n, until, err)
	}
}

// A stream lasts longer than a body may take, one too of a request with a body. It does not begin while the rest of a
// body is due, and is given up when that does not come.
func TestStreamOutlastsReadTimeout(t *testing.T) {
	s := newSite(t, "mem:", brief)
	s.create("s")
	const path = "/v1/sessions/s/events"
	var streams []*bufio.Scanner
	for _, body := range []string{"", strings.Repeat(" ", 1000)} {
		var in *bufio.Reader
		if body == "" {
			conn := s.dial(t)
			_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
			in = bufio.NewReader(conn)
		} else {
			_, in = s.partly(t, "GET", path, body)
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		streams = append(streams, bufio.NewScanner(resp.Body))
	}
	for _, in := range streams {
		beats(t, in, 10, "") // 100 ms
	}
	_, half := s.partly(t, "GET", path, "half a body")
	status(t, half) // returns when the server has closed the connection
	s.do("POST", commits, hello("still there"), "If-Match: *").want(t, 200)
	for _, in := range streams {
		beats(t, in, 1<<20, "id: 1")
	}
}

// The limit ends with the body: a request that waits for its turn after it is not cancelled, nor is the next one on its
// connection.
func TestReadTimeoutEndsWithTheBody(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	st, err := coppice.New(memory.New(), &coppice.Options{Hooks: coppice.Hooks{
		BeforeAppend: func(_ context.Context, d *transcript.Draft) error {
			if strings.Contains(string(d.Body), "slow") {
				close(begun)
				<-goOn
			}
			return nil
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	o := server.Options{Store: st}
	brief(&o)
	srv, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv)
	defer h.Close()
	defer srv.EndStreams()
	s := &site{t, h.URL, st, srv}
	s.create("s")
	var wg sync.WaitGroup
	for i, text := range []string{"slow", "waits"} {
		wg.Go(func() {
			r, err := s.try(t.Context(), "POST", commits, hello(text), "If-Match: *")
			if err != nil || r.StatusCode != http.StatusOK {
				t.Errorf("%s: %v %s", text, err, r.body)
			}
		})
		if i == 0 {
			<-begun
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/v1/sessions/s/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	beats(t, bufio.NewScanner(resp.Body), 10, "") // 100 ms
	_ = resp.Body.Close()
	close(goOn)
	wg.Wait()
	for range 4 { // on the same connections
		s.do("POST", commits, hello("next"), "If-Match: *").want(t, 200)
	}
}

// pipes is a listener whose connections have no buffer: what a client does not read, the server cannot write.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	if c, ok := <-p; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A client that is gone without a word, or that does not read, is noticed by the next heartbeat: its stream ends, and
// its place is free.
func TestStreamOfALostClient(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) {
		o.MaxSubscribers, o.Heartbeat, o.WriteTimeout = 1, 10*time.Millisecond, 20*time.Millisecond
	})
	s.create("s")
	l := make(pipes, 1)
	h := &http.Server{Handler: s.srv, ReadHeaderTimeout: time.Minute}
	var running sync.WaitGroup
	running.Go(func() { _ = h.Serve(l) })
	client, conn := net.Pipe()
	l <- conn
	if _, err := io.WriteString(client, "GET /v1/sessions/s/events HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", resp, err)
	}
	for status := 0; status != http.StatusOK && t.Context().Err() == nil; {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/v1/sessions/s/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		status = resp.StatusCode
		cancel()
		_ = resp.Body.Close()
	}
	close(l)
	_ = h.Close()
	running.Wait()
}

// lateConn is a connection whose deadline for writing passes when the test calls expire.
type lateConn struct {
	net.Conn
	mu  sync.Mutex
	due time.Time // as the server set it; zero = it waits for ever
}

func (c *lateConn) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due = at
	return nil
}

// expire lets the time for the piece pass that is being written; false = the server has set no limit for it.
func (c *lateConn) expire() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.Conn.SetWriteDeadline(time.Unix(1, 0))
	return !c.due.IsZero()
}

// A client that does not read its answer is left: no request of it is under way any more. One that reads slowly has time
// by the length of the answer.
func TestAnswerOfALostClient(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	long := strings.Repeat("x", 500_000)
	s.do("POST", commits, `{"entries":[{"role":"user","content":"`+long+`"}],"state":"`+long+`"}`, "If-Match: *").want(t, 200)
	for _, path := range []string{"state", "resume", "entries", "original", "export?format=markdown"} {
		ended := make(chan struct{})
		l := make(pipes, 1)
		h := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			s.srv.ServeHTTP(w, r)
		})}
		var running sync.WaitGroup
		running.Go(func() { _ = h.Serve(l) })
		client, conn := net.Pipe()
		late := &lateConn{Conn: conn}
		l <- late
		if _, err := io.WriteString(client, "GET /v1/sessions/s/"+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, err := http.ReadResponse(bufio.NewReader(client), nil); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", path, resp, err)
		}
		if !late.expire() {
			t.Errorf("%s: the client may take for ever", path)
		}
		<-ended
		close(l)
		_ = h.Close()
		running.Wait()
	}
}
