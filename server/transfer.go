package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/exporter"
	"github.com/coppice-go/coppice/internal/importer"
	"github.com/coppice-go/coppice/interop"
)

// exportQuery is the parameters of an export.
type exportQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	Format string `query:"format" enum:"pi,original,omp,atomic,operator,claude-code,codex,markdown,html" default:"pi"`
	// The default is the safe one: a client that does not know of it gets an error, and not credentials.
	Secrets string `query:"secrets" enum:"refuse,redact,allow" default:"refuse" doc:"treatment of credentials"`
	Line    string `query:"line" doc:"markdown and html: only the path to this entry; default every branch"`
}

// forkBody selects what is forked.
type forkBody struct {
	To    string `json:"to,omitempty" doc:"a target; default head"`
	ID    string `json:"id,omitempty" doc:"of the new session; default a new id"`
	Title string `json:"title,omitempty"`
}

// verifyBody selects how much is read.
type verifyBody struct {
	Deep bool `json:"deep,omitempty" doc:"read every byte"`
}

func (s *Server) describeTransfer() {
	handle[sessionPath, struct{}](s, operation{
		method: "GET", path: "/v1/sessions/{id}/original", id: "original", whole: true,
		summary: "The session as it was imported, byte for byte", types: []string{"application/octet-stream"},
		text: "Of a session that was not imported, the lines that commits with a format brought; if none did, all " +
			"entries.",
	}, func(ctx context.Context, q *sessionPath) (answer, error) {
		return file("application/octet-stream", q.id+".jsonl", func(w io.Writer) error {
			if done, err := writeLines(ctx, q, w); done || err != nil && !errors.Is(err, coppice.ErrCorrupt) {
				return err
			}
			return q.on.Store.Export(ctx, q.id, w)
		}), nil
	})
	handle[exportQuery, struct{}](s, operation{
		method: "GET", path: "/v1/sessions/{id}/export", id: "export", names: true, whole: true,
		summary: "The session as a file",
		text: "What the format cannot express is in the trailer " + lossesTrailer + ": a JSON object of counts. " +
			"Of a session with credentials nothing is sent (409, secrets), until secrets=redact replaces each by " +
			"[secret: RULE], or secrets=allow sends them. The format original has them, unless secrets=redact.",
		types: []string{"application/x-ndjson", "text/markdown", "text/html"}, errors: []int{409},
	}, s.export)
	handle[sessionPath, api.Verify](s, operation{
		method: "POST", path: "/v1/sessions/{id}/verify", id: "verify", whole: true,
		summary: "Read the session and report damage; changes nothing, so the right to read is enough",
		body:    reflect.TypeFor[verifyBody](), size: sizeNote,
	}, s.verify)
	handle[sessionPath, api.Fork](s, operation{
		method: "POST", path: "/v1/sessions/{id}/fork", id: "fork", creates: true, widens: true,
		summary: "A new session of the path to a target", body: reflect.TypeFor[forkBody](), size: sizeNote,
		whole: true, condition: ifMatch, errors: []int{409}, statuses: []int{201}, names: true,
	}, s.fork)
}

// file answers with what write writes. It is never shown as a page of this site.
func file(kind, name string, write func(io.Writer) error) answer {
	return answer{stream: func(w http.ResponseWriter, r *http.Request) error {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
		out := &begun{w: w}
		err := write(out)
		if r.Method == http.MethodHead && errors.Is(err, errHead) {
			return nil
		}
		if err != nil && out.any {
			panic(http.ErrAbortHandler) // the client must not take a part for the whole
		}
		return err
	}}
}

// begun is a writer that knows whether anything was written.
type begun struct {
	w   io.Writer
	any bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.any = true
	return b.w.Write(p)
}

// lossesTrailer reports after an export what its format cannot express: a JSON object of counts.
const lossesTrailer = "Coppice-Losses"

func (s *Server) export(ctx context.Context, q *exportQuery) (answer, error) {
	if !slices.Contains(exporter.Formats(), q.Format) {
		return answer{}, badInput("format", fmt.Errorf("%.40q is not known", q.Format))
	}
	if q.Line != "" && !exporter.HasLines(q.Format) {
		return answer{}, badInput("line", fmt.Errorf("%s has every branch: use markdown or html", q.Format))
	}
	kind, ext := "application/x-ndjson", ".jsonl"
	switch q.Format {
	case "markdown":
		kind, ext = "text/markdown; charset=utf-8", ".md"
	case "html":
		kind, ext = "text/html; charset=utf-8", ".html"
	}
	x := exporter.Exporter{Store: q.on.Store, Now: s.o.Now(), Line: q.Line, Secrets: exporter.Secrets(q.Secrets)}
	h := q.w.Header()
	h.Set("Trailer", lossesTrailer)
	return file(kind, q.id+ext, func(w io.Writer) error {
		losses, err := x.Write(ctx, q.id, q.Format, w)
		if _, ok := errors.AsType[*exporter.DamageError](err); ok {
			if err = nil; losses == nil {
				losses = interop.Losses{}
			}
			losses["the session is damaged: this is what a repair would leave"] = 1
		}
		if q.Line != "" && errors.Is(err, fs.ErrNotExist) { // the session, or the line
			_, oerr := read(ctx, &q.request, func(*coppice.Session) (answer, error) { return answer{}, nil })
			err = errors.Join(err, oerr)
		}
		if len(losses) > 0 && err == nil {
			raw, merr := api.Marshal(losses)
			if err = merr; err == nil {
				h.Set(lossesTrailer, string(raw))
			}
		}
		return err
	}), nil
}

func (s *Server) verify(ctx context.Context, q *sessionPath) (answer, error) {
	var b verifyBody
	if err := decode(q.r, &b); err != nil {
		return answer{}, err
	}
	_, err := read(ctx, &q.request, func(*coppice.Session) (answer, error) { return answer{}, nil })
	if errors.Is(err, coppice.ErrDeleted) { // Verify would find no damage; what else is wrong it reports
		return answer{}, err
	}
	r, err := q.on.Store.Verify(ctx, q.id, b.Deep)
	doc := api.VerifyOf(r, b.Deep)
	doc.IO = r.IO
	return answer{doc: doc}, err
}

func (s *Server) fork(ctx context.Context, q *sessionPath) (answer, error) {
	var b forkBody
	if err := decode(q.r, &b); err != nil {
		return answer{}, err
	}
	to, err := target("to", b.To)
	if err != nil {
		return answer{}, err
	}
	var id string
	a, err := s.own(ctx, &q.request, func(ctx context.Context, h *coppice.Session) (coppice.Receipt, any, error) {
		var o *coppice.SessionOptions
		if b.Title != "" {
			o = &coppice.SessionOptions{Title: b.Title, Cwd: h.Info().Cwd}
		}
		f, err := h.Fork(ctx, to, b.ID, o)
		if err != nil {
			return coppice.Receipt{}, nil, orDeleted(ctx, q.on.Store, b.ID, err)
		}
		id = f.ID()
		r := coppice.Receipt{Head: f.Head()}
		if err = f.Close(); importer.OnlyClosing(err) {
			s.untidy(ctx, err)
			err = nil
		}
		return r, api.Fork{Session: id}, err
	})
	if err == nil {
		a.status, a.location = http.StatusCreated, strings.TrimSuffix(q.r.URL.Path, q.id+"/fork")+id
	}
	return a, err
}
