package server_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/internal/fault"
	"github.com/coppice-go/coppice/server"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// viewerHeaders checks the headers that the page and its files have.
func (r reply) viewerHeaders(t *testing.T, kind, cache string) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Content-Type": kind, "Cache-Control": cache,
	} {
		if got := r.Header.Get(name); got != want || len(r.Header.Values(name)) != 1 {
			t.Errorf("%s: %s is %q, want %q", r.Request.URL.Path, name, r.Header.Values(name), want)
		}
	}
	if tag := r.etag(); len(tag) < 10 || tag[0] != '"' {
		t.Errorf("%s: ETag %s", r.Request.URL.Path, tag)
	}
}

const pageKind = "text/html; charset=utf-8"

// links finds the URLs in the page.
var links = regexp.MustCompile(`(?:src|href)="([^"]*)"`)

// The page is at the root and at each session, of every tenant, below the base path, without a token; it names the base
// path and its files, which are there, and are kept for ever by the URL with their digest.
func TestViewer(t *testing.T) {
	s, opened := byTenant(t, withTokens(someTokens(t)), func(o *server.Options) { o.BasePath = "/coppice" })
	for _, base := range []string{"/coppice", "/coppice/t/acme", "/coppice/t/nobody"} {
		for _, path := range []string{"/", "/s/some-session", "/s/none", "/s/..%2f..%2fv1", "/s/" + strings.Repeat("a", 300)} {
			r := s.do("GET", base+path, "")
			r.want(t, 200)
			r.viewerHeaders(t, pageKind, "no-cache")
			page := string(r.body)
			if !strings.Contains(page, `<meta name="coppice-base" content="`+base+`">`) ||
				!strings.Contains(page, `<meta name="coppice-mode" content="read-write">`) {
				t.Errorf("%s%s: %s", base, path, page)
			}
			found := links.FindAllStringSubmatch(page, -1)
			if len(found) < 2 {
				t.Fatalf("%s", page)
			}
			for _, link := range found {
				if !strings.HasPrefix(link[1], base+"/assets/") {
					t.Fatalf("%s%s: %s", base, path, link[1])
				}
				if r := s.do("GET", link[1], ""); r.StatusCode != http.StatusOK ||
					r.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
					t.Errorf("%s: %d, %s", link[1], r.StatusCode, r.Header.Get("Cache-Control"))
				}
			}
		}
		js, err := os.ReadFile("dist/app.js")
		if err != nil {
			t.Fatal(err)
		}
		for _, old := range []string{"", "old/", strings.Repeat("0", 24) + "/"} {
			r := s.do("GET", base+"/assets/"+old+"app.js", "")
			r.viewerHeaders(t, "text/javascript; charset=utf-8", "no-cache")
			if r.want(t, 200); !bytes.Equal(r.body, js) {
				t.Errorf("%d bytes, the file has %d", len(r.body), len(js))
			}
		}
		s.do("GET", base+"/assets/app.css", "").viewerHeaders(t, "text/css; charset=utf-8", "no-cache")
		s.do("GET", base+"/v1/sessions", "").want(t, 401)
	}
	if len(opened) > 0 {
		t.Errorf("stores were opened: %v", opened)
	}
	for _, path := range []string{"/", "/s/x", "/assets/app.js", "/coppicex/", "/t/acme/"} {
		s.do("GET", path, "").want(t, 404)
	}
}

// HEAD has the headers of GET, and what is known is 304.
func TestViewerConditions(t *testing.T) {
	s := newSite(t, "mem:")
	for path, kind := range map[string]string{"/": pageKind, "/s/x": pageKind, "/assets/app.js": "text/javascript; charset=utf-8"} {
		get, head := s.do("GET", path, ""), s.do("HEAD", path, "")
		head.want(t, 200)
		head.viewerHeaders(t, kind, "no-cache")
		if len(head.body) > 0 || head.etag() != get.etag() || head.ContentLength != int64(len(get.body)) {
			t.Errorf("HEAD %s: %d of %d bytes, %s", path, head.ContentLength, len(get.body), head.etag())
		}
		for _, method := range []string{"GET", "HEAD"} {
			r := s.do(method, path, "", "If-None-Match: "+get.etag())
			r.want(t, 304)
			if len(r.body) > 0 || r.etag() != get.etag() || r.Header.Get("Content-Security-Policy") != policy {
				t.Errorf("%s %s: %v", method, path, r.Header)
			}
		}
		s.do("GET", path, "", `If-None-Match: "other"`).want(t, 200)
		if reader := newSite(t, "mem:", func(o *server.Options) { o.ReadOnly = true }); kind == pageKind {
			r := reader.do("GET", path, "")
			if !strings.Contains(string(r.body), `<meta name="coppice-mode" content="read-only">`) || r.etag() == get.etag() {
				t.Errorf("read-only: %s %s", r.etag(), r.body)
			}
		}
	}
}

