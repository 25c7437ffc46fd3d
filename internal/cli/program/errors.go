package program

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
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitConflict    = 4 // or fenced
	ExitCorrupt     = 5
	ExitUnknown     = 6
	ExitInterrupted = 130
)

// Problem is an error as the JSON contract shows it.
type Problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Failure is an error with a code of the command line's own.
type Failure struct {
	Code string
	Hint string
	Err  error
}

// Error gives the cause.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Usage makes the error of a command that was called in a way that cannot be.
func Usage(format string, args ...any) error {
	return &Failure{Code: "usage", Err: fmt.Errorf(format, args...)}
}

// Reported wraps an error of which the standard output already tells: only its exit code is left to say.
func Reported(err error) error { return &reported{err} }

type reported struct{ error }

func (r *reported) Unwrap() error { return r.error }

// exits are the exit codes by code of error; the others are ExitFailed.
var exits = map[string]int{
	"usage": ExitUsage, "ambiguous": ExitUsage, "unsupported": ExitUsage,
	"not-found": ExitNotFound, "conflict": ExitConflict, "fenced": ExitConflict,
	"corrupt": ExitCorrupt, "outcome-unknown": ExitUnknown, "interrupted": ExitInterrupted,
}

// kinds find code and hint of an error. The first that fits is taken.
var kinds = []struct {
	is         error
	code, hint string
}{
	{coppice.ErrCommitUnknown, "outcome-unknown", "look with `coppice log` whether the commit is there before you repeat it; --key makes a repeat harmless"},
	{coppice.ErrFenced, "fenced", "another writer took the session; stop what you do on its behalf"},
	{coppice.ErrConflict, "conflict", "nothing of this was stored: run it again, or with --keep-both to keep it as a branch beside the other's"},
	{context.Canceled, "interrupted", ""},
	{context.DeadlineExceeded, "interrupted", ""},
	{coppice.ErrReadOnly, "read-only", ""},
	{codec.ErrVersion, "version", "use a release of coppice that knows this format"},
	{coppice.ErrCorrupt, "corrupt", "`coppice verify` shows the extent, `coppice repair --dry-run` what can be done; what is intact can still be read"},
	{transcript.ErrAmbiguous, "ambiguous", "give more of the id"},
	{layout.ErrID, "usage", "a session id is 1 to 128 of A-Z a-z 0-9 . _ - and neither starts nor ends with a dot"},
	{fs.ErrExist, "exists", "what is there stays as it is; choose another name"},
	{fs.ErrNotExist, "not-found", "`coppice list` shows the sessions, `coppice tree SESSION` the entries, `coppice log SESSION` the commits"},
	{fs.ErrPermission, "permission", ""},
	{backend.ErrTooLarge, "too-large", "the message names the limit and the value"},
	{backend.ErrNoCAS, "no-cas", "use another store: on this one two writers overwrite each other; --single-writer is for those who insist"},
	{pi.ErrNotSession, "not-a-session", "session files are JSONL with a header line, as pi writes them"},
}

// Describe gives an error as the JSON contract shows it, and the exit code.
func Describe(err error) (Problem, int) {
	p := Problem{Code: "failed", Message: term.Line(err.Error())}
	for _, k := range kinds {
		if errors.Is(err, k.is) {
			p.Code, p.Hint = k.code, k.hint
			break
		}
	}
	if own, ok := errors.AsType[*Failure](err); ok {
		if own.Code != "" {
			p.Code = own.Code
		}
		p.Hint = own.Hint
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
	return p, ExitFailed
}

// Fail reports the error with which a command ended, and gives the exit code.
func (a *App) Fail(err error) int {
	p, exit := Describe(err)
	if _, told := errors.AsType[*reported](err); told {
		return exit
	}
	if a.JSON && !a.spoke {
		if a.Emit(map[string]Problem{"error": p}) == nil {
			return exit
		}
	}
	text := a.Err.Paint(term.Red, "coppice: ") + p.Message
	if p.Hint != "" {
		text += "\n" + a.Err.Paint(term.Dim, "  hint: "+p.Hint)
	}
	if p.Code == "usage" && own(err) {
		text += "\n" + a.Err.Paint(term.Dim, "  `coppice help` and `coppice help COMMAND` tell more")
	}
	if _, werr := fmt.Fprintln(a.Err, strings.TrimRight(text, "\n")); werr != nil {
		return exit // there is nobody left to tell
	}
	return exit
}

func own(err error) bool {
	_, ok := errors.AsType[*Failure](err)
	return ok
}
