package server_test

import (
	"syscall"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/server"
)

// The disk is full. A deletion whose tombstone cannot be written deletes nothing, and is 507; one that ends half-way
// is 503, and each repeat continues, with the If-Match of the first. When nothing is left the session is 410. Into
// the trash goes the same.
func TestDeleteOnAFullDisk(t *testing.T) {
	for _, query := range []string{"", "?trash=1"} {
		b := fault.New(memory.NewAppender(), 1)
		st, err := coppice.New(b, nil)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		s := siteOn(t, st, func(o *server.Options) { o.Trash = dir })
		made := s.create("s")
		remove := func(status int) map[string]any {
			t.Helper()
			return s.do("DELETE", "/v1/sessions/s"+query, "", "If-Match: "+made).want(t, status)
		}
		full := func(ops ...string) {
			b.Clear()
			for _, op := range ops {
				b.Add(fault.Rule{
					When: fault.On(op, ""), Count: -1, Outcome: backend.NotApplied, Err: syscall.ENOSPC,
				})
			}
		}
		full("put", "append")
		if p := remove(507); p["code"] != "no-space" {
			t.Errorf("nothing can be written: %v", p)
		}
		if etag := s.do("GET", "/v1/sessions/s", "").etag(); etag != made {
			t.Errorf("nothing was deleted, and the session is at %q, not %q", etag, made)
		}
		full("put", "delete")
		if p := remove(503); p["code"] != "delete-unfinished" {
			t.Errorf("there is room for the log alone: %v", p)
		}
		full("delete")
		if p := remove(503); p["code"] != "delete-unfinished" {
			t.Errorf("nothing can be removed: %v", p)
		}
		full()
		doc := remove(200)
		if doc["deleted"] != true || doc["session"] != "s" || (query != "") != (doc["trash"] != nil) {
			t.Errorf("the repeat that finished: %v", doc)
		}
		for info, err := range b.List(t.Context(), backend.ListOptions{Prefix: "sessions/"}) {
			t.Errorf("left: %s, %v", info.Key, err)
		}
		if p := remove(410); p["code"] != "deleted" {
			t.Errorf("nothing is left: %v", p)
		}
	}
}
