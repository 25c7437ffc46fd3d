package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coppice-go/coppice/server"
)

// listening serves a handler as `coppice serve` does, and returns its address.
func listening(t *testing.T, handler http.Handler) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, MaxHeaderBytes: 8 << 10}
	own := server.Listen(h, l, nil)
	var running sync.WaitGroup
	running.Go(func() { _ = h.Serve(own) })
	t.Cleanup(func() {
		_ = h.Close()
		running.Wait()
	})
	return l.Addr().String()
}

func dialed(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// refusals are requests that Go's HTTP server refuses itself, with the status and a part of the detail.
var refusals = []struct {
	request, detail string
	status          int
}{
	{"GARBAGE\r\n\r\n", "HTTP/1.1", 400},
	{"GET /v1/health HTTP/1.1\r\n\r\n", "missing required Host header", 400},
	{"GET /v1/health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "", 400},
	{"GET /v1/health HTTP/1.1\r\nHost: a b\r\n\r\n", "malformed Host header", 400},
	{"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nBad Name: x\r\n\r\n", "", 400},
	{"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n", "", 400},
	{"GET /v1/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", "", 400},
	{"POST /v1/import HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", "", 400},
	{"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", "headers", 431},
	{"POST /v1/import HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", "transfer encoding", 501},
	{"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nExpect: more\r\n\r\n", "expectation", 417},
	{"GET /v1/health HTTP/9.9\r\nHost: localhost\r\n\r\n", "unsupported protocol version", 505},
}

// What Go's HTTP server refuses before a handler is called is a problem document too: as the first request
// of a connection, after another one, and in one packet with another one.
func TestRefusalsAreProblems(t *testing.T) {
	s := newSite(t, "mem:")
	address := listening(t, s.srv)
	const good = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for _, c := range refusals {
		for _, before := range []string{"nothing", "a request", "a request in the same packet"} {
			conn := dialed(t, address)
			in := bufio.NewReader(conn)
			first := c.request
			if before == "a request in the same packet" {
				first = good + c.request
			}
			if before == "a request" {
				first = good
			}
			if _, err := io.WriteString(conn, first); err != nil {
				t.Fatal(err)
			}
			if before != "nothing" {
				if resp, raw := answered(t, in); resp.StatusCode != http.StatusOK || !strings.Contains(raw, "ok") {
					t.Fatalf("%d %s", resp.StatusCode, raw)
				}
			}
			if before == "a request" {
				if _, err := io.WriteString(conn, c.request); err != nil {
					t.Fatal(err)
				}
			}
			resp, raw := answered(t, in)
			var p server.Problem
			err := json.Unmarshal([]byte(raw), &p)
			kind := resp.Header.Get("Content-Type")
			if err != nil || kind != "application/problem+json" || !resp.Close || resp.StatusCode != c.status ||
				p.Status != c.status || p.Code != "request" || p.Type != "about:blank" ||
				p.Title != http.StatusText(c.status) || !strings.Contains(p.Detail, c.detail) {
				t.Errorf("%.80q after %s: %d, %q, %v: %s", c.request, before, resp.StatusCode, kind, err, raw)
				continue // the connection may stay open
			}
			if rest, err := io.ReadAll(in); len(rest) > 0 {
				t.Errorf("%.80q: %q and %v after the answer", c.request, rest, err)
			}
		}
	}
}

// answered reads an answer.
func answered(t *testing.T, in *bufio.Reader) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(raw)
}

// What a handler writes passes byte for byte, also if it is what Go's server would write, in a piece of its own.
func TestAnswersPassAsTheyAre(t *testing.T) {
	const refusal = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"400 Bad Request"
	address := listening(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(2*len(refusal)))
		for range 2 {
			if _, err := io.WriteString(w, refusal); err != nil {
				t.Error(err)
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
		}
	}))
	conn := dialed(t, address)
	in := bufio.NewReader(conn)
	for range 2 { // the second time after an answer on the same connection
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if resp, raw := answered(t, in); resp.StatusCode != http.StatusOK || raw != refusal+refusal {
			t.Errorf("%d %q", resp.StatusCode, raw)
		}
	}
}
