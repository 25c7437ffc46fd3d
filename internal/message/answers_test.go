package message_test

import (
	"fmt"
	"testing"

	"github.com/coppice-go/coppice/internal/message"
)

// figures returns the numbers of a usage in the order of its fields.
func figures(u message.Usage) string {
	return fmt.Sprintf("%d %d %d %d 1h %d thought %d total %d cost %s", u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Hour, u.Reasoning, u.Total, u.Cost)
}

// TestUsageOf: the counts of each provider, number by number: input, output, cache read, cache written.
func TestUsageOf(t *testing.T) {
	for _, tt := range []struct{ name, message, want string }{
		{"pi", `"usage":{"input":1,"output":2,"cacheRead":4,"cacheWrite":8,"cacheWrite1h":3,"reasoning":1,"totalTokens":15,"cost":{"input":0.1,"total":0.5}}`, "1 2 4 8 1h 3 thought 1 total 15 cost 0.5"},
		{"pi, with another's names", `"usage":{"input":10,"output":2,"prompt_tokens":99,"prompt_tokens_details":{"cached_tokens":5}}`, "10 2 0 0 1h 0 thought 0 total 12 cost "},
		{
			"Anthropic", `"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":4,"cache_creation_input_tokens":8,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":3},"service_tier":"x"}`,
			"1 2 4 8 1h 3 thought 0 total 15 cost ",
		},
		{
			"chat", `"usage":{"prompt_tokens":13,"completion_tokens":2,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4,"cache_write_tokens":8},"completion_tokens_details":{"reasoning_tokens":1},"cost":0.25}`,
			"1 2 4 8 1h 0 thought 1 total 15 cost 0.25",
		},
		{"chat, hits", `"usage":{"prompt_tokens":13,"completion_tokens":2,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":9,"total_cost":2e-3}`, "9 2 4 0 1h 0 thought 0 total 15 cost 2e-3"},
		{"responses", `"usage":{"input_tokens":13,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":8},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1},"total_tokens":15}`, "1 2 4 8 1h 0 thought 1 total 15 cost "},
		{"Bedrock", `"usage":{"inputTokens":12,"outputTokens":34,"cacheReadInputTokens":500,"cacheWriteInputTokens":60,"totalTokens":606}`, "12 34 500 60 1h 0 thought 0 total 606 cost "},
		{
			"Gemini", `"usageMetadata":{"promptTokenCount":1200,"cachedContentTokenCount":1000,"candidatesTokenCount":40,"thoughtsTokenCount":160,"toolUsePromptTokenCount":7,"totalTokenCount":1407}`,
			"207 200 1000 0 1h 0 thought 160 total 1407 cost ",
		},
		{
			"Gemini, Python", `"usage_metadata":{"prompt_token_count":1200,"cached_content_token_count":1000,"candidates_token_count":40,"thoughts_token_count":160,"tool_use_prompt_token_count":7,"total_token_count":null}`,
			"207 200 1000 0 1h 0 thought 160 total 1407 cost ",
		},
		{"nothing in the first", `"usage":{"input":0,"output":0},"usageMetadata":{"promptTokenCount":3}`, "3 0 0 0 1h 0 thought 0 total 3 cost "},
		{"more from a cache than there was", `"usage":{"prompt_tokens":10,"prompt_cache_hit_tokens":12}`, "0 0 12 0 1h 0 thought 0 total 12 cost "},
		{"a total of 0", `"usage":{"input_tokens":5,"total_tokens":0}`, "5 0 0 0 1h 0 thought 0 total 5 cost "},
		{"floating", `"usage":{"prompt_tokens":10.0,"completion_tokens":1e3,"prompt_tokens_details":{"cached_tokens":4.9}}`, "6 1000 4 0 1h 0 thought 0 total 1010 cost "},
		{"the most", `"usage":{"prompt_tokens":9007199254740992,"completion_tokens":9007199254740992}`, "9007199254740992 9007199254740992 0 0 1h 0 thought 0 total 9007199254740992 cost "},
		{"more than that", `"usage":{"prompt_tokens":9007199254740993,"completion_tokens":1e300,"cacheRead":9223372036854775808,"total_tokens":3}`, "0 0 0 0 1h 0 thought 0 total 3 cost "},
		{"no counts", `"usage":{"input":"1","output":-2,"cacheRead":null,"cacheWrite":[3],"prompt_tokens_details":[4],"cost":{"total":"5"}}`, "0 0 0 0 1h 0 thought 0 total 0 cost "},
		{"a cost below 0, and another", `"usage":{"input":1,"cost":-1,"total_cost":2}`, "1 0 0 0 1h 0 thought 0 total 1 cost 2"},
		{"a cost beyond numbers", `"usage":{"input":1,"cost":1e400}`, "1 0 0 0 1h 0 thought 0 total 1 cost "},
		{"none", `"usage":[1],"usage_metadata":null`, "0 0 0 0 1h 0 thought 0 total 0 cost "},
	} {
		u := message.UsageOf([]byte("{" + tt.message + "}"))
		if got := figures(u); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
		if u.Nothing() != (tt.name == "none" || tt.name == "no counts") {
			t.Errorf("%s: nothing %v", tt.name, u.Nothing())
		}
	}
}

