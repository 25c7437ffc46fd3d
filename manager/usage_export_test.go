package manager_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/pi"
	"github.com/coppice-go/coppice/manager"
	"github.com/coppice-go/coppice/transcript"
)

// messages are answers of each provider, with their usage.
var messages = map[string]struct {
	message string
	model   string
	want    manager.Usage
}{
	"Bedrock": {
		`{"role":"assistant","content":[{"text":"a"}],"modelId":"m","usage":{"inputTokens":12,"outputTokens":34,"cacheReadInputTokens":500,"cacheWriteInputTokens":60,"totalTokens":606}}`,
		"m",
		manager.Usage{Answers: 1, Input: 12, Output: 34, CacheRead: 500, CacheWrite: 60, Total: 606},
	},
	"Gemini": {
		`{"role":"model","parts":[{"text":"a"}],"modelVersion":"g","usageMetadata":{"promptTokenCount":1200,"cachedContentTokenCount":1000,"candidatesTokenCount":40,"thoughtsTokenCount":160,"toolUsePromptTokenCount":7,"totalTokenCount":1407}}`,
		"g",
		manager.Usage{Answers: 1, Input: 207, Output: 200, CacheRead: 1000, Reasoning: 160, Total: 1407},
	},
	"Gemini's SDK for Python": {
		`{"role":"model","parts":[{"text":"a"}],"provider":"google","model_version":"g","usage_metadata":{"prompt_token_count":10,"cached_content_token_count":null,"candidates_token_count":3,"thoughts_token_count":2,"total_token_count":15}}`,
		"google/g",
		manager.Usage{Answers: 1, Input: 10, Output: 5, Reasoning: 2, Total: 15},
	},
	"chat completions, hits": {
		`{"role":"assistant","content":"a","model":"d","usage":{"prompt_tokens":100,"completion_tokens":8,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,"cost":0.25}}`,
		"d",
		manager.Usage{Answers: 1, Input: 36, Output: 8, CacheRead: 64, Total: 108, Cost: 0.25},
	},
	"chat completions, written": {
		`{"role":"assistant","content":"a","provider":"p","usage":{"prompt_tokens":100,"completion_tokens":8,"prompt_tokens_details":{"cached_tokens":20,"cache_write_tokens":30}}}`,
		"",
		manager.Usage{Answers: 1, Input: 50, Output: 8, CacheRead: 20, CacheWrite: 30, Total: 108},
	},
	"responses": {
		`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}],"model":"o","usage":{"input_tokens":300,"input_tokens_details":{"cached_tokens":256},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":48},"total_tokens":350}}`,
		"o",
		manager.Usage{Answers: 1, Input: 44, Output: 50, CacheRead: 256, Reasoning: 48, Total: 350},
	},
	"Anthropic": {
		`{"role":"assistant","content":[{"type":"text","text":"a"}],"provider":"anthropic","model":"c","usage":{"input_tokens":5,"cache_creation_input_tokens":70,"cache_read_input_tokens":900,"output_tokens":25}}`,
		"anthropic/c",
		manager.Usage{Answers: 1, Input: 5, Output: 25, CacheRead: 900, CacheWrite: 70, Total: 1000},
	},
	"pi": {
		`{"role":"assistant","timestamp":1,"api":"a","provider":"p","model":"m","content":[],"stopReason":"stop","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"reasoning":1,"totalTokens":10,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.125}}}`,
		"p/m",
		manager.Usage{Answers: 1, Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Reasoning: 1, Total: 10, Cost: 0.125},
	},
	"a role that pi has not": {
		`{"role":"critic","content":"a","usage":{"inputTokens":3}}`,
		"",
		manager.Usage{Answers: 1, Input: 3, Total: 3},
	},
	"more than can be counted, beside what can": {
		`{"role":"assistant","content":"a","usage":{"output":9007199254740993,"output_tokens":9007199254740992}}`,
		"",
		manager.Usage{Answers: 1, Output: 1 << 53, Total: 1 << 53},
	},
	"nothing said": {`{"role":"assistant","content":"a","model":"m"}`, "m", manager.Usage{Answers: 1}},
	"an item":      {`{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"}`, "", manager.Usage{Answers: 1}},
	"results between what the user said": {
		`{"role":"user","content":[{"text":"a"},{"toolResult":{"toolUseId":"t","content":[]}},{"text":"b"}],"model":"m","usage":{"inputTokens":3}}`,
		"m",
		manager.Usage{Answers: 1, Input: 3, Total: 3},
	},
}

// sums returns the usage of a session of one message.
func sums(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, message string,
) manager.UsageTotals {
	t.Helper()
	list, err := parsed(`{"type":"message","message":` + message + `}`)
	if err != nil {
		t.Fatalf("%v", err)
	}
	got, err := manager.SumUsage(sequence(list, nil))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return got
}

// exportSums returns the usage of a pi file that holds one message.
func exportSums(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, message string,
) manager.UsageTotals {
	t.Helper()
	entry := `{"type":"message","id":"e0","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":` + message + `}`
	var file bytes.Buffer
	_, err := pi.Write(&file, interop.Header{ID: "s"}, func(yield func(transcript.Draft, error) bool) {
		yield(transcript.Draft{Raw: []byte(entry)}, nil)
	}, "e0")
	if err != nil {
		t.Fatalf("write %s: %v", message, err)
	}
	got, err := manager.SumUsage(sequence(exported(file.String())))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return got
}

