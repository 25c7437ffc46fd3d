package message

import (
	"strings"
	"sync"
)

// kind is what a number of a usage counts.
type kind uint8

const (
	input   kind = iota
	output       // with what was thought
	said         // without: Gemini counts the two apart
	thought      //
	used         // what tools of the provider's put into the prompt, beside it
	read         // from a cache, beside the input
	write        // to a cache, beside the input
	cached       // from a cache, within the input
	filled       // to a cache, within the input
	hour         // of what went to a cache: for an hour
	total
	kinds
)

// names are those that the counts have: of pi, Anthropic, OpenAI (chat completions, responses), Bedrock, Gemini (its
// API, its SDK for Python). "outer.inner" is one that is a level deeper. Of several the first counts.
var names = [kinds][]string{
	input:  {ownInput, "input_tokens", "prompt_tokens", "inputTokens", "promptTokenCount", "prompt_token_count"},
	output: {"output", "output_tokens", "completion_tokens", "outputTokens"},
	said:   {"candidatesTokenCount", "candidates_token_count"},
	thought: {
		"reasoning", "completion_tokens_details.reasoning_tokens", "output_tokens_details.reasoning_tokens",
		"thoughtsTokenCount", "thoughts_token_count",
	},
	used:  {"toolUsePromptTokenCount", "tool_use_prompt_token_count"},
	read:  {"cacheRead", "cache_read_input_tokens", "cacheReadInputTokens"},
	write: {"cacheWrite", "cache_creation_input_tokens", "cacheWriteInputTokens"},
	cached: {
		"prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "prompt_cache_hit_tokens",
		"cachedContentTokenCount", "cached_content_token_count",
	},
	filled: {"prompt_tokens_details.cache_write_tokens", "input_tokens_details.cache_write_tokens"},
	hour:   {"cacheWrite1h", "cache_creation.ephemeral_1h_input_tokens"},
	total:  {"totalTokens", "total_tokens", "totalTokenCount", "total_token_count"},
}

// ownInput is pi's name, whose usages count everything once: nothing is within anything else.
const ownInput = "input"

// bearers are the fields of a message that hold a usage.
var bearers = [...]string{"usage", "usageMetadata", "usage_metadata"}

// Bearers are the names of the fields that UsageOf looks at.
func Bearers() []string { return bearers[:] }

// place is a kind of count, and which of its names it was found by.
type place struct {
	kind kind
	rank uint8
}

// places returns names the other way round: by name, and by the outer name and the inner one. They are made when the
// first usage is read.
var places = sync.OnceValues(func() (flat map[string]place, deep map[string]map[string]place) {
	flat, deep = map[string]place{}, map[string]map[string]place{}
	for k, list := range names {
		for i, name := range list {
			p := place{kind(k), uint8(i)}
			outer, inner, ok := strings.Cut(name, ".")
			if !ok {
				flat[name] = p
				continue
			}
			if deep[outer] == nil {
				deep[outer] = map[string]place{}
			}
			deep[outer][inner] = p
		}
	}
	return flat, deep
})
