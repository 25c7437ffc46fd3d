package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/exporter"
)

// exportQuery is the parameters of an export.
type exportQuery struct {
	request
	ID     string `path:"id" maxLength:"128" doc:"the session's id"`
	Format string `query:"format" enum:"pi,original,omp,atomic,operator,claude-code,codex,markdown,html" default:"pi"`
}

// forkBody says what is forked.
type forkBody struct {
	To    string `json:"to,omitempty" doc:"a target; default head"`
	ID    string `json:"id,omitempty" doc:"of the new session; default a new id"`
	Title string `json:"title,omitempty"`
}

// verifyBody says how much is read.
type verifyBody struct {
	Deep bool `json:"deep,omitempty" doc:"read every byte"`
}

// blameQuery is the parameters of the history of a value.
type blameQuery struct {
	request
	ID    string `path:"id" maxLength:"128" doc:"the session's id"`
	Path  string `query:"path" doc:"a JSON pointer into the state (RFC 6901); empty = the whole state"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"of changes"`
}

// blameList is the history of a value.
type blameList struct {
	Changes []change `json:"changes" doc:"newest first"`
}

// change is a commit that gave a value another value.
type change struct {
	api.Commit
	Value json.RawMessage `json:"value" doc:"from this commit on; absent = there was none"`
}

func (s *Server) describeTransfer() {
	handle[sessionPath, struct{}](s, operation{
		method: "GET", path: "/v1/sessions/{id}/original", id: "original", needs: rightRead,
		summary: "The session as it was imported, byte for byte", types: []string{"application/octet-stream"},
	}, func(ctx context.Context, q *sessionPath) (answer, error) {
		return file("application/octet-stream", q.id+".jsonl", func(w io.Writer) error {
			return q.on.Store.Export(ctx, q.id, w)
		}), nil
	})
	handle[exportQuery, struct{}](s, operation{
		method: "GET", path: "/v1/sessions/{id}/export", id: "export", needs: rightRead,
		summary: "The session as a file",
		text:    "What the format cannot express is in the trailer " + lossesTrailer + ": a JSON object of counts.",
		types:   []string{"application/x-ndjson", "text/markdown", "text/html"},
	}, s.export)
	handle[sessionPath, api.Verify](s, operation{
		method: "POST", path: "/v1/sessions/{id}/verify", id: "verify", needs: rightWrite,
		summary: "Read the session and report damage; changes nothing", body: reflect.TypeFor[verifyBody](),
	}, s.verify)
	handle[write, api.Fork](s, operation{
		method: "POST", path: "/v1/sessions/{id}/fork", id: "fork", needs: rightWrite,
		summary: "A new session of the path to a target", body: reflect.TypeFor[forkBody](),
		errors: []int{409, 412, 428, 507}, statuses: []int{201},
	}, s.fork)
	handle[blameQuery, blameList](s, operation{
		method: "GET", path: "/v1/sessions/{id}/blame", id: "blame", needs: rightRead, statuses: []int{304},
		summary: "Which commits changed a value of the state",
		text:    "Reads the state of one commit after another, newest first.",
	}, s.blame)
}

