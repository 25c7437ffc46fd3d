package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/transcript"
)

// What random contexts are made of: few ids, so that they meet, and odd ones.
var (
	someIDs = []string{
		"c1", "c1", "c2", "c3", "toolu_01", "call_a|fc_b", "call_a|fc_c", "", "é:x.y", strings.Repeat("l", 70),
		strings.Repeat("l", 70) + "m", strings.Repeat("x", 450) + "|" + strings.Repeat("y", 300), "a b", "call", "call_2", "f",
	}
	someNames = []string{"f", "g", "bash", "mcp.read:file", "", strings.Repeat("n", 130), "naïve"}
	someTexts = []string{"hello", "", " \n", "<b>&\u2028", `\"q\"`, "🌳", "é", `\ud800`, `\u0000`, "a\\nb"}
	someArgs  = []string{
		`{}`, `{"a":1}`, `{"n":12345678901234567890123,"f":1.10,"e":1E+2}`, `{"s":"\u00e9\/\ud83c\udf33\ud800"}`, `"text"`, `[1]`, `null`, `5`,
		`{"image":{"type":"image","data":"x"}}`,
	}
	someAPIs   = []string{"anthropic-messages", "openai-completions", "openai-responses", "google-generative-ai", "bedrock-converse-stream", ""}
	someModels = []string{"m1", "m2", ""}
	someStops  = []string{"stop", "toolUse", "length", "error", "aborted"}
	item       = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}`
	someMarks  = []string{"sig", "", item, "reasoning_content", "msg_1", `{"v":1,"id":"msg_2"}`, `{"broken`}
	someImages = []string{
		`{"type":"image","data":"` + onePixel + `","mimeType":"image/png"}`,
		`{"type":"image","data":"` + onePixel + `","mimeType":"image/svg+xml"}`,
		`{"type":"image","data":"coppice-blob:sha256:` + strings.Repeat("a", 64) + `:5","mimeType":"image/png"}`,
		`{"type":"image","data":"blob:sha256:` + strings.Repeat("b", 64) + `","mimeType":"image/png"}`,
		`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` + onePixel + `"}}`,
		`{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}`,
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + onePixel + `"}}`,
		`{"type":"input_image","image_url":"data:image/png;base64,` + onePixel + `"}`,
		`{"inlineData":{"mimeType":"image/png","data":"` + onePixel + `"}}`,
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`,
		`{"type":"input_file","file_id":"f1"}`,
		`{"type":"file","file":{"file_id":"f1"}}`,
		`{"fileData":{"fileUri":"u","mimeType":"application/pdf"}}`,
		`{"image":{"format":"png","source":{"bytes":"` + onePixel + `"}}}`,
		`{"type":"video"}`,
		`{"type":5}`,
		`null`, `7`, `{}`,
	}
)

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func pick(t *rapid.T, list []string) string { return rapid.SampledFrom(list).Draw(t, "") }

// literal is a JSON string of one of the texts, some with escapes that a text in Go cannot have.
func literal(t *rapid.T) string { return `"` + pick(t, someTexts) + `"` }

func list(t *rapid.T, most int, f func() string) string {
	n := rapid.IntRange(0, most).Draw(t, "n")
	var out []string
	for range n {
		out = append(out, f())
	}
	return "[" + strings.Join(out, ",") + "]"
}

func piBlock(t *rapid.T) string {
	switch rapid.IntRange(0, 5).Draw(t, "pi block") {
	case 0, 1:
		return fmt.Sprintf(`{"type":"toolCall","id":%s,"name":%s,"arguments":%s}`, quote(pick(t, someIDs)), quote(pick(t, someNames)), pick(t, someArgs))
	case 2:
		return fmt.Sprintf(`{"type":"thinking","thinking":%s,"thinkingSignature":%s,"redacted":%v}`, literal(t), quote(pick(t, someMarks)), rapid.Bool().Draw(t, ""))
	case 3:
		return pick(t, someImages)
	case 4:
		return fmt.Sprintf(`{"type":"text","text":%s,"textSignature":%s}`, literal(t), quote(pick(t, someMarks)))
	}
	return fmt.Sprintf(`{"type":"text","text":%s}`, literal(t))
}

func anthropicBlock(t *rapid.T) string {
	switch rapid.IntRange(0, 7).Draw(t, "anthropic block") {
	case 0, 1:
		return fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quote(pick(t, someIDs)), quote(pick(t, someNames)), pick(t, someArgs))
	case 2, 3:
		return fmt.Sprintf(`{"type":"tool_result","tool_use_id":%s,"content":%s,"is_error":%v}`, quote(pick(t, someIDs)), list(t, 2, func() string { return userBlock(t) }), rapid.Bool().Draw(t, ""))
	case 4:
		return fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":%s}`, literal(t), quote(pick(t, []string{"s", ""})))
	case 5:
		return `{"type":"redacted_thinking","data":"zzz"}`
	case 6:
		return fmt.Sprintf(`{"type":"text","text":%s,"cache_control":{"type":"ephemeral"}}`, literal(t))
	}
	return userBlock(t)
}

func userBlock(t *rapid.T) string {
	if rapid.Bool().Draw(t, "") {
		return pick(t, someImages)
	}
	return fmt.Sprintf(`{"type":%s,"text":%s}`, quote(pick(t, []string{"text", "text", "input_text", "output_text"})), literal(t))
}