// TestNames: the order of the fields does not matter if a usage has two names of one count.
func TestNames(t *testing.T) {
	for _, usage := range []string{`"input_tokens":1,"prompt_tokens":2`, `"prompt_tokens":2,"input_tokens":1`, `"input_tokens":1,"prompt_tokens":2,"input":"x"`} {
		if u := message.UsageOf([]byte(`{"usage":{` + usage + `}}`)); u.Input != 1 {
			t.Errorf("%s: %d, want 1", usage, u.Input)
		}
	}
}

func TestName(t *testing.T) {
	for fields, want := range map[string]string{
		`"provider":"p","model":"m"`:              "p/m",
		`"model":"m"`:                             "m",
		`"provider":"p"`:                          "",
		`"modelVersion":"gemini"`:                 "gemini",
		`"provider":"p","model_version":"gemini"`: "p/gemini",
		`"modelId":"eu.claude","provider":7`:      "eu.claude",
		`"model":null,"modelId":"eu.claude"`:      "eu.claude",
		`"provider":"unknown","model":"m"`:        "m",
		`"provider":"p","model":"unknown"`:        "",
	} {
		if got := message.Name([]byte("{" + fields + "}")); got != want {
			t.Errorf("%s: %q, want %q", fields, got, want)
		}
	}
}

// TestByModel: answers of a model, by role or as an item that has none.
func TestByModel(t *testing.T) {
	for _, tt := range []struct {
		role, message string
		want          bool
	}{
		{"assistant", `{}`, true},
		{"model", `{}`, true},
		{"ai", `{}`, true},
		{"", `{"type":"function_call"}`, true},
		{"", `{"type":"custom_tool_call","role":null}`, true},
		{"", `{"type":"reasoning"}`, true},
		{"", `{"type":"reasoning","role":null}`, false},
		{"", `{"type":"function_call_output"}`, false},
		{"", `{}`, false},
		{"user", `{}`, false},
		{"tool", `{"type":"function_call"}`, false},
	} {
		if got := message.ByModel(tt.role, []byte(tt.message)); got != tt.want {
			t.Errorf("%q, %s: %v", tt.role, tt.message, got)
		}
	}
}

func TestKept(t *testing.T) {
	for entry, want := range map[string]string{
		`{"customType":"developer","details":{"message":{"role":"developer"}}}`: `{"role":"developer"}`,
		`{"customType":"message","details":{"message":{"a":1}}}`:                `{"a":1}`,
		`{"customType":"agents","details":{"message":{"role":"assistant"}}}`:    "",
		`{"customType":"message","details":{"message":"text"}}`:                 "",
		`{"customType":"message","details":7}`:                                  "",
	} {
		if got := string(message.KeptMessage([]byte(entry))); got != want {
			t.Errorf("%s: %s, want %s", entry, got, want)
		}
	}
}

func TestKeptEntry(t *testing.T) {
	for entry, want := range map[string]string{
		`{"customType":"coppice.entry","data":{"type":"usage","n":1}}`:  `usage {"type":"usage","n":1}`,
		`{"custom_type":"coppice.entry","data":{"type":"usage","n":1}}`: `usage {"type":"usage","n":1}`,
		`{"customType":"another","data":{"type":"usage"}}`:              " ",
		`{"customType":"coppice.entry"}`:                                " ",
	} {
		if typ, data := message.KeptEntry([]byte(entry)); typ+" "+string(data) != want {
			t.Errorf("%s: %s %s, want %s", entry, typ, data, want)
		}
	}
}

func TestThought(t *testing.T) {
	for block, want := range map[string]string{
		`{"type":"thinking","thinking":"a","thinkingSignature":"s","redacted":true}`: `a "s" true false`,
		`{"type":"thinking","thinking":"a","signature":"s"}`:                         `a "s" false false`,
		`{"type":"thinking","thinking":[{"text":"a"},{"text":""},{"text":"b"}]}`:     `ab  false false`,
		`{"type":"redacted_thinking","data":"d"}`:                                    ` "d" true false`,
		`{"type":"reasoning","text":"a","signature":"s"}`:                            `a "s" false false`,
		`{"type":"reasoning","summary":[{"text":"a"},{"text":"b"}]}`:                 "a\n\nb  false true",
		`{"type":"reasoning","summary":[],"content":[{"text":"a"}]}`:                 `a  false true`,
		`{"text":"a","thought":true,"thoughtSignature":"s"}`:                         `a "s" false false`,
		`{"type":"","text":"a","thought":true,"thought_signature":"s"}`:              `a "s" false false`,
		`{"reasoningContent":{"reasoningText":{"text":"a","signature":"s"}}}`:        `a "s" false false`,
		`{"reasoningContent":{"redactedContent":"r"}}`:                               ` "r" true false`,
	} {
		c := message.Content([]byte("[" + block + "]"))
		if !c.Next() || c.Block.Kind != message.Thinking {
			t.Errorf("%s: kind %d", block, c.Block.Kind)
			continue
		}
		got := c.Block.Thought()
		if s := fmt.Sprintf("%s %s %v %v", got.Text, got.Signature, got.Redacted, got.Item); s != want {
			t.Errorf("%s: %s, want %s", block, s, want)
		}
	}
	for _, block := range []string{`{"type":"text","text":"a","thought":true}`, `{"text":"a","thought":null}`, `{"reasoningContent":"a"}`, `"thinking"`, `[]`} {
		if c := message.Content([]byte("[" + block + "]")); c.Next() && c.Block.Kind == message.Thinking {
			t.Errorf("%s is thinking", block)
		}
	}
}
