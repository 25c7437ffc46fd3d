package formats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
)

// TestUnknown: types that a reader does not know are listed with their first line and their number, and the types of
// the samples of each format are known.
func TestUnknown(t *testing.T) {
	for f, tt := range map[interop.Format]struct {
		text  string
		types [2]string
	}{
		interop.Codex: {`{"type":"session_meta","payload":{"id":"s"}}
{"type":"event_msg","payload":{"type":"shiny"}}
{"type":"response_item","payload":{"type":"message"}}
{"type":"event_msg","payload":{"type":"shiny"}}
{"type":"gleam","payload":{}}`, [2]string{`2 "event_msg/shiny"`, `5 "gleam"`}},
		interop.ClaudeCode: {`{"type":"user","uuid":"u","sessionId":"s"}
{"type":"shiny","sessionId":"s"}
torn {"type":"x"}
{"type":"shiny","sessionId":"s"}
{"type":"system","subtype":"gleam","uuid":"v","sessionId":"s"}`, [2]string{`2 "shiny"`, `5 "system/gleam"`}},
		interop.Pi: {`{"kind":"header","v":4,"id":"s"}
[{"kind":"shiny"},{"kind":"entry","id":"m","type":"message","message":{}}]
{"kind":"shiny"}
{"kind":"list"}
{"kind":"entry","id":"n","type":"gleam"}`, [2]string{`2 "shiny"`, `5 "gleam"`}},
	} {
		list, err := Unknown(f, source("f", []byte(tt.text)))
		got := ""
		for _, d := range list {
			got += fmt.Sprintf("%d %s; ", d.Ordinal, d.Detail)
		}
		const kept = "of them: kept as they are; "
		if want := tt.types[0] + ", 2 " + kept + tt.types[1] + ", 1 " + kept; err != nil || got != want {
			t.Errorf("%s: %s, want %s: %v", f, got, want, err)
		}
	}
	many := ""
	for i := range 130 {
		many += fmt.Sprintf(`{"type":"t%d","id":"e%d"}`+"\n", i, i)
	}
	list := testutil.Must(Unknown(interop.Omp, source("f", []byte(many))))(t)
	if n := len(list); n != 101 || !strings.Contains(list[n-1].Detail, "30 lines") {
		t.Errorf("%d types are listed, the last one as %v", n, list[n-1])
	}
	for _, name := range testutil.Must(filepath.Glob("../*/testdata/*.jsonl"))(t) {
		text := string(testutil.Must(os.ReadFile(name))(t))
		f := testutil.Must(Told(source("f", []byte(text))))(t)
		for _, d := range testutil.Must(Unknown(f, source("f", []byte(text))))(t) {
			if !strings.Contains(d.Detail, "future") && !strings.Contains(d.Detail, "of-tomorrow") {
				t.Errorf("%s as %s: line %d: %s", name, f, d.Ordinal, d.Detail)
			}
		}
	}
}