// exported returns the entries of a pi file.
func exported(file string) (list []transcript.Entry, err error) {
	for i, line := range strings.Split(strings.TrimSpace(file), "\n")[1:] {
		l, err := transcript.ParseLine([]byte(line))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
		list = append(list, l.Entry(uint64(i)))
	}
	return list, nil
}

// TestExportsCountTheSame: the usage of a session equals that of its export, number by number and by model.
func TestExportsCountTheSame(t *testing.T) {
	for name, tt := range messages {
		models := map[string]manager.Usage{}
		if tt.want.Answers > 0 {
			models[tt.model] = tt.want
		}
		for way, got := range map[string]manager.UsageTotals{"as it is": sums(t, tt.message), "as pi's": exportSums(t, tt.message)} {
			if got.Usage != tt.want || !maps.Equal(got.Models, models) {
				t.Errorf("%s, %s:\n got %+v\nwant %+v %+v", name, way, got, tt.want, models)
			}
		}
	}
}

// TestLedgersCountTheSame: entries with a usage keep it in files of formats without such entries.
func TestLedgersCountTheSame(t *testing.T) {
	list := path(t,
		`{"type":"model_usage","purpose":"title","api":"a","provider":"p","model":"m","usage":{"input":1},"stopReason":"stop"}`,
		`{"type":"usage","kind":"k","provider":"p","model":"m","usage":{"input":2}}`,
		`{"type":"session_summary","summary":"s","summarizedThroughId":"e0","usage":{"input":4}}`,
		`{"type":"compaction","summary":"s","tokensBefore":1,"usage":{"input":8}}`,
		`{"type":"branch_summary","fromId":"e0","summary":"s","usage":{"input":16}}`,
		`{"type":"critique","usage":{"input":32}}`,
	)
	drafts := func(yield func(transcript.Draft, error) bool) {
		for _, e := range list {
			if !yield(transcript.Draft{Raw: e.Raw}, nil) {
				return
			}
		}
	}
	var file bytes.Buffer
	if _, err := pi.Write(&file, interop.Header{ID: "s"}, drafts, list[len(list)-1].ID); err != nil {
		t.Fatal(err)
	}
	out, err := exported(file.String())
	if err != nil {
		t.Fatal(err)
	}
	for way, list := range map[string][]transcript.Entry{"as it is": list, "as pi's": out} {
		got, err := manager.SumUsage(sequence(list, nil))
		want := map[string]manager.Usage{"p/m": {Answers: 2, Input: 3, Total: 3}, "": {Answers: 3, Input: 28, Total: 28}}
		if err != nil || !maps.Equal(got.Models, want) {
			t.Errorf("%s: %+v, %v, want %+v, of\n%s", way, got.Models, err, want, file.Bytes())
		}
	}
}

// TestAnyUsageCountsTheSame: the same for artificial usages that mix field names of all providers.
func TestAnyUsageCountsTheSame(t *testing.T) {
	names := []string{
		"input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "totalTokens", "cost", "total_cost", "total_tokens", "input_tokens", "output_tokens",
		"prompt_tokens", "completion_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "prompt_cache_hit_tokens", "inputTokens", "outputTokens",
		"cacheReadInputTokens", "cacheWriteInputTokens", "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount",
		"totalTokenCount", "prompt_token_count", "candidates_token_count", "thoughts_token_count", "tool_use_prompt_token_count", "cached_content_token_count",
	}
	outer := []string{"prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details", "cost"}
	inner := []string{"cached_tokens", "cache_write_tokens", "reasoning_tokens", "input", "total"}
	number := rapid.SampledFrom([]string{"0", "1", "7", "40", "2.5", "1e2", "-3", "9007199254740992", "9007199254740993", "9223372036854775807", "1e300", "1e999", `"8"`, "null", "[]", "{}"})
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		fmt.Fprintf(&b, `{"role":%q`, rapid.SampledFrom([]string{"assistant", "model", "user", "toolResult", "critic", ""}).Draw(t, "role"))
		for _, field := range []string{"model", "modelId", "modelVersion", "provider"} {
			if v := rapid.SampledFrom([]string{"", `"m"`, `"unknown"`, `""`, "7"}).Draw(t, field); v != "" {
				fmt.Fprintf(&b, `,%q:%s`, field, v)
			}
		}
		for _, field := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"usage", "usageMetadata", "usage_metadata"}), 0, 3, rapid.ID).Draw(t, "usages") {
			var members []string
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 6, rapid.ID).Draw(t, "names") {
				members = append(members, fmt.Sprintf(`%q:%s`, name, number.Draw(t, name)))
			}
			for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(outer), 0, 2, rapid.ID).Draw(t, "outer") {
				members = append(members, fmt.Sprintf(`%q:{%q:%s}`, name, rapid.SampledFrom(inner).Draw(t, "inner"), number.Draw(t, "deep")))
			}
			fmt.Fprintf(&b, `,%q:{%s}`, field, strings.Join(members, ","))
		}
		message := b.String() + `,"content":"a"}`
		own, export := sums(t, message), exportSums(t, message)
		if own.Usage != export.Usage || !maps.Equal(own.Models, export.Models) {
			t.Fatalf("%s\n own %+v\n pi's %+v", message, own, export)
		}
	})
}
