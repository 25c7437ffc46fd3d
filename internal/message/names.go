package message

import (
	"strings"
	"sync"
)

// kind is the meaning of a number in a usage.
type kind uint8

const (
	input   kind = iota
	output       // including thinking
	said         // excluding thinking: Gemini counts the two separately
	thought      //
	used         // tokens that the provider's tools added to the prompt, not in the input
	read         // from a cache, not in the input
	write        // to a cache, not in the input
	cached       // from a cache, included in the input
	filled       // to a cache, included in the input
	hour         // of the tokens written to a cache: kept for an hour
	total
	kinds
)

// names are the names of the counts in pi, Anthropic, OpenAI (chat completions, responses), Bedrock and Gemini (its
// API, its Python SDK). "outer.inner" is a nested name. If several are present the first counts.
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

// ownInput is pi's name: its usages count every token in one number only.
const ownInput = "input"

// bearers are the fields of a message that hold a usage.
var bearers = [...]string{"usage", "usageMetadata", "usage_metadata"}

// Bearers returns the names of the fields that UsageOf reads.
func Bearers() []string { return bearers[:] }

// place is a kind of count, with the index of the name by which it was found.
type place struct {
	kind kind
	rank uint8
}

// places is the inverse of names: by name, and by outer and inner name. It is built when the first usage is read.
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
