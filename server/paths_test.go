package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/server"
)

// What no operation answers is a problem like any other: 404, or 405 with the methods that the path has.
func TestNoSuchOperation(t *testing.T) {
	s := newSite(t, "mem:", withTokens(someTokens(t)), func(o *server.Options) { o.BasePath = "/coppice" })
	for _, c := range []struct {
		method, path string
		status       int
		code, allow  string
	}{
		{"GET", "/other", 404, "not-found", ""},
		{"POST", "/", 405, "method", "GET, HEAD"},
		{"PUT", "/s/x", 405, "method", "GET, HEAD"},
		{"DELETE", "/assets/app.js", 405, "method", "GET, HEAD"},
		{"GET", "/v1", 404, "not-found", ""},
		{"GET", "/v1/nothing", 404, "not-found", ""},
		{"GET", "/v1/sessions/", 404, "not-found", ""},
		{"GET", "/v1/sessions/s/nothing", 404, "not-found", ""},
		{"POST", "/v1/sessions/s/commits/1/2", 404, "not-found", ""},
		{"GET", "/v1//sessions", 404, "not-found", ""},
		{"GET", "/v1/sessions/../health", 404, "not-found", ""},
		{"GET", "/v1/./health", 404, "not-found", ""},
		{"GET", "//evil.example/v1/health", 404, "not-found", ""},
		{"POST", "/v1/health", 405, "method", "GET, HEAD"},
		{"DELETE", "/v1/sessions", 405, "method", "GET, HEAD"},
		{"GET", "/v1/sessions/s/rollback", 405, "method", "POST"},
		{"POST", "/v1/sessions/s", 405, "method", "GET, HEAD, PUT, PATCH, DELETE"},
		{"PUT", "/v1/sessions/s/commits", 405, "method", "GET, HEAD, POST"},
		{"BREW", "/v1/sessions", 405, "method", "GET, HEAD"},
		{"OPTIONS", "/v1/sessions", 405, "method", "GET, HEAD"},
	} {
		r := s.do(c.method, "/coppice"+c.path, "", "Authorization: Bearer writer")
		p := r.want(t, c.status)
		if p["code"] != c.code || p["hint"] == "" || r.Header.Get("Content-Type") != "application/problem+json" ||
			r.Header.Get("Allow") != c.allow || r.Header.Get("Location") != "" {
			t.Errorf("%s %s: %v %s", c.method, c.path, r.Header, r.body)
		}
	}
	if r := s.do("HEAD", "/coppice/v1/nothing", "", "Authorization: Bearer writer"); r.StatusCode != http.StatusNotFound {
		t.Errorf("HEAD: %d", r.StatusCode)
	}
}

// A method of any length is answered, and a path of many segments.
func TestHostileMethods(t *testing.T) {
	s := newSite(t, "mem:")
	for _, method := range []string{"X", strings.Repeat("M", 10_000), "get", "CONNECT"} {
		r := httptest.NewRequest(http.MethodGet, "/v1/health", nil)
		r.Host, r.Method = "localhost", method
		w := httptest.NewRecorder()
		s.srv.ServeHTTP(w, r)
		if w.Code != 405 || !strings.Contains(w.Body.String(), `"code":"method"`) {
			t.Errorf("%.20s: %d %.200s", method, w.Code, w.Body)
		}
	}
	s.do("GET", "/v1"+strings.Repeat("/a", 4000), "").want(t, 404)
}
