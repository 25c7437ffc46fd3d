package write

import (
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// The counts that Claude Code adds up of every message of the model, and what other providers call them.
var counts = []struct {
	name   string
	others []string
}{
	{"input_tokens", []string{"input_tokens", "input", "prompt_tokens", "inputTokens", "promptTokenCount"}},
	{"cache_creation_input_tokens", []string{"cache_creation_input_tokens", "cacheWrite", "cacheWriteInputTokens"}},
	{"cache_read_input_tokens", []string{"cache_read_input_tokens", "cacheRead", "cacheReadInputTokens"}},
	{"output_tokens", []string{"output_tokens", "output", "completion_tokens", "outputTokens", "candidatesTokenCount"}},
}

// usage gives what a message of any provider's shape says was counted, in Anthropic's words; what is not there is 0.
func (w *writer) usage(message []byte) []byte {
	u := rawjson.Field(message, "usage")
	if len(u) == 0 || u[0] != '{' {
		u = rawjson.Field(message, "usageMetadata")
	}
	if total := rawjson.Field(rawjson.Field(u, "cost"), "total"); rawjson.IsNumber(total) && strings.Trim(string(total), "0.") != "" {
		w.lose("costs of messages")
	}
	out := []byte("{}")
	if anthropic(u) {
		out = u
	}
	cached := cachedIn(u)
	for _, c := range counts {
		n := firstNumber(u, c.others)
		switch {
		case cached == 0:
		case c.name == "input_tokens":
			if all, err := strconv.ParseInt(string(n), 10, 64); err == nil && all >= cached {
				n = strconv.AppendInt(nil, all-cached, 10)
			}
		case c.name == "cache_read_input_tokens":
			n = strconv.AppendInt(nil, cached, 10)
		}
		if thoughts := rawjson.Field(u, "thoughtsTokenCount"); c.name == "output_tokens" && rawjson.IsNumber(thoughts) {
			n = sum(n, thoughts)
		}
		out = rawjson.WithField(out, c.name, n)
	}
	if hour := rawjson.Field(u, "cacheWrite1h"); rawjson.IsNumber(hour) {
		rest := []byte("0")
		if all, err := strconv.ParseInt(string(rawjson.Field(u, "cacheWrite")), 10, 64); err == nil {
			if h, err := strconv.ParseInt(string(hour), 10, 64); err == nil && h <= all {
				rest = strconv.AppendInt(nil, all-h, 10)
			}
		}
		out = rawjson.WithField(out, "cache_creation", rawjson.Object("ephemeral_5m_input_tokens", rest, "ephemeral_1h_input_tokens", hour))
	}
	return out
}

// anthropic tells Anthropic's own counts from those of OpenAI's that go by the same names.
func anthropic(u []byte) bool {
	return rawjson.IsNumber(rawjson.Field(u, "input_tokens")) && rawjson.Field(u, "input_tokens_details") == nil && rawjson.Field(u, "total_tokens") == nil
}

// cachedIn gives what OpenAI and Gemini count as read from a cache, and as input too.
func cachedIn(u []byte) int64 {
	for _, val := range [][]byte{
		rawjson.Field(rawjson.Field(u, "prompt_tokens_details"), "cached_tokens"),
		rawjson.Field(rawjson.Field(u, "input_tokens_details"), "cached_tokens"), rawjson.Field(u, "cachedContentTokenCount"),
	} {
		if n, err := strconv.ParseInt(string(val), 10, 64); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

func firstNumber(object []byte, names []string) []byte {
	for _, name := range names {
		if n := rawjson.Field(object, name); rawjson.IsNumber(n) {
			return n
		}
	}
	return []byte("0")
}

func sum(a, b []byte) []byte {
	x, err := strconv.ParseInt(string(a), 10, 64)
	y, fault := strconv.ParseInt(string(b), 10, 64)
	if err != nil || fault != nil || y < 0 || x > 1<<50 || y > 1<<50 {
		return a
	}
	return strconv.AppendInt(nil, x+y, 10)
}

// stop says in Anthropic's words why the model stopped; null = it did not come to that.
func (w *writer) stop(message []byte, signed, calls bool) []byte {
	if raw := rawjson.Field(message, "rawStopReason"); rawjson.IsString(raw) && (w.ours || signed) {
		return raw
	}
	for _, name := range []string{"stop_reason", "stopReason", "finish_reason", "finishReason"} {
		switch word := rawjson.Text(rawjson.Field(message, name)); strings.ToLower(word) {
		case "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded":
			return rawjson.AppendString(nil, strings.ToLower(word))
		case "length":
			return []byte(`"max_tokens"`)
		case "tooluse", "tool_calls", "function_call":
			return []byte(`"tool_use"`)
		case "content_filter", "safety", "recitation", "blocklist", "prohibited_content", "spii":
			return []byte(`"refusal"`)
		case "error":
			return []byte("null")
		case "aborted", "pending", "deferred":
			w.lose("answers that did not come to an end: why is not said")
			return []byte("null")
		case "stop":
			if calls {
				break // some say so of calls too
			}
			return []byte(`"end_turn"`)
		}
	}
	if calls {
		return []byte(`"tool_use"`)
	}
	return []byte(`"end_turn"`)
}
