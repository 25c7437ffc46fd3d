package cli

import (
	"errors"
	"fmt"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/shortid"
)

// usageError returns the error of a command that was called in a wrong way.
func usageError(format string, args ...any) error {
	return &api.Failure{Code: "usage", Err: fmt.Errorf(format, args...)}
}

// reported wraps an error that is already part of the document on the standard output: it only sets
// the exit code.
func reported(err error) error { return &reportedError{err} }

type reportedError struct{ error }

func (r *reportedError) Unwrap() error { return r.error }

// fail reports the error with which a command ended and returns the exit code.
func (c *cli) fail(err error) int {
	d := api.Describe(err)
	p, exit := d.Problem(), d.Exit
	if own, ok := errors.AsType[*api.Failure](err); ok && p.Code == "usage" && own.Hint == "" {
		p.Hint = c.usageLine()
	}
	if _, ok := errors.AsType[*reportedError](err); ok {
		return exit
	}
	if c.json && !c.wroteJSON && c.writeJSON(map[string]api.Problem{"error": p}) == nil {
		return exit
	}
	if own, ok := errors.AsType[*coppice.Error](err); ok && own.Session != "" { // JSON keeps whole ids
		p.Message = shortid.In(p.Message, own.Session)
	}
	text := c.stderr.Paint(term.Red, "coppice: ") + p.Message
	if p.Hint != "" {
		text += "\n" + c.stderr.Paint(term.Dim, "  hint: "+p.Hint)
	}
	_, _ = fmt.Fprintln(c.stderr, strings.TrimRight(text, "\n")) // if this fails the exit code remains
	return exit
}
