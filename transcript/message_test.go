package transcript

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/coppice-go/coppice/internal/blob"
	"github.com/coppice-go/coppice/internal/rawjson"
)

var shapes = []struct {
	name, message string
	want          Shape
}{
	{"pi user", `{"role":"user","content":"hi","timestamp":1}`, Shape{Role: "user", Text: "hi"}},
	{
		"pi assistant", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I read."},{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}},{"type":"text","text":"And more."}],"stopReason":"toolUse"}`,
		Shape{Role: "assistant", Text: "I read.\nAnd more.", Calls: []ToolCall{{ID: "c1", Name: "read"}}},
	},
	{
		"pi tool result", `{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"package a"}],"isError":false}`,
		Shape{Role: "toolResult", Text: "package a", Results: []string{"c1"}},
	},
	{"pi command", `{"role":"bashExecution","command":"ls","output":"a\nb","cancelled":false}`, Shape{Role: "bashExecution", Text: "ls\na\nb"}},
	{"pi summary", `{"role":"compactionSummary","summary":"so far","tokensBefore":5}`, Shape{Role: "compactionSummary", Text: "so far"}},
	{
		"anthropic call", `{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"toolu_1","name":"bash","input":{"command":"ls"}}],"stop_reason":"tool_use"}`,
		Shape{Role: "assistant", Text: "Let me see.", Calls: []ToolCall{{ID: "toolu_1", Name: "bash"}}},
	},
	{
		"anthropic results", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"out","is_error":true},{"type":"tool_result","tool_use_id":"toolu_2","content":[{"type":"text","text":"two"},{"type":"image","source":{}}]}]}`,
		Shape{Role: "user", Text: "out\ntwo", Results: []string{"toolu_1", "toolu_2"}},
	},
	{
		"anthropic results and words", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"out"},{"type":"text","text":"go on"}]}`,
		Shape{Role: "user", Text: "go on", Results: []string{"t"}},
	},
	{
		"anthropic server tool", `{"role":"assistant","content":[{"type":"server_tool_use","id":"s1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s1","content":[]},{"type":"text","text":"found"}]}`,
		Shape{Role: "assistant", Text: "found", Calls: []ToolCall{{ID: "s1", Name: "web_search"}}, Results: []string{"s1"}},
	},
	{
		"openai chat call", `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get","arguments":"{\"path\":\"x\"}"}},{"id":"call_2","type":"custom","custom":{"name":"run","input":"ls"}}]}`,
		Shape{Role: "assistant", Calls: []ToolCall{{ID: "call_1", Name: "get"}, {ID: "call_2", Name: "run"}}},
	},
	{"openai chat result", `{"role":"tool","tool_call_id":"call_1","content":"42"}`, Shape{Role: "tool", Text: "42", Results: []string{"call_1"}}},
	{"openai chat parts", `{"role":"user","content":[{"type":"text","text":"what is it?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`, Shape{Role: "user", Text: "what is it?"}},
	{"openai legacy call", `{"role":"assistant","content":"","function_call":{"name":"f","arguments":"{}"}}`, Shape{Role: "assistant", Calls: []ToolCall{{ID: "f", Name: "f"}}}},
	{"openai refusal", `{"role":"assistant","content":null,"refusal":"I will not."}`, Shape{Role: "assistant", Text: "I will not."}},
	{"openai response", `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}`, Shape{Role: "assistant", Text: "done"}},
	{"openai response call", `{"type":"function_call","call_id":"call_9","name":"f","arguments":"{}"}`, Shape{Role: "assistant", Calls: []ToolCall{{ID: "call_9", Name: "f"}}}},
	{"openai response result", `{"type":"function_call_output","call_id":"call_9","output":"ok"}`, Shape{Role: "tool", Text: "ok", Results: []string{"call_9"}}},
	{"gemini text", `{"role":"model","parts":[{"text":"planning","thought":true},{"text":"hello"}]}`, Shape{Role: "model", Text: "hello"}},
	{
		"gemini call", `{"role":"model","parts":[{"functionCall":{"name":"f","args":{"x":1}}},{"functionCall":{"id":"g1","name":"g","args":{}}}]}`,
		Shape{Role: "model", Calls: []ToolCall{{ID: "f", Name: "f"}, {ID: "g1", Name: "g"}}},
	},
	{
		"gemini result", `{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":1}}},{"functionResponse":{"id":"g1","name":"g","response":{}}}]}`,
		Shape{Role: "user", Results: []string{"f", "g1"}},
	},
	{"bedrock", `{"role":"assistant","content":[{"text":"so"},{"toolUse":{"toolUseId":"u1","name":"calc","input":{}}}]}`, Shape{Role: "assistant", Text: "so", Calls: []ToolCall{{ID: "u1", Name: "calc"}}}},
	{"bedrock result", `{"role":"user","content":[{"toolResult":{"toolUseId":"u1","status":"error","content":[{"text":"no"}]}}]}`, Shape{Role: "user", Text: "no", Results: []string{"u1"}}},
	{
		"operator", `{"role":"assistant","content":[{"type":"text","content":"hi"},{"type":"tool_call","id":"o1","name":"ls","args":{}},{"type":"tool_result","id":"o0","content":"x"}]}`,
		Shape{Role: "assistant", Text: "hi", Calls: []ToolCall{{ID: "o1", Name: "ls"}}, Results: []string{"o0"}},
	},
	{"plain text field", `{"role":"human","text":"hello"}`, Shape{Role: "human", Text: "hello"}},
	{"strings as content", `{"role":"user","content":["a","b"]}`, Shape{Role: "user", Text: "a\nb"}},
	{"escapes, the last field counts", `{"role":"x","role":"us\u0065r","content":"\u00e9\n\"\ud83c\udf33"}`, Shape{Role: "user", Text: "é\n\"🌳"}},
	{"opaque", `{"speaker":"bot","say":"hi"}`, Shape{}},
	{"odd types", `{"role":5,"content":{"a":1},"tool_calls":{"x":1},"parts":7}`, Shape{}},
	{"odd blocks", `{"role":"user","content":[null,5,[],{"type":5,"text":6},{"type":"toolCall","id":null}]}`, Shape{Role: "user"}},
	{"no object", `"hi"`, Shape{}},
	{"no JSON", `{"role":"user","content":"hi"`, Shape{}},
	{"two values", `{"role":"user"}{"role":"user"}`, Shape{}},
	{"nothing", ``, Shape{}},
	{"too deep", `{"role":"user","x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, Shape{}},
}

func TestInspect(t *testing.T) {
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, Inspect(json.RawMessage(tt.message)), cmpopts.IgnoreFields(ToolCall{}, "Arguments")); d != "" {
				t.Errorf("-want +got\n%s", d)
			}
		})
	}
}

// Arguments keep every digit and every escape, whether a provider writes them as an object or as a string.
func TestCallArguments(t *testing.T) {
	const args = `{"n":12345678901234567890.10,"s":"\\u00e9\\/<\\ud83c\\udf33"}`
	quoted, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ message, want string }{
		"pi":               {`{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"f","arguments":` + args + `}]}`, args},
		"anthropic":        {`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":` + args + `}]}`, args},
		"chat":             {`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":` + string(quoted) + `}}]}`, args},
		"responses":        {`{"type":"function_call","call_id":"1","name":"f","arguments":` + string(quoted) + `}`, args},
		"gemini":           {`{"role":"model","parts":[{"functionCall":{"name":"f","args":` + args + `}}]}`, args},
		"text, no JSON":    {`{"type":"custom_tool_call","call_id":"1","name":"f","input":"*** Begin"}`, `"*** Begin"`},
		"none":             {`{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`, ""},
		"two values":       {`{"type":"function_call","call_id":"1","name":"f","arguments":"{}{}"}`, `"{}{}"`},
		"cut off in a run": {`{"type":"function_call","call_id":"1","name":"f","arguments":"{\"a\":"}`, `"{\"a\":"`},
	} {
		calls := Message{Entry: "e", Raw: json.RawMessage(tt.message)}.Calls()
		if len(calls) != 1 || calls[0].Entry != "e" || string(calls[0].Arguments) != tt.want {
			t.Errorf("%s: %+v", name, calls)
		}
	}
}

func FuzzInspect(f *testing.F) {
	for _, s := range shapes {
		f.Add([]byte(s.message))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		s := Inspect(message)
		if !json.Valid(message) && (s.Role != "" || s.Text != "" || s.Calls != nil || s.Results != nil) {
			t.Errorf("a shape of something that is no JSON: %+v", s)
		}
		// What is walked without validation must be safe whatever it is.
		_ = readParts(message)
		_ = rawjson.Field(message, "content")
		_ = RowOf(Line{Type: "message", Raw: message}, 0)
		_ = RowOf(Line{Type: "custom_message", Raw: message}, 0)
		_, _ = blob.Externalise(message)
	})
}
