package server_test

import (
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
