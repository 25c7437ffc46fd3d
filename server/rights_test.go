package server_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
)

// needed returns the right that an operation of our API has to need: GET reads, and all else writes.
func needed(op *described) server.Rights {
	switch op.OperationID {
	case "health", "openapi":
		return 0
	case "verify":
		return server.Read
	case "deleteSession", "runRetention":
		return server.Delete
	case "setRetention":
		return server.Admin
	case "erase":
		return server.Erase
	case "hold", "release":
		return server.Hold
	case "issueToken":
		return server.Issue
	}
	if op.method == http.MethodGet {
		return server.Read
	}
	return server.Write
}

// foreign are the operations that the description does not have, with what they need.
var foreign = map[string]server.Rights{
	"POST /mcp":                                    server.Read,
	"POST /openai/v1/conversations":                server.Write,
	"GET /openai/v1/conversations/{id}":            server.Read,
	"POST /openai/v1/conversations/{id}":           server.Write,
	"DELETE /openai/v1/conversations/{id}":         server.Delete,
	"POST /openai/v1/conversations/{id}/items":     server.Write,
	"GET /openai/v1/conversations/{id}/items":      server.Read,
	"GET /openai/v1/conversations/{id}/items/{i}":  server.Read,
	"DELETE /openai/v1/conversations/{id}/items/x": server.Write,
}

// Each operation needs one right, or all. Without it the client gets 403 whatever else it may, with it alone no 403,
// and without a token 401.
func TestRightOfEveryRoute(t *testing.T) {
	wanted := map[string]server.Rights{}
	for _, op := range readDescription(t).operations {
		wanted[op.method+" "+op.path] = needed(op)
	}
	maps.Copy(wanted, foreign)
	var has server.Rights
	s := siteOn(t, storeOn(t, memory.New()), func(o *server.Options) {
		o.Tokens = someTokens(t) // else no one may issue any
		o.Authorize = func(r *http.Request) (server.Access, error) {
			if r.Header.Get("Authorization") == "" {
				return server.Access{}, server.ErrUnauthorized
			}
			return server.Access{Rights: has}, nil
		}
	})
	for route, right := range wanted {
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{", "", "}", "").Replace(path)
		ask := func(may server.Rights, headers ...string) int {
			has = may
			return s.direct(method, path, headers...).StatusCode
		}
		if got := ask(server.Admin); right != 0 && got != http.StatusUnauthorized {
			t.Errorf("%s without a token: %d", route, got)
		}
		if got := ask(server.Admin&^right, "Authorization: Bearer x"); right != 0 && got != http.StatusForbidden {
			t.Errorf("%s without the right to %v: %d", route, right, got)
		}
		switch got := ask(right, "Authorization: Bearer x"); {
		case route == "POST /v1/tokens": // it asks for what is to read, which needs that right too
		case got == http.StatusForbidden, got == http.StatusUnauthorized, got == http.StatusMethodNotAllowed:
			t.Errorf("%s with the right to %v alone: %d", route, right, got)
		}
	}
}

func TestRightsOfTokens(t *testing.T) {
	for text, want := range map[string]string{
		"read":                    "read",
		"read,write":              "read,write,delete", // as before there was a right to delete
		"read,issue":              "read,issue",
		"read,write,issue":        "read,write,delete,issue",
		"read,issue,write":        "read,write,delete,issue",
		"read,write,-delete":      "read,write",
		"read,write,-delete,hold": "read,write,hold",
		"read,delete":             "read,delete",
		"read,write,delete,erase": "read,write,delete,erase",
		"admin":                   "read,write,delete,erase,hold,issue",
	} {
		r, _ := http.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", "Bearer a")
		if got, err := parse(t, line("a", "-", text)).Authorize(r); err != nil || got.Rights.String() != want {
			t.Errorf("%s: %v, %v", text, got.Rights, err)
		}
	}
	for _, text := range []string{
		"", "write", "read,", "read,read", "read,-delete", "read,write,delete,-delete", "read,write,-delete,-delete",
		"read,-write", "admin,read", "read,admin", "Read", "read,delete,-delete", "read;write",
	} {
		if _, err := server.ParseTokens(strings.NewReader(line("a", "-", text))); err == nil {
			t.Errorf("%q is a list of rights", text)
		}
	}
}

