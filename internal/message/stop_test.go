package message_test

import (
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/message"
)

// TestStops: every provider's stop reasons, with and without calls.
func TestStops(t *testing.T) {
	for _, tt := range []struct{ field, without, with string }{
		{`"stopReason":"stop"`, "stop", "stop"}, // pi's own word
		{`"stopReason":"aborted"`, "aborted", "aborted"},
		{`"stopReason":"end_turn"`, "stop", "toolUse"},
		{`"stop_reason":"pause_turn"`, "stop", "toolUse"},
		{`"stop_reason":"refusal"`, "error refusal refused", "error refusal refused"},
		{`"stopReason":"model_context_window_exceeded"`, "length", "length"},
		{`"stopReason":"malformed_tool_use"`, "error malformed_tool_use", "error malformed_tool_use"},
		{`"finish_reason":"stop"`, "stop", "toolUse"},
		{`"finish_reason":"function_call"`, "toolUse", "toolUse"},
		{`"finishReason":"STOP"`, "stop", "toolUse"},
		{`"finishReason":"MALFORMED_FUNCTION_CALL"`, "error MALFORMED_FUNCTION_CALL", "error MALFORMED_FUNCTION_CALL"},
		{`"finishReason":"IMAGE_SAFETY"`, "error IMAGE_SAFETY refused", "error IMAGE_SAFETY refused"},
		{`"finishReason":"tired"`, "stop", "toolUse"},
		{`"status":"incomplete"`, "length", "length"},
		{`"status":"completed"`, "stop", "toolUse"},
		{`"stop_reason":7`, "stop", "toolUse"},
	} {
		for i, want := range []string{tt.without, tt.with} {
			word, raw, refused := message.Stop([]byte("{"+tt.field+"}"), i == 1)
			got := strings.TrimSpace(word + " " + raw)
			if refused {
				got += " refused"
			}
			if got != want {
				t.Errorf("%s, calls %v: %s, want %s", tt.field, i == 1, got, want)
			}
		}
	}
}