func geminiPart(t *rapid.T) string {
	switch rapid.IntRange(0, 4).Draw(t, "gemini part") {
	case 0:
		return fmt.Sprintf(`{"functionCall":{"name":%s,"args":%s}}`, quote(pick(t, someNames)), pick(t, someArgs))
	case 1:
		return fmt.Sprintf(`{"functionResponse":{"name":%s,"response":%s}}`, quote(pick(t, someNames)), pick(t, someArgs))
	case 2:
		return fmt.Sprintf(`{"text":%s,"thought":true,"thoughtSignature":"c2ln"}`, literal(t))
	case 3:
		return fmt.Sprintf(`{"functionCall":{"id":%s,"name":"f","args":{}},"thoughtSignature":"c2ln"}`, quote(pick(t, someIDs)))
	}
	return fmt.Sprintf(`{"text":%s}`, literal(t))
}

// anyMessage is a message in any provider's shape, or in none.
func anyMessage(t *rapid.T) string {
	id, name := quote(pick(t, someIDs)), quote(pick(t, someNames))
	switch rapid.IntRange(0, 16).Draw(t, "message") {
	case 0:
		return fmt.Sprintf(`{"role":"user","content":%s,"timestamp":1}`, literal(t))
	case 1:
		return fmt.Sprintf(`{"role":"user","content":%s}`, list(t, 3, func() string { return userBlock(t) }))
	case 2, 3, 4:
		return fmt.Sprintf(`{"role":"assistant","content":%s,"api":%s,"model":%s,"stopReason":%s,"usage":{"input":1}}`,
			list(t, 4, func() string { return piBlock(t) }), quote(pick(t, someAPIs)), quote(pick(t, someModels)), quote(pick(t, someStops)))
	case 5, 6:
		return fmt.Sprintf(`{"role":"toolResult","toolCallId":%s,"toolName":%s,"content":%s,"isError":%v}`, id, name, list(t, 3, func() string { return userBlock(t) }), rapid.Bool().Draw(t, ""))
	case 7:
		return fmt.Sprintf(`{"role":%s,"content":%s}`, quote(pick(t, []string{"user", "assistant"})), list(t, 4, func() string { return anthropicBlock(t) }))
	case 8:
		return fmt.Sprintf(`{"role":"assistant","content":%s,"reasoning_content":%s,"tool_calls":%s}`, pick(t, []string{"null", `""`, `"so"`}), literal(t), list(t, 2, func() string {
			return fmt.Sprintf(`{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}`, quote(pick(t, someIDs)), quote(pick(t, someNames)), quote(pick(t, someArgs)))
		}))
	case 9:
		return fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":%s}`, id, literal(t))
	case 10:
		return fmt.Sprintf(`{"type":%s,"id":"fc_1","call_id":%s,"name":%s,"arguments":%s,"input":"x"}`, quote(pick(t, []string{"function_call", "custom_tool_call"})), id, name, quote(pick(t, someArgs)))
	case 11:
		return fmt.Sprintf(`{"type":%s,"call_id":%s,"output":%s}`, quote(pick(t, []string{"function_call_output", "custom_tool_call_output"})), id, literal(t))
	case 12:
		return pick(t, []string{item, `{"type":"web_search_call","id":"ws_1","status":"completed"}`, `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"x","annotations":[]}]}`})
	case 13:
		return fmt.Sprintf(`{"role":%s,"parts":%s}`, quote(pick(t, []string{"user", "model"})), list(t, 4, func() string { return geminiPart(t) }))
	case 14:
		return fmt.Sprintf(`{"role":%s,"summary":%s,"content":%s,"command":"ls","output":%s,"sections":{"a":"b"}}`,
			quote(pick(t, []string{"compactionSummary", "branchSummary", "bashExecution", "pythonExecution", "custom", "hookMessage"})), literal(t), literal(t), literal(t))
	case 15:
		return fmt.Sprintf(`{"role":%s,"content":%s,"sections":{"a":%s,"b":null}}`, quote(pick(t, []string{"system", "developer"})), literal(t), literal(t))
	}
	return pick(t, []string{`{}`, `5`, `[]`, `{"role":`, `{"role":"fileMention","files":[{"path":"a","content":"b"}]}`, `{"role":"oracle","content":"x"}`, `{"role":5,"content":{}}`, ` { "role" : "user" , "content" : "spaced" } `, `{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"f","input":{}}},{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}}]}`, `{"role":"user","content":[{"toolResult":{"toolUseId":"c1","status":"error","content":[{"text":"no"},{"json":{"a":1}}]}}]}`})
}

func anyContext(t *rapid.T) transcript.Context {
	n := rapid.IntRange(0, 12).Draw(t, "messages")
	var c transcript.Context
	for i := range n {
		raw := json.RawMessage(anyMessage(t))
		c.Messages = append(c.Messages, transcript.Message{Entry: fmt.Sprintf("e%d", i), Role: transcript.Inspect(raw).Role, Raw: raw})
	}
	return c
}

func anyOptions(t *rapid.T) *provider.Options {
	return &provider.Options{
		Model:     pick(t, []string{"", "m1", "gemini-3-pro"}),
		OpenCalls: rapid.SampledFrom([]provider.OpenCalls{provider.Answer, provider.Omit}).Draw(t, "open calls"),
		Thinking:  rapid.SampledFrom([]provider.Thinking{provider.Drop, provider.AsText}).Draw(t, "thinking"),
	}
}
