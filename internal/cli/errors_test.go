package cli

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	coppice "github.com/coppice-go/coppice"
)

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
