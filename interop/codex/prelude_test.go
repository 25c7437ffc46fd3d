package codex

import (
	"fmt"
	"strings"
	"testing"
)

// TestContextual: messages that Codex wrote in the user's name are told apart from the user's own.
func TestContextual(t *testing.T) {
	parts := func(texts ...string) string {
		for i, s := range texts {
			texts[i] = fmt.Sprintf(`{"type":"input_text","text":%q}`, s)
		}
		return "[" + strings.Join(texts, ",") + "]"
	}
	env := "<environment_context>\n <cwd>/w</cwd>\n</environment_context>"
	tests := []struct {
		content, kinds string
		want           bool
	}{
		{parts("hello"), "", false},
		{`"hello"`, "", false},
		{`""`, "", false},
		{"[]", "", false},
		{parts(env), "", true},
		{`"<environment_context>x"`, "", true},
		{parts(" \n" + strings.ToUpper(env) + "\n"), "", true},
		{parts("\n" + env), "", true},
		{parts("look: " + env), "", false},
		{parts("hello", env), "", true},
		{parts("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>", env), "", true},
		{parts("# AGENTS.md instructions should say this"), "", false},
		{parts("<recommended_plugins>x</recommended_plugins>"), "", true},
		{parts("<recommended_plugins> is what you send"), "", false},
		{parts("<goal_context>x</goal_context>"), "", true},
		{parts(`<codex_internal_context source="goal">x</codex_internal_context>`), "", true},
		{parts(`<hook_prompt hook_run_id="a">go on</hook_prompt>`), "", true},
		{parts("<agent_message_board_notification>x</agent_message_board_notification>"), "", true},
		{parts("<external_a>x</external_a>"), "", true},
		{parts("<external_a is a tag"), "", false},
		{parts("Warning: The maximum number of unified exec processes you can keep open is 60"), "", true},
		{parts("Warning: apply_patch was requested via shell. Use the apply_patch tool instead of exec_command."), "", true},
		{parts("Warning: apply_patch was requested via shell, why?"), "", false},
		{parts("Warning: Your account was flagged for potentially high-risk cyber activity"), "", true},
		{parts("x"), `["hooks.additional_context"]`, true},
		{parts("x", "y"), `["agents_md.instructions","environments.environment_context"]`, true},
		{parts("x", "y"), `["agents_md.instructions"]`, false}, // not specific enough
		{parts("x", "y"), `["agents_md.instructions","user.text"]`, false},
		{parts("x"), `["images.unsupported"]`, false},
		{parts("x"), `["unknown"]`, false},
		{parts("x"), `[7]`, false},
		{parts(env), `["user.text"]`, false},
		{parts(env), `["unknown"]`, true},
		{parts(env), `"x"`, true},
		{`[{"type":"input_image","image_url":"x"},7,null]`, "", false},
	}
	for _, tt := range tests {
		if got, _ := contextual([]byte(tt.content), []byte(tt.kinds)); got != tt.want {
			t.Errorf("%s %s: %v", tt.content, tt.kinds, got)
		}
	}
}
