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
	"github.com/coppice-go/coppice/internal/shortid"
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
		"check with `coppice log` whether the commit was stored before you repeat it; with --key a repeat is safe",
	},
	{coppice.ErrFenced, "fenced", "another writer has taken over the session; stop writing to it"},
	{
		coppice.ErrConflict, "conflict",
		"nothing was stored: run the command again, or with --keep-both to store it on a new branch",
	},
	{context.Canceled, "interrupted", ""},
	{context.DeadlineExceeded, "interrupted", ""},
	{coppice.ErrReadOnly, "read-only", ""},
	{codec.ErrVersion, "version", "use a release of coppice that can read this format"},
	{
		coppice.ErrCorrupt, "corrupt",
		"`coppice verify --deep SESSION` shows the damage, `coppice repair --dry-run SESSION` what can be repaired; " +
			"intact data can still be read",
	},
	{transcript.ErrNotAmendable, "not-amendable", "amend messages, summaries and custom entries"},
	{transcript.ErrAmbiguous, "ambiguous", "use more characters of the id"},
	{
		layout.ErrID, "usage",
		"a session id has 1 to 128 characters of A-Z a-z 0-9 . _ - and does not start or end with a dot",
	},
	{fs.ErrExist, "exists", "the existing one was not changed; choose another name"},
	{
		fs.ErrNotExist, "not-found",
		"`coppice list` lists sessions, `coppice tree SESSION` entries, `coppice log SESSION` commits",
	},
	{fs.ErrPermission, "permission", ""},
	{backend.ErrTooLarge, "too-large", "the message contains the limit and the value"},
	{
		backend.ErrNoCAS, "no-cas",
		"use another store: on this one two writers can overwrite each other; --single-writer allows it",
	},
	{pi.ErrNotSession, "not-a-session", "a session file is JSONL with a header line, as pi writes it"},
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
		p.Message, p.Hint = "interrupted", "commits that were acknowledged before are stored"
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
	if own, ok := errors.AsType[*coppice.Error](err); ok && own.Session != "" { // JSON keeps whole ids
		p.Message = strings.ReplaceAll(p.Message, own.Session, shortid.One(own.Session))
	}
	text := c.stderr.Paint(term.Red, "coppice: ") + p.Message
	if p.Hint != "" {
		text += "\n" + c.stderr.Paint(term.Dim, "  hint: "+p.Hint)
	}
	if _, own := errors.AsType[*failure](err); own && p.Code == "usage" {
		text += "\n" + c.stderr.Paint(term.Dim, "  see `coppice help` and `coppice help COMMAND`")
	}
	_, _ = fmt.Fprintln(c.stderr, strings.TrimRight(text, "\n")) // if this fails the exit code remains
	return exit
}
