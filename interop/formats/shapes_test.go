package formats

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Messages in other providers' shapes, which a session may hold, are written as messages that the target has.
func TestProvidersShapes(t *testing.T) {
	tests := []struct{ name, message, want string }{
		{
			"anthropic user", `{"role":"user","content":[{"type":"text","text":"q"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]}`,
			`user[text:q image]`,
		},
		{
			"anthropic results", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"k1","content":"one"},{"type":"tool_result","tool_use_id":"k2","content":[{"type":"text","text":"two"}],"is_error":true},{"type":"text","text":"and now?"}]}`,
			`toolResult(k1)[text:one] toolResult(k2!)[text:two] user[text:and now?]`,
		},
		{
			"anthropic assistant", `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a"},{"type":"tool_use","id":"k","name":"n","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":5,"output_tokens":6}}`,
			`assistant[thinking:hm thinking: text:a call:k(n){"x":1}] toolUse 5/6`,
		},
		{
			"openai assistant", `{"role":"assistant","content":null,"tool_calls":[{"id":"k","type":"function","function":{"name":"n","arguments":"{\"x\":\n1}"}}]}`,
			`assistant[call:k(n){"x": 1}] toolUse 0/0`,
		},
		{
			"openai bad arguments", `{"role":"assistant","content":"c","tool_calls":[{"id":"k","type":"function","function":{"name":"n","arguments":"{torn"}}]}`,
			`assistant[text:c call:k(n){"input":"{torn"}] toolUse 0/0`,
		},
		{"openai result", `{"role":"tool","tool_call_id":"k","content":"done"}`, `toolResult(k)[text:done]`},
		{"openai refusal", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, `assistant[text:no] stop 0/0`},
		{"responses call", `{"type":"function_call","call_id":"k","name":"n","arguments":"{}"}`, `assistant[call:k(n){}] toolUse 0/0`},
		{"responses result", `{"type":"function_call_output","call_id":"k","output":"done"}`, `toolResult(k)[text:done]`},
		{"gemini model", `{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"n","args":{"x":1}}}]}`, `assistant[text:a call:call_b0e8de8d4e6b1207f3869a7d(n){"x":1}] toolUse 0/0`},
		{"gemini result", `{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"ok":true}}}]}`, `toolResult(n)[text:{"ok":true}]`},
		{"bedrock", `{"role":"assistant","content":[{"text":"a"},{"toolUse":{"toolUseId":"k","name":"n","input":{}}}]}`, `assistant[text:a call:k(n){}] toolUse 0/0`},
		{"bedrock result", `{"role":"user","content":[{"toolResult":{"toolUseId":"k","content":[{"text":"r"}],"status":"error"}}]}`, `toolResult(k!)[text:r]`},
		{"plain", `{"role":"user","content":"q"}`, `user"q"`},
		{"library's own", `{"role":"assistant","content":"a"}`, `assistant[text:a] stop 0/0`},
		{"an odd reason to stop", `{"role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":` + usagePi + `,"stopReason":"tired",` + stamp + `}`, `assistant[] stop 12/3`},
		{"counts of another kind", `{"role":"assistant","content":[],"api":"a","provider":"p","model":"m","usage":{"input":1.5,"output":"2"},"stopReason":"length",` + stamp + `}`, `assistant[] length 1.5/0`},
		{"unknown block", `{"role":"user","content":[{"type":"document","title":"T"}]}`, `user[text:[document: T]]`},
		{"developer", `{"role":"developer","content":"d"}`, `custom_message(developer)"d"`},
		{"command", `{"role":"bashExecution","command":"ls"}`, `bashExecution`},
		{"no role", `{"a":1}`, `custom_message(message)"[message]"`},
		{"no object", `7`, `custom`},
		{"nothing", ``, `custom`},
	}
	for _, tt := range tests {
		line := `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":` + tt.message + `}`
		if tt.message == "" {
			line = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z"}`
		}
		next := `{"type":"label","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","targetId":"a","label":"x"}`
		s := read(t, interop.Pi, []byte(lf(headers[interop.Pi][0], line, next)))
		for _, to := range written {
			text, losses := write(t, to, s, "b")
			if len(losses) == 0 && (to == interop.Pi || tt.name != "developer") {
				t.Errorf("%s as %s: no losses", tt.name, to)
			}
			if to != interop.Pi {
				continue
			}
			back := read(t, to, []byte(text))
			var got []string
			for _, e := range back.entries[:len(back.entries)-1] {
				got = append(got, short(t, e))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s\n%s", tt.name, diff, text)
			}
			if n := len(back.entries); back.parents[n-1] != int64(n-2) {
				t.Errorf("%s: what hung on it hangs on %d of %d", tt.name, back.parents[n-1], n)
			}
		}
	}
}

// short writes an entry in few words.
func short(t *testing.T, e transcript.Entry) string {
	var v struct {
		Type, CustomType string
		Content          json.RawMessage
		Message          struct {
			Role, ToolCallID, StopReason string
			IsError                      bool
			Content                      json.RawMessage
			Usage                        *struct{ Input, Output json.Number }
		}
	}
	if err := json.Unmarshal(e.Raw, &v); err != nil {
		t.Fatal(err)
	}
	out, content := v.Message.Role, v.Message.Content
	if v.Type != "message" {
		if out, content = v.Type, v.Content; v.Type == "custom_message" {
			out += "(" + v.CustomType + ")"
		}
	}
	if v.Message.ToolCallID != "" {
		mark := ""
		if v.Message.IsError {
			mark = "!"
		}
		out += "(" + v.Message.ToolCallID + mark + ")"
	}
	var blocks []struct {
		Type, Text, Thinking, ID, Name string
		Arguments                      json.RawMessage
	}
	if json.Unmarshal(content, &blocks) != nil {
		out += string(content)
	} else if content != nil {
		var parts []string
		for _, b := range blocks {
			switch b.Type {
			case "toolCall":
				parts = append(parts, fmt.Sprintf("call:%s(%s)%s", b.ID, b.Name, b.Arguments))
			case "image":
				parts = append(parts, "image")
			default:
				parts = append(parts, b.Type+":"+b.Text+b.Thinking)
			}
		}
		out += "[" + strings.Join(parts, " ") + "]"
	}
	if v.Message.Usage != nil {
		out += fmt.Sprintf(" %s %s/%s", v.Message.StopReason, v.Message.Usage.Input, v.Message.Usage.Output)
	}
	return out
}

// Words that a program does not have are not written for it.
func TestUnknownWords(t *testing.T) {
	line := `{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":` + strings.Replace(piMessages[4], "aborted", "pending", 1) + `}`
	level := `{"type":"thinking_level_change","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","thinkingLevel":"auto"}`
	s := read(t, interop.Pi, []byte(lf(headers[interop.Pi][0], line, level)))
	for _, to := range written {
		write(t, to, s, "b")
	}
}

// TestLosses pins what is counted, by the entries of each format on their way into each other.
func TestLosses(t *testing.T) {
	for _, from := range written {
		s := read(t, from, []byte(lf(everyType(from, true)...)))
		for _, to := range written {
			_, losses := write(t, to, s, s.last())
			for kind, n := range losses {
				if n <= 0 || kind == "" || strings.ContainsAny(kind, "\n%") {
					t.Errorf("%s as %s: %q %d", from, to, kind, n)
				}
			}
			if from == to && to != interop.Operator && losses["messages that lack what the format needs, or are in another provider's shape: rewritten"] > 0 {
				t.Errorf("%s as itself: %v", from, losses)
			}
			if testing.Verbose() {
				t.Logf("%s as %s: %v", from, to, losses)
			}
		}
	}
}
