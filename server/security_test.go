package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/server"
)

// A page of another site whose name leads to this machine asks by that name.
func TestRebinding(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) { o.Hosts = []string{"coppice.example"} })
	for host, status := range map[string]int{
		"evil.example": 421, "evil.example:7070": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421,
		"192.0.2.1": 421, "[2001:db8::1]:80": 421, "coppice.example.evil.example": 421,
		"localhost": 200, "LOCALHOST:7070": 200, "127.0.0.1": 200, "127.8.9.1:1": 200, "[::1]:7070": 200,
		"coppice.example:443": 200, "coppice.example.": 200,
	} {
		s.do("GET", "/v1/sessions", "", "Host: "+host).want(t, status)
		s.do("GET", "/v1/health", "", "Host: "+host).want(t, status)
	}
}

// A page of another site may not write, and what it reads it does not see.
func TestCrossSite(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) { o.Origins = []string{"https://chat.example"} })
	etag := s.create("s")
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{"Origin: https://evil.example"}, 403},
		{[]string{"Origin: null"}, 403},
		{[]string{"Origin: https://chat.example.evil.example", "Content-Type: text/plain"}, 403},
		{[]string{"Sec-Fetch-Site: cross-site"}, 403},
		{[]string{"Sec-Fetch-Site: same-site"}, 403},
	} {
		h := append([]string{"If-Match: *"}, c.headers...)
		s.do("POST", commits, hello("x"), h...).want(t, c.status)
		s.do("DELETE", "/v1/sessions/s", "", h...).want(t, c.status)
		r := s.do("GET", "/v1/sessions/s", "", c.headers...)
		if r.Header.Get("Access-Control-Allow-Origin") != "" ||
			r.Header.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%v: %v", c.headers, r.Header)
		}
	}
	if r := s.do("GET", "/v1/sessions/s", ""); r.etag() != etag {
		t.Errorf("something was written: %s, was %s", r.etag(), etag)
	}
	s.do("POST", commits, hello("x"), "If-Match: *", "Origin: https://chat.example").want(t, 200)
	s.do("POST", commits, hello("x"), "If-Match: *", "Origin: "+s.url, "Sec-Fetch-Site: same-origin").want(t, 200)
}

func TestPreflight(t *testing.T) {
	tokens := someTokens(t)
	s := newSite(t, "mem:", withTokens(tokens), func(o *server.Options) {
		o.Origins = []string{"https://chat.example"}
	})
	ask := func(origin string) reply {
		return s.do("OPTIONS", commits, "", "Origin: "+origin, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: if-match, authorization")
	}
	r := ask("https://chat.example")
	r.want(t, 204)
	for name, value := range map[string]string{
		"Access-Control-Allow-Origin": "https://chat.example", "Access-Control-Allow-Methods": "POST",
		"Access-Control-Allow-Headers": "If-Match", "Vary": "Origin",
	} {
		if !strings.Contains(r.Header.Get(name), value) {
			t.Errorf("%s: %q", name, r.Header.Get(name))
		}
	}
	get := s.do("GET", "/v1/sessions", "", "Origin: https://chat.example", "Authorization: Bearer reader")
	for _, name := range []string{"ETag", "Location"} {
		if !strings.Contains(get.Header.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("%s is not exposed", name)
		}
	}
	if r := ask("https://evil.example"); r.StatusCode < 400 || r.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d, %v", r.StatusCode, r.Header)
	}
}

// Ids are names and no paths: nothing of another tenant, and nothing outside, is ever found by them.
func TestPathTraversal(t *testing.T) {
	s, _ := byTenant(t)
	s.do("PUT", "/t/acme/v1/sessions/secret", `{}`, "If-None-Match: *").want(t, 201)
	for _, id := range []string{
		"..%2Fsecret", "..%2f..%2facme%2fsessions%2fsecret", "%2e%2e", "%2e%2e%2facme", "%2Fetc%2Fpasswd", "a%00b",
		"..%5c..%5cx", "..;%2fsecret", strings.Repeat("a", 129),
	} {
		for _, prefix := range []string{"/t/other/v1/sessions/", "/t/acme/v1/sessions/x%2f"} {
			r := s.raw(t, "GET", prefix+id)
			if r.StatusCode != http.StatusBadRequest && r.StatusCode != http.StatusNotFound {
				t.Errorf("GET %s%s: %d", prefix, id, r.StatusCode)
			}
			r = s.raw(t, "PUT", prefix+id)
			if r.StatusCode < 400 || r.StatusCode >= 500 {
				t.Errorf("PUT %s%s: %d", prefix, id, r.StatusCode)
			}
		}
	}
	for _, path := range []string{"/t/other/../acme/v1/sessions/secret", "/t/other/v1/../../acme/v1/sessions/secret"} {
		if r := s.raw(t, "GET", path); r.StatusCode == http.StatusOK {
			t.Errorf("GET %s: 200", path)
		}
	}
}

// raw sends a request whose path no client has cleaned, and returns the head of the answer.
func (s *site) raw(t *testing.T, method, path string) *http.Response {
	t.Helper()
	conn := s.dial(t)
	text := method + " " + path + " HTTP/1.1\r\nHost: localhost\r\nIf-None-Match: *\r\nContent-Length: 2\r\n" +
		"Connection: close\r\n\r\n{}"
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	_ = resp.Body.Close()
	return resp
}

