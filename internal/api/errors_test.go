package api_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/secrets"
	"github.com/coppice-go/coppice/transcript"
)

// described are errors of every kind, with what they are called.
var described = []struct {
	err          error
	code         string
	exit, status int
}{
	{errors.New("x"), "failed", 1, 500},
	{api.ErrEntry, "failed", 1, 400},
	{transcript.ErrLine, "failed", 1, 400},
	{&api.Failure{Code: "usage", Err: errors.New("x")}, "usage", 2, 400},
	{layout.ValidID(".."), "usage", 2, 400},
	{transcript.ErrAmbiguous, "ambiguous", 2, 400},
	{fs.ErrNotExist, "not-found", 3, 404},
	{transcript.ErrNotFound, "not-found", 3, 404},
	{errors.Join(coppice.ErrDeleted, fs.ErrNotExist), "deleted", 3, 410},
	{coppice.ErrConflict, "conflict", 4, 412},
	{coppice.ErrFenced, "fenced", 4, 409},
	{coppice.ErrHeld, "held", 4, 409},
	{coppice.ErrCorrupt, "corrupt", 5, 500},
	{errors.Join(coppice.ErrCorrupt, transcript.ErrLine), "corrupt", 5, 500},
	{coppice.ErrCommitUnknown, "outcome-unknown", 6, 504},
	{errors.Join(coppice.ErrCommitUnknown, context.Canceled), "outcome-unknown", 6, 504},
	{errors.Join(coppice.ErrCommitUnknown, syscall.ENOSPC), "outcome-unknown", 6, 504},
	{errors.Join(syscall.ENOSPC, coppice.ErrCommitUnknown, coppice.ErrDeleteUnfinished), "outcome-unknown", 6, 504},
	{coppice.ErrDeleteUnfinished, "delete-unfinished", 6, 503},
	{coppice.ErrInDoubt, "in-doubt", 1, 503},
	{&backend.Error{Op: "put", Key: "k", Outcome: backend.NotApplied, Err: backend.ErrBusy}, "busy", 1, 503},
	{context.Canceled, "interrupted", 130, 503},
	{context.DeadlineExceeded, "interrupted", 130, 503},
	{fs.ErrExist, "exists", 1, 409},
	{fs.ErrPermission, "permission", 1, 403},
	{coppice.ErrReadOnly, "read-only", 1, 403},
	{coppice.ErrKeyReused, "key-reused", 1, 422},
	{&secrets.FoundError{What: "session s", By: map[string]int{"jwt": 1}}, "secrets", 1, 409},
	{transcript.ErrNotAmendable, "not-amendable", 1, 422},
	{coppice.ErrNotErasable, "not-erasable", 1, 422},
	{coppice.ErrErased, "erased", 1, 422},
	{manager.ErrNothing, "nothing-to-compact", 1, 422},
	{backend.ErrTooLarge, "too-large", 1, 413},
	{backend.ErrNoCAS, "no-cas", 1, 500},
	{codec.ErrVersion, "version", 1, 500},
	{pi.ErrNotSession, "not-a-session", 1, 415},
	{syscall.ENOSPC, "no-space", 1, 507},
	{&fs.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}, "no-space", 1, 507},
}

// The codes, the exit codes and the statuses are a contract.
func TestDescribe(t *testing.T) {
	for _, tt := range described {
		d := api.Describe(fmt.Errorf("op: %w", tt.err))
		if d.Code != tt.code || d.Exit != tt.exit || d.Status != tt.status || d.Message == "" {
			t.Errorf("%v: %+v; want %s, exit %d, status %d", tt.err, d, tt.code, tt.exit, tt.status)
		}
		if p, a := d.Problem(), d.Answer(); p.Code != a.Code || p.Message != a.Message || (p.Hint == "") != (a.Hint == "") {
			t.Errorf("%v: at the command line %+v, over HTTP %+v", tt.err, p, a)
		}
		// Clients of the service have neither commands nor flags.
		if a := d.Answer(); strings.Contains(a.Hint, "`coppice") || strings.Contains(a.Hint, "--") {
			t.Errorf("%v: the hint %q is for the command line", tt.err, a.Hint)
		}
	}
	for want, err := range map[string]error{
		"nothing listens":    &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"no host":            &net.OpError{Op: "dial", Err: &net.DNSError{Name: "bucket", Err: "no such host"}},
		"AWS_CA_BUNDLE":      &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"does not speak TLS": tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"},
	} {
		d := api.Describe(fmt.Errorf("list: %w", &backend.Error{Op: "list", Key: "sessions/", Err: err}))
		if !strings.Contains(d.Hint, want) || strings.HasPrefix(d.Message, "list: list") {
			t.Errorf("%v: %+v", err, d)
		}
	}
	d := api.Describe(fmt.Errorf("resume x: %w: %w", fs.ErrNotExist, fs.ErrNotExist))
	if d.Message != "resume x not found" {
		t.Errorf("message %q", d.Message)
	}
	own := api.Describe(fmt.Errorf("x: %w", &api.Failure{Code: "not-found", Hint: "look", Err: fs.ErrNotExist}))
	if own.Problem().Hint != "look" || own.Answer().Hint != "look" || own.Exit != api.ExitNotFound {
		t.Errorf("a failure is described as %+v", own)
	}
}

// The page has every code with its exit code, and no other.
func TestCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli-json.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, tt := range described {
		want[tt.code] = fmt.Sprint(tt.exit)
	}
	row, code, remark := regexp.MustCompile(`(?m)^\| (\d+) \| [^|]* \| (.*) \|$`), regexp.MustCompile("`([a-z-]+)`"),
		regexp.MustCompile(`\([^)]*\)`)
	got := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		for _, c := range code.FindAllStringSubmatch(remark.ReplaceAllString(m[2], ""), -1) {
			got[c[1]] = m[1]
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("documented %v\nare       %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// A message is on one line, as the command line shows any text from outside.
func TestMessageIsOneLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a\r\n\t \x1b\x85\x{2028}\x{202e}]*`),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(p []byte) string { return string(p) })).Draw(t, "text")
		if got, want := api.Describe(errors.New(text)).Message, term.Line(text); got != want {
			t.Fatalf("%q becomes %q, want %q", text, got, want)
		}
	})
}

// What a real store reports is described by its kind.
func TestErrorsOfAStore(t *testing.T) {
	st, err := coppice.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = st.Close() }()
	s, err := st.Create("s", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), coppice.Turn{State: 1, Key: "k"}); err != nil {
		t.Fatal(err)
	}
	_, reused := s.Commit(t.Context(), coppice.Turn{State: 2, Key: "k"})
	if err := st.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_, deleted := st.Open(t.Context(), "s", nil)
	for code, err := range map[string]error{"key-reused": reused, "deleted": deleted} {
		if err == nil || api.Describe(err).Code != code {
			t.Errorf("%v is not %s", err, code)
		}
	}
}
