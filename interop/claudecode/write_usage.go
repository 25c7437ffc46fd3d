package claudecode

import (
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

// usageCounts are the counts that Claude Code sums over all messages of the model, with pi's names.
var usageCounts = []struct{ name, pi string }{
	{"input_tokens", "input"},
	{"cache_creation_input_tokens", "cacheWrite"},
	{"cache_read_input_tokens", "cacheRead"},
	{"output_tokens", "output"},
}

// usage returns the usage of a message of any provider in Anthropic's form; missing counts are 0.
func (w *writer) usage(message []byte) []byte {
	own, u := rawjson.Field(message, "usage"), piwriter.Usage(message)
	if total := rawjson.Field(rawjson.Field(u, "cost"), "total"); strings.Trim(string(total), "0.") != "" {
		w.lose("costs of messages")
	}
	out := []byte("{}")
	if isAnthropicUsage(own) {
		out = own
	}
	for _, c := range usageCounts {
		out = rawjson.WithField(out, c.name, rawjson.Field(u, c.pi))
	}
	if hour := rawjson.Field(u, "cacheWrite1h"); rawjson.IsNumber(hour) && !isAnthropicUsage(own) {
		rest := []byte("0")
		if all, err := strconv.ParseInt(string(rawjson.Field(u, "cacheWrite")), 10, 64); err == nil {
			if h, err := strconv.ParseInt(string(hour), 10, 64); err == nil && h <= all {
				rest = strconv.AppendInt(nil, all-h, 10)
			}
		}
		out = rawjson.WithField(out, "cache_creation",
			rawjson.Object("ephemeral_5m_input_tokens", rest, "ephemeral_1h_input_tokens", hour))
	}
	return out
}

// isAnthropicUsage reports whether counts are Anthropic's, and not OpenAI's with the same names.
func isAnthropicUsage(u []byte) bool {
	return rawjson.IsNumber(rawjson.Field(u, "input_tokens")) && rawjson.Field(u, "input_tokens_details") == nil &&
		rawjson.Field(u, "total_tokens") == nil
}

const lostStop = "answers that did not come to an end: why is not said"

// stop returns the stop reason in Anthropic's form; null = the model did not stop.
func (w *writer) stop(said []byte, signed, calls bool) []byte {
	if raw := rawjson.Field(said, "rawStopReason"); rawjson.IsString(raw) && (w.ours || signed) {
		return raw
	}
	for _, name := range []string{"stop_reason", "stopReason"} {
		switch word := rawjson.Text(rawjson.Field(said, name)); word {
		case "end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal",
			"model_context_window_exceeded":
			return rawjson.AppendString(nil, word)
		}
	}
	word, _, refused := message.Stop(said, calls)
	switch {
	case refused:
		return []byte(`"refusal"`)
	case word == "length":
		return []byte(`"max_tokens"`)
	case word == "toolUse", word == "stop" && calls: // some providers use it for calls too
		return []byte(`"tool_use"`)
	case word == "stop":
		return []byte(`"end_turn"`)
	case word != "error" && word != "aborted":
		w.lose(lostStop)
	}
	return []byte("null")
}
