package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/transcript"
)

// The codes and the exit codes are a contract.
func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code string
		exit int
	}{
		{errors.New("x"), "failed", 1},
		{usageError("x %d", 1), "usage", 2},
		{layout.ValidID(".."), "usage", 2},
		{transcript.ErrAmbiguous, "ambiguous", 2},
		{fs.ErrNotExist, "not-found", 3},
		{transcript.ErrNotFound, "not-found", 3},
		{coppice.ErrConflict, "conflict", 4},
		{coppice.ErrFenced, "fenced", 4},
		{coppice.ErrCorrupt, "corrupt", 5},
		{coppice.ErrCommitUnknown, "outcome-unknown", 6},
		{context.Canceled, "interrupted", 130},
		{errors.Join(coppice.ErrCommitUnknown, context.Canceled), "outcome-unknown", 6},
		{fs.ErrExist, "exists", 1},
		{fs.ErrPermission, "permission", 1},
		{coppice.ErrReadOnly, "read-only", 1},
		{backend.ErrTooLarge, "too-large", 1},
		{backend.ErrNoCAS, "no-cas", 1},
		{codec.ErrVersion, "version", 1},
		{pi.ErrNotSession, "not-a-session", 1},
	} {
		p, exit := describe(fmt.Errorf("op: %w", tt.err))
		if p.Code != tt.code || exit != tt.exit || p.Message == "" {
			t.Errorf("%v: %+v, exit %d; want %s, %d", tt.err, p, exit, tt.code, tt.exit)
		}
	}
	p, _ := describe(fmt.Errorf("resume x: %w: %w", fs.ErrNotExist, fs.ErrNotExist))
	if p.Message != "resume x" {
		t.Errorf("message %q", p.Message)
	}
	if p, _ = describe(errors.New("two\nlines \x1b[31m")); p.Message != "two lines [31m" {
		t.Errorf("message %q", p.Message)
	}
}

func TestFail(t *testing.T) {
	c, out, errs := bare()
	if exit := c.fail(usageError("no")); exit != 2 || out.Len() > 0 || !strings.HasPrefix(errs.String(), "coppice: no\n") {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
	c, out, errs = bare()
	c.json = true
	if exit := c.fail(fs.ErrNotExist); exit != 3 || errs.Len() > 0 || !strings.HasPrefix(out.String(), `{"error":{"code":"not-found"`) {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
	if exit := c.fail(reported(coppice.ErrCorrupt)); exit != 5 || strings.Count(out.String(), "\n") != 1 || errs.Len() > 0 {
		t.Errorf("exit %d, %q", exit, out)
	}
	// What fails behind the document is told on the other stream.
	if exit := c.fail(errors.New("late")); exit != 1 || strings.Count(out.String(), "\n") != 1 || !strings.Contains(errs.String(), "late") {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
}
