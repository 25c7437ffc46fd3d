package api

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"syscall"
	"unicode"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/secrets"
	"github.com/coppice-go/coppice/transcript"
)

// The exit codes of the command.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitConflict    = 4 // or fenced
	ExitCorrupt     = 5
	ExitUnknown     = 6
	ExitInterrupted = 130
)

// Problem is an error.
type Problem struct {
	Code    string `json:"code" doc:"what went wrong, for programs"`
	Message string `json:"message" doc:"what went wrong, one line for people"`
	Hint    string `json:"hint,omitempty" doc:"what to do"`
}

// Failure is an error with a code and a hint of its own, which Describe returns.
type Failure struct {
	Code string
	Hint string
	Err  error
}

// Error returns the text of the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Description is what an error is called wherever it is reported.
type Description struct {
	Code, Message string
	Hint          string // for people at the command line: it may name commands and flags
	RequestHint   string // for clients of the HTTP service: it may name requests and headers
	Exit          int    // exit code of the command
	Status        int    // HTTP status
}

// Problem returns the error as the command line reports it.
func (d Description) Problem() Problem { return Problem{d.Code, d.Message, d.Hint} }

// Answer returns the error as the HTTP service reports it.
func (d Description) Answer() Problem { return Problem{d.Code, d.Message, d.RequestHint} }

// kinds maps errors to codes and hints. The first match counts. A kind without a hint for requests has the same one.
var kinds = []struct {
	is                      error
	code, hint, requestHint string
}{
	{
		coppice.ErrCommitUnknown, "outcome-unknown",
		"check with `coppice log` whether the commit was stored before you repeat it; with --key a repeat is safe",
		"repeat the request with the same Idempotency-Key, which stores nothing twice; without one look for the " +
			"commit in GET /v1/sessions/{id}/commits: its absence proves nothing before another write succeeds",
	},
	{
		coppice.ErrDeleteUnfinished, "delete-unfinished", "run the command again: it finishes the deletion",
		"repeat the request: it finishes the deletion",
	},
	{
		coppice.ErrErased, "erased",
		"nothing was imported: --again would import the file as a new session, with what was erased",
		"nothing was imported: a new session would have what was erased",
	},
	{
		coppice.ErrHeld, "held", "nothing was removed: `coppice set SESSION --hold ''` ends the hold",
		"nothing was removed: DELETE /v1/sessions/{id}/hold ends the hold",
	},
	{coppice.ErrNotErasable, "not-erasable", "erase messages, summaries, titles, labels and custom entries", ""},
	{
		coppice.ErrInDoubt, "in-doubt",
		"nothing of this commit was stored, as the outcome of an earlier one is unknown: run the command again",
		"nothing of this commit was stored, as the outcome of an earlier one is unknown: repeat the request",
	},
	{
		backend.ErrBusy, "busy", "nothing of this was stored: run the command again",
		"nothing of this was stored: repeat the request",
	},
	{coppice.ErrFenced, "fenced", "another writer has taken over the session; stop writing to it", ""},
	{
		coppice.ErrKeyReused, "key-reused",
		"nothing was stored: a commit of other content has this --key; use a new one",
		"nothing was stored: a commit of other content has this Idempotency-Key; use a new one",
	},
	{
		coppice.ErrDeleted, "deleted",
		"choose another id: that of a deleted session is used again on request alone, as by `coppice import --again`",
		"choose another id, or create the session with again",
	},
	{
		coppice.ErrConflict, "conflict",
		"nothing was stored: run the command again, or with --keep-both to store it on a new branch",
		"nothing was stored: repeat the request with the ETag of the head in If-Match, " +
			"or commit with onConflict keep-both to store it on a new branch",
	},
	{context.Canceled, "interrupted", "", ""},
	{context.DeadlineExceeded, "interrupted", "", ""},
	{coppice.ErrReadOnly, "read-only", "", ""},
	{codec.ErrVersion, "version", "use a release of coppice that can read this format", ""},
	{
		coppice.ErrStateLost, "corrupt",
		"`coppice log SESSION` marks the commits whose states were lost: use another one, or commit a new state",
		"the commits of the session mark those whose states were lost: use another one, or commit a new state",
	},
	{
		coppice.ErrCorrupt, "corrupt",
		"`coppice verify --deep SESSION` shows the damage, `coppice repair --dry-run SESSION` what can be repaired; " +
			"intact data can still be read",
		"POST /v1/sessions/{id}/verify shows the damage; intact data can still be read",
	},
	{
		secrets.ErrFound, "secrets",
		"--redact replaces each by [secret: RULE], --allow writes them; `coppice secrets SESSION` lists them",
		"secrets=redact replaces each by [secret: RULE], secrets=allow writes them",
	},
	{transcript.ErrNotAmendable, "not-amendable", "amend messages, summaries and custom entries", ""},
	{manager.ErrNothing, "nothing-to-compact", "the context is short, or begins with a summary already", ""},
	{transcript.ErrAmbiguous, "ambiguous", "use more characters of the id", ""},
	{
		layout.ErrID, "usage",
		"a session id has 1 to 128 characters of A-Z a-z 0-9 . _ - and does not start or end with a dot", "",
	},
	{fs.ErrExist, "exists", "the existing one was not changed; choose another name", ""},
	{
		fs.ErrNotExist, "not-found",
		"`coppice list` lists sessions, `coppice tree SESSION` entries, `coppice log SESSION` commits",
		"GET /v1/sessions lists the sessions, GET /v1/sessions/{id}/rows the entries of one, " +
			"GET /v1/sessions/{id}/commits its commits",
	},
	{
		fs.ErrPermission, "permission",
		"let this user do that; on S3 let the credentials: docs/s3.md lists what a bucket has to allow",
		"the server may not do that in its store",
	},
	{
		codec.ErrText, "usage", "nothing was stored: convert the text to UTF-8, for example with iconv",
		"nothing was stored: send the text as UTF-8",
	},
	{backend.ErrTooLarge, "too-large", "the message contains the limit and the value", ""},
	{
		backend.ErrNoCAS, "no-cas",
		"use another store: on this one two writers can overwrite each other; --single-writer allows it",
		"the service needs another store: on this one two writers can overwrite each other",
	},
	{interop.ErrNotSession, "not-a-session", "want a file of pi, omp, atomic, operator, Claude Code or Codex", ""},
	{syscall.ENOSPC, "no-space", "free some space and repeat it; what was stored before is intact", ""},
	{syscall.EDQUOT, "no-space", "free some space and repeat it; what was stored before is intact", ""},
}

