package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
)

// HEAD is answered at once with the headers of GET, on a connection that can be used again, and holds nothing: with no
// room for any stream, that of events has its headers all the same.
func TestHead(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) { o.MaxSubscribers = -1 })
	s.create("s")
	for _, query := range []string{"", "?after=0", "?wait=60"} {
		r := s.do("HEAD", "/v1/sessions/s/events"+query, "")
		r.want(t, 200)
		want := "text/event-stream"
		if strings.Contains(query, "wait") {
			want = "application/json"
		}
		if kind := r.Header.Get("Content-Type"); kind != want {
			t.Errorf("HEAD events%s: %v", query, r.Header)
		}
	}
	s.do("HEAD", "/v1/sessions/none/events", "").want(t, 404)
	s.do("HEAD", "/v1/sessions/none/export", "").want(t, 404)
	s.do("HEAD", "/v1/sessions/s/events?after=x", "").want(t, 400)

	w := newWorld(t, memory.New())
	sub := w.illustrated()
	for _, op := range w.d.operations {
		if op.method != http.MethodGet || op.OperationID == "original" { // which the session does not have
			continue
		}
		get, head := valid(op, sub), valid(op, sub)
		want := w.send(op, get)
		op := *op
		op.method = http.MethodHead
		got := w.send(&op, head)
		if got.StatusCode != want.StatusCode || got.Header.Get("Content-Type") != want.Header.Get("Content-Type") ||
			got.etag() != want.etag() || len(got.body) > 0 {
			t.Errorf("HEAD %s: %d %v, GET has %d %v", op.OperationID, got.StatusCode, got.Header, want.StatusCode,
				want.Header)
		}
	}
}
