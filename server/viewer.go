package server

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html"
	"net/http"
	"path"
	"strings"
	"sync"
)

//go:embed dist
var dist embed.FS

// viewerPolicy is what the page of the viewer may do: run the code of this server, and ask this server.
const viewerPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; " +
	"connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

// artefactKinds are the media types of artefacts, by the ends of their names.
var artefactKinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// artefact is a file of the viewer.
type artefact struct {
	body   []byte
	digest string // of body: its ETag, and v of the URLs by which the page asks for it
}

// artefacts returns the files of the viewer, by name, and the page before it is filled in. They are read once.
var artefacts = sync.OnceValues(func() (files map[string]artefact, page string) {
	list, err := dist.ReadDir("dist")
	if err != nil {
		panic(err) // it is in the program
	}
	files = map[string]artefact{}
	for _, f := range list {
		body, err := dist.ReadFile("dist/" + f.Name())
		if err != nil {
			panic(err)
		}
		if f.Name() == "index.html" {
			page = string(body)
			continue
		}
		files[f.Name()] = artefact{body, digestOf(body)}
	}
	for name, f := range files {
		page = strings.ReplaceAll(page, `"assets/`+name+`"`, `"`+baseMark+`/assets/`+name+`?v=`+f.digest+`"`)
	}
	return files, page
})

// baseMark is in the page where the path belongs below which the server is.
const baseMark = "\x00base"

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:12])
}

// page returns the page of the viewer for a path below which the server, or a tenant of it, is.
func (s *Server) page(base string) []byte {
	mode := "read-write"
	if s.o.ReadOnly {
		mode = "read-only"
	}
	base = html.EscapeString(base)
	_, page := artefacts()
	return []byte(strings.NewReplacer(
		`<meta name="coppice-base" content="">`, `<meta name="coppice-base" content="`+base+`">`,
		`<meta name="coppice-mode" content="">`, `<meta name="coppice-mode" content="`+mode+`">`,
		baseMark, base,
	).Replace(page))
}

// serveViewer registers the page and the artefacts of the viewer. They hold nothing of any store.
func (s *Server) serveViewer() {
	if s.o.NoViewer {
		return
	}
	page := func(w http.ResponseWriter, r *http.Request) {
		body := s.page(r.PathValue("prefix"))
		s.sendViewer(w, r, "text/html; charset=utf-8", "no-cache", artefact{body, digestOf(body)})
	}
	s.mux.HandleFunc("GET /{$}", page)
	s.mux.HandleFunc("GET /s/{id}", page)
	s.mux.HandleFunc("GET /assets/{file}", func(w http.ResponseWriter, r *http.Request) {
		files, _ := artefacts()
		name := r.PathValue("file")
		f, ok := files[name]
		if !ok {
			s.fail(w, r, errNoPath)
			return
		}
		cache := "no-cache"
		if r.URL.Query().Get("v") == f.digest {
			cache = "public, max-age=31536000, immutable"
		}
		kind := artefactKinds[path.Ext(name)]
		if kind == "" {
			kind = "application/octet-stream"
		}
		s.sendViewer(w, r, kind, cache, f)
	})
}

// isViewer reports whether a path is the page or an artefact of the viewer: what anyone may read, without a token.
func (s *Server) isViewer(r *http.Request) bool {
	if s.o.NoViewer || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	at := r.URL.EscapedPath()
	return at == "" || at == "/" || strings.HasPrefix(at, "/s/") || strings.HasPrefix(at, "/assets/")
}

// sendViewer writes a file of the viewer.
func (s *Server) sendViewer(w http.ResponseWriter, r *http.Request, kind, cache string, f artefact) {
	if seen, ok := r.Context().Value(seenKey{}).(*observed); ok {
		seen.operation = "viewer"
	}
	h := w.Header()
	h.Set("Content-Security-Policy", viewerPolicy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", cache)
	h.Set("ETag", quoteTag(f.digest))
	if matches(r.Header.Values("If-None-Match"), f.digest) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	h.Set("Content-Type", kind)
	if r.Method == http.MethodHead {
		h.Set("Content-Length", fmt.Sprint(len(f.body)))
		return
	}
	_, _ = bytes.NewReader(f.body).WriteTo(w) // a client that left reads nothing
}
