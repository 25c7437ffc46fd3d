package server

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Bounds of Tokens. Of links and cookies the oldest one goes when there are more.
const (
	maxTokens  = 10_000
	maxLinks   = 16
	maxCookies = 1024
)

// cookieName returns the name of the cookie that a one-time link sets. It has the port by which the client reached the
// server: browsers send a cookie to all ports of a host.
func cookieName(r *http.Request) string {
	if _, port, err := net.SplitHostPort(r.Host); err == nil {
		return "coppice-" + port
	}
	return "coppice"
}

// hash is the SHA-256 of a secret. Secrets are looked up by it: the time that this takes says nothing about a secret,
// because no one can choose the hash of a guess.
type hash [sha256.Size]byte

// grant is what a token allows.
type grant struct {
	tenant string // "" = what belongs to no tenant, and every tenant
	write  bool
}

// Tokens are the secrets by which a server knows its clients. It holds hashes, and none of the secrets. Safe for
// concurrent use.
type Tokens struct {
	known map[hash]grant

	mu      sync.Mutex
	links   []secretOf // codes that were not used yet, oldest first
	cookies []secretOf // oldest first
}

// secretOf is a secret that the server made, and what it allows.
type secretOf struct {
	hash
	grant
}

// ParseTokens reads a list of tokens: a line is the SHA-256 of a token in hex, a tenant ("-" = all of them, and what
// belongs to none), and the rights, "read" or "read,write". Empty lines and lines that begin with # say nothing. At
// most 10,000 tokens; none at all is an error. No error repeats what is in a line, which might be a secret.
func ParseTokens(r io.Reader) (*Tokens, error) {
	t := &Tokens{known: map[hash]grant{}}
	lines := bufio.NewScanner(r) // of at most 64 KiB
	n := 0
	for lines.Scan() {
		n++
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		h, g, err := parseToken(fields)
		if err != nil {
			return nil, fmt.Errorf("read tokens: line %d: %w", n, err)
		}
		if _, twice := t.known[h]; twice {
			return nil, fmt.Errorf("read tokens: line %d: the token is in an earlier line too", n)
		}
		if len(t.known) == maxTokens {
			return nil, fmt.Errorf("read tokens: line %d: more than %d tokens", n, maxTokens)
		}
		t.known[h] = g
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read tokens: line %d: %w", n+1, err)
	}
	if len(t.known) == 0 {
		return nil, errors.New("read tokens: there is none")
	}
	return t, nil
}

func parseToken(fields []string) (h hash, g grant, err error) {
	if len(fields) != 3 {
		return h, g, fmt.Errorf("%d words: want a SHA-256, a tenant or -, and read or read,write", len(fields))
	}
	raw, err := hex.DecodeString(fields[0])
	if err != nil || len(raw) != len(h) {
		return h, g, errors.New("the first word is no SHA-256 in hex")
	}
	if hash(raw) == sha256.Sum256(nil) {
		return h, g, errors.New("the first word is the SHA-256 of nothing")
	}
	if fields[1] != "-" {
		if g.tenant = fields[1]; !validTenant(g.tenant) {
			return h, g, errors.New("the tenant is no valid name")
		}
	}
	switch fields[2] {
	case "read":
	case "read,write":
		g.write = true
	default:
		return h, g, errors.New("the rights are neither read nor read,write")
	}
	return hash(raw), g, nil
}

// validTenant reports whether a name can be a tenant's: 1 to 64 of a-z, 0-9, - and _, so that no two names are one
// folder anywhere.
func validTenant(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Authorize returns what the token of a request allows: that of Authorization: Bearer, else the cookie that a one-time
// link has set. It is an Options.Authorize. Errors are ErrUnauthorized, and ErrForbidden for a token of another tenant.
func (t *Tokens) Authorize(r *http.Request) (Access, error) {
	g, err := t.grantOf(r)
	if err != nil {
		return Access{}, err
	}
	tenant := r.PathValue("tenant")
	if g.tenant != "" && g.tenant != tenant {
		return Access{}, ErrForbidden
	}
	return Access{Read: true, Write: g.write, Tenant: tenant}, nil
}

func (t *Tokens) grantOf(r *http.Request) (grant, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		g, ok := t.known[sha256.Sum256([]byte(strings.TrimSpace(token)))]
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			return grant{}, ErrUnauthorized
		}
		return g, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range r.CookiesNamed(cookieName(r)) {
		if i := find(t.cookies, c.Value); i >= 0 {
			return t.cookies[i].grant, nil
		}
	}
	return grant{}, ErrUnauthorized
}

// Link returns a code that is valid once. The page at /login?code=CODE sends it by POST, which sets a cookie with all
// rights, and leads to the viewer; at /t/NAME/login?code=CODE, the cookie is of this tenant alone. A GET uses up
// nothing. The newest 16 codes are valid.
func (t *Tokens) Link() string {
	code := secret()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.links = add(t.links, secretOf{sha256.Sum256([]byte(code)), grant{write: true}}, maxLinks)
	return code
}

// redeem makes the value of a cookie, which is of a tenant, out of a code; false = the code is not valid, or not any
// more.
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
	t.cookies = add(t.cookies, secretOf{sha256.Sum256([]byte(value)), g}, maxCookies)
	return value, true
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

// secret returns 128 random bits as text.
func secret() string {
	return rand.Text() //nolint:forbidigo // a secret that a caller could make again is none
}

func find(list []secretOf, value string) int {
	h := hash(sha256.Sum256([]byte(value)))
	return slices.IndexFunc(list, func(s secretOf) bool { return s.hash == h })
}

// add appends to a list that is bounded.
func add(list []secretOf, s secretOf, limit int) []secretOf {
	if len(list) >= limit {
		list = slices.Delete(list, 0, len(list)-limit+1)
	}
	return append(list, s)
}

// loginPage is the page of a one-time link. It sends the code on when its button is pressed: what loads links ahead of
// people uses up nothing.
const loginPage = `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>coppice: log in</title><form method="post"><button autofocus>Log in</button></form></html>
`

// loginPolicy is what that page may do.
const loginPolicy = "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// describeLogin registers what a browser needs to get a cookie, and to lose it.
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
	s.mux.HandleFunc("POST /logout", func(w http.ResponseWriter, r *http.Request) {
		s.o.Tokens.forget(r)
		w.Header().Set("Cache-Control", "no-store")
		setCookie(w, r, "", -1)
		w.WriteHeader(http.StatusNoContent)
	})
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

// login makes a cookie out of a code. A person whose code is not valid gets to the viewer, which opens if the browser
// has a cookie already, and else asks for a token and shows why.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	value, ok := s.o.Tokens.redeem(r.URL.Query().Get("code"), r.PathValue("tenant"))
	w.Header().Set("Cache-Control", "no-store")
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
