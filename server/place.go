package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"sync"

	coppice "github.com/coppice-go/coppice"
)

// errTenants is the error of a tenant that would be one too many.
var errTenants = errors.New("too many tenants are in use")

// tenants are the stores of tenants, each asked for once.
type tenants struct {
	open  func(name string) (*coppice.Store, error)
	limit int

	mu     sync.Mutex
	stores map[string]*coppice.Store
}

// store returns the store of a tenant.
func (t *tenants) store(name string) (*coppice.Store, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if st := t.stores[name]; st != nil {
		return st, nil
	}
	if len(t.stores) >= t.limit {
		return nil, retry(newProblem(http.StatusServiceUnavailable, "busy", "", errTenants))
	}
	st, err := t.open(name)
	if err != nil {
		return nil, fmt.Errorf("tenant %s: %w", name, err)
	}
	t.stores[name] = st
	return st, nil
}

// storeOf returns the store of a request.
func (s *Server) storeOf(r *http.Request) (*coppice.Store, error) {
	if name := r.PathValue("tenant"); name != "" {
		return s.tenants.store(name)
	}
	if s.o.Store == nil && s.o.Tenant != nil {
		return nil, fmt.Errorf("only tenants have sessions, at /t/NAME/v1: %w", fs.ErrNotExist)
	}
	if s.o.Store == nil {
		return nil, errors.New("authorize returned no store")
	}
	return s.o.Store, nil
}

// place returns a request as its operation sees it: without the base path and without /t/NAME, which becomes the path
// value tenant. false = there is nothing at this path.
func (s *Server) place(r *http.Request) (*http.Request, bool) {
	prefix := s.o.BasePath
	path, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok || prefix != "" && path != "" && path[0] != '/' {
		return r, false
	}
	name := ""
	if rest, is := strings.CutPrefix(path, "/t/"); is && s.o.Tenant != nil {
		if name, path, ok = strings.Cut(rest, "/"); !validTenant(name) {
			return r, false
		}
		prefix += "/t/" + name
		if ok {
			path = "/" + path
		}
	}
	if prefix == "" {
		return r, true
	}
	raw := ""
	if r.URL.RawPath != "" {
		if raw, ok = strings.CutPrefix(r.URL.RawPath, prefix); !ok {
			return r, false
		}
	}
	out := r.Clone(r.Context())
	out.URL = &url.URL{
		Scheme: r.URL.Scheme, Host: r.URL.Host, Path: path, RawPath: raw, RawQuery: r.URL.RawQuery, User: r.URL.User,
	}
	out.SetPathValue("tenant", name)
	out.SetPathValue("prefix", prefix)
	return out, true
}
