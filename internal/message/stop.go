package message

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// IsStop reports whether a value is a stop reason of pi.
func IsStop(val []byte) bool {
	switch string(val) {
	case `"stop"`, `"length"`, `"toolUse"`, `"error"`, `"aborted"`, `"pending"`, `"deferred"`:
		return true
	}
	return false
}

// stops maps the providers' stop reasons, in lower case, to pi's.
var stops = map[string]string{
	"stop": "stop", "end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop",
	"length": "length", "max_tokens": "length", "model_context_window_exceeded": "length",
	"tooluse": "toolUse", "tool_use": "toolUse", "tool_calls": "toolUse", "function_call": "toolUse",
	"error": "error", "malformed_function_call": "error", "unexpected_tool_call": "error",
	"too_many_tool_calls": "error", "missing_thought_signature": "error",
	"malformed_response": "error", "malformed_model_output": "error", "malformed_tool_use": "error", "other": "error",
	"aborted": "aborted", "pending": "pending", "deferred": "deferred",
}

// refusals are the stop reasons of an answer that was withheld because of its content; pi treats them as errors.
var refusals = map[string]bool{
	"refusal": true, "content_filter": true, "content_filtered": true, "guardrail_intervened": true,
	"sensitive": true, "safety": true, "recitation": true,
	"blocklist": true, "prohibited_content": true, "spii": true, "language": true, "image_safety": true,
	"image_prohibited_content": true, "image_recitation": true,
}

// Stop returns pi's stop reason for a message of any provider; calls reports whether it has tool calls. raw is the
// provider's reason if it is more specific than pi's; refused: the answer was withheld because of its content.
func Stop(message []byte, calls bool) (word, raw string, refused bool) {
	if own := rawjson.Field(message, "stopReason"); IsStop(own) {
		return rawjson.Text(own), "", false
	}
	for _, name := range []string{"stopReason", "stop_reason", "finish_reason", "finishReason"} {
		said := rawjson.Text(rawjson.Field(message, name))
		if refusals[strings.ToLower(said)] {
			return "error", said, true
		}
		switch word = stops[strings.ToLower(said)]; {
		case word == "" || word == "stop" && calls: // some providers report "stop" for calls too
		case word == "error" && said != "error":
			return word, said, false
		default:
			return word, "", false
		}
	}
	switch {
	case rawjson.Text(rawjson.Field(message, "status")) == "incomplete": // OpenAI's items
		return "length", "", false
	case calls:
		return "toolUse", "", false
	}
	return "stop", "", false
}

// failedStop reports whether a value is a provider's stop reason of a failed answer.
func failedStop(val []byte) bool {
	switch string(val) {
	case "", `"stop"`, `"toolUse"`, `"end_turn"`, `"tool_use"`, `"tool_calls"`:
		return false
	}
	word := strings.ToLower(rawjson.Text(val))
	return refusals[word] || stops[word] == "error" || stops[word] == "aborted"
}
