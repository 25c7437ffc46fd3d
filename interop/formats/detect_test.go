package formats

import (
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/interop"
)

func TestDetect(t *testing.T) {
	const (
		header  = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`
		message = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":"a"}}`
	)
	tests := []struct {
		name, head, path string
		want             interop.Format
	}{
		{"pi v3", lf(header, message), "", interop.Pi},
		{"pi v1", lf(`{"type":"session","id":"s","provider":"p"}`, `{"type":"message","message":{"role":"user"}}`), "", interop.Pi},
		{"pi without a header", lf(message), "", interop.Pi},
		{"pi behind a mark and CR LF", "\ufeff" + header + "\r\n" + message + "\r\n", "", interop.Pi},
		{"pi whose first line is torn", lf(`{"type":"sess`, message), "", interop.Pi},
		{"pi in omp's folder", lf(header, message), "/home/u/.omp/agent/sessions/x/a.jsonl", interop.Omp},
		{"pi in atomic's folder", lf(header, message), `C:\u\.atomic\agent\sessions\x\a.jsonl`, interop.Atomic},
		{"omp: title line", lf(`{"type":"title","v":1,"title":"","updatedAt":"x","pad":"  "}`, header), "", interop.Omp},
		{"omp: header", lf(`{"type":"session","version":3,"id":"s","titleSource":"auto"}`), "", interop.Omp},
		{"a title alone", lf(`{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w","title":"T"}`), "", interop.Pi},
		{"omp: model", lf(header, `{"type":"model_change","id":"m","parentId":null,"model":"a/b"}`), "", interop.Omp},
		{"omp: blob", lf(header, strings.Replace(message, `"a"}}`, `[{"type":"image","data":"blob:sha256:00"}]}}`, 1)), "", interop.Omp},
		{"omp in another's folder", lf(header, `{"type":"reset_boundary","id":"m","parentId":null}`), "/.atomic/agent/sessions/a", interop.Omp},
		{"atomic: header", lf(`{"type":"session","version":3,"id":"s","internal":true,"workflow":{"runId":"r"}}`), "", interop.Atomic},
		{"not atomic: half of its mark", lf(`{"type":"session","version":3,"id":"s","internal":true}`), "", interop.Pi},
		{"atomic: compaction", lf(header, `{"type":"compaction","id":"c","parentId":null,"details":{"strategy":"verbatim-lines"}}`), "", interop.Atomic},
		{"operator", lf(headers[interop.Operator][0]), "", interop.Operator},
		{"operator as its document has it", lf(`{"type":"session_header","id":"s","timestamp":1.5,"cwd":"/"}`), "", interop.Operator},
		{"operator, older", lf(`{"type":"metadata","id":"s","created_at":"2026-04-01T00:00:00","updated_at":"x","metadata":{}}`, `{"role":"human","content":"x"}`), "", interop.Operator},
		{"operator without a header", lf(`{"type":"leaf","id":"l","parent_id":null,"timestamp":1.0,"target_id":null}`), "", interop.Operator},
		{"prose", "Dear diary\n", "", ""},
		{"empty", "", "", ""},
		{"another's JSON", lf(`{"level":"info","msg":"x"}`), "", ""},
	}
	for _, tt := range tests {
		if got := Detect([]byte(tt.head), tt.path); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Every generated file is told: as its own format, or as pi's where it holds nothing but pi's lines.
func TestDetectGenerated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(written).Draw(t, "format")
		data := lf(genFile(f, rapidDraw{t}, rapid.IntRange(0, 20).Draw(t, "n"))...)
		got := Detect([]byte(data), "")
		switch {
		case got == f:
		case f == interop.Pi && (got == interop.Omp || got == interop.Atomic):
			t.Fatalf("pi's file is told as %s:\n%s", got, data)
		default:
			t.Fatalf("told as %q, is %s:\n%s", got, f, data)
		}
	})
}

func TestOpen(t *testing.T) {
	for _, f := range written {
		src := source("x.jsonl", []byte(lf(everyType(f, true)...)))
		r, err := Open(src, "", options())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Header(); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if told, err := Told(src); told != f || err != nil {
			t.Errorf("%s is told as %s, %v", f, told, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Open(source("x", nil), "word", options()); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown format: %v", err)
	}
	r, err := Open(source("x", []byte("Dear diary\n")), "", options())
	if err == nil {
		_, err = r.Header()
	}
	if !errors.Is(err, interop.ErrNotSession) {
		t.Errorf("prose: %v", err)
	}
	broken := errors.New("broken")
	if _, err := Open(interop.Source{Open: func() (io.ReadCloser, error) { return nil, broken }}, "", options()); !errors.Is(err, broken) {
		t.Errorf("a source that cannot be opened: %v", err)
	}
	for _, f := range written {
		r, err := Open(interop.Source{Open: func() (io.ReadCloser, error) { return nil, broken }}, f, options())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Next(); !errors.Is(err, broken) || r.Verbatim() || r.BadLines() != 0 || r.Diagnostics() != nil || r.Close() != nil {
			t.Errorf("%s: a source that cannot be opened: %v", f, err)
		}
	}
}
