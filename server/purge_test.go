package server_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/server"
)

// A purge removes a session and those that it started from everything that the server keeps, names what keeps copies,
// and completes an earlier deletion. It needs the rights to delete and to erase, for all of the store.
func TestPurgeOverHTTP(t *testing.T) {
	var forgotten []string
	dir := t.TempDir()
	s, _, lines := audited(t, line("all", "-", "read,write,erase")+line("writer", "-", "read,write")+
		line("eraser", "-", "read,write,erase,-delete")+line("narrow", "-", "read,write,erase session=s"),
		func(o *server.Options) {
			o.Trash = dir
			o.Forget = func(tenant, id string) (bool, int, error) {
				forgotten = append(forgotten, tenant+id)
				return id == "s", 2, nil
			}
		})
	all := auth("all")
	s.do("PUT", "/v1/sessions/s", `{}`, "If-None-Match: *", all).want(t, 201)
	own := s.do("DELETE", "/v1/sessions/s?trash=true", "", "If-Match: *", all).want(t, 200)["trash"].(string)
	again := strings.Replace(hello(erased), "{", `{"create":{"again":true},`, 1)
	s.do("POST", "/v1/sessions/s/commits", again, "If-Match: *", all).want(t, 200)
	for _, id := range []string{"fork", "binned"} {
		s.do("POST", "/v1/sessions/s/fork", `{"id":"`+id+`"}`, "If-Match: *", all).want(t, 201)
	}
	s.do("PUT", "/v1/sessions/child", `{"parent":"s"}`, "If-None-Match: *", all).want(t, 201)
	s.do("DELETE", "/v1/sessions/binned?trash=true", "", "If-Match: *", all).want(t, 200)
	other, err := coppice.Open(t.Context(), "mem:", nil) // a command moves its session with that id to the trash
	if err != nil {
		t.Fatal(err)
	}
	h, err := other.Copy(t.Context(), s.st, "s", "s")
	if err != nil {
		t.Fatal(err)
	}
	trash := &manager.Trash{Path: dir, Now: testutil.Clock(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC), time.Second)}
	item, err := trash.Put(t.Context(), other, "s", "by a command")
	if err := errors.Join(err, h.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	forgotten = nil

	for who, status := range map[string]int{"writer": 403, "eraser": 403, "narrow": 403} {
		s.do("DELETE", "/v1/sessions/s?purge=true", "", "If-Match: *", auth(who)).want(t, status)
	}
	s.do("DELETE", "/v1/sessions/s?purge=true&trash=true", "", "If-Match: *", all).want(t, 400)
	doc := s.do("DELETE", "/v1/sessions/s?purge=true&children=true", "", "If-Match: *", all).want(t, 200)
	purged, copies := doc["purged"].(map[string]any), doc["copies"].(map[string]any)
	binned, _ := copies["trash"].([]any)
	if fmt.Sprint(copies["sessions"]) != "[fork]" || len(binned) != 2 || !slices.Contains(binned, any(item.Name)) {
		t.Errorf("copies: %v", copies)
	}
	if fmt.Sprint(purged["trash"]) != "["+own+"]" || purged["pin"] != true || purged["crumbs"] != 4.0 {
		t.Errorf("purged: %v", purged)
	}
	if _, err := trash.Find(item.Name); err != nil {
		t.Errorf("the item of another store is gone: %v", err)
	}
	if !slices.Equal(forgotten, []string{"child", "s"}) {
		t.Errorf("forgotten: %v", forgotten)
	}
	repeated := s.do("DELETE", "/v1/sessions/s?purge=true", "", "If-Match: *", all).want(t, 200)
	if got := repeated["purged"].(map[string]any)["trash"].([]any); len(got) > 0 {
		t.Errorf("again: %v", got)
	}
	s.do("DELETE", "/v1/sessions/none?purge=true", "", "If-Match: *", all).want(t, 404)
	if got := fmt.Sprint(lines()); !strings.Contains(got, "delete done") {
		t.Errorf("the audit log has %s", got)
	}
}
