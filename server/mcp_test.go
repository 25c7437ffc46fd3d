package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
)

// called is a message that calls a tool.
func called(tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, args)
}

// A message is a request with an answer; there is no stream to open, and no session to end.
func TestMCP(t *testing.T) {
	t.Parallel()
	s := newSite(t, "file://"+t.TempDir())
	s.create("trip")
	s.do("POST", "/v1/sessions/trip/commits", hello("Where to?"), jsonType, "If-Match: *").want(t, 200)
	for _, c := range []struct {
		method, body, header, want string
		status                     int
	}{
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "MCP-Protocol-Version: 2025-06-18", `"result":{}`, 200},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, jsonType, "", 202},
		{"POST", called("search_history", `{"query":"where"}`), jsonType, "trip", 200},
		{"POST", called("read_session", `{"session":"trip"}`), jsonType, "Where to?", 200},
		{"POST", `{`, jsonType, "-32700", 200},
		{"POST", strings.Repeat(" ", 64<<10) + "{}", jsonType, "too-large", 413},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "MCP-Protocol-Version: 2099-01-01", "2025-11-25", 400},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Origin: https://elsewhere.example", "permission", 403},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Host: elsewhere.example", "host", 421},
		{"GET", "", "Accept: text/event-stream", "method", 405},
		{"DELETE", "", jsonType, "method", 405},
	} {
		r := s.do(c.method, "/mcp", c.body, c.header)
		if r.StatusCode != c.status || !strings.Contains(string(r.body), c.want) {
			t.Errorf("%s %.60s: %d %s", c.method, c.body, r.StatusCode, r.body)
		}
	}
	s.do("POST", "/mcp?write=yes", `{"jsonrpc":"2.0","id":1,"method":"ping"}`).want(t, 400)
}

// Tools that write are those of an address that asks for them, of a client that may write, on a server that does.
func TestMCPWrites(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, token string
		readOnly    bool
		listed, ok  bool
	}{
		{"/mcp", "writer", false, false, false},
		{"/mcp?write=true", "writer", false, true, true},
		{"/mcp?write=true", "reader", false, true, false},
		{"/mcp?write=true", "writer", true, false, false},
	} {
		st, err := coppice.New(memory.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := st.Create("trip", nil)
		if err == nil {
			_, err = h.Commit(t.Context(), coppice.Turn{State: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
		s := siteOn(t, st, func(o *server.Options) {
			o.Tokens, o.ReadOnly = parse(t, line("writer", "-", "read,write")+line("reader", "-", "read")), c.readOnly
		})
		s.do("POST", c.path, `{"jsonrpc":"2.0","id":1,"method":"ping"}`).want(t, http.StatusUnauthorized)
		as := "Authorization: Bearer " + c.token
		r := s.do("POST", c.path, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, as)
		if strings.Contains(string(r.body), "begin_branch") != c.listed {
			t.Errorf("%+v: %s", c, r.body)
		}
		r = s.do("POST", c.path, called("begin_branch", `{"session":"trip","entry":"","name":"new"}`), as)
		has := strings.Contains(string(s.do("GET", "/v1/sessions/trip", "", as).body), `"branch":"new"`)
		if ok := !strings.Contains(string(r.body), "rror"); ok != c.ok || has != c.ok {
			t.Errorf("%+v: %s, and it is %t", c, r.body, has)
		}
	}
}

// A client of a tenant reads that tenant's sessions, below the path of the server.
func TestMCPOfTenants(t *testing.T) {
	t.Parallel()
	b := memory.New()
	s := siteOn(t, nil, func(o *server.Options) {
		o.BasePath, o.Tokens = "/coppice", parse(t, line("one", "acme", "read,write")+line("two", "other", "read"))
		o.Tenant = func(name string) (*coppice.Store, error) { return coppice.New(backend.WithPrefix(b, name), nil) }
	})
	s.do("PUT", "/coppice/t/acme/v1/sessions/trip", `{"title":"A trip"}`, "If-None-Match: *", jsonType,
		"Authorization: Bearer one").want(t, 201)
	list := called("list_sessions", `{}`)
	r := s.do("POST", "/coppice/t/acme/mcp", list, "Authorization: Bearer one")
	if r.StatusCode != http.StatusOK || !strings.Contains(string(r.body), "A trip") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	s.do("POST", "/coppice/t/acme/mcp", list, "Authorization: Bearer two").want(t, http.StatusForbidden)
	r = s.do("POST", "/coppice/t/other/mcp", list, "Authorization: Bearer two")
	if r.StatusCode != http.StatusOK || strings.Contains(string(r.body), "A trip") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
