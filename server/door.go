package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	coppice "github.com/coppice-go/coppice"
)

// door checks every request before its operation runs, by what the operation declares: rights, parameters, conditions,
// length of the body. Text must be UTF-8, and the query may only have parameters of the description, so that a
// misspelled one is an error and not ignored. decode checks bodies.
type door struct {
	s          *Server
	op         *operation
	parameters []*huma.Param
}

// pass is the middleware of huma: it runs the operation next if the request is admitted.
func (d *door) pass(c huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(c)
	d.through(w, r, func() { next(badRequest{c}) })
}

// through runs operate if the request is admitted, else it answers with the error. At the end it returns the units of
// budgets and releases the tenant.
func (d *door) through(w http.ResponseWriter, r *http.Request, operate func()) {
	seen := seenOf(r)
	defer func() {
		switch {
		case seen.give == nil:
		case seen.large && seen.stored:
			d.s.writers.retire(writerKey{seen.on.Store, r.PathValue("id")}, seen.give)
		default:
			seen.give()
		}
		d.s.tenants.release(seen.tenant)
	}()
	if err := d.admit(w, r, seen); err != nil {
		d.denied(r, seen, err)
		d.refuse(w, r, seen, err)
		return
	}
	if err := d.recorded(r, seen, operate); err != nil {
		d.refuse(w, r, seen, err)
		return
	}
	if t := seen.tenant; t != nil && seen.stored && d.op.needs&changes != 0 && !d.op.fleeting {
		t.wrote(r, d.op, seen)
	}
}

// admit checks what the operation declares: the right that it needs, its parameters, and the length of its body. It
// then waits for a part of the budget of the operation, if it has one.
func (d *door) admit(w http.ResponseWriter, r *http.Request, seen *observed) (err error) {
	seen.operation = d.op.id
	if seen.on, err = d.s.access(r, d.op); err != nil {
		return err
	}
	if err := d.check(r); err != nil {
		return err
	}
	if seen.made, err = d.op.condition.made(r); err != nil {
		return err
	}
	err = d.s.narrowed(r, d.op, seen.on)
	if seen.absent = d.op.mayCreate && errors.Is(err, fs.ErrNotExist); err != nil && !seen.absent {
		return err
	}
	if err := d.room(r, seen); err != nil {
		return err
	}
	limit := d.op.limit(&d.s.o)
	if r.ContentLength > limit {
		return &http.MaxBytesError{Limit: limit}
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	return d.part(r, seen, limit)
}

// part takes what the request needs of a budget.
func (d *door) part(r *http.Request, seen *observed, limit int64) error {
	from, n := d.s.bodies, r.ContentLength
	switch {
	case d.op.heavy:
		from, n = d.s.searches, 1
	case d.op.whole:
		from, n = d.s.wholes, 1
	case d.op.size == sizeFile:
		from = d.s.files
	case d.op.body == nil && d.op.raw == "" || n >= 0 && n <= maxNote:
		return nil
	}
	if n < 0 { // it is not known
		g := &growing{ReadCloser: r.Body, r: r, seen: seen, from: from, limit: limit}
		if from == d.s.bodies {
			g.room, g.large = maxNote, maxOne
		}
		r.Body, seen.give = g, sync.OnceFunc(g.back)
		return nil
	}
	give, err := from.take(r.Context(), seen.on.Tenant, n)
	if err != nil {
		return err
	}
	seen.large = from == d.s.bodies && n > maxOne
	seen.give = sync.OnceFunc(func() {
		seen.tidy()
		give()
	})
	return nil
}

// maxDrained is the number of bytes that Go's server reads of the body of a request that was refused.
const maxDrained = 256 << 10

// refuse answers a request with an error. If the body is large and the client is authorized, it then reads the rest of
// the body, up to Options.MaxBody, and closes the connection: some clients send the whole body before they read the
// answer.
func (d *door) refuse(w http.ResponseWriter, r *http.Request, seen *observed, err error) {
	small := r.ContentLength >= 0 && r.ContentLength <= maxDrained || r.Header.Get("Expect") != ""
	if small || seen.on.Rights&(Read|Write) == 0 {
		d.s.fail(w, r, err)
		return
	}
	c := http.NewResponseController(seen.ResponseWriter)
	_ = c.EnableFullDuplex() // else the answer waits for the body; HTTP/2 needs no call
	seen.Header().Set("Connection", "close")
	d.s.fail(seen, r, err)
	_ = c.Flush() // fails if the client has disconnected
	r.Body = http.MaxBytesReader(seen, r.Body, d.s.o.MaxBody)
	seen.skip(r)
}

// check returns an error for text that is not UTF-8, for a header that occurs twice, and for unknown parameters.
func (d *door) check(r *http.Request) error {
	if err := text([]byte(r.URL.Path)); err != nil {
		return badInput("the path", err)
	}
	for _, p := range d.parameters {
		if p.In != "header" {
			continue
		}
		values := r.Header.Values(p.Name)
		if len(values) > 1 && !strings.HasPrefix(p.Name, "If-") { // tags are lists
			return badInput(p.Name, errors.New("the request has two of this header"))
		}
		for _, v := range values {
			if err := text([]byte(v)); err != nil {
				return badInput(p.Name, err)
			}
		}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badInput("the query", err)
	}
	for name, values := range query {
		if err := text([]byte(name)); err != nil {
			return badInput(fmt.Sprintf("the name %.80q in the query", name), err)
		}
		free := d.op.meta && strings.HasPrefix(name, "meta.") || d.op.match && strings.HasPrefix(name, matchPrefix)
		if !free && !d.has("query", name) {
			return badInput("the query", fmt.Errorf("%.80q is no parameter of this operation", name))
		}
		for _, v := range values {
			if err := text([]byte(v)); err != nil {
				return badInput(name, err)
			}
		}
	}
	return nil
}

// has reports whether the operation declares a parameter; in is "query", "header" or "path".
func (d *door) has(in, name string) bool {
	return slices.ContainsFunc(d.parameters, func(p *huma.Param) bool { return p.In == in && p.Name == name })
}

// badRequest changes the status 422, which huma answers for malformed parameters, to 400. Only errors of huma are
// written through it: operations write their answers themselves.
type badRequest struct{ inner }

// inner is huma.Context under another name, because an embedded field Context would hide its method Context.
type inner huma.Context

// Unwrap returns the wrapped context, for humago.Unwrap.
func (b badRequest) Unwrap() huma.Context { return b.inner }

func (b badRequest) SetStatus(status int) {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	b.inner.SetStatus(status)
}

// absent returns the error to answer with. A 404 means that the path names something that does not exist. If the
// session exists and the path names nothing else, a fs.ErrNotExist is about the query or the body: then it is a 422.
func (op operation) absent(q *request, err error) error {
	if !q.found || !op.names || !errors.Is(err, fs.ErrNotExist) || errors.Is(err, coppice.ErrDeleted) {
		return err
	}
	p := problemOf(err)
	if p.Status != http.StatusNotFound {
		return err
	}
	return newProblem(http.StatusUnprocessableEntity, "no-entry", "nothing was stored: GET /v1/sessions/{id}/rows has "+
		"the entries of the session, GET /v1/sessions/{id}/commits its commits", errors.New(p.Detail))
}
