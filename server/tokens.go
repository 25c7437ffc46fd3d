package server

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/audit"
	"github.com/coppice-go/coppice/internal/layout"
)

const (
	maxTokens  = 10_000 // maximum number of tokens in a list
	maxLinks   = 16     // maximum number of unused links; the oldest one is dropped
	maxCookies = 1024   // maximum number of valid cookies; the oldest one is dropped
	maxIssued  = 20_000 // maximum number of valid short-lived tokens; one tenant can have half of them
)

// errIssued is the error of a request for a short-lived token while maxIssued are valid.
var errIssued = errors.New("too many short-lived tokens are valid")

// cookieName returns the name of the cookie that a one-time link sets. It has the port by which the client reached the
// server: browsers send a cookie to all ports of a host.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "coppice-" + port
	}
	return "coppice"
}

// hash is the SHA-256 of a secret, by which secrets are looked up. The time of a lookup reveals nothing about a secret,
// because an attacker cannot choose the hash of a guess.
type hash [sha256.Size]byte

// grant is what a token allows.
type grant struct {
	tenant string // the tenant whose sessions it allows; "" = those of all tenants, and those outside of tenants
	alone  bool   // with tenant "": only the sessions outside of tenants
	rights Rights
	only   Only
	until  time.Time // it is invalid from then on; zero = it does not expire
	who    string    // name of the client in the audit log
}

// Only restricts a request to one session, or to the sessions that have Value under Key in their metadata. The zero
// value does not restrict it.
type Only struct{ Session, Key, Value string }

// Quota bounds what a tenant stores. 0 = no bound.
type Quota struct {
	Sessions int   // at most
	Bytes    int64 // above which no more are stored, as docs/http.md counts them
}

// Tokens authorizes clients by secrets: tokens of a list, short-lived tokens, one-time links and the cookies that these
// set. It only stores hashes of them. It is safe for concurrent use.
type Tokens struct {
	now  func() time.Time
	most int // maximum number of valid short-lived tokens

	mu      sync.Mutex
	list    tokenList
	links   []secretOf // unused codes of links, oldest first
	cookies []secretOf // oldest first
	issued  map[hash]issued
}

// tokenList is the contents of a token file.
type tokenList struct {
	known  map[hash]grant
	quotas map[string]Quota // by tenant; "-" = the default for other tenants
}

// secretOf is a secret that the server has made, and what it allows.
type secretOf struct {
	hash
	grant
}

// issued is a short-lived token. It becomes invalid with the token that it was requested with.
type issued struct {
	grant
	by hash // of the token that it was requested with
}

// ParseTokens reads a list of tokens: a line is the SHA-256 of a token in hex, a tenant ("-" = all of them, and what
// belongs to none), and the rights: read, and after commas write, delete, erase, hold and issue (of short-lived
// tokens), or admin, which is all of them. write has delete too, unless the list has -delete. Words may follow:
// until=TIME (RFC 3339), from which on the token is not valid, session=ID or meta.KEY=VALUE, which narrow it as Only
// does, and name=NAME, by which the audit log calls it. A line "quota TENANT sessions=N bytes=N" bounds what a tenant
// stores, "-" = each that has no line. Empty lines and lines that begin with # are comments. At most 10,000 tokens;
// none at all is an error. No error repeats what is in a line, which might be a secret.
func ParseTokens(r io.Reader) (*Tokens, error) {
	list, err := parseTokens(r)
	if err != nil {
		return nil, err
	}
	now := time.Now //nolint:forbidigo // the default
	return &Tokens{now: now, most: maxIssued, list: list, issued: map[hash]issued{}}, nil
}

// Reload replaces the tokens and quotas by those of another list. Links, cookies and short-lived tokens stay, but for
// those of tokens that are gone. After an error everything is as it was.
func (t *Tokens) Reload(r io.Reader) error {
	list, err := parseTokens(r)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = list
	return nil
}

