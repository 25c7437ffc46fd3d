package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/interop"
)

// importQuery is the parameters of an import.
type importQuery struct {
	request
	Session string `query:"session" maxLength:"128" doc:"id of the new session; default that of the file if it is free"`
	Format  string `query:"format" enum:"pi,omp,atomic,operator,claude-code,codex" doc:"default: by the content"`
	Name    string `query:"name" maxLength:"255" doc:"name of the file, which some formats need"`
	Again   bool   `query:"again" doc:"import what the store has, or had, under a new id"`
	Grow    bool   `query:"grow" default:"true" doc:"append what was added to a file to its session"`
}

// Errors of an import that would be one too many, and of a file that would.
var (
	errImports = errors.New("too many imports are under way; nothing was stored")
	errFiles   = errors.New("too many bytes of files are under way; nothing was stored")
)

func (s *Server) describeImport() {
	handle[importQuery, api.Import](s, operation{
		method: "POST", path: "/v1/import", id: "import", creates: true,
		raw: "application/octet-stream", size: sizeFile,
		summary: "Import a session file of another program, which is the body",
		text: "As `coppice import`: a file that was imported before and has not changed is left alone, and what was " +
			"added to it is appended to its session. One whose session was deleted is not imported. Damaged lines " +
			"are skipped and reported.",
		errors: []int{409, 410},
	}, s.importFile)
}

// importFile keeps the body in a temporary file, as formats read it more than once. Only then it is one of those that
// are under way: a body that comes slowly holds up no other.
func (s *Server) importFile(ctx context.Context, q *importQuery) (a answer, err error) {
	if q.Again && q.Session != "" {
		q.Grow = false
	}
	f, err := os.CreateTemp("", "coppice-import-")
	if err != nil {
		return answer{}, fmt.Errorf("import: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // what stays is in the folder for temporary files
	_, err = io.Copy(f, q.r.Body)
	if err = errors.Join(err, f.Close()); err != nil {
		return answer{}, fmt.Errorf("import: %w", err)
	}
	give, err := s.imports.take(ctx, q.on.Tenant, 1)
	if err != nil {
		return answer{}, err
	}
	defer give()
	name := q.Name
	if name == "" {
		name = "session.jsonl"
	}
	src := interop.Source{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(f.Name()) }}
	r, err := importer.Import(ctx, q.on.Store, src, importer.Options{
		Session: q.Session, Format: interop.Format(q.Format), Again: q.Again, Grow: q.Grow && !q.Again,
		Verify: true, Now: s.o.Now(), Closed: func(err error) { s.untidy(ctx, err) },
	})
	if err != nil {
		return answer{}, orDeleted(ctx, q.on.Store, q.Session, err)
	}
	doc := api.Import{Imported: []api.Imported{api.ImportedOf(name, r)}}
	doc.Total.Add(r)
	return answer{doc: doc}, nil
}

// untidy logs the error of closing a session whose entries are stored: it is no failure of the request.
func (s *Server) untidy(ctx context.Context, err error) {
	s.o.Logger.WarnContext(ctx, "a session is stored, but could not be tidied up: the next commit tries again",
		"error", err.Error())
}
