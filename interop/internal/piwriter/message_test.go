package piwriter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

var at = time.UnixMilli(1_767_225_600_000) // 2026-01-01

// made returns the messages made of a message, one a line, and the losses.
func made(message string) (got, losses string) {
	lost := map[string]int{}
	var lines []string
	for _, p := range piwriter.Messages([]byte(message), at, piwriter.Dialect{}, func(kind string) { lost[kind]++ }) {
		if p.Type == "message" {
			lines = append(lines, string(p.Message))
		} else {
			lines = append(lines, p.Type+string(p.Body))
		}
	}
	return strings.Join(lines, "\n"), fmt.Sprint(lost)
}

// counted is a usage of pi's; more are the fields between the counts and the total.
func counted(input, output, read, write int, more string, total int, cost string) string {
	return fmt.Sprintf(`{"input":%d,"output":%d,"cacheRead":%d,"cacheWrite":%d,%s"totalTokens":%d,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":%s}}`,
		input, output, read, write, more, total, cost)
}

// TestAnswers: exact messages of pi for answers of each provider: thinking apart from text, with its signature; calls;
// model, usage and stop reason.
func TestAnswers(t *testing.T) {
	answer := func(fields, content, model, usage, stop string) string {
		return `{"role":"assistant",` + fields + `"timestamp":1767225600000,"content":[` + content + `],"api":"unknown","provider":"unknown","model":"` + model + `","usage":` + usage + `,"stopReason":` + stop + `}`
	}
	for _, tt := range []struct{ name, message, want string }{
		{
			"gemini",
			`{"role":"model","parts":[{"text":"The user wants files.","thought":true,"thoughtSignature":"QQ=="},{"text":"I will look.","thoughtSignature":"Qg=="},{"functionCall":{"id":"f1","name":"list_files","args":{"dir":"/w"}},"thoughtSignature":"Qw=="}],` +
				`"finishReason":"STOP","modelVersion":"gemini-3-pro-preview","responseId":"r1","usageMetadata":{"promptTokenCount":1200,"cachedContentTokenCount":1000,"candidatesTokenCount":40,"thoughtsTokenCount":160,"toolUsePromptTokenCount":7,"totalTokenCount":1407}}`,
			answer(`"responseId":"r1",`, `{"type":"thinking","thinking":"The user wants files.","thinkingSignature":"QQ=="},{"type":"text","text":"I will look.","textSignature":"Qg=="},{"type":"toolCall","id":"f1","name":"list_files","arguments":{"dir":"/w"},"thoughtSignature":"Qw=="}`,
				"gemini-3-pro-preview", counted(207, 200, 1000, 0, `"reasoning":160,`, 1407, "0"), `"toolUse"`),
		},
		{
			"gemini, of the SDK for Python",
			`{"role":"model","parts":[{"text":"Hm.","thought":true,"thought_signature":null,"function_call":null},{"text":null,"thought":null,"thought_signature":"Qg==","function_call":null},{"text":"Done.","thought":null}],"finish_reason":"MAX_TOKENS","model_version":"gemini-2.5-flash",` +
				`"usage_metadata":{"prompt_token_count":10,"cached_content_token_count":null,"candidates_token_count":3,"thoughts_token_count":2,"total_token_count":15}}`,
			answer("", `{"type":"thinking","thinking":"Hm."},{"type":"text","text":"","textSignature":"Qg=="},{"type":"text","text":"Done."}`, "gemini-2.5-flash", counted(10, 5, 0, 0, `"reasoning":2,`, 15, "0"), `"length"`),
		},
		{
			"gemini, refused",
			`{"role":"model","parts":[],"finishReason":"PROHIBITED_CONTENT","usageMetadata":{"promptTokenCount":10,"totalTokenCount":10}}`,
			answer("", "", "unknown", counted(10, 0, 0, 0, "", 10, "0"), `"error","rawStopReason":"PROHIBITED_CONTENT"`),
		},
		{
			"bedrock",
			`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"Let me see.","signature":"sig"}}},{"reasoningContent":{"redactedContent":"cmVk"}},{"text":"Looking."},{"toolUse":{"toolUseId":"tooluse_1","name":"ls","input":{"dir":"/w"}}}],` +
				`"stopReason":"tool_use","modelId":"eu.anthropic.claude-x","usage":{"inputTokens":12,"outputTokens":34,"cacheReadInputTokens":500,"cacheWriteInputTokens":60,"totalTokens":606}}`,
			answer("", `{"type":"thinking","thinking":"Let me see.","thinkingSignature":"sig"},{"type":"thinking","thinking":"","thinkingSignature":"cmVk","redacted":true},{"type":"text","text":"Looking."},{"type":"toolCall","id":"tooluse_1","name":"ls","arguments":{"dir":"/w"}}`,
				"eu.anthropic.claude-x", counted(12, 34, 500, 60, "", 606, "0"), `"toolUse"`),
		},
		{
			"bedrock, held back",
			`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"No signature."}}}],"stopReason":"guardrail_intervened","usage":{"inputTokens":1,"outputTokens":2}}`,
			answer("", `{"type":"thinking","thinking":"No signature."}`, "unknown", counted(1, 2, 0, 0, "", 3, "0"), `"error","rawStopReason":"guardrail_intervened"`),
		},
		{
			"chat completions",
			`{"role":"assistant","content":"Looking.","refusal":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"ls","arguments":"{\"dir\":\"/w\"}"}}],"finish_reason":"tool_calls","model":"gpt-x",` +
				`"usage":{"prompt_tokens":1500,"completion_tokens":90,"total_tokens":1590,"prompt_tokens_details":{"cached_tokens":1024,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":64}}}`,
			answer(`"refusal":null,`, `{"type":"text","text":"Looking."},{"type":"toolCall","id":"call_1","name":"ls","arguments":{"dir":"/w"}}`, "gpt-x", counted(476, 90, 1024, 0, `"reasoning":64,`, 1590, "0"), `"toolUse"`),
		},
		{
			"chat completions, thought aloud",
			`{"role":"assistant","reasoning_content":"First.","content":"Yes.","finish_reason":"length","model":"deep","usage":{"prompt_tokens":100,"completion_tokens":8,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,"cost":0.25}}`,
			answer("", `{"type":"thinking","thinking":"First.","thinkingSignature":"reasoning_content"},{"type":"text","text":"Yes."}`, "deep", counted(36, 8, 64, 0, "", 108, "0.25"), `"length"`),
		},
		{
			"chat completions, written to a cache",
			`{"role":"assistant","content":"Yes.","finish_reason":"content_filter","usage":{"prompt_tokens":100,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":30}}}`,
			answer("", `{"type":"text","text":"Yes."}`, "unknown", counted(50, 8, 20, 30, "", 108, "0"), `"error","rawStopReason":"content_filter"`),
		},
		{
			"responses",
			`{"type":"message","id":"msg_1","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Yes","annotations":[]}],"model":"gpt-y",` +
				`"usage":{"input_tokens":300,"input_tokens_details":{"cached_tokens":256},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":48},"total_tokens":350}}`,
			answer(`"type":"message","id":"msg_1","status":"incomplete",`, `{"type":"text","text":"Yes"}`, "gpt-y", counted(44, 50, 256, 0, `"reasoning":48,`, 350, "0"), `"length"`),
		},
		{
			"responses, reasoning",
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}],"encrypted_content":"x"}`,
			answer(`"id":"rs_1",`, `{"type":"thinking","thinking":"One.\n\nTwo.","thinkingSignature":"{\"type\":\"reasoning\",\"id\":\"rs_1\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"One.\"},{\"type\":\"summary_text\",\"text\":\"Two.\"}],\"encrypted_content\":\"x\"}"}`,
				"unknown", counted(0, 0, 0, 0, "", 0, "0"), `"stop"`),
		},
		{
			"responses, call", `{"type":"function_call","id":"fc_1","call_id":"call_1","name":"ls","arguments":"{}","status":"completed"}`,
			answer(`"id":"fc_1","status":"completed",`, `{"type":"toolCall","id":"call_1","name":"ls","arguments":{}}`, "unknown", counted(0, 0, 0, 0, "", 0, "0"), `"toolUse"`),
		},
		{
			"anthropic",
			`{"id":"msg_1","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"redacted_thinking","data":"enc"},{"type":"text","text":"Yes."}],"stop_reason":"max_tokens","usage":{"input_tokens":5,"cache_creation_input_tokens":70,"cache_read_input_tokens":900,"output_tokens":25,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":40}}}`,
			answer(`"id":"msg_1",`, `{"type":"thinking","thinking":"Hm.","thinkingSignature":"sig"},{"type":"thinking","thinking":"","thinkingSignature":"enc","redacted":true},{"type":"text","text":"Yes."}`,
				"claude-x", counted(5, 25, 900, 70, `"cacheWrite1h":40,`, 1000, "0"), `"length"`),
		},
		{
			"a list of what was thought", `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"reasoning","text":"c","signature":"s"}]}`,
			answer("", `{"type":"thinking","thinking":"ab"},{"type":"thinking","thinking":"c","thinkingSignature":"s"}`, "unknown", counted(0, 0, 0, 0, "", 0, "0"), `"stop"`),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, losses := made(tt.message)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if losses != "map["+piwriter.LostShape+":1]" {
				t.Errorf("lost: %s", losses)
			}
		})
	}
}

// TestCounts: counts that cannot be, or that no two providers count the same way.
func TestCounts(t *testing.T) {
	for _, tt := range []struct{ name, usage, want string }{
		{"more from a cache than there was", `"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":12}}`, counted(0, 1, 12, 0, "", 13, "0")},
		{"nothing from a cache", `"usage":{"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0}}`, counted(10, 1, 0, 0, "", 11, "0")},
		{"pi's own, a field short", `"usage":{"input":10,"output":4,"cacheRead":3,"reasoning":1,"prompt_tokens_details":{"cached_tokens":3},"cost":{"total":0.5}}`, counted(10, 4, 3, 0, `"reasoning":1,`, 17, "0.5")},
		{"all was thought", `"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":7}`, counted(9, 7, 0, 0, `"reasoning":7,`, 16, "0")},
		{"huge", `"usage":{"prompt_tokens":9223372036854775807,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9223372036854775807}}`, counted(0, 1, 0, 0, "", 1, "0")},
		{"floating", `"usage":{"prompt_tokens":10.0,"completion_tokens":1,"prompt_cache_hit_tokens":4.0}`, counted(6, 1, 4, 0, "", 11, "0")},
		{"of other types", `"usage":{"prompt_tokens":"10","completion_tokens":null,"prompt_tokens_details":7,"cost":"dear"}`, counted(0, 0, 0, 0, "", 0, "0")},
		{"none", `"usage":[1]`, counted(0, 0, 0, 0, "", 0, "0")},
	} {
		if diff := cmp.Diff(tt.want, string(piwriter.Usage([]byte("{"+tt.usage+"}")))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestResults: what tools gave, in each provider's form.
func TestResults(t *testing.T) {
	result := func(id, name, content, failed string) string {
		return `{"role":"toolResult","timestamp":1767225600000,"toolCallId":"` + id + `","toolName":"` + name + `","content":[` + content + `],"isError":` + failed + `}`
	}
	for _, tt := range []struct{ name, message, want string }{
		{"gemini, output", `{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"ls","response":{"output":"a\nb"}}}]}`, result("f1", "ls", `{"type":"text","text":"a\nb"}`, "false")},
		{"gemini, result", `{"role":"user","parts":[{"function_response":{"name":"ls","response":{"result":[1,2]}}}]}`, result("ls", "ls", `{"type":"text","text":"[1,2]"}`, "false")},
		{"gemini, error", `{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"ls","response":{"error":"no such folder"}}}]}`, result("f1", "ls", `{"type":"text","text":"no such folder"}`, "true")},
		{"gemini, else", `{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"ls","response":{"output":"x","error":null}}}]}`, result("f1", "ls", `{"type":"text","text":"{\"output\":\"x\",\"error\":null}"}`, "false")},
		{
			"gemini, image", `{"role":"user","parts":[{"functionResponse":{"id":"f1","name":"shot","response":{"output":"see"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}]}`,
			result("f1", "shot", `{"type":"text","text":"see"},{"type":"image","data":"AA==","mimeType":"image/png"}`, "false"),
		},
		{
			"bedrock", `{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"a"},{"json":{"n":1}},{"image":{"format":"jpeg","source":{"bytes":"/9j/"}}}],"status":"error"}},{"text":"go on"}]}`,
			result("t1", "unknown", `{"type":"text","text":"a"},{"type":"text","text":"{\"n\":1}"},{"type":"image","data":"/9j/","mimeType":"image/jpeg"}`, "true") + "\n" +
				`{"role":"user","timestamp":1767225600000,"content":[{"type":"text","text":"go on"}]}`,
		},
		{"ollama", `{"role":"tool","tool_name":"ls","tool_call_id":"c1","content":"a"}`, result("c1", "ls", `{"type":"text","text":"a"}`, "false")},
	} {
		got, losses := made(tt.message)
		if diff := cmp.Diff(tt.want, got); diff != "" || losses != "map["+piwriter.LostShape+":1]" {
			t.Errorf("%s, lost %s (-want +got):\n%s", tt.name, losses, diff)
		}
	}
}
