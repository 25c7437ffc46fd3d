package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"testing"

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
		head := fmt.Sprintf("POST /v1/sessions/s/%s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n",
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