// file answers with what write writes. It is never shown as a page of this site.
func file(kind, name string, write func(io.Writer) error) answer {
	return answer{stream: func(w http.ResponseWriter, _ *http.Request) error {
		h := w.Header()
		h.Set("Content-Type", kind)
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
		h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
		out := &begun{w: w}
		err := write(out)
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

// lossesTrailer says after an export what its format cannot express: a JSON object of counts.
const lossesTrailer = "Coppice-Losses"

func (s *Server) export(ctx context.Context, q *exportQuery) (answer, error) {
	if !slices.Contains(exporter.Formats(), q.Format) {
		return answer{}, badInput("format", fmt.Errorf("%.40q is not known", q.Format))
	}
	kind, ext := "application/x-ndjson", ".jsonl"
	switch q.Format {
	case "markdown":
		kind, ext = "text/markdown; charset=utf-8", ".md"
	case "html":
		kind, ext = "text/html; charset=utf-8", ".html"
	}
	x := exporter.Exporter{Store: q.on.Store, Now: s.o.Now(), Rand: s.o.Rand}
	h := q.w.Header()
	h.Set("Trailer", lossesTrailer)
	return file(kind, q.id+ext, func(w io.Writer) error {
		losses, err := x.Write(ctx, q.id, q.Format, w)
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
	r, err := q.on.Store.Verify(ctx, q.id, b.Deep)
	return answer{doc: api.VerifyOf(r, b.Deep)}, err
}

func (s *Server) fork(ctx context.Context, q *write) (answer, error) {
	var b forkBody
	if err := decode(q.r, &b); err != nil {
		return answer{}, err
	}
	to, err := target("to", b.To)
	if err != nil {
		return answer{}, err
	}
	var id string
	a, err := s.move(ctx, &q.request, func(ctx context.Context, h *coppice.Session) (coppice.Receipt, any, error) {
		var o *coppice.SessionOptions
		if b.Title != "" {
			o = &coppice.SessionOptions{Title: b.Title, Cwd: h.Info().Cwd}
		}
		f, err := h.Fork(ctx, to, b.ID, o)
		if err != nil {
			return coppice.Receipt{}, nil, err
		}
		id = f.ID()
		return coppice.Receipt{Head: f.Head()}, api.Fork{Session: id}, f.Close()
	})
	if err == nil {
		a.status, a.location = http.StatusCreated, strings.TrimSuffix(q.r.URL.Path, q.id+"/fork")+id
	}
	return a, err
}

func (s *Server) blame(ctx context.Context, q *blameQuery) (answer, error) {
	path, err := pointer(q.Path)
	if err != nil {
		return answer{}, err
	}
	return read(ctx, &q.request, func(h *coppice.Session) (answer, error) {
		doc := blameList{Changes: []change{}}
		var last *change // the oldest commit so far with the value in force after it
		for c, err := range h.Log(ctx, coppice.Target{}) {
			if err != nil {
				return answer{}, err
			}
			at, err := targetSeq(c.Seq)
			if err != nil {
				return answer{}, err
			}
			v, err := h.At(ctx, at)
			if err != nil {
				return answer{}, err
			}
			value := valueAt(v.Document().State, path)
			if last != nil && string(value) != string(last.Value) {
				if doc.Changes = append(doc.Changes, *last); len(doc.Changes) == q.Limit {
					last = nil
					break
				}
			}
			last = &change{api.CommitOf(c), value}
		}
		if last != nil && last.Value != nil {
			doc.Changes = append(doc.Changes, *last)
		}
		return answer{etag: h.Head().Commit, doc: doc}, nil
	})
}

// pointer returns the steps of a JSON pointer.
func pointer(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	if text[0] != '/' {
		return nil, badInput("path", fmt.Errorf("%.40q does not begin with /", text))
	}
	steps := strings.Split(text[1:], "/")
	for i, s := range steps {
		steps[i] = strings.ReplaceAll(strings.ReplaceAll(s, "~1", "/"), "~0", "~")
	}
	return steps, nil
}

// valueAt returns the value to which the steps of a JSON pointer lead, as it is stored; nil = none.
func valueAt(doc json.RawMessage, steps []string) json.RawMessage {
	for _, step := range steps {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case len(doc) == 0:
			return nil
		case json.Unmarshal(doc, &object) == nil && object != nil:
			doc = object[step]
		case json.Unmarshal(doc, &array) == nil:
			i, err := strconv.Atoi(step)
			if err != nil || step != strconv.Itoa(i) || i < 0 || i >= len(array) {
				return nil
			}
			doc = array[i]
		default:
			return nil
		}
	}
	return doc
}
