package provider_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/transcript"
)

func TestReadReply(t *testing.T) {
	args := json.RawMessage(`{"n":12345678901234567890}`)
	for name, tt := range map[string]struct {
		api          provider.API
		vendor, body string
		want         provider.Reply
	}{
		"anthropic": {
			provider.Anthropic, "", `{
  "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
  "content": [{"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"n": 12345678901234567890}}],
  "stop_reason": "tool_use", "stop_sequence": null,
  "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 6,
    "cache_creation": {"ephemeral_1h_input_tokens": 2}}}
`,
			provider.Reply{
				Messages: []json.RawMessage{json.RawMessage(`{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[{"type":"tool_use","id":"toolu_1","name":"ls","input":{"n":12345678901234567890}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4,"cache_read_input_tokens":5,"cache_creation_input_tokens":6,"cache_creation":{"ephemeral_1h_input_tokens":2}},"api":"anthropic-messages","provider":"anthropic"}`)},
				Calls:    []transcript.ToolCall{{ID: "toolu_1", Name: "ls", Arguments: args}},
				Usage:    provider.Usage{Input: 3, Output: 4, CacheRead: 5, CacheWrite: 6, CacheHour: 2, Total: 18},
				Stop:     provider.StopTools, RawStop: "tool_use", ID: "msg_1", Model: "claude-x",
			},
		},
		"chat": {
			provider.OpenAIChat, "openrouter", `{"id":"chatcmpl-1","model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant","content":"cut"},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}`,
			provider.Reply{
				Messages: []json.RawMessage{json.RawMessage(`{"role":"assistant","content":"cut","api":"openai-completions","provider":"openrouter","model":"gpt-x","responseId":"chatcmpl-1","usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}},"finish_reason":"length"}`)},
				Usage:    provider.Usage{Input: 5, Output: 2, CacheRead: 4, Reasoning: 1, Total: 11},
				Stop:     provider.StopLength, RawStop: "length", ID: "chatcmpl-1", Model: "gpt-x",
			},
		},
		"responses": {
			provider.OpenAIResponses, "", `{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"error":null,"model":"gpt-x","output":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"message","id":"msg_1","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"cut"}]}],"usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"total_tokens":11}}`,
			provider.Reply{
				Messages: []json.RawMessage{
					json.RawMessage(`{"type":"reasoning","id":"rs_1","summary":[],"api":"openai-responses","provider":"openai"}`),
					json.RawMessage(`{"type":"message","id":"msg_1","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"cut"}],"api":"openai-responses","provider":"openai","model":"gpt-x","responseId":"resp_1","usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"total_tokens":11},"stopReason":"length"}`),
				},
				Usage: provider.Usage{Input: 5, Output: 2, CacheRead: 4, Total: 11},
				Stop:  provider.StopLength, RawStop: "incomplete", ID: "resp_1", Model: "gpt-x",
			},
		},
		"gemini": {
			provider.Gemini, "", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"ls","args":{"n":12345678901234567890}},"thoughtSignature":"Eq=="}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":14},"modelVersion":"gemini-3-pro","responseId":"r"}`,
			provider.Reply{
				Messages: []json.RawMessage{json.RawMessage(`{"parts":[{"functionCall":{"name":"ls","args":{"n":12345678901234567890}},"thoughtSignature":"Eq=="}],"role":"model","api":"google-generative-ai","provider":"google","model":"gemini-3-pro","responseId":"r","usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":14},"finishReason":"STOP"}`)},
				Calls:    []transcript.ToolCall{{ID: "ls", Name: "ls", Arguments: args}},
				Usage:    provider.Usage{Input: 9, Output: 5, Reasoning: 3, Total: 14},
				Stop:     provider.StopTools, RawStop: "STOP", ID: "r", Model: "gemini-3-pro",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := provider.ReadReply(tt.api, tt.vendor, json.RawMessage(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, r); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			// A message of the store has the usage and the stop reason of the reply.
			last := r.Messages[len(r.Messages)-1]
			if u, ok := provider.UsageOf(last); !ok || u != r.Usage {
				t.Errorf("usage %v of the message, %v of the reply", u, r.Usage)
			}
			if stop, raw := provider.StopOf(last); stop != r.Stop || raw != r.RawStop {
				t.Errorf("stop %s %q of the message, %s %q of the reply", stop, raw, r.Stop, r.RawStop)
			}
		})
	}
}

