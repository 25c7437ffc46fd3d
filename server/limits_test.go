package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/server"
)

// What is over a limit is 503, to be sent again; so is what comes after Close.
func TestOverLimits(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) { o.MaxSubscribers = -1 })
	s.create("s")
	if p := s.do("GET", "/v1/sessions/s/events", "").want(t, 503); p["code"] != "busy" {
		t.Errorf("%v", p)
	}
	if err := s.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if r := s.do("POST", commits, hello("a"), "If-Match: *"); r.want(t, 503)["code"] != "busy" {
		t.Errorf("%s", r.body)
	}
}

// What an operation cannot use is refused before it is read.
func TestBodiesByOperation(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	for path, size := range map[string]int{"verify": 64 << 10, "edit": 8 << 20, "commits": 64 << 20} {
		conn := s.dial(t)
		head := fmt.Sprintf("POST /v1/sessions/s/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"+
			"If-Match: *\r\nExpect: 100-continue\r\n\r\n",
			path, size+1)
		if _, err := conn.Write([]byte(head)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// Bodies that are under way are bounded, those of each tenant too: one over the limit waits, and is 503 after a time.
// Another tenant's, and a small one, is not held up.
func TestBodiesAreBounded(t *testing.T) {
	s, _ := byTenant(t, func(o *server.Options) { o.MaxBody = 1 << 20 })
	body := `{"entries":[{"role":"user","content":"` + strings.Repeat("x", 900<<10) + `"}]}`
	for _, tenant := range []string{"acme", "other"} {
		s.do("PUT", "/t/"+tenant+"/v1/sessions/s", `{}`, "If-None-Match: *").want(t, 201)
	}
	server.SetPatience(s.srv, time.Nanosecond)
	conn := s.dial(t)
	head := fmt.Sprintf("POST /t/acme%s HTTP/1.1\r\nHost: localhost\r\nIf-Match: *\r\nContent-Length: %d\r\n"+
		"Expect: 100-continue\r\n\r\n", commits, len(body))
	if _, err := conn.Write([]byte(head)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	if line, err := in.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // the body is being read
		t.Fatalf("%q, %v", line, err)
	}
	r := s.do("POST", "/t/acme"+commits, body, "If-Match: *")
	if p := r.want(t, 503); p["code"] != "busy" || r.Header.Get("Retry-After") == "" {
		t.Errorf("%v %v", r.Header, p)
	}
	s.do("POST", "/t/acme"+commits, hello("small"), "If-Match: *").want(t, 200)
	s.do("POST", "/t/other"+commits, hello(strings.Repeat("y", 300<<10)), "If-Match: *").want(t, 200)
	stalled := s.dial(t)
	defer time.AfterFunc(10*time.Second, func() { _ = stalled.Close() }).Stop() // ReadTimeout is 30 s
	_, _ = stalled.Write([]byte(strings.ReplaceAll(head, "Expect: 100-continue", "X-None: 1") + "{"))
	resp, err := http.ReadResponse(bufio.NewReader(stalled), nil)
	if err != nil {
		t.Fatalf("a body that does not come holds up its 503: %v", err)
	}
	raw, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(raw), `"busy"`) || err != nil {
		t.Errorf("%d %s, %v", resp.StatusCode, raw, err)
	}
	server.SetPatience(s.srv, time.Minute)
	done := make(chan error)
	go func() {
		r, err := s.try(t.Context(), "POST", "/t/acme"+commits, body, "If-Match: *")
		if err == nil && r.StatusCode != http.StatusOK {
			err = fmt.Errorf("status %d: %s", r.StatusCode, r.body)
		}
		done <- err
	}()
	if _, err := conn.Write([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the body that waited: %v", err)
	}
}

// Of streams, long polls and imports a tenant has its part: the others keep theirs.
func TestTenantsHaveTheirPart(t *testing.T) {
	s, _ := byTenant(t, func(o *server.Options) { o.MaxSubscribers, o.MaxImport = 2, 1000 })
	server.SetPatience(s.srv, time.Nanosecond)
	for _, tenant := range []string{"acme", "other"} {
		s.do("PUT", "/t/"+tenant+"/v1/sessions/s", `{}`, "If-None-Match: *").want(t, 201)
	}
	const events = "/v1/sessions/s/events"
	s.stream("/t/acme" + events)
	for _, query := range []string{"", "?after=0&wait=1"} {
		s.do("GET", "/t/acme"+events+query, "").want(t, 503)
	}
	s.do("GET", "/t/other"+events+"?wait=1", "").want(t, 200)

	defer s.slowImport("/t/acme/v1/import")()
	s.do("POST", "/t/acme/v1/import", piFile).want(t, 503)
	s.do("POST", "/t/other/v1/import", piFile).want(t, 200)
}

// A body whose length is not known takes as much of what its tenant has as has come of it, images too.
func TestBodiesGrow(t *testing.T) {
	s, _ := byTenant(t, func(o *server.Options) { o.MaxBody = 1 << 20 })
	server.SetPatience(s.srv, time.Nanosecond)
	s.do("PUT", "/t/acme/v1/sessions/s", `{}`, "If-None-Match: *").want(t, 201)
	const chunked = "Transfer-Encoding: chunked"
	begin := func(head string) net.Conn {
		conn := s.dial(t)
		head = fmt.Sprintf("POST /t/acme%s HTTP/1.1\r\nHost: localhost\r\nIf-Match: *\r\n%s\r\n"+
			"Expect: 100-continue\r\n\r\n", commits, head)
		if _, err := conn.Write([]byte(head)); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
			t.Fatalf("%q, %v", line, err)
		}
		return conn
	}
	begin(chunked)
	s.do("POST", "/t/acme"+commits, hello(strings.Repeat("x", 400<<10)), "If-Match: *", chunked).want(t, 200)
	s.do("POST", "/t/acme"+commits, hello(strings.Repeat("x", 2<<20)), "If-Match: *", chunked).want(t, 413)
	begin("Content-Length: 900000")
	r := s.do("POST", "/t/acme"+commits, hello(strings.Repeat("y", 400<<10)), "If-Match: *", chunked)
	if p := r.want(t, 503); p["code"] != "busy" || r.Header.Get("Retry-After") == "" {
		t.Errorf("%v %v", r.Header, p)
	}
	data, _ := picture("GIF89a", 700<<10)
	s.do("PUT", "/t/acme/v1/sessions/s/blobs/"+sumOf(data), string(data)).want(t, 503)
	s.do("POST", "/t/acme"+commits, hello("small"), "If-Match: *", chunked).want(t, 200)
}

// Reads of a session as a whole are bounded.
func TestWholeReadsAreBounded(t *testing.T) {
	s := newSite(t, "mem:")
	s.create("s")
	server.SetPatience(s.srv, time.Nanosecond)
	server.SetWholes(s.srv, 0)
	const at = "/v1/sessions/s/"
	for _, path := range []string{"export", "original", "diff?a=head", "blame", "rows", "map", "usage", "secrets"} {
		s.do("GET", at+path, "").want(t, 503)
	}
	s.do("POST", at+"verify", `{"deep":true}`).want(t, 503)
	s.do("POST", at+"fork", `{}`, "If-Match: *").want(t, 503)
}

// Searches are bounded, and so is what else reads every session.
func TestSearchesAreBounded(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) { o.MaxSearches = -1 })
	server.SetPatience(s.srv, time.Nanosecond)
	for _, path := range []string{"/v1/search?q=x", "/v1/prompts", "/v1/usage"} {
		s.do("GET", path, "").want(t, 503)
	}
}

// A client that sends its whole body before it reads gets the answer, also where the body is refused unread.
func TestRefusedBodiesAreAnswered(t *testing.T) {
	s := newSite(t, "mem:", withTokens(someTokens(t)))
	s.do("PUT", "/v1/sessions/s", `{}`, "If-None-Match: *", "Authorization: Bearer writer").want(t, 201)
	for _, c := range []struct {
		token, path, header string
		size, status        int
	}{
		{"reader", "commits", "If-Match: *", 32 << 20, 403},
		{"writer", "commits", "X-None: 1", 32 << 20, 428},
		{"writer", "edit", "If-Match: *", 32 << 20, 413},
	} {
		conn := s.dial(t)
		head := fmt.Sprintf("POST /v1/sessions/s/%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n%s\r\n"+
			"Content-Length: %d\r\n\r\n", c.path, c.token, c.header, c.size)
		if _, err := conn.Write(append([]byte(head), make([]byte, c.size)...)); err != nil {
			t.Errorf("%d: %v", c.status, err)
			continue
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Errorf("%d: %v", c.status, err)
			continue
		}
		if _ = resp.Body.Close(); resp.StatusCode != c.status {
			t.Errorf("%d, want %d", resp.StatusCode, c.status)
		}
	}
}