func parseTokens(r io.Reader) (l tokenList, err error) {
	l = tokenList{map[hash]grant{}, map[string]Quota{}}
	lines := bufio.NewScanner(r) // of at most 64 KiB
	n := 0
	for lines.Scan() {
		n++
		if err := l.add(strings.Fields(lines.Text())); err != nil {
			return l, fmt.Errorf("read tokens: line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return l, fmt.Errorf("read tokens: line %d: %w", n+1, err)
	}
	if len(l.known) == 0 {
		return l, errors.New("read tokens: there is none")
	}
	return l, nil
}

// add adds a line of a token file, split into fields.
func (l tokenList) add(fields []string) error {
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return nil
	}
	if len(fields) < 3 {
		return fmt.Errorf("%d words: want a SHA-256, a tenant or -, and rights", len(fields))
	}
	tenant := fields[1]
	if tenant != "-" && !validTenant(tenant) {
		return errors.New("the tenant is no valid name")
	}
	if fields[0] == "quota" {
		return l.addQuota(tenant, fields[2:])
	}
	raw, err := hex.DecodeString(fields[0])
	h := hash{}
	if copy(h[:], raw); err != nil || len(raw) != len(h) {
		return errors.New("the first word is no SHA-256 in hex")
	}
	g := grant{tenant: strings.TrimPrefix(tenant, "-"), who: "token:" + h.short()}
	if g.rights, err = parseRights(fields[2]); err != nil {
		return err
	}
	if err = g.narrow(fields[3:]); err != nil {
		return err
	}
	switch _, twice := l.known[h]; {
	case twice:
		return errors.New("the token is in an earlier line too")
	case h == sha256.Sum256(nil):
		return errors.New("the first word is the SHA-256 of nothing")
	case len(l.known) == maxTokens:
		return fmt.Errorf("more than %d tokens", maxTokens)
	}
	l.known[h] = g
	return nil
}

// maxName is the maximum length of the name of a token, in bytes.
const maxName = 64

// narrow applies the words after the rights in a line: until, name, session or meta.
func (g *grant) narrow(words []string) (err error) {
	seen := map[string]bool{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		key, meta := strings.CutPrefix(name, "meta.")
		switch {
		case seen[name], value == "" && !meta:
			return errors.New("a word after the rights is there twice, or has no value")
		case name == "until":
			if g.until, err = time.Parse(time.RFC3339, value); err != nil {
				return errors.New("until is no time such as 2026-12-31T00:00:00Z")
			}
		case name == "name" && len(value) <= maxName && utf8.ValidString(value):
			g.who = value
		case name == "session" && g.only == Only{}:
			g.only.Session = value
		case meta && key != "" && g.only == Only{}:
			g.only.Key, g.only.Value = key, value
		default:
			return errors.New("a word after the rights is none of until=, name=, and one of session= and meta.KEY=")
		}
		seen[name] = true
	}
	return nil
}

// ended reports whether a grant has expired.
func (g *grant) ended(now time.Time) bool { return !g.until.IsZero() && !now.Before(g.until) }

// short returns the first 8 hex digits of a hash: enough to distinguish the tokens of a server, too few to guess a
// token.
func (h hash) short() string { return hex.EncodeToString(h[:4]) }

// addQuota adds a quota line for a tenant ("-" = the default).
func (l tokenList) addQuota(tenant string, words []string) error {
	if _, twice := l.quotas[tenant]; twice {
		return errors.New("the tenant has a quota in an earlier line too")
	}
	var q Quota
	for _, word := range words {
		name, text, _ := strings.Cut(word, "=")
		n, err := strconv.ParseInt(text, 10, 64)
		switch {
		case err != nil || n < 0:
			return errors.New("a quota is no number")
		case name == "sessions":
			q.Sessions = int(n)
		case name == "bytes":
			q.Bytes = n
		default:
			return errors.New("a quota is neither of sessions nor of bytes")
		}
	}
	l.quotas[tenant] = q
	return nil
}

// quota returns the quota of a tenant, or the default one.
func (t *Tokens) quota(tenant string) Quota {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q, ok := t.list.quotas[tenant]; ok {
		return q
	}
	return t.list.quotas["-"]
}

// validTenant reports whether name is a valid name of a tenant: 1 to 64 characters of a-z, 0-9, - and _. Two such names
// never mean the same folder on any file system. Names of folders of a store are not valid, because a store may be in
// the same place.
func validTenant(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" &&
		!layout.TopFolder(name)
}

// Authorize returns what a request may do, for Options.Authorize. It uses the token in "Authorization: Bearer", else
// the cookie that a one-time link has set. The error is ErrUnauthorized without a valid one, and ErrForbidden if it
// belongs to another tenant.
func (t *Tokens) Authorize(r *http.Request) (Access, error) {
	g, err := t.grantOf(r)
	if err != nil {
		return Access{}, err
	}
	tenant := r.PathValue("tenant")
	if g.tenant != tenant && (g.tenant != "" || g.alone) {
		return Access{Tenant: tenant, Who: g.who}, ErrForbidden
	}
	return Access{Rights: g.rights, Only: g.only, Tenant: tenant, Who: g.who}, nil
}

// bearer returns the hash of the token in the header Authorization, and false if the scheme is not Bearer.
func bearer(r *http.Request) (h hash, ok bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return sha256.Sum256([]byte(strings.TrimSpace(token))), strings.EqualFold(scheme, "Bearer")
}

// grantOf returns the grant of the token or the cookie of a request, else ErrUnauthorized.
func (t *Tokens) grantOf(r *http.Request) (grant, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Header.Get("Authorization") != "" {
		h, ok := bearer(r)
		if !ok {
			return grant{}, ErrUnauthorized
		}
		now := t.now()
		g, ok := t.list.known[h]
		if i, short := t.issued[h]; !ok && short && !i.ended(now) {
			if g, ok = t.list.known[i.by]; ok && !g.ended(now) {
				return i.grant, nil
			}
		}
		if !ok || g.ended(now) {
			return grant{}, ErrUnauthorized
		}
		return g, nil
	}
	for _, c := range r.CookiesNamed(cookieName(r)) {
		if i := find(t.cookies, c.Value); i >= 0 {
			return t.cookies[i].grant, nil
		}
	}
	return grant{}, ErrUnauthorized
}

// issue makes a short-lived token with the rights g. It is valid for age, and as long as the token of the request r is.
func (t *Tokens) issue(r *http.Request, g grant, age time.Duration) (token string, until time.Time, err error) {
	by, _ := bearer(r)
	token = secret()
	t.mu.Lock()
	defer t.mu.Unlock()
	now, own := t.now(), 0
	maps.DeleteFunc(t.issued, func(_ hash, i issued) bool {
		ended := i.ended(now)
		if !ended && i.tenant == g.tenant {
			own++
		}
		return ended
	})
	if len(t.issued) >= t.most || own >= t.most/2 {
		return "", until, retry(newProblem(http.StatusServiceUnavailable, "busy", "", errIssued))
	}
	until = now.Add(age)
	h := hash(sha256.Sum256([]byte(token)))
	g.until, g.who = until, shortName(token)+" of "+g.who
	t.issued[h] = issued{g, by}
	return token, until, nil
}

// shortName returns the name of a short-lived token in the audit log.
func shortName(token string) string { return "short:" + hash(sha256.Sum256([]byte(token))).short() }

// Link returns a code that is valid once. The page at /login?code=CODE sends it by POST, which sets a cookie with all
// rights but issue, and leads to the viewer; at /t/NAME/login?code=CODE, the cookie is of this tenant alone. A GET uses
// up nothing. The newest 16 codes are valid.
func (t *Tokens) Link() string {
	code := secret()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links = add(t.links, secretOf{sha256.Sum256([]byte(code)), grant{rights: Admin &^ Issue}}, maxLinks)
	return code
}

// redeem uses up the code of a link and returns the value of a new cookie for a tenant ("" = all). ok is false if the
// code is not valid or was used before.
func (t *Tokens) redeem(code, tenant string) (value string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := find(t.links, code)
	if i < 0 {
		return "", false
	}
	g := t.links[i].grant
	g.tenant = tenant
	t.links = slices.Delete(t.links, i, i+1)
	value = secret()
	h := hash(sha256.Sum256([]byte(value)))
	g.who = browser(h)
	t.cookies = add(t.cookies, secretOf{h, g}, maxCookies)
	return value, true
}

// valid reports whether a code is that of an unused link.
func (t *Tokens) valid(code string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return find(t.links, code) >= 0
}

// browsers returns the name in the audit log of the browser that sent a request; "" = it has no valid cookie.
func (t *Tokens) browsers(r *http.Request) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName(r)) {
		if i := find(t.cookies, c.Value); i >= 0 {
			return t.cookies[i].who
		}
	}
	return ""
}

