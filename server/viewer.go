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
	digest string // of body: its ETag
}

// viewerFiles are the files of the viewer, as they are in the program.
type viewerFiles struct {
	byName  map[string]artefact
	page    string // before it is filled in
	version string // of all files: a part of the URLs by which the page, and the code that it loads, ask for them
}

// artefacts returns the files of the viewer. They are read once.
var artefacts = sync.OnceValue(func() viewerFiles {
	v := viewerFiles{byName: map[string]artefact{}}
	all := sha256.New()
	list, err := dist.ReadDir("dist")
	if err != nil {
		panic(err) // it is in the program
	}
	for _, f := range list {
		body, err := dist.ReadFile("dist/" + f.Name())
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(all, "%s\x00%d\x00%s", f.Name(), len(body), body)
		if f.Name() == "index.html" {
			v.page = string(body)
			continue
		}
		v.byName[f.Name()] = artefact{body, digestOf(body)}
	}
	v.version = hex.EncodeToString(all.Sum(nil)[:12])
	v.page = strings.ReplaceAll(v.page, `"assets/`, `"`+baseMark+`/assets/`+v.version+`/`)
	return v
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
	page := artefacts().page
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
	file := func(w http.ResponseWriter, r *http.Request) {
		files := artefacts()
		name := r.PathValue("file")
		f, ok := files.byName[name]
		if !ok {
			s.fail(w, r, errNoPath)
			return
		}
		// A page of another version than this gets the file too: it was open while the server was replaced.
		cache := "no-cache"
		if r.PathValue("version") == files.version {
			cache = "public, max-age=31536000, immutable"
		}
		kind := artefactKinds[path.Ext(name)]
		if kind == "" {
			kind = "application/octet-stream"
		}
		s.sendViewer(w, r, kind, cache, f)
	}
	s.mux.HandleFunc("GET /assets/{file}", file)
	s.mux.HandleFunc("GET /assets/{version}/{file}", file)
}

// sendViewer writes a file of the viewer.
func (s *Server) sendViewer(w http.ResponseWriter, r *http.Request, kind, cache string, f artefact) {
	seenOf(r).operation = "viewer"
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
