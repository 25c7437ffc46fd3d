package entry_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/transcript"
)

func TestDrafts(t *testing.T) {
	type own struct {
		Role string      `json:"role"`
		N    json.Number `json:"n"`
	}
	tests := []struct {
		name  string
		draft transcript.Draft
		typ   string
		body  string
	}{
		{"message, struct", entry.Message(own{"user", "1.50"}), "message", `{"message":{"role":"user","n":1.50}}`},
		{"message, pointer", entry.Message(&own{"a<b>&", "1"}), "message", `{"message":{"role":"a<b>&","n":1}}`},
		{
			"message, raw", entry.Message(json.RawMessage(" {\n \"x\" : 12345678901234567890.0, \"s\":\"<\\u003c\u2028\" }\n")), "message",
			"{\"message\":{\"x\":12345678901234567890.0,\"s\":\"<\\u003c\u2028\"}}",
		},
		{"message, map", entry.Message(map[string]any{"role": "user"}), "message", `{"message":{"role":"user"}}`},
		{"user", entry.User("hi <you>"), "message", `{"message":{"role":"user","content":"hi <you>"}}`},
		{
			"user with image", entry.User("see", entry.Image("image/png", []byte{1, 2, 3})), "message",
			`{"message":{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"AQID","mimeType":"image/png"}]}}`,
		},
		{
			"user, image alone", entry.User("", entry.Image("image/png", nil)), "message",
			`{"message":{"role":"user","content":[{"type":"image","data":"","mimeType":"image/png"}]}}`,
		},
		{
			"result", entry.ToolResult("c1", "read", "no such file", true), "message",
			`{"message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"no such file"}],"isError":true}}`,
		},
		{
			"result, empty", entry.ToolResult("c1", "read", "", false), "message",
			`{"message":{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[],"isError":false}}`,
		},
		{"custom", entry.Custom("my.state", map[string]int{"n": 1}), "custom", `{"customType":"my.state","data":{"n":1}}`},
		{"custom without data", entry.Custom("mark", nil), "custom", `{"customType":"mark"}`},
		{"custom message", entry.CustomMessage("note", "look", true), "custom_message", `{"customType":"note","content":"look","display":true}`},
		{
			"custom message of blocks", entry.CustomMessage("note", []entry.Block{{Type: "text"}, {Type: "other", Text: "x"}, {Type: "toolCall", ID: "i", Name: "n"}}, false), "custom_message",
			`{"customType":"note","content":[{"type":"text","text":""},{"type":"other","text":"x"},{"type":"toolCall","id":"i","name":"n","arguments":{}}],"display":false}`,
		},
		{"compaction", entry.Compaction("so far", "id7", 900), "compaction", `{"summary":"so far","firstKeptEntryId":"id7","tokensBefore":900}`},
		{"compaction that keeps nothing", entry.Compaction("so far", "", 0), "compaction", `{"summary":"so far","tokensBefore":0}`},
		{"model", entry.Model("anthropic", "claude-x"), "model_change", `{"provider":"anthropic","modelId":"claude-x"}`},
		{"thinking", entry.Thinking("high"), "thinking_level_change", `{"thinkingLevel":"high"}`},
		{"title", entry.Title("The bug"), "session_info", `{"name":"The bug"}`},
		{"title cleared", entry.Title(""), "session_info", `{"name":""}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.draft.Err != nil {
				t.Fatal(tt.draft.Err)
			}
			if tt.draft.Type != tt.typ || string(tt.draft.Body) != tt.body {
				t.Errorf("%s\n got %s\nwant %s", tt.draft.Type, tt.draft.Body, tt.body)
			}
			if _, err := tt.draft.Line("id", "", time.Unix(0, 0)); err != nil {
				t.Errorf("no line: %v", err)
			}
		})
	}
}

func TestFailuresAreKept(t *testing.T) {
	for name, d := range map[string]transcript.Draft{
		"a string":          entry.Message("hi"),
		"bytes":             entry.Message([]byte(`{"role":"user"}`)),
		"a slice":           entry.Message([]any{1}),
		"nil":               entry.Message(nil),
		"a nil pointer":     entry.Message((*struct{})(nil)),
		"an empty raw":      entry.Message(json.RawMessage("")),
		"a broken raw":      entry.Message(json.RawMessage(`{"a":`)),
		"a function":        entry.Message(map[string]any{"f": func() {}}),
		"no number":         entry.Custom("k", math.NaN()),
		"no kind":           entry.Custom("", 1),
		"no kind either":    entry.CustomMessage("", "x", true),
		"a channel":         entry.CustomMessage("k", make(chan int), true),
		"arguments a list":  entry.Assistant("x", entry.Call("c", "read", []int{1})),
		"arguments unheard": entry.User("x", entry.Call("c", "read", func() {})),
	} {
		if d.Err == nil || !strings.HasPrefix(d.Err.Error(), "make a ") {
			t.Errorf("%s: error %v, body %s", name, d.Err, d.Body)
		}
		if line, err := d.Line("id", "", time.Unix(0, 0)); !errors.Is(err, d.Err) || line != nil {
			t.Errorf("%s: Line gave %s, %v", name, line, err)
		}
	}
}

// What the helpers make, Inspect understands.
func TestInspectUnderstands(t *testing.T) {
	inspect := func(d transcript.Draft) transcript.Shape {
		t.Helper()
		line, err := d.Line("id", "", time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		m, ok := transcript.Entry{ID: "id", Type: d.Type, Raw: line}.Message()
		if !ok {
			t.Fatalf("no message in %s", line)
		}
		return transcript.Inspect(m.Raw)
	}
	s := inspect(entry.Assistant("I look.", entry.Call("c1", "read", map[string]string{"path": "a"}), entry.Call("c2", "now", nil)))
	want := []transcript.ToolCall{
		{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path":"a"}`)}, {ID: "c2", Name: "now", Arguments: json.RawMessage(`{}`)},
	}
	if s.Role != "assistant" || s.Text != "I look." || !reflect.DeepEqual(s.Calls, want) {
		t.Errorf("assistant: %+v", s)
	}
	s = inspect(entry.ToolResult("c1", "read", "package a", false, entry.Image("image/png", []byte("x"))))
	if s.Role != "toolResult" || s.Text != "package a" || len(s.Results) != 1 || s.Results[0] != "c1" {
		t.Errorf("result: %+v", s)
	}
	if s = inspect(entry.User("hi")); s.Role != "user" || s.Text != "hi" {
		t.Errorf("user: %+v", s)
	}
}

func TestAssistantStopReason(t *testing.T) {
	for want, d := range map[string]transcript.Draft{
		`"stopReason":"stop"`:    entry.Assistant("done"),
		`"stopReason":"toolUse"`: entry.Assistant("", entry.Call("c", "t", nil)),
	} {
		if !strings.Contains(string(d.Body), want) {
			t.Errorf("%s is not in %s", want, d.Body)
		}
	}
}

func TestLineCopies(t *testing.T) {
	buf := []byte(`{"type":"x","id":"1"}` + "\n")
	d := entry.Line(buf)
	buf[2] = '?'
	line, err := d.Line("", "", time.Time{})
	if err != nil || string(line) != `{"type":"x","id":"1"}` {
		t.Errorf("got %s, %v", line, err)
	}
	if _, err := entry.Line(nil).Line("", "", time.Time{}); !errors.Is(err, transcript.ErrLine) {
		t.Errorf("an empty line: %v", err)
	}
}