func TestReadReplyFails(t *testing.T) {
	for name, tt := range map[string]struct {
		api  provider.API
		body string
		want error
		says string
	}{
		"no such API":      {"cohere", `{}`, provider.ErrAPI, `"cohere"`},
		"an error":         {provider.Anthropic, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, provider.ErrReply, "Overloaded"},
		"no JSON":          {provider.Anthropic, `data: {}`, provider.ErrReply, "not one JSON object"},
		"nothing":          {provider.Gemini, ``, provider.ErrReply, "not one JSON object"},
		"two":              {provider.Gemini, `{}{}`, provider.ErrReply, "not one JSON object"},
		"a list":           {provider.Gemini, `[]`, provider.ErrReply, "not one JSON object"},
		"too deep":         {provider.Gemini, strings.Repeat(`{"a":`, 600) + "1" + strings.Repeat("}", 600), provider.ErrReply, "not one JSON object"},
		"another API":      {provider.Anthropic, `{"choices":[{"message":{"role":"assistant","content":"x"}}]}`, provider.ErrReply, "no message"},
		"no choice":        {provider.OpenAIChat, `{"choices":[]}`, provider.ErrReply, "no message"},
		"no output":        {provider.OpenAIResponses, `{"output":[],"status":"failed"}`, provider.ErrReply, "no message"},
		"a blocked prompt": {provider.Gemini, `{"promptFeedback":{"blockReason":"SAFETY"}}`, provider.ErrReply, "no message"},
		"a blocked answer": {provider.Gemini, `{"candidates":[{"finishReason":"SAFETY"}]}`, provider.ErrReply, "no message"},
	} {
		r, err := provider.ReadReply(tt.api, "", json.RawMessage(tt.body))
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) || !reflect.DeepEqual(r, provider.Reply{}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Messages of pi's family have them under names of their own, and some have none.
func TestUsageAndStopOfStored(t *testing.T) {
	pi := json.RawMessage(`{"role":"assistant","content":[],"usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10},"stopReason":"aborted"}`)
	if u, ok := provider.UsageOf(pi); !ok || u != (provider.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Total: 10}) {
		t.Errorf("%v, %v", u, ok)
	}
	if stop, raw := provider.StopOf(pi); stop != provider.StopAborted || raw != "" {
		t.Errorf("%s %q", stop, raw)
	}
	if u, ok := provider.UsageOf(json.RawMessage(hi)); ok || u != (provider.Usage{}) {
		t.Errorf("of a user: %v", u)
	}
	for body, want := range map[string]provider.StopReason{
		`{"role":"assistant","stop_reason":"refusal"}`: provider.StopError, `{"finish_reason":"content_filter"}`: provider.StopError,
		`{"finishReason":"MAX_TOKENS"}`: provider.StopLength, `{"stop_reason":"end_turn"}`: provider.StopEnd,
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`: provider.StopTools, `{}`: provider.StopEnd,
	} {
		if stop, _ := provider.StopOf(json.RawMessage(body)); stop != want {
			t.Errorf("%s: %s, want %s", body, stop, want)
		}
	}
}

func FuzzReadReply(f *testing.F) {
	f.Add(0, []byte(`{"role":"assistant","content":[]}`))
	f.Add(1, []byte(`{"choices":[{"message":{}}]}`))
	f.Add(2, []byte(`{"output":[{}],"usage":{}}`))
	f.Add(3, []byte(`{"candidates":[{"content":{"parts":[]}}]}`))
	f.Fuzz(func(t *testing.T, n int, body []byte) {
		api := provider.APIs()[(n%4+4)%4]
		r, err := provider.ReadReply(api, "", body)
		if err != nil {
			return
		}
		for _, m := range r.Messages {
			if !json.Valid(m) {
				t.Errorf("not JSON: %s", m)
			}
		}
		for _, to := range provider.APIs() {
			c := transcript.Context{}
			for _, m := range r.Messages {
				c.Messages = append(c.Messages, transcript.Message{Raw: m})
			}
			got, err := provider.Convert(t.Context(), c, to, nil)
			if err != nil || !json.Valid(got.Body()) {
				t.Errorf("%s: %v: %s", to, err, got.Body())
			}
		}
	})
}
