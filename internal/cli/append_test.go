package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	coppice "github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
)

// FuzzInput is the standard input of `coppice append`: it is refused as a whole, or every line becomes one
// entry whose JSON is valid, in a session that reads back what was given. What is stored is valid UTF-8.
func FuzzInput(f *testing.F) {
	for _, s := range []string{
		`{"role":"user","content":"hello"}`, "\xef\xbb\xbf{\"role\":\"user\",\"content\":\"x\"}\r\n\r\n{\"role\":\"assistant\",\"content\":[]}\r\n",
		`{"type":"message","id":"m1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"x"}}`,
		`{"type":"custom","customType":"x","data":{"a":1,"a":2},"type":"label"}`, `{"type":"label","id":"l","targetId":"m","label":""}`, `{"type":"custom","customType":"coppice.commit","data":{}}`,
		`{"role":"user","content":"\ud800"}`, `{"n":1e999999}`, "{\"a\":\"\x00\"}", "[1]", "{}{}", "{", strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), `{"type":"message","id":"","parentId":""}`, "null",
		"{\"role\":\"user\",\"content\":\"caf\xe9\"}", "{\"type\":\"x\",\"id\":\"\xff\",\"parentId\":null}",
		"{\"\xff\":1,\"type\":\"label\",\"targetId\":\"a\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if v, err := stateOf("x", raw); err == nil && (!json.Valid(v) || !utf8.Valid(v)) {
			t.Fatalf("a state that is no JSON: %q", v)
		}
		drafts, err := parseLines(raw)
		if err != nil {
			return
		}
		st, err := coppice.New(memory.New(), &coppice.Options{Now: func() time.Time { return time.Unix(1, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = st.Close() }()
		s, err := st.Create("s", nil)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := s.Append(t.Context(), drafts...)
		if err != nil || len(ids) == 0 {
			return
		}
		if _, err = s.Commit(t.Context(), coppice.Turn{}); err != nil {
			return
		}
		again, err := st.Open(t.Context(), "s", nil)
		if err != nil {
			t.Fatalf("%q was committed and cannot be read: %v", raw, err)
		}
		n := 0
		for e, err := range again.Entries(t.Context(), ids...) {
			if err != nil || !json.Valid(e.Raw) || e.ID != ids[n] || drafts[n].Raw != nil && !bytes.Equal(e.Raw, bytes.TrimSuffix(drafts[n].Raw, []byte("\n"))) {
				t.Fatalf("of %q came %q: %v", raw, e.Raw, err)
			}
			n++
		}
		if n != len(drafts) {
			t.Fatalf("of %d lines came %d entries", len(drafts), n)
		}
		var stored bytes.Buffer // as it is: reads replace bytes that are not UTF-8
		if err := st.Export(t.Context(), "s", &stored); err != nil || !utf8.Valid(stored.Bytes()) {
			t.Fatalf("of %q came %q: %v", raw, stored.Bytes(), err)
		}
	})
}