// forget makes the cookies of a request invalid.
func (t *Tokens) forget(r *http.Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName(r)) {
		if i := find(t.cookies, c.Value); i >= 0 {
			t.cookies = slices.Delete(t.cookies, i, i+1)
		}
	}
}

// secret returns at least 128 random bits as text.
func secret() string {
	return rand.Text() //nolint:forbidigo // a secret must not be reproducible
}

// find returns the index of a secret in list; -1 = it is not in it.
func find(list []secretOf, value string) int {
	h := hash(sha256.Sum256([]byte(value)))
	return slices.IndexFunc(list, func(s secretOf) bool { return s.hash == h })
}

// add appends s to list. If that has limit elements already it removes the oldest ones.
func add(list []secretOf, s secretOf, limit int) []secretOf {
	if len(list) >= limit {
		list = slices.Delete(list, 0, len(list)-limit+1)
	}
	return append(list, s)
}

// loginPage is the page of a one-time link. A person presses its button to use the code, so that a program that only
// loads the link does not use it up.
const loginPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>coppice: log in</title><form method="post"><button autofocus>Log in</button></form></html>
`

// loginPolicy is the content security policy of loginPage.
const loginPolicy = "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// describeLogin registers the routes for login and logout of a browser.
func (s *Server) describeLogin() {
	if s.o.Tokens == nil {
		return
	}
	s.mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", loginPolicy)
		_, _ = io.WriteString(w, loginPage) // a client that left reads nothing
	})
	s.mux.HandleFunc("POST /login", s.login)
	s.mux.HandleFunc("POST /logout", s.logout)
}

// logout makes the cookie of a request invalid and removes it from the browser.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if who := s.o.Tokens.browsers(r); who != "" {
		end, err := s.begin(r.Context(), audit.Act{Who: who, Tenant: r.PathValue("tenant"), Act: "logout"})
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.o.Tokens.forget(r)
		s.ended(r.Context(), end, http.StatusNoContent, false, nil)
	}
	setCookie(w, r, "", -1)
	w.WriteHeader(http.StatusNoContent)
}

// setCookie sets the cookie of the path below which the request came.
func setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	// A header of the client's makes its cookie stricter at most.
	secure := r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https"
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: r.PathValue("prefix") + "/", MaxAge: age, HttpOnly: true,
		Secure: secure, SameSite: http.SameSiteStrictMode,
	})
}

// redeemCode exchanges the code in the query of a request for the value of a cookie; ok is false if the code is not
// valid or was used before. The audit log has a line for each valid code only, because anyone can send invalid ones.
func (s *Server) redeemCode(r *http.Request) (value string, ok bool, err error) {
	code, tenant := r.URL.Query().Get("code"), r.PathValue("tenant")
	if !s.o.Tokens.valid(code) {
		return "", false, nil
	}
	end, err := s.begin(r.Context(), audit.Act{Tenant: tenant, Act: "login"})
	if err != nil {
		return "", false, err
	}
	status, ids := http.StatusUnauthorized, []string(nil) // another request used the code
	if value, ok = s.o.Tokens.redeem(code, tenant); ok {
		status, ids = http.StatusSeeOther, []string{browser(sha256.Sum256([]byte(value)))}
	}
	s.ended(r.Context(), end, status, false, ids)
	return value, ok, nil
}

// login makes a cookie out of a code. A person whose code is not valid gets to the viewer, which opens if the browser
// has a cookie already, and else asks for a token and shows why.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	value, ok, err := s.redeemCode(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	place := r.PathValue("prefix") + "/"
	switch {
	case ok:
		setCookie(w, r, value, 0)
	case !s.o.NoViewer && strings.Contains(r.Header.Get("Accept"), "text/html"):
		place += "?link=used"
	default:
		s.fail(w, r, newProblem(http.StatusUnauthorized, "unauthorized", "the server prints a new link when it starts",
			errors.New("the link is not valid, or was used")))
		return
	}
	w.Header().Set("Location", place)
	w.WriteHeader(http.StatusSeeOther)
}