// standing returns the exit code and the HTTP status of a code.
func standing(code string) (exit, status int) {
	switch code {
	case "usage", "ambiguous":
		return ExitUsage, http.StatusBadRequest
	case "not-found":
		return ExitNotFound, http.StatusNotFound
	case "deleted":
		return ExitNotFound, http.StatusGone
	case "conflict":
		return ExitConflict, http.StatusPreconditionFailed
	case "fenced", "held":
		return ExitConflict, http.StatusConflict
	case "corrupt":
		return ExitCorrupt, http.StatusInternalServerError
	case "outcome-unknown":
		return ExitUnknown, http.StatusGatewayTimeout
	case "delete-unfinished":
		return ExitUnknown, http.StatusServiceUnavailable
	case "interrupted":
		return ExitInterrupted, http.StatusServiceUnavailable
	case "busy", "in-doubt":
		return ExitFailed, http.StatusServiceUnavailable
	case "read-only", "permission":
		return ExitFailed, http.StatusForbidden
	case "exists", "secrets":
		return ExitFailed, http.StatusConflict
	case "too-large":
		return ExitFailed, http.StatusRequestEntityTooLarge
	case "not-amendable", "not-erasable", "erased", "key-reused", "nothing-to-compact":
		return ExitFailed, http.StatusUnprocessableEntity
	case "not-a-session":
		return ExitFailed, http.StatusUnsupportedMediaType
	case "no-space":
		return ExitFailed, http.StatusInsufficientStorage
	}
	return ExitFailed, http.StatusInternalServerError // failed, version, no-cas
}

// Describe returns code, message, hints, exit code and HTTP status of an error. The code and the hint of a Failure are
// its own.
func Describe(err error) Description {
	d := Description{Code: "failed", Message: oneLine(err.Error())}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			d.Code, d.Hint, d.RequestHint = k.code, k.hint, k.requestHint
			break
		}
	}
	if own, ok := errors.AsType[*Failure](err); ok {
		d.Code, d.Hint, d.RequestHint = own.Code, own.Hint, ""
	}
	switch d.Code {
	case "failed":
		if d.Hint == "" {
			d.Hint = reachHint(err)
		}
	case "not-found":
		d.Message = notFound(d.Message)
		if isFile(err) {
			d.Hint, d.RequestHint = "there is no such file or folder", ""
		}
	case "exists":
		if d.Message = strings.TrimSuffix(d.Message, ": "+fs.ErrExist.Error()); !strings.Contains(d.Message, "exists") {
			d.Message += " already exists"
		}
	case "deleted": // the sentinel's own words, which several layers may have added
		d.Message = strings.ReplaceAll(d.Message, ": "+fs.ErrNotExist.Error(), "")
	case "interrupted":
		d.Message, d.Hint = "interrupted", "commits that were acknowledged before are stored"
	}
	if d.RequestHint == "" {
		d.RequestHint = d.Hint
	}
	if op, rest, ok := strings.Cut(d.Message, ": "); ok && strings.HasPrefix(rest, op+" ") {
		d.Message = rest // the operation of the store, and that of its backend
	}
	d.Exit, d.Status = standing(d.Code)
	if d.Code == "failed" && (errors.Is(err, ErrEntry) || errors.Is(err, transcript.ErrLine) ||
		errors.Is(err, layout.ErrInput)) {
		d.Status = http.StatusBadRequest
	}
	return d
}

// isFile reports whether an error is about a file of this machine, and not about an object of a store.
func isFile(err error) bool {
	_, file := errors.AsType[*fs.PathError](err)
	_, object := errors.AsType[*backend.Error](err)
	return file && !object
}

// reachHint returns what to do where a store was not reached; "" = it is another error.
func reachHint(err error) string {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "no host has this name: correct the endpoint in the store's address"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the certificate of the endpoint is not trusted: AWS_CA_BUNDLE names a file with the authority's"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the endpoint does not speak TLS: an address of http:// is for a server without it"
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "nothing listens there: start the store's server, or correct the endpoint in the store's address"
	}
	return ""
}

// notFound replaces the words of the sentinels, which several layers may have added, by "not found" at the end.
func notFound(message string) string {
	short := strings.ReplaceAll(message, ": "+transcript.ErrNotFound.Error(), "")
	short = strings.ReplaceAll(short, ": "+fs.ErrNotExist.Error(), "")
	last := short[strings.LastIndex(short, ": ")+1:]
	if short == message || strings.HasPrefix(strings.TrimSpace(last), "no ") {
		return short
	}
	return short + " not found"
}

// oneLine returns a text on one line: white space becomes single spaces; other control characters, and marks that
// change the reading direction, are removed.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	return strings.Join(strings.FieldsFunc(text, unicode.IsSpace), " ")
}
