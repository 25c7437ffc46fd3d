package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/layout"
	"github.com/coppice-go/coppice/transcript"
)

func nested(open, end string, n int) string {
	return strings.Repeat(open, n) + "1" + strings.Repeat(end, n)
}

// values are JSON values on which libraries disagree, and invalid ones.
var values = []string{
	`{"a":1,"a":2,"A":3}`, `{"n":12345678901234567890.123456789e-30,"m":1e999999,"z":-0,"zz":-0.0}`, `"\ud800"`, `"\udc00\ud800"`, `"\u0000\u001f\u007f"`, `"` + "\u2028\u202e\ufeff" + `"`,
	`{"":{"":""}}`, `{"__proto__":{"x":1},"constructor":null}`, "{\"a\"\r\n:\t1}", `"<\/script>"`, nested("[", "]", 400), nested(`{"a":`, "}", 400), `[` + strings.Repeat("0,", 100_000) + `0]`,
	// invalid
	nested("[", "]", 513), nested(`{"a":`, "}", 100_000), strings.Repeat("[", 4_000_000), "\xef\xbb\xbf1", `{"a":1}{"a":2}`, "01", "1.", "+1", ".5", "NaN", "Infinity", "'a'", `{"a":1,}`, `[1,]`, `{a:1}`,
	"\"\x00\"", "\"\x1f\"", "\"a\nb\"", `"\x41"`, `"\u12"`, `"unfinished`, "nul", "// c\n1", "\xff", "\"\xff\"", "",
}

// oddJSON passes every value as a message, an entry and the state: an accepted value is returned token for token by a
// new handle, a refused one stores nothing.
func oddJSON(a *attack) {
	for i, v := range values {
		for where, turn := range map[string]func(s *coppice.Session) error{
			"message": func(s *coppice.Session) error {
				_, err := s.Append(a.Context(), entry.Message(json.RawMessage(`{"role":"user","content":`+v+`}`)))
				return err
			},
			"line": func(s *coppice.Session) error {
				_, err := s.Append(a.Context(), entry.Line([]byte(`{"type":"message","id":"m1","parentId":null,"message":{"role":"user","content":`+v+`}}`)))
				return err
			},
			"custom": func(s *coppice.Session) error {
				_, err := s.Append(a.Context(), entry.Custom("x", json.RawMessage(v)))
				return err
			},
			"state": func(s *coppice.Session) error {
				_, err := s.Commit(a.Context(), coppice.Turn{State: json.RawMessage(v)})
				return err
			},
		} {
			oneJSON(a, fmt.Sprintf("value %d, %s, as %s", i, quoted(v), where), v, where, turn)
			a.try(1)
		}
	}
}

func oneJSON(a *attack, what, v, where string, turn func(s *coppice.Session) error) {
	b := memory.New()
	s := a.session(a.store(b), "s")
	var err error
	a.soon(what, func() { err = turn(s) })
	if err == nil && where != "state" {
		_, err = s.Commit(a.Context(), coppice.Turn{State: 1})
	}
	if err != nil {
		if !typed(err) {
			a.broken("%s: an error of no kind: %v", what, err)
		}
		for key := range a.objects(b) {
			if !strings.HasPrefix(key, layout.CAS) {
				a.broken("%s was refused, and %s was stored: %v", what, key, err)
			}
		}
		return
	}
	if !json.Valid([]byte(v)) && v != "" {
		a.broken("%s was taken, and is no JSON", what)
		return
	}
	again, err := a.store(b).Open(a.Context(), "s", nil)
	if err != nil {
		a.broken("%s was committed and cannot be read: %v", what, err)
		return
	}
	var back json.RawMessage
	if where == "state" {
		err = again.State(&back)
	} else {
		for e, eerr := range again.Entries(a.Context()) {
			back, err = e.Raw, eerr
		}
	}
	want := tight(v)
	if where == "line" {
		want = v // byte for byte, including white space
	}
	if v == "" {
		want = "" // no state, and custom data that is absent
	}
	if err != nil || !strings.Contains(string(back), want) {
		a.broken("%s came back as %s: %v", what, quoted(string(back)), err)
	}
}

// tight removes the white space between tokens.
func tight(v string) string {
	var b bytes.Buffer
	if json.Compact(&b, []byte(v)) != nil {
		return v
	}
	return b.String()
}

// drafts returns lines as the input of Import.
func drafts(lines []string) iter.Seq2[transcript.Draft, error] {
	return func(yield func(transcript.Draft, error) bool) {
		for _, l := range lines {
			if !yield(entry.Line([]byte(l)), nil) {
				return
			}
		}
	}
}

func original(file []byte) *coppice.SessionOptions {
	return &coppice.SessionOptions{ID: "s", Original: func() (io.Reader, error) { return bytes.NewReader(file), nil }}
}

const head = `{"type":"session","version":3,"id":"s","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/w"}`
