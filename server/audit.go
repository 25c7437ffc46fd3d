package server

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/coppice-go/coppice/internal/audit"
)

// errAudit is the error of an act that was not done because the audit log cannot be written.
var errAudit = errors.New("the audit log cannot be written; nothing was done")

// begin records an act before it is done; after an error it must not be. end records how it ended.
func (s *Server) begin(ctx context.Context, a audit.Act) (end audit.End, err error) {
	if s.audit == nil {
		return func(context.Context, string, string, ...string) error { return nil }, nil
	}
	end, err = s.audit.Begin(ctx, a)
	return end, s.unrecorded(ctx, err)
}

// unrecorded returns the answer to an act that could not be recorded. Its cause is for the log of the server.
func (s *Server) unrecorded(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	s.o.Logger.ErrorContext(ctx, "the audit log cannot be written", "error", err.Error())
	return retry(newProblem(http.StatusServiceUnavailable, "audit", "", errAudit))
}

// ended records how an act ended; dry = it was only simulated. The act is over, so a line that cannot be written does
// not change the answer.
func (s *Server) ended(ctx context.Context, end audit.End, status int, dry bool, ids []string) {
	result, code := audit.Done, ""
	switch {
	case dry:
		result = audit.DryRun
	case status == 0 || status == http.StatusGatewayTimeout: // it did not come to an end, or the store is in doubt
		result = audit.Unknown
	case status >= http.StatusBadRequest:
		result, code = audit.Failed, strconv.Itoa(status)
	}
	if err := end(context.WithoutCancel(ctx), result, code, ids...); err != nil {
		s.o.Logger.ErrorContext(ctx, "the end of an act is not in the audit log", "error", err.Error())
	}
}

// act returns what the audit log has of a request; false = nothing.
func (d *door) act(r *http.Request, seen *observed) (a audit.Act, ok bool) {
	a = audit.Act{
		Who: seen.on.Who, Tenant: seen.on.Tenant, Act: d.op.audit, Session: r.PathValue("id"),
	}
	return a, d.op.audit != "" && d.s.audit != nil
}

// recorded runs an operation between the two lines of an administrative act. A read of content has one line before it,
// if reads are recorded.
func (d *door) recorded(r *http.Request, seen *observed, operate func()) error {
	a, ok := d.act(r, seen)
	if !ok {
		if d.s.audit != nil && d.s.o.AuditReads && d.op.needs == Read && !d.op.ofServer && d.op.id != "access" {
			a.Act, a.IDs = "read", []string{d.op.id}
			if err := d.s.audit.Note(r.Context(), a, audit.Done, ""); err != nil {
				return d.s.unrecorded(r.Context(), err)
			}
		}
		operate()
		return nil
	}
	end, err := d.s.begin(r.Context(), a)
	if err != nil {
		return err
	}
	defer func() { d.s.ended(r.Context(), end, seen.outcome, seen.dry, seen.ids) }()
	operate()
	if seen.outcome == 0 { // its parameters were refused
		seen.outcome = http.StatusBadRequest
	}
	return nil
}

// denied records an administrative act that a known client has no right to. Its line is not needed for the answer.
func (d *door) denied(r *http.Request, seen *observed, err error) {
	a, ok := d.act(r, seen)
	if !ok || a.Who == "" || !errors.Is(err, ErrForbidden) {
		return
	}
	if err := d.s.audit.Note(r.Context(), a, audit.Refused, ""); err != nil {
		d.s.o.Logger.ErrorContext(r.Context(), "a refusal is not in the audit log", "error", err.Error())
	}
}

// browser is the name of a browser that has logged in, in the audit log.
func browser(cookie hash) string { return "browser:" + cookie.short() }
