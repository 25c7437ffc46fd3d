// Package tally adds up what a conversation used and says how it was run: tokens and cost in the shapes of pi,
// Anthropic, OpenAI and Gemini, and the settings in force at the end of a path. It streams: of each entry it keeps
// nothing but numbers and names. It never fails on what it reads: a field of another type counts as absent.
package tally

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/coppice-go/coppice/transcript"
)

// Usage is what answers of models used, in tokens. Input does not count what came from a cache or went to one.
type Usage struct {
	Answers    int     `json:"answers"` // how many of them said it
	Input      int64   `json:"input"`
	Output     int64   `json:"output"` // reasoning included
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Reasoning  int64   `json:"reasoning"`
	Total      int64   `json:"total"`
	Cost       float64 `json:"cost"` // in the currency of whoever wrote it; 0 = not said
}

// Add adds another usage.
func (u *Usage) Add(o Usage) {
	u.Answers += o.Answers
	u.Input += o.Input
	u.Output += o.Output
	u.CacheRead += o.CacheRead
	u.CacheWrite += o.CacheWrite
	u.Reasoning += o.Reasoning
	u.Total += o.Total
	u.Cost += o.Cost
}

// Totals are sums over entries.
type Totals struct {
	Usage
	Entries int              `json:"entries"` // that were looked at
	Models  map[string]Usage `json:"models"`  // by "provider/id", "" = it is not said
}

// Sum adds up entries: those of a session, of a path, or of a branch.
func Sum(entries iter.Seq2[transcript.Entry, error]) (Totals, error) {
	t := Totals{Models: map[string]Usage{}}
	for e, err := range entries {
		if err != nil {
			return t, fmt.Errorf("sum the usage: %w", err)
		}
		t.Entries++
		u, model, ok := of(e)
		if !ok {
			continue
		}
		t.Add(u)
		m := t.Models[model]
		m.Add(u)
		t.Models[model] = m
	}
	return t, nil
}

// Of gives what one entry says of usage: an assistant's message, and a summary, a tool's result or an entry of the
// ledger that has a usage of its own. false: it says nothing.
func Of(e transcript.Entry) (Usage, bool) {
	u, _, ok := of(e)
	return u, ok
}

// bearer is what has a usage: an entry, or the message in it.
type bearer struct {
	Role          string          `json:"role"`
	Provider      string          `json:"provider"`
	Model         string          `json:"model"`
	Usage         json.RawMessage `json:"usage"`
	UsageMetadata json.RawMessage `json:"usageMetadata"`
}

func of(e transcript.Entry) (Usage, string, bool) {
	if !bytes.Contains(e.Raw, []byte(`"usage`)) {
		return Usage{}, "", false
	}
	raw := e.Raw
	switch e.Type {
	case "message":
		m, ok := e.Message()
		if !ok {
			return Usage{}, "", false
		}
		raw = m.Raw
	case "usage", "model_usage", "compaction", "branch_summary", "session_summary":
	default:
		return Usage{}, "", false
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Usage{}, "", false
	}
	b := bearer{Provider: text(fields["provider"]), Model: text(fields["model"]), Usage: fields["usage"], UsageMetadata: fields["usageMetadata"]}
	u, ok := parse(b)
	model := b.Model
	if model != "" && b.Provider != "" {
		model = b.Provider + "/" + model
	}
	return u, model, ok
}

func text(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return ""
	}
	return s
}

// numbers are the numbers of an object, and of the objects in it by "outer.inner".
func numbers(raw json.RawMessage) map[string]float64 {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil
	}
	out := map[string]float64{}
	for name, val := range fields {
		var n float64
		var inner map[string]json.RawMessage
		switch {
		case json.Unmarshal(val, &n) == nil && string(val) != "null":
			out[name] = n
		case json.Unmarshal(val, &inner) == nil:
			for in, val := range inner {
				if json.Unmarshal(val, &n) == nil && string(val) != "null" {
					out[name+"."+in] = n
				}
			}
		}
	}
	return out
}

// parse reads a usage in any of the shapes; false: it is none.
func parse(b bearer) (Usage, bool) {
	n := numbers(b.Usage)
	count := func(names ...string) int64 {
		for _, name := range names {
			if v, ok := n[name]; ok && v > 0 && v < 1<<53 {
				return int64(v)
			}
		}
		return 0
	}
	has := func(name string) bool { _, ok := n[name]; return ok }
	u := Usage{Answers: 1}
	switch {
	case has("input") || has("output"): // pi and its family
		u.Input, u.Output = count("input"), count("output")
		u.CacheRead, u.CacheWrite = count("cacheRead"), count("cacheWrite")
		u.Reasoning = count("reasoning")
	case has("prompt_tokens") || has("completion_tokens"): // OpenAI, chat completions: the prompt includes the cache
		u.CacheRead = count("prompt_tokens_details.cached_tokens")
		u.Input, u.Output = max(0, count("prompt_tokens")-u.CacheRead), count("completion_tokens")
		u.Reasoning = count("completion_tokens_details.reasoning_tokens")
	case has("input_tokens_details.cached_tokens") || has("total_tokens"): // OpenAI, responses
		u.CacheRead = count("input_tokens_details.cached_tokens")
		u.Input, u.Output = max(0, count("input_tokens")-u.CacheRead), count("output_tokens")
		u.Reasoning = count("output_tokens_details.reasoning_tokens")
	case has("input_tokens") || has("output_tokens"): // Anthropic
		u.Input, u.Output = count("input_tokens"), count("output_tokens")
		u.CacheRead, u.CacheWrite = count("cache_read_input_tokens"), count("cache_creation_input_tokens")
	default:
		if n = numbers(b.UsageMetadata); !has("promptTokenCount") && !has("candidatesTokenCount") { // Gemini
			return Usage{}, false
		}
		u.CacheRead, u.Reasoning = count("cachedContentTokenCount"), count("thoughtsTokenCount")
		u.Input = max(0, count("promptTokenCount")-u.CacheRead)
		u.Output = count("candidatesTokenCount") + u.Reasoning
	}
	u.Total = count("totalTokens", "total_tokens", "totalTokenCount")
	if u.Total == 0 {
		u.Total = u.Input + u.Output + u.CacheRead + u.CacheWrite
	}
	for _, name := range []string{"cost.total", "cost", "total_cost"} {
		if v, ok := n[name]; ok && v > 0 {
			u.Cost = v
			break
		}
	}
	return u, true
}
