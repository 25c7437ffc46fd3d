package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
)

// errClosing is the error of requests that come after Close began.
var errClosing = errors.New("the server is closing; nothing was stored")

// Problem is an error as the API answers it, application/problem+json of RFC 9457. Code is one of docs/cli-json.md, or
// of docs/http.md.
type Problem struct {
	Type   string `json:"type" doc:"always about:blank: code says what went wrong"`
	Title  string `json:"title" doc:"the status in words"`
	Status int    `json:"status"`
	Detail string `json:"detail" doc:"what went wrong, one line for people"`
	Code   string `json:"code" doc:"what went wrong, for programs"`
	Hint   string `json:"hint,omitempty" doc:"what to do"`

	Commit  string            `json:"commit,omitempty" doc:"of outcome-unknown: the commit, as the log would have it"`
	Winner  *api.Commit       `json:"winner,omitempty" doc:"of conflict: the commit at the head"`
	Entries []json.RawMessage `json:"entries,omitempty" doc:"of conflict: the entries since the commit of If-Match"`
	More    bool              `json:"more,omitempty" doc:"of conflict: entries are not all"`
	Left    []string          `json:"left,omitempty" doc:"of a deletion with children: what is not deleted"`
}

// problem is an error with its answer.
type problem struct {
	Problem
	header http.Header
	err    error
}

func (p *problem) Error() string { return p.Detail }
func (p *problem) Unwrap() error { return p.err }

// newProblem returns an error of the service itself.
func newProblem(status int, code, hint string, err error) *problem {
	return &problem{Problem: Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: err.Error(), Code: code,
		Hint: hint,
	}, err: err}
}

// badInput returns the error of a parameter, or of a body, that is not as it should be.
func badInput(what string, err error) error {
	return newProblem(http.StatusBadRequest, "usage", "", fmt.Errorf("%s: %w; nothing was stored", what, err))
}

// problemOf returns the answer to an error.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, errNoCondition):
		return newProblem(http.StatusPreconditionRequired, "no-condition",
			"send the commit that this was made on as If-Match, or * for whatever is newest", err)
	case errors.Is(err, errBusy), errors.Is(err, errClosing):
		return retry(newProblem(http.StatusServiceUnavailable, "busy", "send it again", err))
	case errors.Is(err, ErrUnauthorized):
		p := newProblem(http.StatusUnauthorized, "unauthorized", "send Authorization: Bearer TOKEN", err)
		p.header = http.Header{"Www-Authenticate": {"Bearer"}}
		return p
	case errors.Is(err, errSlow):
		return newProblem(http.StatusRequestTimeout, "slow-body", "send it again, without pauses", err)
	case errors.Is(err, ErrForbidden):
		return newProblem(http.StatusForbidden, "permission", "", err)
	case errors.As(err, &tooLarge):
		return newProblem(http.StatusRequestEntityTooLarge, "too-large", "",
			fmt.Errorf("the body is longer than %d bytes; nothing was stored", tooLarge.Limit))
	}
	d := api.Describe(err)
	if d.Status == http.StatusBadRequest && d.Code == "failed" { // the command's word for input that it cannot take
		d.Code = "usage"
	}
	p := newProblem(d.Status, d.Code, d.RequestHint, errors.New(d.Message))
	p.err = err
	if d.Status == http.StatusServiceUnavailable || d.Status == http.StatusGatewayTimeout {
		retry(p)
	}
	own, _ := errors.AsType[*coppice.Error](err)
	if own != nil && own.Winner != nil {
		c := api.CommitOf(*own.Winner)
		p.Winner = &c
	}
	if own != nil && errors.Is(err, coppice.ErrCommitUnknown) {
		p.Commit = own.Commit
	}
	return p
}

// retry asks the client to send the same request again.
func retry(p *problem) *problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set("Retry-After", strconv.Itoa(1))
	return p
}

// fail answers a request with an error. Nothing of the answer was sent before.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		s.o.Logger.ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path, "code", p.Code)
	}
	h := w.Header()
	h.Del("ETag")
	maps.Copy(h, p.header)
	h.Set("Cache-Control", "no-store")
	var doc any = p.Problem
	h.Set("Content-Type", "application/problem+json")
	if strings.HasPrefix(r.URL.Path, openAIPath) {
		doc = openAIFailure(h, p)
	}
	raw, merr := api.Marshal(doc)
	if merr != nil { // raw JSON that is not JSON
		raw = []byte(`{"type":"about:blank","code":"failed"}`)
	}
	h.Set("Content-Length", strconv.Itoa(len(raw)+1))
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(raw, '\n')) // a client that left reads nothing
}

// ofHuma makes a problem of ours of what huma refuses: parameters that are malformed.
func ofHuma(v any) any {
	m, ok := v.(*huma.ErrorModel)
	if !ok {
		return v
	}
	text := []string{m.Detail}
	for _, e := range m.Errors {
		text = append(text, e.Location+": "+e.Message)
	}
	return newProblem(http.StatusBadRequest, "usage", "", errors.New(strings.Join(text, "; "))).Problem
}
