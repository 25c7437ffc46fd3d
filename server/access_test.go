package server_test

import (
	"fmt"
	"testing"

	"github.com/coppice-go/coppice/server"
)

// A client learns what it may do, where it asks, without a read of any store.
func TestAccess(t *testing.T) {
	open := newSite(t, "mem:")
	got := fmt.Sprint(open.do("GET", "/v1/access", "").want(t, 200))
	if got != "map[readOnly:false rights:[read write delete erase hold] tenant:]" {
		t.Errorf("without tokens: %s", got)
	}
	reader := newSite(t, "mem:", func(o *server.Options) { o.ReadOnly = true })
	if got = fmt.Sprint(reader.do("GET", "/v1/access", "").want(t, 200)); got != "map[readOnly:true rights:[read] tenant:]" {
		t.Errorf("read-only: %s", got)
	}
	s, opened := byTenant(t, withTokens(someTokens(t)))
	for _, c := range []struct{ path, token, want string }{
		{"/v1/access", "reader", "map[readOnly:false rights:[read] tenant:]"},
		{"/v1/access", "writer", "map[readOnly:false rights:[read write delete] tenant:]"},
		{"/t/acme/v1/access", "reader", "map[readOnly:false rights:[read] tenant:acme]"},
		{"/t/acme/v1/access", "acme's", "map[readOnly:false rights:[read write delete] tenant:acme]"},
	} {
		if got := fmt.Sprint(s.do("GET", c.path, "", "Authorization: Bearer "+c.token).want(t, 200)); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.path, c.token, got, c.want)
		}
	}
	if len(opened) > 0 {
		t.Errorf("stores were opened: %v", opened)
	}
	s.do("GET", "/v1/access", "").want(t, 401)
	s.do("GET", "/v1/access", "", "Authorization: Bearer wrong").want(t, 401)
	s.do("GET", "/v1/access", "", "Authorization: Bearer acme's").want(t, 403)
	s.do("GET", "/t/other/v1/access", "", "Authorization: Bearer acme's").want(t, 403)
}
