package operator

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// FuzzEntry: whatever the bytes, taking them apart ends; the pieces of what is a line are JSON again.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{
		"", "{", `{"a`, `{"a\`, `{"a":`, `{"a":[`, `{"a":"\`, `{"message":{"contents":[{"type":"text"`, `[1]`, `{"a" 1 "b"}`, `{"content":[{"type":"image","images":[`,
		`{"message":{"contents":[{"type":"text","content":"a","type":"tool_call"},{"type":"tool_result","id":"k","content":[{"type":"image","images":["\/9j\/",7,null]}],"is_error":1}],"usage":{"cost":{},"cost":7,"totalTokens":[]},"stop_reason":"abort","error":"x"}}`,
		"{\"\xff\":1,\"\x7f<\":2,\"\\u0000\":3,\"message\" : { \"contents\" : [ 1 , { } ] } }", `{"content":[[],{},{"type":"thinking","signature":"","signature":"s"}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		var e decodedEntry
		for _, typ := range []string{"message", "custom_message", "dream"} {
			e.Read(jsonl.Entry{Line: transcript.Line{Type: typ, Raw: p}})
			if _, err := transcript.ParseLine(p); err != nil {
				continue
			}
			valid(t, p, e.Body)
			if !e.Spoken {
				continue
			}
			m := &e.Message
			valid(t, p, m.Head)
			for _, part := range m.Parts {
				switch text := m.Text[part.From:part.To]; part.Kind {
				case partAsIs:
				case partList:
					if list := append(append([]byte("["), text...), ']'); !json.Valid(list) {
						t.Fatalf("%q became %q", p, list)
					}
				case partResult:
					valid(t, p, text)
				}
			}
			for i, n := range m.Notes {
				if n.At != noteIsCall && (n.At > len(m.Text) || i > 0 && n.At < m.Notes[i-1].At) {
					t.Fatalf("%q: note %d at %d of %d", p, i, n.At, len(m.Text))
				}
			}
		}
	})
}

// valid wants members, a comma in front of each, that make an object.
func valid(t *testing.T, p, members []byte) {
	t.Helper()
	if object := closeObject(bytes.Clone(members), 0); !json.Valid(object) {
		t.Fatalf("%q became %q", p, object)
	}
}
