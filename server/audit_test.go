package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/server"
)

// audited returns a site with an audit log, and its lines as they are after a call: act, result, who and session.
func audited(
	t *testing.T, tokens string, change ...func(*server.Options),
) (s *site, file string, lines func() []string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "audit.jsonl")
	change = append(change, withTokens(parse(t, tokens)), func(o *server.Options) { o.AuditFile = file })
	s = newSite(t, "mem:", change...)
	return s, file, func() (list []string) {
		for _, l := range auditLines(t, file) {
			list = append(list, strings.TrimSpace(fmt.Sprintln(l.Act.Act, l.Result, l.Who, l.Session, l.IDs)))
		}
		return list
	}
}

// auditLines returns the lines of an audit log, which is whole.
func auditLines(t *testing.T, file string) (list []audit.Line) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Verify(bytes.NewReader(raw), ""); err != nil {
		t.Errorf("%v\n%s", err, raw)
	}
	for r := bufio.NewScanner(bytes.NewReader(raw)); r.Scan(); {
		var l audit.Line
		if err := json.Unmarshal(r.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func auth(token string) string { return "Authorization: Bearer " + token }

func TestAuditLog(t *testing.T) {
	named := strings.TrimSuffix(line("secret", "-", "admin"), "\n") + " name=ops\n"
	s, file, lines := audited(t, named+line("reader", "-", "read")+line("acme's", "acme", "admin"))
	s.do("PUT", "/v1/sessions/s", `{"title":"Private words"}`, auth("secret"), "If-None-Match: *").want(t, 201)
	s.do("POST", "/v1/sessions/s/commits", hello("more private words"), auth("secret"), "If-Match: *").want(t, 200)
	s.do("DELETE", "/v1/sessions/s", "", auth("reader"), "If-Match: *").want(t, 403)
	s.do("DELETE", "/v1/sessions/s", "", auth("acme's"), "If-Match: *").want(t, 403)
	s.do("DELETE", "/v1/sessions/s", "", auth("a-guess"), "If-Match: *").want(t, 401)
	s.do("DELETE", "/v1/sessions/none", "", auth("secret"), "If-Match: *").want(t, 404)
	s.do("DELETE", "/v1/sessions/s?children=perhaps", "", auth("secret"), "If-Match: *").want(t, 400)
	s.do("DELETE", "/v1/sessions/s", "", auth("secret"), "If-Match: *").want(t, 200)
	token := s.do("POST", "/v1/tokens", `{"session":"s"}`, auth("secret")).want(t, 201)["token"].(string)
	s.do("GET", "/v1/sessions", "", auth("reader")).want(t, 200)
	got := lines()
	short := strings.Fields(line(token, "-", "read"))[0][:8]
	name := func(token string) string { return "token:" + line(token, "-", "read")[:8] }
	want := []string{
		"delete refused " + name("reader") + " s []", "delete refused " + name("acme's") + " s []",
		"delete begun ops none []", "delete failed ops none []",
		"delete begun ops s []", "delete failed ops s []",
		"delete begun ops s []", "delete done ops s []",
		"issue begun ops  []", "issue done ops  [short:" + short + "]",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	raw, _ := os.ReadFile(file)
	for _, secret := range []string{"secret", token, "rivate", "a-guess"} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// An erasure that changes nothing is recorded as what it was.
func TestAuditOfDryRuns(t *testing.T) {
	s, _, lines := audited(t, line("secret", "-", "admin"))
	s.do("PUT", "/v1/sessions/s", "{}", auth("secret"), "If-None-Match: *").want(t, 201)
	first := s.do("POST", "/v1/sessions/s/commits", hello("x"), auth("secret"), "If-Match: *").want(t, 200)
	entry := first["entries"].([]any)[0].(string)
	for _, dry := range []bool{true, false} {
		body := fmt.Sprintf(`{"entries":[%q],"dryRun":%t}`, entry, dry)
		s.do("POST", "/v1/sessions/s/erase", body, auth("secret")).want(t, 200)
	}
	var got []string
	for _, l := range lines() {
		got = append(got, strings.Join(strings.Fields(l)[:2], " "))
	}
	if want := "[erase begun erase dry-run erase begun erase done]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// What is done from a browser has the name of its cookie, from login to logout.
func TestAuditOfBrowsers(t *testing.T) {
	tokens := parse(t, line("a", "-", "read"))
	s, file, lines := audited(t, line("b", "-", "read"))
	s = siteOn(t, s.st, withTokens(tokens), func(o *server.Options) { o.AuditFile = file })
	s.direct("POST", "/login?code=wrong").want(t, 401)
	r := s.direct("POST", "/login?code="+tokens.Link())
	r.want(t, 303)
	cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")
	s.do("PUT", "/v1/sessions/s", "{}", "Cookie: "+cookie, "If-None-Match: *").want(t, 201)
	s.do("DELETE", "/v1/sessions/s", "", "Cookie: "+cookie, "If-Match: *").want(t, 200)
	for range 2 {
		s.do("POST", "/logout", "", "Cookie: "+cookie).want(t, 204)
	}
	_, value, _ := strings.Cut(cookie, "=")
	who := "browser:" + strings.Fields(line(value, "-", "read"))[0][:8]
	want := []string{
		"login begun   []", "login done   [" + who + "]",
		"delete begun " + who + " s []", "delete done " + who + " s []",
		"logout begun " + who + "  []", "logout done " + who + "  []",
	}
	if got := lines(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// An act that cannot be recorded is not done.
func TestAuditFails(t *testing.T) {
	tokens := parse(t, line("a", "-", "admin"))
	s := newSite(t, "mem:", withTokens(tokens), func(o *server.Options) {
		o.AuditFile = filepath.Join(t.TempDir(), "missing", "audit.jsonl")
	})
	s.do("PUT", "/v1/sessions/s", "{}", auth("a"), "If-None-Match: *").want(t, 201)
	code := tokens.Link()
	for range 2 {
		for _, path := range []string{"DELETE /v1/sessions/s", "POST /v1/tokens", "POST /login?code=" + code} {
			method, path, _ := strings.Cut(path, " ")
			r := s.do(method, path, `{"session":"s"}`, auth("a"), "If-Match: *")
			if doc := r.want(t, http.StatusServiceUnavailable); doc["code"] != "audit" {
				t.Errorf("%s: %s", path, r.body)
			}
		}
	}
	s.do("GET", "/v1/sessions/s", "", auth("a")).want(t, 200)
}

// With AuditReads each read of content has a line, unless it cannot be written.
func TestAuditOfReads(t *testing.T) {
	s, file, lines := audited(t, line("a", "-", "admin"), func(o *server.Options) { o.AuditReads = true })
	s.do("PUT", "/v1/sessions/s", "{}", auth("a"), "If-None-Match: *").want(t, 201)
	s.do("GET", "/v1/sessions/s/resume", "", auth("a")).want(t, 200)
	s.do("GET", "/v1/access", "", auth("a")).want(t, 200)
	got := lines()
	if len(got) != 1 || !strings.HasPrefix(got[0], "read done token:") || !strings.HasSuffix(got[0], " s [resume]") {
		t.Errorf("%q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(file, 0o700); err != nil {
		t.Fatal(err)
	}
	s.do("GET", "/v1/sessions/s/resume", "", auth("a")).want(t, 503)
	s.do("GET", "/v1/access", "", auth("a")).want(t, 200)
}
