package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/transcript"
)

// The exit codes.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitConflict    = 4 // or fenced
	exitCorrupt     = 5
	exitUnknown     = 6
	exitInterrupted = 130
)

// problem is an error as the JSON contract shows it.
type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// failure is an error with a code of the command line's own.
type failure struct {
	code string
	hint string
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usageError returns the error of a command that was called in a wrong way.
func usageError(format string, args ...any) error {
	return &failure{code: "usage", err: fmt.Errorf(format, args...)}
}

// reported wraps an error that is already part of the document on the standard output: it only sets
// the exit code.
func reported(err error) error { return &reportedError{err} }

type reportedError struct{ error }

func (r *reportedError) Unwrap() error { return r.error }

// exits maps the code of an error to the exit code; the default is exitFailed.
var exits = map[string]int{
	"usage": exitUsage, "ambiguous": exitUsage,
	"not-found": exitNotFound, "conflict": exitConflict, "fenced": exitConflict,
	"corrupt": exitCorrupt, "outcome-unknown": exitUnknown, "interrupted": exitInterrupted,
}

// kinds maps errors to codes and hints. The first match counts.
var kinds = []struct {
	is         error
	code, hint string
}{
	{
		coppice.ErrCommitUnknown, "outcome-unknown",
		"look with `coppice log` whether the commit is there before you repeat it; --key makes a repeat harmless",
	},
	{coppice.ErrFenced, "fenced", "another writer took the session; stop what you do on its behalf"},
	{
		coppice.ErrConflict, "conflict",
		"nothing of this was stored: run it again, or with --keep-both to keep it as a branch beside the other's",
	},
	{context.Canceled, "interrupted", ""},
	{context.DeadlineExceeded, "interrupted", ""},
	{coppice.ErrReadOnly, "read-only", ""},
	{codec.ErrVersion, "version", "use a release of coppice that knows this format"},
	{
		coppice.ErrCorrupt, "corrupt",
		"`coppice verify` shows the extent, `coppice repair --dry-run` what can be done; " +
			"what is intact can still be read",
	},
	{transcript.ErrAmbiguous, "ambiguous", "give more of the id"},
	{layout.ErrID, "usage", "a session id is 1 to 128 of A-Z a-z 0-9 . _ - and neither starts nor ends with a dot"},
	{fs.ErrExist, "exists", "what is there stays as it is; choose another name"},
	{
		fs.ErrNotExist, "not-found",
		"`coppice list` shows the sessions, `coppice tree SESSION` the entries, `coppice log SESSION` the commits",
	},
	{fs.ErrPermission, "permission", ""},
	{backend.ErrTooLarge, "too-large", "the message names the limit and the value"},
	{
		backend.ErrNoCAS, "no-cas",
		"use another store: on this one two writers overwrite each other; --single-writer is for those who insist",
	},
	{pi.ErrNotSession, "not-a-session", "session files are JSONL with a header line, as pi writes them"},
}

// describe returns an error as the JSON contract shows it, and the exit code.
func describe(err error) (problem, int) {
	p := problem{Code: "failed", Message: term.Line(err.Error())}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			p.Code, p.Hint = k.code, k.hint
			break
		}
	}
	if own, ok := errors.AsType[*failure](err); ok {
		p.Code, p.Hint = own.code, own.hint
	}
	if p.Code == "not-found" { // the sentinel's own words, which several layers may have added
		p.Message = strings.ReplaceAll(p.Message, ": "+fs.ErrNotExist.Error(), "")
	}
	if p.Code == "interrupted" {
		p.Message, p.Hint = "interrupted", "what was acknowledged before is kept"
	}
	if exit, ok := exits[p.Code]; ok {
		return p, exit
	}
	return p, exitFailed
}

// fail reports the error with which a command ended and returns the exit code.
func (c *cli) fail(err error) int {
	p, exit := describe(err)
	if _, ok := errors.AsType[*reportedError](err); ok {
		return exit
	}
	if c.json && !c.wroteJSON && c.writeJSON(map[string]problem{"error": p}) == nil {
		return exit
	}
	text := c.stderr.Paint(term.Red, "coppice: ") + p.Message
	if p.Hint != "" {
		text += "\n" + c.stderr.Paint(term.Dim, "  hint: "+p.Hint)
	}
	if _, own := errors.AsType[*failure](err); own && p.Code == "usage" {
		text += "\n" + c.stderr.Paint(term.Dim, "  `coppice help` and `coppice help COMMAND` tell more")
	}
	_, _ = fmt.Fprintln(c.stderr, strings.TrimRight(text, "\n")) // if this fails the exit code remains
	return exit
}
