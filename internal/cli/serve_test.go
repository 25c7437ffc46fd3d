package cli

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/api"
)

// served is a running coppice serve.
type served struct {
	t         *testing.T
	url, link string
	clock     *watchClock
	cancel    context.CancelFunc
	done      chan int
}

func serving(t *testing.T, store string, args ...string) *served {
	t.Helper()
	out, stdout := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	clock := &watchClock{now: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)}
	s := &served{t: t, clock: clock, cancel: cancel, done: make(chan int, 1)}
	env := map[string]string{"COPPICE_STORE": store, "HOME": t.TempDir(), "COPPICE_HISTORY": "off"}
	go func() {
		code := Run(ctx, Env{
			Stdin: strings.NewReader(""), Stdout: stdout, Stderr: io.Discard, Now: clock.Now, After: clock.After,
			Getenv: func(name string) string { return env[name] },
		}, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...))
		_ = stdout.Close()
		s.done <- code
	}()
	lines := bufio.NewScanner(out)
	if lines.Scan() {
		s.url = strings.TrimPrefix(lines.Text(), "serving ")
	}
	if !strings.HasPrefix(s.url, "http://127.0.0.1:") && !strings.HasPrefix(s.url, "https://127.0.0.1:") {
		t.Fatalf("%q, %v", lines.Text(), lines.Err())
	}
	if strings.Contains(strings.Join(args, " "), "--token-file") && lines.Scan() {
		s.link = strings.TrimPrefix(lines.Text(), "log in once with ")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(cancel)
	return s
}

