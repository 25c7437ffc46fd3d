package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	coppice "github.com/coppice-go/coppice"
)

// storeOf returns the store that a request is for. The store of a tenant stays open until the door releases it.
func (s *Server) storeOf(r *http.Request) (*coppice.Store, error) {
	if name := r.PathValue("tenant"); name != "" {
		t, err := s.tenants.acquire(r.Context(), name)
		if err != nil {
			return nil, err
		}
		seenOf(r).tenant = t
		return t.st, nil
	}
	if s.o.Store == nil && s.o.Tenant != nil {
		return nil, fmt.Errorf("only tenants have sessions, at /t/NAME/v1: %w", fs.ErrNotExist)
	}
	if s.o.Store == nil {
		return nil, errors.New("authorize returned no store")
	}
	return s.o.Store, nil
}

// place returns the request for the mux: its path without the base path and without /t/NAME, whose name becomes the
// path value "tenant". Both are compared in their escaped form, so that an escaped slash or dot cannot be a part of
// them. It returns false if the path is not below the base path, or has no valid tenant.
func (s *Server) place(r *http.Request) (*http.Request, bool) {
	prefix, name := s.o.BasePath, ""
	at, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if rest, is := strings.CutPrefix(at, "/t/"); ok && is && s.o.Tenant != nil {
		name, _, _ = strings.Cut(rest, "/")
		prefix, at, ok = prefix+"/t/"+name, rest[len(name):], validTenant(name)
	}
	plain, err := url.PathUnescape(at)
	if !ok || err != nil || at != "" && at[0] != '/' {
		return r, false
	}
	if prefix == "" {
		return r, true
	}
	out := r.Clone(r.Context())
	out.URL.Path, out.URL.RawPath = plain, at
	out.SetPathValue("tenant", name)
	out.SetPathValue("prefix", prefix)
	return out, true
}
