package api_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/api"
	"github.com/coppice-go/coppice/transcript"
)

// An object is a whole entry, an entry without a place, or a message, and keeps its bytes.
func TestDraft(t *testing.T) {
	whole := `{"type":"message","id":"m1","parentId":null,"n":1.0,"message":{"role":"user"}}`
	for _, tt := range []struct {
		line string
		want transcript.Draft
	}{
		{`{"role":"user","content":1.50}`, transcript.Draft{Type: "message", Body: json.RawMessage(`{"message":{"role":"user","content":1.50}}`)}},
		{` {"content":"x"} `, transcript.Draft{Type: "message", Body: json.RawMessage(`{"message":{"content":"x"}}`)}},
		{whole, transcript.Draft{Raw: []byte(whole)}},
		{`{"type":"label","id":"l","b":1.0,"targetId":"m","a":2}`, transcript.Draft{Type: "label", ID: "l", Body: json.RawMessage(`{"b":1.0,"targetId":"m","a":2}`)}},
		{`{"type":"session_info","timestamp":"x","parentId":"p"}`, transcript.Draft{
			Type: "session_info", Parent: "p", Body: json.RawMessage(`{}`),
		}},
		{`{"type":"message","id":"m","parentId":null,"ID":1,"message":{"role":"user"},"role":"user"}`, transcript.Draft{
			Type: "message", Body: json.RawMessage(
				`{"message":{"type":"message","id":"m","parentId":null,"ID":1,"message":{"role":"user"},"role":"user"}}`),
		}},
		{`{"type":"message","parentId":null,"message":{"id":1,"id":2,"Role":"x"},"n":1,"n":2,"N":3}`, transcript.Draft{
			Type: "message", Body: json.RawMessage(`{"message":{"id":1,"id":2,"Role":"x"},"n":1,"n":2,"N":3}`),
		}},
		{`{"type":"label"}`, transcript.Draft{Type: "message", Body: json.RawMessage(`{"message":{"type":"label"}}`)}},
		{`{"type":"text","text":"x"}`, transcript.Draft{Type: "message", Body: json.RawMessage(`{"message":{"type":"text","text":"x"}}`)}},
	} {
		got, err := api.Draft(json.RawMessage(tt.line))
		if err != nil || got.Type != tt.want.Type || got.ID != tt.want.ID || string(got.Body) != string(tt.want.Body) ||
			got.Parent != tt.want.Parent ||
			string(got.Raw) != string(tt.want.Raw) || got.Err != nil {
			t.Errorf("%s: %+v, %v; want %+v", tt.line, got, err, tt.want)
		}
	}
	for _, line := range []string{"", " ", "x", "[1]", "null", "{", `{"a":1}{"b":2}`, `"x"`} {
		if d, err := api.Draft(json.RawMessage(line)); !errors.Is(err, api.ErrEntry) {
			t.Errorf("%q: %+v, %v", line, d, err)
		}
	}
}

// The members that place an entry, and its message, each occur at most once, in their own case, and are of their type:
// otherwise one that the caller gave would be ignored.
func TestDraftRefusesMembers(t *testing.T) {
	for _, tt := range []struct{ line, names string }{
		{`{"type":"message","parentId":5,"message":{}}`, "parentId"},
		{`{"type":"message","id":"a","parentId":{},"message":{}}`, "parentId"},
		{`{"type":"message","id":5,"message":{}}`, "id"},
		{`{"type":"message","id":"a","ParentId":"p","message":{}}`, "ParentId"},
		{`{"type":"message","ID":"a","parentId":null,"message":{}}`, "ID"},
		{`{"Type":"message","message":{}}`, "Type"},
		{`{"type":"message","Message":{}}`, "Message"},
		{`{"type":"label","targetId":"x","Timestamp":"y"}`, "Timestamp"},
		{`{"type":"message","id":"a","id":"b","message":{}}`, "id"},
		{`{"type":"message","id":"a","\u0069d":"b","parentId":null,"message":{}}`, "id"},
		{`{"type":"message","message":{},"message":{}}`, "message"},
		{`{"type":"message","type":"text","message":{}}`, "type"},
		{`{"type":"own","id":"a","parentId":null,"parentId":"p"}`, "parentId"},
	} {
		d, err := api.Draft(json.RawMessage(tt.line))
		named := err != nil && strings.Contains(err.Error(), `"`+tt.names+`"`)
		if !errors.Is(err, api.ErrEntry) || !named || api.Describe(err).Status != 400 {
			t.Errorf("%s: %+v, %v", tt.line, d, err)
		}
	}
}

// One bad line rejects all, and is named by its number.
func TestDrafts(t *testing.T) {
	drafts, err := api.Drafts([]byte("\xef\xbb\xbf{\"role\":\"user\"}\r\n\r\n{\"role\":\"assistant\"}"))
	if err != nil || len(drafts) != 2 {
		t.Fatalf("%d drafts, %v", len(drafts), err)
	}
	for _, tt := range []struct {
		in   string
		line int
		cut  bool
	}{
		{"x\n", 1, false},
		{"{}\n\n{\n{}\n", 3, false},
		{"{}\n{", 2, true},
	} {
		drafts, err := api.Drafts([]byte(tt.in))
		bad, ok := errors.AsType[*api.LineError](err)
		if !ok || !errors.Is(err, api.ErrEntry) || bad.Line != tt.line || len(drafts) != 0 ||
			strings.Contains(err.Error(), "truncated") != tt.cut || api.Describe(err).Status != 400 {
			t.Errorf("%q: %d drafts, %v", tt.in, len(drafts), err)
		}
	}
}