// A path without its last slash leads to the page, where the page's own paths are right.
func TestViewerSlash(t *testing.T) {
	s, _ := byTenant(t, withTokens(someTokens(t)), func(o *server.Options) { o.BasePath = "/coppice" })
	for _, path := range []string{"/coppice", "/coppice/t/acme"} {
		r := s.direct("GET", path)
		if r.want(t, 307); r.Header.Get("Location") != path+"/" {
			t.Errorf("%s: %v", path, r.Header)
		}
		s.direct("POST", path).want(t, 404)
	}
}

// Nothing but the files of the viewer is ever found among them.
func TestViewerTraversal(t *testing.T) {
	s := newSite(t, "mem:")
	for _, path := range []string{
		"/assets/", "/assets/index.html", "/assets/none.js", "/assets/../viewer.go", "/assets/..%2fviewer.go",
		"/assets/%2e%2e/viewer.go", "/assets/..%5cviewer.go", "/assets/app.js/", "/assets/x/y/app.js", "/assets/x/none.js", "/assets//app.js",
		"/assets/app.js%00", "/assets/%2fetc%2fpasswd", "/assets/./app.js", "/s/", "/s/x/y", "/s//x", "/index.html", "/dist/app.js",
	} {
		if r := s.raw(t, "GET", path); r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}

// Text is compressed as the client accepts it, under the same ETag.
func TestViewerCompressed(t *testing.T) {
	base := "/" + strings.Repeat("a", 300) // the page names it often enough to be worth it
	s := newSite(t, "mem:", func(o *server.Options) { o.BasePath = base })
	for _, path := range []string{"/s/x", "/assets/app.js", "/assets/app.css"} {
		plain := s.do("GET", base+path, "", "Accept-Encoding: identity")
		if len(plain.body) < 1024 && path != "/s/x" {
			continue
		}
		for encoding, open := range map[string]func(io.Reader) (io.Reader, error){
			"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
			"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
		} {
			r := s.do("GET", base+path, "", "Accept-Encoding: "+encoding)
			in, err := open(bytes.NewReader(r.body))
			if r.Header.Get("Content-Encoding") != encoding || err != nil || r.etag() != plain.etag() ||
				!strings.Contains(strings.Join(r.Header.Values("Vary"), ","), "Accept-Encoding") {
				t.Fatalf("%s: %v, %v", path, r.Header, err)
			}
			if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, plain.body) {
				t.Errorf("%s as %s: %d bytes, want %d; %v", path, encoding, len(got), len(plain.body), err)
			}
		}
	}
}

// The page and its files ask no store, and no one whether the client may read them. A program that mounts the API alone
// does not have them.
func TestViewerReadsNoStore(t *testing.T) {
	b := fault.New(memory.New(), 1)
	calls, asked := 0, 0
	b.Add(fault.Rule{When: func(fault.Call) bool { calls++; return false }})
	st, err := coppice.New(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	o := server.Options{Store: st, Authorize: func(*http.Request) (server.Access, error) {
		asked++
		return server.Access{Rights: server.Read}, nil
	}}
	for _, none := range []bool{false, true} {
		o.NoViewer = none
		srv, err := server.New(o)
		if err != nil {
			t.Fatal(err)
		}
		calls, asked = 0, 0
		for _, path := range []string{"/", "/s/x", "/assets/app.js", "/assets/none"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = "localhost"
			srv.ServeHTTP(w, r)
			if want := map[bool]int{true: 404, false: 200}[none || path == "/assets/none"]; w.Code != want {
				t.Errorf("without viewer: %v: %s: %d", none, path, w.Code)
			}
		}
		if calls > 0 || !none && asked > 0 {
			t.Errorf("%d requests to the store, %d to Authorize", calls, asked)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Bounds of what a browser loads, in bytes after gzip: before the first message is painted, and in all.
const (
	maxFirstPaint = 95_000
	maxViewer     = 280_000
)

// The viewer stays small: a library that is added to it has to be worth its place.
func TestViewerSize(t *testing.T) {
	first, all := 0, 0
	files, err := os.ReadDir("dist")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		raw, err := os.ReadFile("dist/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		_, _ = w.Write(raw)
		_ = w.Close()
		switch f.Name() {
		case "THIRD_PARTY.txt": // which no page loads
		case "index.html", "app.js", "chunk.js", "app.css":
			first += packed.Len()
			fallthrough
		default:
			all += packed.Len()
		}
	}
	t.Logf("%d bytes before the first paint, %d in all", first, all)
	if first > maxFirstPaint || all > maxViewer {
		t.Errorf("%d bytes before the first paint, at most %d; %d in all, at most %d", first, maxFirstPaint, all, maxViewer)
	}
	if first < maxFirstPaint/2 {
		t.Errorf("%d bytes before the first paint: the viewer is not in server/dist", first)
	}
}
