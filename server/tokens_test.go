package server_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/server"
)

// textLog writes to w what a server logs.
func textLog(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// line is a line of a token file.
func line(token, tenant, rights string) string {
	return fmt.Sprintf("%x %s %s\n", sha256.Sum256([]byte(token)), tenant, rights)
}

func parse(t testing.TB, text string) *server.Tokens {
	t.Helper()
	tokens, err := server.ParseTokens(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestTokenFile(t *testing.T) {
	parse(t, "# who may\n\n"+line("a", "-", "read")+"  "+line("b", "acme", "read,write")+
		line("c", "-", "read,write,issue")+"quota - sessions=1\nquota acme bytes=2 sessions=0\n")
	var many strings.Builder
	for i := range 10_001 {
		many.WriteString(line(fmt.Sprint(i), "-", "read"))
	}
	for name, text := range map[string]string{
		"none":            "# nothing\n",
		"a token":         "secret-token - read\n",
		"short hash":      "abcd - read\n",
		"two words":       line("a", "", "read"),
		"unknown right":   line("a", "-", "write"),
		"unknown quota":   line("a", "-", "read") + "quota acme tokens=1\n",
		"negative quota":  line("a", "-", "read") + "quota acme bytes=-1\n",
		"two quotas":      line("a", "-", "read") + "quota - bytes=1\nquota - bytes=1\n",
		"tenant's name":   line("a", "../x", "read"),
		"a folder's name": line("a", "checkpoint_latest", "read"),
		"capital letters": line("a", "Acme", "read"),
		"twice":           line("a", "-", "read") + line("a", "acme", "read,write"),
		"too many":        many.String(),
		"empty token":     line("", "-", "read"),
		"endless line":    strings.Repeat("x", 1<<20),
	} {
		if _, err := server.ParseTokens(strings.NewReader(text)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// withTokens lets in who has one of the tokens reader, writer and acme's.
func withTokens(tokens *server.Tokens) func(*server.Options) {
	return func(o *server.Options) { o.Tokens = tokens }
}

func someTokens(t testing.TB) *server.Tokens {
	return parse(t, line("reader", "-", "read")+line("writer", "-", "read,write")+line("acme's", "acme", "read,write")+
		line("issuer", "-", "read,write,issue")+line("eraser", "-", "read,erase")+line("holder", "-", "read,hold")+
		line("admin", "-", "admin"))
}

func TestTokensOverHTTP(t *testing.T) {
	s := newSite(t, "mem:", withTokens(someTokens(t)))
	const get = "/v1/sessions"
	for _, c := range []struct {
		name, header string
		status       int
	}{
		{"no token", "Accept: */*", 401},
		{"wrong token", "Authorization: Bearer wrong", 401},
		{"hash instead of token", "Authorization: Bearer " + strings.Fields(line("reader", "-", "read"))[0], 401},
		{"another scheme", "Authorization: Basic reader", 401},
		{"nothing", "Authorization: Bearer ", 401},
		{"reader", "Authorization: Bearer reader", 200},
		{"writer", "Authorization: bearer writer", 200},
		{"a tenant's token outside", "Authorization: Bearer acme's", 403},
	} {
		r := s.do("GET", get, "", c.header)
		doc := r.want(t, c.status)
		if c.status == 401 && (doc["code"] != "unauthorized" || r.Header.Get("WWW-Authenticate") == "") {
			t.Errorf("%s: %s", c.name, r.body)
		}
	}
	put := func(token string) reply {
		return s.do("PUT", get+"/s", `{}`, "If-None-Match: *", "Authorization: Bearer "+token)
	}
	put("reader").want(t, 403)
	put("writer").want(t, 201)
	s.do("GET", "/v1/health", "").want(t, 200)
}

// direct sends a request to the handler, without a connection.
func (s *site) direct(method, path string, headers ...string) reply {
	s.t.Helper()
	req := httptest.NewRequest(method, s.url+path, strings.NewReader("{}"))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.srv.ServeHTTP(w, req)
	resp := w.Result()
	resp.Request = req
	return reply{resp, w.Body.Bytes()}
}

func TestOneTimeLink(t *testing.T) {
	tokens := someTokens(t)
	s := newSite(t, "mem:", withTokens(tokens))
	link := "/login?code=" + tokens.Link()
	s.direct("POST", "/login?code=wrong").want(t, 401)
	s.direct("POST", "/login").want(t, 401)
	for range 2 { // what a browser loads ahead uses up nothing
		r := s.direct("GET", link)
		r.want(t, 200)
		if r.Header.Get("Set-Cookie") != "" || !strings.Contains(string(r.body), `<form method="post">`) ||
			!strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("the page of the link: %v %s", r.Header, r.body)
		}
		s.direct("HEAD", link).want(t, 200)
	}
	s.direct("POST", link, "Sec-Fetch-Site: cross-site").want(t, 403)
	r := s.direct("POST", "/login?code=wrong", "Accept: text/html,*/*")
	r.want(t, 303)
	if r.Header.Get("Location") != "/?link=used" || r.Header.Get("Set-Cookie") != "" {
		t.Errorf("a person gets %v", r.Header)
	}
	r = s.direct("POST", link)
	r.want(t, 303)
	if got := r.Header.Get("Location"); got != "/" {
		t.Errorf("leads to %q", got)
	}
	set := r.Header.Get("Set-Cookie")
	for _, flag := range []string{"; HttpOnly", "; SameSite=Strict", "; Path=/"} {
		if !strings.Contains(set, flag) {
			t.Errorf("%q is not in %q", flag, set)
		}
	}
	if strings.Contains(set, "Secure") {
		t.Errorf("%q would not be sent back without TLS", set)
	}
	if again := s.direct("POST", link); again.StatusCode != http.StatusUnauthorized || again.Header.Get("Set-Cookie") != "" {
		t.Errorf("the link works twice: %d", again.StatusCode)
	}
	cookie, _, _ := strings.Cut(set, ";")
	s.do("GET", "/v1/sessions", "", "Cookie: "+cookie).want(t, 200)
	s.do("PUT", "/v1/sessions/s", `{}`, "If-None-Match: *", "Cookie: "+cookie).want(t, 201)
	s.do("GET", "/v1/sessions", "", "Cookie: "+cookie+"x").want(t, 401)
	s.do("GET", "/v1/sessions", "", "Cookie: "+cookie, "Authorization: Bearer wrong").want(t, 401)
	if r := s.direct("POST", "/login?code="+tokens.Link(), "X-Forwarded-Proto: https"); !strings.Contains(
		r.Header.Get("Set-Cookie"), "; Secure") {
		t.Error("a cookie behind TLS is not Secure")
	}
}

// Codes and cookies are bounded, and the oldest ones go.
func TestLinksAreBounded(t *testing.T) {
	tokens := someTokens(t)
	s := newSite(t, "mem:", withTokens(tokens))
	first := tokens.Link()
	for range 16 {
		tokens.Link()
	}
	s.direct("POST", "/login?code="+first).want(t, 401)
	var cookies []string
	for range 1025 {
		r := s.direct("POST", "/login?code="+tokens.Link())
		r.want(t, 303)
		cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")
		cookies = append(cookies, cookie)
	}
	s.direct("GET", "/v1/sessions", "Cookie: "+cookies[0]).want(t, 401)
	s.direct("GET", "/v1/sessions", "Cookie: "+cookies[1]).want(t, 200)
}

// A cookie does not count for a page that is allowed only because all are.
func TestCookieOfAnyOrigin(t *testing.T) {
	tokens := someTokens(t)
	s := newSite(t, "mem:", withTokens(tokens), func(o *server.Options) {
		o.Origins = []string{"*", "https://known.example"}
	})
	r := s.direct("POST", "/login?code="+tokens.Link())
	cookie, _, _ := strings.Cut(r.Header.Get("Set-Cookie"), ";")
	get := func(origin string) reply {
		return s.do("GET", "/v1/sessions", "", "Cookie: "+cookie, "Origin: "+origin)
	}
	get("https://any.example").want(t, 401)
	get("null").want(t, 401)
	get(s.url).want(t, 200)
	get("https://known.example").want(t, 200)
	other := s.do("GET", "/v1/sessions", "", "Authorization: Bearer reader", "Origin: https://any.example")
	other.want(t, 200)
	if other.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("cookies are offered to every origin")
	}
}

// byTenant is a server of tenants alone, and how often the store of each was opened. Any tenant but nobody has one.
func byTenant(t *testing.T, change ...func(*server.Options)) (*site, map[string]int) {
	opened, stored := map[string]int{}, map[string]backend.Backend{}
	change = append([]func(*server.Options){func(o *server.Options) {
		o.Store, o.MaxTenants = nil, 2
		o.Tenant = func(name string) (*coppice.Store, error) {
			opened[name]++
			if name == "nobody" {
				return nil, fmt.Errorf("no such tenant: %w", fs.ErrNotExist)
			}
			if stored[name] == nil {
				stored[name] = memory.New()
			}
			return coppice.New(stored[name], nil)
		}
	}}, change...)
	return newSite(t, "mem:", change...), opened
}

func TestTenants(t *testing.T) {
	s, opened := byTenant(t, withTokens(someTokens(t)))
	s.do("GET", "/t/nobody/v1/sessions", "", "Authorization: Bearer reader").want(t, 404)
	delete(opened, "nobody")
	r := s.do("PUT", "/t/acme/v1/sessions/s", `{}`, "If-None-Match: *", "Authorization: Bearer acme's")
	r.want(t, 201)
	if got := r.Header.Get("Location"); got != "/t/acme/v1/sessions/s" {
		t.Errorf("Location %q", got)
	}
	s.do("GET", "/t/acme/v1/sessions/s", "", "Authorization: Bearer acme's").want(t, 200)
	s.do("GET", "/t/acme/v1/sessions/s", "", "Authorization: Bearer reader").want(t, 200)
	s.do("GET", "/t/other/v1/sessions/s", "", "Authorization: Bearer reader").want(t, 404)
	for _, path := range []string{"/t/other/v1/sessions", "/t/nobody/v1/sessions", "/v1/sessions"} {
		s.do("GET", path, "", "Authorization: Bearer acme's").want(t, 403)
	}
	if opened["acme"] != 1 || opened["nobody"] != 0 {
		t.Errorf("opened %v", opened)
	}
	for _, path := range []string{
		"/v1/sessions", "/t/sessions/v1/sessions", "/t/cas/v1/sessions",
		"/t/Acme/v1/sessions", "/t/Acme", "/t/acme/other", "/t//v1/sessions",
		"/t/%2e%2e/v1/sessions", "/t/acme%2f..%2fother/v1/sessions", "/t/acme/metrics",
	} {
		if r := s.do("GET", path, "", "Authorization: Bearer reader"); r.Request.Response != nil {
			t.Errorf("GET %s leads to %s", path, r.Request.URL)
		} else {
			r.want(t, 404)
		}
	}
	s.do("GET", "/metrics", "", "Authorization: Bearer reader").want(t, 200)
	s.do("GET", "/metrics", "", "Authorization: Bearer acme's").want(t, 403)
	s.do("GET", "/t/acme/metrics", "", "Authorization: Bearer acme's").want(t, 404)
}

// A tenant without sessions leaves nothing behind, whatever it is asked for. One that has some is closed where another
// one needs its place, unless a request uses it, and its next request opens it again.
func TestTenantsComeAndGo(t *testing.T) {
	var files []string
	s, opened := byTenant(t, func(o *server.Options) {
		o.Index.File = func(tenant string) string {
			files = append(files, tenant)
			return ""
		}
	})
	create := func(tenant string) {
		s.do("PUT", "/t/"+tenant+"/v1/sessions/s", `{}`, "If-None-Match: *").want(t, 201)
	}
	create("acme")
	create("other")
	for i := range 20 {
		at := fmt.Sprintf("/t/t%d/v1/", i)
		for path, status := range map[string]int{
			"sessions": 200, "search?q=x": 200, "prompts": 200, "usage": 200, "sessions/s": 404, "sessions/s/rows": 404,
		} {
			s.do("GET", at+path, "").want(t, status)
		}
	}
	if len(files) > 0 {
		t.Errorf("indexes of %v", files)
	}
	for _, tenant := range []string{"acme", "other", "third", "fourth", "acme"} {
		if tenant == "third" || tenant == "fourth" {
			create(tenant)
		}
		at := "/t/" + tenant + "/v1/sessions/s"
		for _, path := range []string{"/rows", "/entries", "/usage?points=true"} {
			s.do("GET", at+path, "").want(t, 200)
		}
		s.do("POST", at+"/commits", hello("one"), "If-Match: *").want(t, 200)
		s.do("GET", "/t/"+tenant+"/v1/search?q=one", "").want(t, 200)
	}
	if doc := s.do("GET", "/t/acme/v1/sessions/s", "").want(t, 200); doc["seq"] != 2.0 {
		t.Errorf("after it was opened again: %v", doc)
	}
	if opened["acme"] < 2 || opened["fourth"] != 1 {
		t.Errorf("opened %v", opened)
	}
	for _, tenant := range []string{"acme", "other"} {
		s.stream("/t/" + tenant + "/v1/sessions/s/events")
	}
	if p := s.do("GET", "/t/third/v1/sessions", "").want(t, 503); p["code"] != "busy" {
		t.Errorf("%v", p)
	}
	s.do("GET", "/t/other/v1/sessions", "").want(t, 200)
}

// A tenant that has rested is closed without need.
func TestTenantsRest(t *testing.T) {
	s, opened := byTenant(t, func(o *server.Options) { o.Idle = time.Nanosecond })
	s.do("PUT", "/t/acme/v1/sessions/s", `{}`, "If-None-Match: *").want(t, 201)
	for n := 0; opened["acme"] < 3; n++ {
		if n == 10_000 {
			t.Fatalf("opened %v", opened)
		}
		s.do("GET", "/t/acme/v1/sessions/s", "").want(t, 200)
	}
}

// A list that is read again counts at once: for tokens, quotas, and the short-lived tokens of one that is gone. One
// that is wrong changes nothing.
func TestTokensReload(t *testing.T) {
	tokens := parse(t, line("old", "-", "read,write,issue"))
	s, _ := byTenant(t, withTokens(tokens))
	created := func(tenant, id, token string, status int) {
		t.Helper()
		s.do("PUT", "/t/"+tenant+"/v1/sessions/"+id, `{}`, "If-None-Match: *", "Authorization: Bearer "+token).
			want(t, status)
	}
	created("acme", "s", "old", 201)
	short := s.do("POST", "/t/acme/v1/tokens", `{"session":"s"}`, "Authorization: Bearer old").want(t, 201)["token"]
	get := func(token any, status int) {
		t.Helper()
		s.do("GET", "/t/acme/v1/sessions/s", "", fmt.Sprintf("Authorization: Bearer %s", token)).want(t, status)
	}
	get(short, 200)
	if err := tokens.Reload(strings.NewReader("nonsense")); err == nil {
		t.Error("nonsense is a list of tokens")
	}
	get("old", 200)
	if err := tokens.Reload(strings.NewReader(line("new", "-", "read,write") + "quota acme sessions=1\n")); err != nil {
		t.Fatal(err)
	}
	get("old", 401)
	get(short, 401)
	get("new", 200)
	created("acme", "second", "new", 507)
	created("other", "second", "new", 201)
}

// A short-lived token is for one session, or for those with a value in their metadata, and nothing else, for a time.
func TestShortTokens(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s, _ := byTenant(t, withTokens(parse(t, line("all", "-", "read,write,issue")+line("plain", "-", "read,write")+
		line("reader", "-", "read,issue"))), func(o *server.Options) { o.Now = func() time.Time { return now } })
	const at = "/t/acme/v1/"
	do := func(token, method, path, body string, status int) map[string]any {
		t.Helper()
		headers := []string{"Authorization: Bearer " + token, "If-Match: *"}
		if method == "PUT" {
			headers[1] = "If-None-Match: *"
		}
		return s.do(method, path, body, headers...).want(t, status)
	}
	for id, user := range map[string]string{"one": "u1", "two": "u2"} {
		do("all", "PUT", at+"sessions/"+id, `{"meta":{"user":"`+user+`"}}`, 201)
	}
	issue := func(body string) string {
		t.Helper()
		doc := do("all", "POST", at+"tokens", body, 201)
		return doc["token"].(string)
	}
	do("plain", "POST", at+"tokens", `{"session":"one"}`, 403)
	do("reader", "POST", at+"tokens", `{"session":"one","write":true}`, 403)
	for _, body := range []string{
		`{}`, `{"session":"one","meta":{"a":"b"}}`, `{"meta":{}}`, `{"meta":{"a":"b","c":"d"}}`,
		`{"session":"one","seconds":-1}`, `{"session":"one","seconds":86401}`, `{"session":"one","seconds":0}`,
	} {
		do("all", "POST", at+"tokens", body, 400)
	}

	one, user := issue(`{"session":"one","write":true,"seconds":60}`), issue(`{"meta":{"user":"u1"},"write":true}`)
	for _, token := range []string{one, user} {
		do(token, "GET", at+"sessions/one/resume", "", 200)
		do(token, "POST", at+"sessions/one/commits", hello("x"), 200)
		do(token, "GET", at+"sessions/two", "", 403)
		do(token, "POST", at+"sessions/two/commits", hello("x"), 403)
		do(token, "POST", at+"sessions/one/fork", `{"id":"three"}`, 403)
		do(token, "POST", at+"tokens", `{"session":"one"}`, 403)
		do(token, "POST", at+"import", piFile, 403)
		do(token, "GET", "/t/other/v1/sessions/one", "", 403)
		do(token, "GET", "/metrics", "", 403)
		for _, path := range []string{"search?q=x", "prompts", "usage"} {
			do(token, "GET", at+path, "", 403)
		}
	}
	do(one, "GET", at+"sessions", "", 403)
	do(one, "PUT", at+"sessions/three", `{}`, 403)
	do(user, "PATCH", at+"sessions/one", `{"meta":{"user":"u2"}}`, 403)
	do(user, "PATCH", at+"sessions/one", `{"meta":{"user":null}}`, 403)
	do(user, "PATCH", at+"sessions/one", `{"title":"mine"}`, 200)
	do(user, "PATCH", at+"sessions/one", `{"meta":{"user":"u1"}}`, 200)
	do(user, "PATCH", at+"sessions/one", `{"title":"mine too","meta":{"user":"u1","b":"c"}}`, 200)
	do(user, "PUT", at+"sessions/three", `{"meta":{"user":"u2","a":"b"}}`, 201)
	do(user, "GET", at+"sessions/three", "", 200)
	do(user, "GET", at+"sessions/none", "", 404)
	for query, n := range map[string]int{
		"": 2, "?meta.user=u1": 2, "?meta.a=b": 1, "?meta.user=u2": 0, "?meta.user=u1&meta.user=u2": 0,
	} {
		if got := do(user, "GET", at+"sessions"+query, "", 200)["sessions"].([]any); len(got) != n {
			t.Errorf("the list%s has %v", query, got)
		}
	}
	doc := do(user, "GET", at+"access", "", 200)
	if got := fmt.Sprint(doc["meta"], doc["rights"]); got != "map[user:u1] [read write delete]" {
		t.Errorf("access: %v", doc)
	}
	do(issue(`{"session":"one"}`), "POST", at+"sessions/one/commits", hello("x"), 403)
	now = now.Add(time.Minute)
	do(one, "GET", at+"sessions/one", "", 401)
	do(user, "GET", at+"sessions/one", "", 200)
}

// Above a quota a repeat of what was stored gets the first answer. Any other write with a key is refused, and changes
// nothing.
func TestRepeatsAboveAQuota(t *testing.T) {
	var quota server.Quota
	s, _ := byTenant(t, func(o *server.Options) { o.Quota = func(string) server.Quota { return quota } })
	const at = "/t/acme/v1/sessions/s"
	made := s.do("PUT", at, `{}`, "If-None-Match: *", "Idempotency-Key: made")
	made.want(t, 201)
	commit := func(key, match string) reply {
		return s.do("POST", at+"/commits", hello("one"), "If-Match: "+match, "Idempotency-Key: "+key)
	}
	first := commit("c", made.etag())
	id := first.want(t, 200)["entries"].([]any)[0].(string)
	type write struct{ method, path, body string }
	writes := map[string]write{
		"rollback": {"POST", at + "/rollback", `{"to":"seq:0"}`},
		"branch":   {"POST", at + "/branch", `{"entry":"` + id + `"}`},
		"edit":     {"POST", at + "/edit", `{"entry":"` + id + `","message":{"role":"user","content":"two"}}`},
		"switch":   {"POST", at + "/switch", `{"to":"` + id + `"}`},
		"label":    {"POST", at + "/label", `{"entry":"` + id + `","label":"red"}`},
		"claim":    {"POST", at + "/claim", `{}`},
		"patch":    {"PATCH", at, `{"title":"new"}`},
	}
	send := func(key string, w write) reply {
		return s.do(w.method, w.path, w.body, "If-Match: "+first.etag(), "Coppice-Writer: w", "Idempotency-Key: "+key)
	}
	answers := map[string]reply{}
	for name, w := range writes {
		if name == "label" || name == "claim" || name == "patch" {
			send(name, w).want(t, 200)
			answers[name] = send(name, w)
		}
	}
	moved := write{"POST", at + "/rollback", `{"to":"seq:0"}`}
	s.do("POST", at+"/rollback", moved.body, "If-Match: *", "Idempotency-Key: moved").want(t, 200)
	answers["moved"] = send("moved", moved)
	writes["moved"] = moved
	head := s.do("GET", at, "").etag()

	quota = server.Quota{Sessions: 1, Bytes: 1}
	again := func(name string, was, now reply) {
		t.Helper()
		if now.StatusCode != was.StatusCode || now.etag() != was.etag() {
			t.Errorf("%s: the repeat is %d %s, was %d %s: %s", name, now.StatusCode, now.etag(), was.StatusCode,
				was.etag(), now.body)
		}
	}
	again("creation", made, s.do("PUT", at, `{}`, "If-None-Match: *", "Idempotency-Key: made"))
	again("commit", first, commit("c", made.etag()))
	again("commit", first, commit("c", "*"))
	for name, was := range answers {
		again(name, was, send(name, writes[name]))
	}
	refused := func(r reply) {
		t.Helper()
		if p := r.want(t, 507); p["code"] != "quota" || p["winner"] != nil {
			t.Errorf("%s", r.body)
		}
	}
	refused(commit("d", "*"))
	refused(commit("d", head))
	for _, kept := range []string{"keep-both", "keep-fenced"} {
		body := `{"entries":[{"role":"user","content":"kept"}],"onConflict":"` + kept + `"}`
		refused(send("k", write{"POST", at + "/commits", body}))
	}
	for _, w := range writes {
		w.body = strings.NewReplacer("red", "blue", "new", "newer").Replace(w.body) // else there is nothing to store
		refused(send("new", w))
		refused(s.do(w.method, w.path, w.body, "If-Match: *"))
	}
	refused(s.do("PUT", at+"2", `{}`, "If-None-Match: *", "Idempotency-Key: made"))
	refused(s.do("POST", at+"/fork", `{}`, "If-Match: *", "Idempotency-Key: f"))
	commit("moved", "*").want(t, 422)
	commit("d", "").want(t, 428)
	if now := s.do("GET", at, "").etag(); now != head {
		t.Errorf("something was stored: %s, was %s", now, head)
	}
}

// What stored nothing takes nothing of a quota: repeats, what is streamed, and files that are imported again. A fork
// takes what it has.
func TestQuotaCountsWhatIsStored(t *testing.T) {
	s, _ := byTenant(t, func(o *server.Options) {
		o.Quota = func(string) server.Quota { return server.Quota{Sessions: 4, Bytes: 30_000} }
	})
	const at = "/t/acme/v1/"
	for range 5 {
		s.do("PUT", at+"sessions/s", `{}`, "If-None-Match: *", "Idempotency-Key: made").want(t, 201)
		s.do("POST", at+"sessions/s/commits", hello(strings.Repeat("x", 5_000)), "If-Match: *", "Idempotency-Key: c").
			want(t, 200)
		s.do("POST", at+"sessions/s/partial", `{"partial":"`+strings.Repeat("x", 5_000)+`"}`).want(t, 204)
		s.do("POST", at+"import", strings.ReplaceAll(piFile, "\n", strings.Repeat(" ", 1_000)+"\n")).want(t, 200)
	}
	s.do("POST", at+"sessions/s/fork", `{"id":"f"}`, "If-Match: *").want(t, 201)
	s.do("PUT", at+"sessions/t", `{}`, "If-None-Match: *").want(t, 201)
	s.do("PUT", at+"sessions/u", `{}`, "If-None-Match: *").want(t, 507)
	s.do("POST", at+"sessions/t/commits", hello(strings.Repeat("x", 8_000)), "If-Match: *").want(t, 200)
	s.do("POST", at+"sessions/t/commits", hello("x"), "If-Match: *").want(t, 507)
}

// A tenant that has stored as much as it may can read and delete, and no other one has less room for it.
func TestQuota(t *testing.T) {
	s, _ := byTenant(t, func(o *server.Options) {
		o.Quota = func(tenant string) server.Quota {
			if tenant == "other" {
				return server.Quota{}
			}
			return server.Quota{Sessions: 2, Bytes: 10_000}
		}
	})
	const at = "/t/acme/v1/"
	create := func(tenant, id string) reply {
		return s.do("PUT", "/t/"+tenant+"/v1/sessions/"+id, `{}`, "If-None-Match: *")
	}
	create("acme", "s").want(t, 201)
	create("acme", "s2").want(t, 201)
	if p := create("acme", "s3").want(t, 507); p["code"] != "quota" {
		t.Errorf("%v", p)
	}
	s.do("POST", at+"sessions/s/fork", `{}`, "If-Match: *").want(t, 507)
	s.do("POST", at+"import", piFile).want(t, 507)
	s.do("POST", at+"sessions/s/commits", hello(strings.Repeat("x", 10_000)), "If-Match: *").want(t, 200)
	s.do("POST", at+"sessions/s/commits", hello("more"), "If-Match: *").want(t, 507)
	doc := s.do("GET", at+"usage", "").want(t, 200)["stored"].(map[string]any)
	bytes := doc["bytes"].(float64)
	delete(doc, "bytes")
	if got := fmt.Sprint(doc); got != "map[maxBytes:10000 maxSessions:2 sessions:2]" || bytes < 10_000 {
		t.Errorf("stored: %v, %v bytes", doc, bytes)
	}
	s.do("GET", at+"sessions/s", "").want(t, 200)
	s.do("DELETE", at+"sessions/s", "", "If-Match: *").want(t, 200)
	create("acme", "s3").want(t, 201)
	s.do("POST", at+"sessions/s3/commits", hello("more"), "If-Match: *").want(t, 200)
	for i := range 4 {
		create("other", fmt.Sprint(i)).want(t, 201)
	}
}

// A quota counts what a body had, also of one without a length, and what a session has besides its transcript.
func TestQuotaCountsImagesAndTrash(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s, _ := byTenant(t, func(o *server.Options) {
		o.Now, o.Trash = func() time.Time { return now }, t.TempDir()
		o.Quota = func(string) server.Quota { return server.Quota{Bytes: 100_000} }
	})
	const at = "/t/acme/v1/sessions/"
	full := func(what string) {
		t.Helper()
		r := s.do("POST", at+"full/commits", hello("x"), "If-Match: *")
		if r.StatusCode != http.StatusInsufficientStorage {
			t.Errorf("%s: status %d", what, r.StatusCode)
		}
	}
	for _, id := range []string{"s", "full"} {
		s.do("PUT", at+id, `{}`, "If-None-Match: *").want(t, 201)
	}
	data, _ := picture("GIF89a", 90_000)
	ref := fmt.Sprintf("coppice-blob:sha256:%s:%d", sumOf(data), len(data))
	s.do("PUT", at+"s/blobs/"+sumOf(data), string(data)).want(t, 204)
	s.do("POST", at+"s/commits", `{"images":"ref","entries":[{"role":"user","content":[{"type":"image",`+
		`"mimeType":"image/gif","data":"`+ref+`"}]}]}`, "If-Match: *").want(t, 200)
	s.do("POST", at+"full/commits", hello(strings.Repeat("x", 10_000)), "If-Match: *", "Transfer-Encoding: chunked").
		want(t, 200)
	full("by the bodies")
	now = now.Add(2 * time.Minute)
	full("by the image")
	s.do("DELETE", at+"s?trash=1", "", "If-Match: *").want(t, 200)
	full("by the trash")
	got := s.do("GET", "/t/acme/v1/usage", "").want(t, 200)["stored"].(map[string]any)
	if got["bytes"].(float64) < 100_000 {
		t.Errorf("stored: %v", got)
	}
}

// Short-lived tokens of one tenant leave room for those of others, and make room when they end.
func TestShortTokensOfTenants(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	tokens := parse(t, line("one", "acme", "read,issue")+line("two", "other", "read,issue"))
	server.SetIssued(tokens, 4)
	s, _ := byTenant(t, withTokens(tokens), func(o *server.Options) { o.Now = func() time.Time { return now } })
	issue := func(token, tenant string, status int) {
		t.Helper()
		s.do("POST", "/t/"+tenant+"/v1/tokens", `{"session":"s","seconds":60}`, auth(token)).want(t, status)
	}
	for _, status := range []int{201, 201, 503} {
		issue("one", "acme", status)
	}
	issue("two", "other", 201)
	now = now.Add(time.Minute)
	issue("one", "acme", 201)
}

// A cookie is of one server, of which a host may have several, and of the tenant at which it was set. It ends with the
// logout.
func TestCookieOfATenant(t *testing.T) {
	tokens := someTokens(t)
	s, _ := byTenant(t, withTokens(tokens))
	cookie := func(path string) string {
		r := s.direct("POST", path+"/login?code="+tokens.Link())
		r.want(t, 303)
		set := r.Header.Get("Set-Cookie")
		port := s.url[strings.LastIndex(s.url, ":")+1:]
		if !strings.HasPrefix(set, "coppice-"+port+"=") || !strings.Contains(set, "; Path="+path+"/;") {
			t.Errorf("cookie %q", set)
		}
		set, _, _ = strings.Cut(set, ";")
		return "Cookie: " + set
	}
	acme, all := cookie("/t/acme"), cookie("")
	s.do("GET", "/t/acme/v1/sessions", "", acme).want(t, 200)
	s.do("GET", "/t/other/v1/sessions", "", acme).want(t, 403)
	s.do("GET", "/metrics", "", acme).want(t, 403)
	s.do("GET", "/t/other/v1/sessions", "", all).want(t, 200)
	r := s.do("POST", "/logout", "", all)
	r.want(t, 204)
	if set := r.Header.Get("Set-Cookie"); !strings.Contains(set, "Max-Age=0") || !strings.Contains(set, "; Path=/;") {
		t.Errorf("the logout sets %q", set)
	}
	s.do("GET", "/t/other/v1/sessions", "", all).want(t, 401)
	s.do("GET", "/t/acme/v1/sessions", "", acme).want(t, 200)
}

func TestBasePath(t *testing.T) {
	tokens := someTokens(t)
	s := newSite(t, "mem:", withTokens(tokens), func(o *server.Options) { o.BasePath = "/coppice" })
	r := s.do("PUT", "/coppice/v1/sessions/s", `{}`, "If-None-Match: *", "Authorization: Bearer writer")
	r.want(t, 201)
	if got := r.Header.Get("Location"); got != "/coppice/v1/sessions/s" {
		t.Errorf("Location %q", got)
	}
	s.do("GET", "/coppice/v1/health", "").want(t, 200)
	for _, path := range []string{"/v1/sessions", "/coppicev1/sessions", "/coppice/t/acme/v1/sessions", "/"} {
		s.do("GET", path, "", "Authorization: Bearer writer").want(t, 404)
	}
	r = s.direct("POST", "/coppice/login?code="+tokens.Link())
	r.want(t, 303)
	set := r.Header.Get("Set-Cookie")
	if r.Header.Get("Location") != "/coppice/" || !strings.Contains(set, "Path=/coppice/") {
		t.Errorf("%q, %q", r.Header.Get("Location"), set)
	}
	for _, base := range []string{"coppice", "/", "/a/", "/a/../b", "/a?b", "/%61"} {
		if _, err := server.New(server.Options{Store: s.st, BasePath: base}); err == nil {
			t.Errorf("base path %q", base)
		}
	}
}

// An error of Tenant without a kind is the server's.
func TestTenantThatCannotBeOpened(t *testing.T) {
	s := newSite(t, "mem:", func(o *server.Options) {
		o.Tenant = func(string) (*coppice.Store, error) { return nil, errors.New("the store does not answer") }
	})
	s.do("GET", "/t/acme/v1/sessions", "").want(t, 500)
	s.do("GET", "/v1/sessions", "").want(t, 200)
}

// A program that embeds the handler decides who may do what, and on which store. Nothing of another store is seen.
func TestAuthorize(t *testing.T) {
	ours, theirs := siteOn(t, storeOn(t, memory.New())), siteOn(t, storeOn(t, memory.New()))
	theirs.create("secret")
	s := newSite(t, "mem:", func(o *server.Options) {
		o.Authorize = func(r *http.Request) (server.Access, error) {
			switch r.Header.Get("X-User") {
			case "ours":
				return server.Access{Store: ours.st, Rights: server.Read | server.Write}, nil
			case "reader":
				return server.Access{Store: theirs.st, Rights: server.Read}, nil
			case "writer":
				return server.Access{Store: theirs.st, Rights: server.Write}, nil
			case "none":
				return server.Access{}, server.ErrForbidden
			case "broken":
				return server.Access{}, errors.New("the directory of users does not answer")
			}
			return server.Access{}, fmt.Errorf("who are you: %w", server.ErrUnauthorized)
		}
	})
	for _, c := range []struct {
		method, path, user string
		status             int
	}{
		{"PUT", "/v1/sessions/mine", "ours", 201},
		{"GET", "/v1/sessions/mine", "ours", 200},
		{"GET", "/v1/sessions/secret", "ours", 404},
		{"GET", "/v1/sessions/secret", "reader", 200},
		{"GET", "/v1/sessions/mine", "reader", 404},
		{"PUT", "/v1/sessions/x", "reader", 403},
		{"GET", "/v1/sessions/secret", "writer", 403},
		{"GET", "/v1/sessions", "none", 403},
		{"GET", "/v1/sessions", "broken", 500},
		{"GET", "/v1/sessions", "", 401},
		{"GET", "/metrics", "", 401},
		{"GET", "/v1/health", "", 200},
		{"GET", "/v1/openapi.json", "", 200},
	} {
		if c.method == "PUT" {
			s.do(c.method, c.path, "{}", "X-User: "+c.user, "If-None-Match: *").want(t, c.status)
			continue
		}
		s.do(c.method, c.path, "", "X-User: "+c.user).want(t, c.status)
	}
}
