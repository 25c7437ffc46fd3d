package server_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
	"github.com/coppice-go/coppice/transcript"
)

// A key whose commit is under way is 409, and the commit is not disturbed.
func TestKeyInFlight(t *testing.T) {
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
	srv, err := server.New(server.Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(srv)
	defer h.Close()
	s := &site{t, h.URL, st, srv}
	s.create("s")
	var wg sync.WaitGroup
	wg.Go(func() {
		r, err := s.try(t.Context(), "POST", commits, hello("slow"), "If-Match: *", "Idempotency-Key: k")
		if err != nil || r.StatusCode != http.StatusOK {
			t.Errorf("%v %s", err, r.body)
		}
	})
	<-begun
	again, err := s.try(t.Context(), "POST", commits, hello("slow"), "If-Match: *", "Idempotency-Key: k")
	close(goOn)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if p := again.want(t, 409); p["code"] != "in-flight" || again.Header.Get("Retry-After") == "" {
		t.Errorf("%s", again.body)
	}
}

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