func (s *site) dial(t *testing.T) *net.TCPConn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn.(*net.TCPConn)
}

// A read-only server refuses every operation that could write.
func TestReadOnlyServer(t *testing.T) {
	var on server.Options
	s := newSite(t, "mem:", func(o *server.Options) { on = *o })
	s.create("s")
	reader, err := server.New(server.Options{Store: on.Store, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Close() }()
	only := *s
	only.srv = reader
	before := s.do("GET", "/v1/sessions/s", "").etag()
	for _, op := range readDescription(t).operations {
		if op.method == http.MethodGet {
			continue
		}
		if op.OperationID == "verify" || op.OperationID == "issueToken" { // TestVerifyReads, TestShortTokens
			continue
		}
		r := only.direct(op.method, strings.ReplaceAll(op.path, "{id}", "s"), "If-Match: *", "If-None-Match: *")
		if doc := r.want(t, 403); doc["code"] != "read-only" {
			t.Errorf("%s: %s", op.OperationID, r.body)
		}
	}
	if now := only.direct("GET", "/v1/sessions/s").etag(); now != before {
		t.Errorf("something was written: %s, was %s", now, before)
	}
	only.direct("GET", "/v1/sessions/s").want(t, 200)
}

// A verification changes nothing: a token that may only read can ask for it, and a server that is read-only answers it.
// Its answer has the requests to the store.
func TestVerifyReads(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := newSite(t, url)
		s.create("s")
		s.do("POST", commits, hello("one"), "If-Match: *").want(t, 200)
		const verify = "/v1/sessions/s/verify"
		doc := s.do("POST", verify, `{"deep":true}`).want(t, 200)
		if io := doc["io"].(map[string]any); io["get"] == 0.0 || io["put"] != 0.0 || io["append"] != 0.0 || io["bytesRead"] == 0.0 {
			t.Errorf("%v", doc)
		}
		for name, change := range map[string]func(*server.Options){
			"read-only": func(o *server.Options) { o.ReadOnly = true },
			"reader": func(o *server.Options) {
				o.Authorize = func(*http.Request) (server.Access, error) {
					return server.Access{Rights: server.Read}, nil
				}
			},
		} {
			only := siteOn(t, s.st, change)
			only.do("POST", verify, `{}`).want(t, 200)
			for other, status := range map[string]int{
				"/v1/sessions/s/claim": 403, "/v1/import": 403, "/v1/sessions/s/verify/": 404, "/v1/sessions/verify": 405,
			} {
				if r := only.do("POST", other, `{}`, "If-Match: *"); r.StatusCode != status {
					t.Errorf("%s: %s: %d %s", name, other, r.StatusCode, r.body)
				}
			}
		}
		writer := siteOn(t, s.st, func(o *server.Options) {
			o.Authorize = func(*http.Request) (server.Access, error) {
				return server.Access{Rights: server.Write}, nil
			}
		})
		writer.do("POST", verify, `{}`).want(t, 403)
	})
}

// A client that closes its half of a connection, in a stream or in the middle of a body, keeps nothing in use.
func TestHalfClosedStream(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) { o.MaxSubscribers = 1 })
	s.create("s")
	for range 2 { // the second one finds the place of the first one free
		conn := s.dial(t)
		text := "GET /v1/sessions/s/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
		if _, err := conn.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(conn)
		resp, err := http.ReadResponse(in, nil)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", resp, err)
		}
		s.do("GET", "/v1/sessions/s/events", "").want(t, 503)
		if err := conn.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, in) // until the server has ended the stream
		_ = resp.Body.Close()
	}
	half := s.dial(t)
	text := "POST " + commits + " HTTP/1.1\r\nHost: localhost\r\nIf-Match: *\r\nContent-Length: 1000\r\n\r\n" + `{"entries":[`
	if _, err := half.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if resp, err := http.ReadResponse(bufio.NewReader(half), nil); err == nil {
		if _ = resp.Body.Close(); resp.StatusCode < 400 {
			t.Errorf("half a body: %d", resp.StatusCode)
		}
	}
	s.do("POST", commits, hello("next"), "If-Match: *").want(t, 200) // no one waits for the half
}

// Neither the content of a session nor a secret is in the log.
func TestLogSaysNothing(t *testing.T) {
	log := &strings.Builder{}
	tokens := someTokens(t)
	s := newSite(t, "mem:", withTokens(tokens), func(o *server.Options) { o.Logger = textLog(log) })
	code := tokens.Link()
	s.direct("POST", "/login?code="+code).want(t, 303)
	s.direct("GET", "/v1/sessions?q=private", "Authorization: Bearer reader").want(t, 200)
	s.direct("GET", "/v1/sessions", "Authorization: Bearer private").want(t, 401)
	if text := log.String(); !strings.Contains(text, "/v1/sessions") || strings.Contains(text, "private") ||
		strings.Contains(text, code) || strings.Contains(text, "reader") {
		t.Error(text)
	}
}
