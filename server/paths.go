package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// methods are those that an operation can have.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
}

// errMethod is the error of a path that has other operations than the one that was asked for.
var errMethod = errors.New("the path does not have this method; nothing was stored")

// elsewhere is the pattern of what no operation answers.
const elsewhere = "/"

// nowhere answers what no operation does: 405 for a path that has others, else 404.
func (s *Server) nowhere(w http.ResponseWriter, r *http.Request) {
	var allow []string
	asked := r.Clone(r.Context())
	for _, asked.Method = range methods {
		if _, pattern := s.mux.Handler(asked); pattern != elsewhere {
			allow = append(allow, asked.Method)
		}
	}
	if len(allow) == 0 {
		s.fail(w, r, errNoPath)
		return
	}
	p := newProblem(http.StatusMethodNotAllowed, "method", "use one of the methods in Allow", errMethod)
	p.header = http.Header{"Allow": {strings.Join(allow, ", ")}}
	s.fail(w, r, p)
}

// errNoPath is the error of a path where there is nothing.
var errNoPath = fmt.Errorf("nothing is served at this path: %w", fs.ErrNotExist)

// routed answers by the operation that the path names. A path with empty or dot segments names none: the mux would send
// the client to another one, without the base path or the tenant before it.
func (s *Server) routed(w http.ResponseWriter, r *http.Request) {
	at := r.URL.EscapedPath()
	if at == "" && !s.o.NoViewer && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		w.Header().Set("Location", r.PathValue("prefix")+"/")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return
	}
	if clean := path.Clean(at); at != clean && at != clean+"/" {
		s.fail(w, r, errNoPath)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// plain makes the description match the answers: huma calls every array nullable, and none of ours is ever null.
// What huma would answer, and this service does not, is left out, and what it writes of a parameter twice is there
// once.
func plain(doc *huma.OpenAPI) {
	all := doc.Components.Schemas.Map()
	delete(all, "ErrorModel")
	delete(all, "ErrorDetail")
	for _, schema := range all {
		notNull(schema)
	}
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Put, path.Post, path.Patch, path.Delete} {
			if op == nil {
				continue
			}
			for _, p := range op.Parameters {
				p.Schema.Description = ""
			}
		}
	}
}

// notNull makes the arrays of a schema, and of those within it, not nullable. Schemas are finite: what refers to
// another one does so by its name.
func notNull(schema *huma.Schema) {
	if schema == nil {
		return
	}
	if schema.Type == huma.TypeArray {
		schema.Nullable = false
	}
	notNull(schema.Items)
	if inner, ok := schema.AdditionalProperties.(*huma.Schema); ok {
		notNull(inner)
	}
	for _, p := range schema.Properties {
		notNull(p)
	}
	for _, list := range [][]*huma.Schema{schema.OneOf, schema.AnyOf, schema.AllOf} {
		for _, inner := range list {
			notNull(inner)
		}
	}
}
