package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/coppice-go/coppice/internal/api"
)

// maxAnswer bounds an answer of the HTTP service, in bytes: a state, or a page of long entries, is read as a whole.
const maxAnswer = 64 << 20

// errAnswer is the error of an answer that is longer.
var errAnswer = fmt.Errorf("the answer is longer than %d bytes: ask for less", maxAnswer)

// problem is an error of the HTTP service.
type problem struct {
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Hint   string `json:"hint"`
}

func (p *problem) Error() string {
	if p.Hint == "" {
		return fmt.Sprintf("%s: %s", p.Code, p.Detail)
	}
	return fmt.Sprintf("%s: %s; %s", p.Code, p.Detail, p.Hint)
}

// ask is one request to the HTTP service.
type ask struct {
	method string
	path   []string // segments, as they are before they are escaped
	query  url.Values
	commit string         // of If-Match; "" = none
	body   map[string]any // nil = none
}

// do sends a request and returns the document of its answer.
func (s *Server) do(ctx context.Context, a ask) (json.RawMessage, error) {
	segments := []string{s.Prefix}
	for _, segment := range a.path {
		segments = append(segments, url.PathEscape(segment))
	}
	at := strings.Join(segments, "/")
	if len(a.query) > 0 {
		at += "?" + a.query.Encode()
	}
	var body io.Reader
	if a.body != nil {
		raw, err := api.Marshal(a.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, a.method, "http://"+s.Host+at, body)
	if err != nil {
		return nil, fmt.Errorf("ask for %s: %w", at, err)
	}
	maps.Copy(r.Header, s.Header)
	r.Header.Set("Accept", "application/json")
	if a.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if a.commit != "" {
		r.Header.Set("If-Match", a.commit)
	}
	w := recorder{header: http.Header{}}
	s.API.ServeHTTP(&w, r)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case w.cut:
		return nil, errAnswer
	case w.status >= http.StatusBadRequest:
		p := &problem{Status: w.status, Code: "failed", Detail: http.StatusText(w.status)}
		return nil, errors.Join(json.Unmarshal(w.body.Bytes(), p), p)
	}
	return bytes.TrimSuffix(w.body.Bytes(), []byte("\n")), nil
}

// recorder is a ResponseWriter that keeps the answer.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
	cut    bool
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *recorder) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(p) > maxAnswer {
		w.cut = true
		return 0, errAnswer
	}
	return w.body.Write(p)
}