// A line of the token file can end, and be for one session, or for those with a value in their metadata.
func TestNarrowTokens(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	words := func(token, rights, more string) string {
		return strings.TrimSuffix(line(token, "-", rights), "\n") + " " + more + "\n"
	}
	s := newSite(t, "mem:", withTokens(parse(t, line("all", "-", "admin")+
		words("brief", "admin", "until=2026-03-02T10:00:00Z name=ci")+words("one", "read,write", "session=one")+
		words("user", "read,write", "meta.user=u1"))),
		func(o *server.Options) { o.Now = func() time.Time { return now } })
	do := func(token, method, path, body string, status int) map[string]any {
		t.Helper()
		header := "If-Match: *"
		if method == http.MethodPut {
			header = "If-None-Match: *"
		}
		return s.do(method, "/v1/"+path, body, "Authorization: Bearer "+token, header).want(t, status)
	}
	for id, user := range map[string]string{"one": "u1", "two": "u2"} {
		do("brief", "PUT", "sessions/"+id, `{"meta":{"user":"`+user+`"}}`, 201)
	}
	for _, token := range []string{"one", "user"} {
		do(token, "POST", "sessions/one/commits", hello("x"), 200)
		do(token, "GET", "sessions/two", "", 403)
		do(token, "DELETE", "sessions/two", "", 403)
	}
	short := do("brief", "POST", "tokens", `{"session":"one","rights":"read,write,-delete"}`, 201)["token"].(string)
	do(short, "DELETE", "sessions/one", "", 403)
	do(short, "POST", "sessions/one/commits", hello("y"), 200)
	now = now.Add(time.Hour)
	do("brief", "GET", "sessions", "", 401)
	do(short, "GET", "sessions/one", "", 401)
	do("all", "GET", "sessions", "", 200)

	for _, more := range []string{
		"until=tomorrow", "until=", "session=a session=b", "session=a meta.user=b", "name=", "meta.=x", "else", "x=y",
		"name=" + strings.Repeat("n", 65),
	} {
		if _, err := server.ParseTokens(strings.NewReader(words("a", "read", more))); err == nil {
			t.Errorf("%q may follow the rights", more)
		}
	}
}

// A short-lived token has no right that the one who asked for it has not.
func TestShortTokensHaveLess(t *testing.T) {
	s := newSite(t, "mem:", withTokens(parse(t, line("clerk", "-", "read,write,-delete,issue"))))
	for body, status := range map[string]int{
		`{"session":"s"}`:                                     201,
		`{"session":"s","write":true}`:                        201,
		`{"session":"s","rights":"read,write,-delete"}`:       201,
		`{"session":"s","rights":"read,write"}`:               403,
		`{"session":"s","rights":"read,erase"}`:               403,
		`{"session":"s","rights":"read,issue"}`:               403,
		`{"session":"s","rights":"admin"}`:                    403,
		`{"session":"s","rights":"write"}`:                    400,
		`{"session":"s","rights":"read","write":true}`:        400,
		fmt.Sprintf(`{"session":"s","rights":%q}`, "read,\n"): 400,
	} {
		doc := s.do("POST", "/v1/tokens", body, "Authorization: Bearer clerk").want(t, status)
		if status != 201 {
			continue
		}
		got := s.do("GET", "/v1/access", "", "Authorization: Bearer "+doc["token"].(string)).want(t, 200)
		if slices.Contains(got["rights"].([]any), any("delete")) {
			t.Errorf("%s: %v", body, got["rights"])
		}
	}
}
