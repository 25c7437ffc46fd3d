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

// door is what every request passes before its operation, as the operation declares it. Text is UTF-8, and the query
// has what the description knows. A parameter that is misspelled would otherwise change nothing, unnoticed. Bodies pass
// decode.
type door struct {
	s          *Server
	op         *operation
	parameters []*huma.Param
}

func (d *door) pass(c huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(c)
	d.through(w, r, func() { next(badRequest{c}) })
}

// through runs an operation whose request passes.
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

// maxDrained is what Go's server reads of a body that is refused, in bytes.
const maxDrained = 256 << 10

// refuse answers a request that is refused. If its body is large, and the client is known, it reads the body after
// that, up to MaxBody, and ends the connection: a client that sends all of it first gets the answer too.
func (d *door) refuse(w http.ResponseWriter, r *http.Request, seen *observed, err error) {
	small := r.ContentLength >= 0 && r.ContentLength <= maxDrained || r.Header.Get("Expect") != ""
	if small || seen.on.Rights&(Read|Write) == 0 {
		d.s.fail(w, r, err)
		return
	}
	c := http.NewResponseController(seen.ResponseWriter)
	_ = c.EnableFullDuplex() // else the answer waits for the body; HTTP/2 needs none
	seen.Header().Set("Connection", "close")
	d.s.fail(seen, r, err)
	_ = c.Flush() // a client that left reads nothing
	r.Body = http.MaxBytesReader(seen, r.Body, d.s.o.MaxBody)
	seen.skip(r)
}

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

// has reports whether the operation has a parameter.
func (d *door) has(in, name string) bool {
	return slices.ContainsFunc(d.parameters, func(p *huma.Param) bool { return p.In == in && p.Name == name })
}

// badRequest makes a 400 of what huma refuses: malformed parameters are that here. Only errors of huma's are written
// through it, for operations write their answers themselves.
type badRequest struct{ inner }

// inner has another name than its method Context.
type inner huma.Context

// Unwrap is for humago.Unwrap.
func (b badRequest) Unwrap() huma.Context { return b.inner }

func (b badRequest) SetStatus(status int) {
	if status == http.StatusUnprocessableEntity {
		status = http.StatusBadRequest
	}
	b.inner.SetStatus(status)
}

// absent returns the answer to an error. If the session exists, and the path names nothing else, then what does not
// exist is what the query or the body names: 422, for 404 is the absence of what the path names.
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