// ask sends a request and returns the status and the body.
func (s *served) ask(method, path, body string, headers ...string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

func (s *served) wants(status int, text, method, path, body string, headers ...string) {
	s.t.Helper()
	got, answer := s.ask(method, path, body, headers...)
	if got != status || !strings.Contains(answer, text) {
		s.t.Fatalf("%s %s: %d %s; want %d with %q", method, path, got, answer, status, text)
	}
}

// end interrupts the server, which must end well.
func (s *served) end() {
	s.t.Helper()
	s.cancel()
	if code := <-s.done; code != api.ExitDone {
		s.t.Errorf("exit code %d", code)
	}
}

// What was committed over HTTP is in the store when the server has ended, also while a stream is open.
func TestServe(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := serving(t, store)
	s.wants(201, "", "PUT", "/v1/sessions/s", `{"title":"over HTTP"}`, "If-None-Match: *")
	s.wants(200, `"commit"`, "POST", "/v1/sessions/s/commits",
		`{"entries":[{"role":"user","content":"hello"}]}`, "If-Match: *")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/sessions/s/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	s.end()
	if _, err := io.ReadAll(stream.Body); err != nil {
		t.Errorf("the stream was cut and not ended: %v", err)
	}
	if out, _, code := call(t, store, "", "show", "s"); code != 0 || !strings.Contains(out, "hello") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A server runs the policy of its store when it begins, and ends well while it waits for the next time.
func TestServeRetains(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	for _, args := range [][]string{
		{"create", "--session", "old", "--cwd", "/w"},
		{"create", "--session", "new", "--cwd", "/w"},
		{"retain", "set", "--keep-last", "1"},
	} {
		if _, stderr, code := call(t, store, "", args...); code != 0 {
			t.Fatalf("%v: %s", args, stderr)
		}
	}
	s := serving(t, store, "--retain-every", "24h")
	for status := 0; status != 410; { // until the test is over its time
		status, _ = s.ask("GET", "/v1/sessions/old", "")
	}
	s.wants(200, "", "GET", "/v1/sessions/new", "")
	s.end()
}

// A read-only demo is the same whenever it is looked at: no agent works in it.
func TestServeDemo(t *testing.T) {
	t.Parallel()
	s := serving(t, t.TempDir(), "--demo", "--read-only", "--base-path", "/coppice")
	const id = "/v1/sessions/019cadab-3a54-7c1e-9d42-6f0e8b7a51c3"
	s.wants(200, `"sessions":[{`, "GET", "/v1/sessions", "")
	s.wants(200, `"title":"tideline 0.2`, "GET", id, "")
	s.wants(200, `"goal":"tideline 0.2`, "GET", id+"/state", "")
	s.wants(200, `"matches":[{`, "GET", "/v1/search?q=phasor", "")
	s.wants(403, `"read-only"`, "PUT", "/v1/sessions/s", `{}`, "If-None-Match: *")
	s.end()
}

// An agent commits to a session of the demo as often as it is told to, and a stream shows its turns.
func TestServeDemoAgent(t *testing.T) {
	t.Parallel()
	s := serving(t, t.TempDir(), "--demo", "--demo-turns", "2")
	s.clock.silence(true) // from here on no wait is one
	_, list := s.ask("GET", "/v1/sessions?q=gauge", "")
	_, id, _ := strings.Cut(list, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/sessions/"+id+"/events?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	for lines := bufio.NewScanner(stream.Body); lines.Scan(); {
		if strings.Contains(lines.Text(), "Reading 2.") {
			s.end()
			return
		}
	}
	t.Error("the stream ended without the second turn")
}

// tokenFile writes a token file.
func tokenFile(t *testing.T, lines ...string) string {
	t.Helper()
	var text strings.Builder
	for _, l := range lines {
		token, rest, _ := strings.Cut(l, " ")
		fmt.Fprintf(&text, "%x %s\n", sha256.Sum256([]byte(token)), rest)
	}
	name := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestServeTokensAndTenants(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	s := serving(t, store, "--tenants", "--token-file", tokenFile(t, "one acme read,write", "all - read"))
	if !strings.HasPrefix(s.link, s.url+"/login?code=") {
		t.Errorf("link %q", s.link)
	}
	login := strings.TrimPrefix(s.link, s.url)
	s.wants(200, "", "GET", login, "")
	s.wants(303, "", "POST", login, "", "Accept: text/html")
	s.wants(401, "", "POST", login, "")
	s.wants(201, "", "PUT", "/t/acme/v1/sessions/s", `{}`, "If-None-Match: *", "Authorization: Bearer one")
	s.wants(403, "", "GET", "/t/other/v1/sessions", "", "Authorization: Bearer one")
	s.wants(404, "", "GET", "/t/other/v1/sessions/s", "", "Authorization: Bearer all")
	s.wants(401, "", "GET", "/t/acme/v1/sessions", "")
	s.end()
	if out, _, code := call(t, filepath.Join(store, "acme"), "", "list"); code != 0 || !strings.Contains(out, "s") {
		t.Errorf("the folder of the tenant: exit code %d: %s", code, out)
	}
}

// What is added to a session file appears at the server, and in a stream that follows the session.
func TestServeFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	add(t, filepath.Join(dir, "pi.jsonl"), watchedPi)
	s := serving(t, t.TempDir(), "--follow", dir)
	for status := 0; status != http.StatusOK && t.Context().Err() == nil; {
		status, _ = s.ask("GET", "/v1/sessions/pi-1", "")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/sessions/pi-1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Body.Close() }()
	add(t, filepath.Join(dir, "pi.jsonl"), watchedMore)
	said := false
	for lines := bufio.NewScanner(stream.Body); !said && lines.Scan(); {
		said = strings.Contains(lines.Text(), `"content":"more"`)
	}
	if !said {
		t.Error("the stream ended without what was added")
	}
	s.end()
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	tokens := tokenFile(t, "one - read")
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"all addresses":  {[]string{"--addr", ":7070"}, "can be reached from other machines"},
		"other address":  {[]string{"--addr", "192.0.2.1:0"}, "--token-file"},
		"IPv6":           {[]string{"--addr", "[::]:0"}, "--token-file"},
		"name":           {[]string{"--addr", "localhost.example:0"}, "--token-file"},
		"no port":        {[]string{"--addr", "127.0.0.1"}, "HOST:PORT"},
		"half of TLS":    {[]string{"--tls-cert", "x"}, "--tls-key"},
		"demo and store": {[]string{"--demo"}, "--demo"},
		"tenants":        {[]string{"--tenants"}, "--token-file"},
		"tenants follow": {[]string{"--tenants", "--follow", ".", "--token-file", tokens}, "--follow"},
		"origin":         {[]string{"--addr", "127.0.0.1:0", "--allow-origin", "chat.example"}, "origin"},
		"base path":      {[]string{"--addr", "127.0.0.1:0", "--base-path", "x"}, "base path"},
		"public URL":     {[]string{"--addr", "127.0.0.1:0", "--public-url", "x"}, "--public-url"},
		"no token":       {[]string{"--token-file", os.DevNull}, "there is none"},
		"json":           {[]string{"--json", "--token-file", tokens}, "no JSON document"},
	} {
		out, errs, code := call(t, t.TempDir(), "", append([]string{"serve"}, c.args...)...)
		if code != api.ExitUsage || !strings.Contains(out+errs, c.says) {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
}

// A client that sends half a header is left.
func TestServeSlowHeader(t *testing.T) {
	t.Parallel()
	h := httpServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	if h.ReadHeaderTimeout <= 0 || h.IdleTimeout <= 0 || h.MaxHeaderBytes <= 0 {
		t.Fatalf("%v, %v, %d", h.ReadHeaderTimeout, h.IdleTimeout, h.MaxHeaderBytes)
	}
	h.ReadHeaderTimeout = 10 * time.Millisecond
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.Serve(l) }()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("GET / HTTP/1.1\r\nHost: local")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadAll(conn) // returns when the server has closed the connection
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	<-done
}

// With a certificate the server speaks TLS, and nothing else; the cookie is for TLS alone.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	own := httptest.NewUnstartedServer(http.NotFoundHandler()) // for its certificate, and a client that trusts it
	own.EnableHTTP2 = true
	own.StartTLS()
	defer own.Close()
	key, err := x509.MarshalPKCS8PrivateKey(own.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, block := range map[string]*pem.Block{
		"cert": {Type: "CERTIFICATE", Bytes: own.Certificate().Raw}, "key": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := serving(t, t.TempDir(), "--tls-cert", filepath.Join(dir, "cert"), "--tls-key", filepath.Join(dir, "key"),
		"--token-file", tokenFile(t, "one - read"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.link, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := own.Client().Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if set := resp.Header.Get("Set-Cookie"); !strings.Contains(set, "; Secure") {
		t.Errorf("%d, cookie %q", resp.StatusCode, set)
	}
	resp, err = own.Client().Transport.RoundTrip(req) // the link was used
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.ProtoMajor != 2 {
		t.Errorf("a client that knows HTTP/2 speaks %s", resp.Proto)
	}
	s.url = strings.Replace(s.url, "https:", "http:", 1)
	s.wants(http.StatusBadRequest, `"code":"request"`, "GET", "/v1/health", "")
	s.end()
}
