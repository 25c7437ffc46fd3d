package program

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend"
	"github.com/coppice-go/coppice/checkpoint"
	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/cli/term"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/transcript"
)

func app() (a *App, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	none := func(string) string { return "" }
	return &App{Out: term.New(out, none), Err: term.New(errs, none), Getenv: none, Now: time.Now}, out, errs
}

// The codes and the exit codes are a contract.
func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code string
		exit int
	}{
		{errors.New("x"), "failed", 1},
		{Usage("x %d", 1), "usage", 2},
		{layout.ValidID(".."), "usage", 2},
		{transcript.ErrAmbiguous, "ambiguous", 2},
		{Unsupported("x"), "unsupported", 2},
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
		p, exit := Describe(fmt.Errorf("op: %w", tt.err))
		if p.Code != tt.code || exit != tt.exit || p.Message == "" {
			t.Errorf("%v: %+v, exit %d; want %s, %d", tt.err, p, exit, tt.code, tt.exit)
		}
	}
	p, _ := Describe(fmt.Errorf("resume x: %w: %w", fs.ErrNotExist, fs.ErrNotExist))
	if p.Message != "resume x" {
		t.Errorf("message %q", p.Message)
	}
	if p, _ = Describe(errors.New("two\nlines \x1b[31m")); p.Message != "two lines [31m" {
		t.Errorf("message %q", p.Message)
	}
}

func TestFail(t *testing.T) {
	a, out, errs := app()
	if exit := a.Fail(Usage("no")); exit != 2 || out.Len() > 0 || !strings.HasPrefix(errs.String(), "coppice: no\n") {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
	a, out, errs = app()
	a.JSON = true
	if exit := a.Fail(fs.ErrNotExist); exit != 3 || errs.Len() > 0 || !strings.HasPrefix(out.String(), `{"error":{"code":"not-found"`) {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
	if exit := a.Fail(Reported(coppice.ErrCorrupt)); exit != 5 || strings.Count(out.String(), "\n") != 1 || errs.Len() > 0 {
		t.Errorf("exit %d, %q", exit, out)
	}
	// What fails behind the document is told on the other stream.
	if exit := a.Fail(errors.New("late")); exit != 1 || strings.Count(out.String(), "\n") != 1 || !strings.Contains(errs.String(), "late") {
		t.Errorf("exit %d, %q, %q", exit, out, errs)
	}
}

// A list is one document, whatever happens on the way.
func TestArray(t *testing.T) {
	fields := struct {
		A string `json:"a"`
	}{"<x>"}
	for _, tt := range []struct {
		fields any
		items  int
		err    error
		want   string
	}{
		{nil, 0, nil, `{"list":[]}`},
		{nil, 2, nil, `{"list":[0,1]}`},
		{fields, 1, nil, `{"a":"<x>","list":[0]}`},
		{fields, 0, nil, `{"a":"<x>","list":[]}`},
		{struct{}{}, 0, nil, `{"list":[]}`},
		{nil, 2, errors.New("broken"), `{"list":[0,1],"error":{"code":"failed","message":"broken"}}`},
		{nil, 0, errors.New("broken"), `{"error":{"code":"failed","message":"broken"}}`},
	} {
		a, out, _ := app()
		a.JSON = true
		arr := a.ArrayAfter(tt.fields, "list")
		for i := range tt.items {
			if err := arr.Add(i); err != nil {
				t.Fatal(err)
			}
		}
		err := arr.End(tt.err)
		if (err != nil) != (tt.err != nil) {
			t.Errorf("error %v, want %v", err, tt.err)
		}
		if err != nil {
			a.Fail(err)
		}
		if got := strings.TrimSpace(out.String()); got != tt.want || !json.Valid([]byte(got)) {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	a, _, _ := app()
	if err := a.Array("x").Add(func() {}); err == nil {
		t.Error("what is no JSON is taken")
	}
	if err := a.ArrayAfter(func() {}, "x").End(nil); err == nil {
		t.Error("what is no JSON is taken")
	}
}

func TestStoreURL(t *testing.T) {
	a, _, _ := app()
	t.Setenv("HOME", "/home/x")
	if url, err := a.StoreURL(); err != nil || url != "/home/x/.local/share/coppice" {
		t.Errorf("%q, %v", url, err)
	}
	a.Getenv = func(string) string { return "/env" }
	if url, err := a.StoreURL(); err != nil || url != "/env" {
		t.Errorf("%q, %v", url, err)
	}
	a.URL = "mem:"
	if url, err := a.StoreURL(); err != nil || url != "mem:" {
		t.Errorf("%q, %v", url, err)
	}
	a.URL, a.Getenv = "", func(string) string { return "" }
	t.Setenv("HOME", "")
	if _, err := a.StoreURL(); err == nil {
		t.Error("a store without a home")
	}
}

func TestWords(t *testing.T) {
	if got := Title(checkpoint.Summary{Preview: "p\nq"}) + "," + Title(checkpoint.Summary{Title: "t", Preview: "p"}); got != "p q,t" {
		t.Error(got)
	}
	if got := Cost(backend.IO{Get: 1, BytesRead: 2048, Append: 2}); got != "1 read of 2.0 KiB, 2 appends" {
		t.Error(got)
	}
	if OrNull("") != nil || *OrNull("x") != "x" || string(OrNullJSON(nil)) != "null" || OrList[int](nil) == nil {
		t.Error("null is not where it should be")
	}
}
