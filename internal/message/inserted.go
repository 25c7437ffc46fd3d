package message

import (
	"bytes"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// mark is the beginning of a text that a program inserts, and its end where the beginning may be a person's too.
type mark struct{ begin, end string }

// Texts that Codex inserts, as seen in files of its versions 0.40 to 0.150. The rules of another program are a table
// here and a case in marksOf.
var (
	codexUser = []mark{
		{"<environment_context>", ""},
		{"<user_instructions>", ""},
		{"<INSTRUCTIONS>", ""},
		{"<skill>", ""},
		{"<user_shell_command>", ""},
		{"<turn_aborted>", ""},
		{"<permissions instructions>", ""},
		{"<collaboration_mode>", ""},
		{"<subagent_notification>", ""},
		{"<ide_context>", ""},
		{"# AGENTS.md instructions", "</INSTRUCTIONS>"},
		{"# AGENTS.md instructions", "</environment_context>"},
		{"<agent_message_board_notification>", "</agent_message_board_notification>"},
		{"<recommended_plugins>", "</recommended_plugins>"},
		{"<goal_context>", "</goal_context>"},
		{"<codex_internal_context", "</codex_internal_context>"},
		{"<hook_prompt ", "</hook_prompt>"},
		{"<extension_context>", "</extension_context>"},
		{"<external_", ">"},
		{"Warning: apply_patch was requested via ", "Use the apply_patch tool instead of exec_command."},
		{"Warning: The maximum number of unified exec processes", ""},
		{"Warning: Your account was flagged for potentially high-risk cyber activity", ""},
	}
	codexDeveloper = []mark{ // before a turn, and again where it went back
		{"<permissions instructions>", ""},
		{"<model_switch>", ""},
		{"<collaboration_mode>", ""},
		{"<multi_agent_mode>", ""},
		{"<realtime_conversation>", ""},
		{"<skills_instructions>", ""},
		{"<personality_spec>", ""},
		{"<token_budget", ""},
		{"<context_window", ""},
		{"<rollout_budget>", ""},
	}
)

// marksOf returns the marks of a program's texts in messages of a role.
func marksOf(program, role string) []mark {
	switch {
	case program == "codex" && role == "user":
		return codexUser
	case program == "codex" && role == "developer":
		return codexDeveloper
	}
	return nil
}

// Inserted reports whether a program wrote one of the texts of a content of a role, and not a person. program is the
// name of its format.
func Inserted(program, role string, content []byte) bool {
	marks := marksOf(program, role)
	for c := Content(content); c.Next(); {
		if isMarked(c.Block.Text, marks) {
			return true
		}
	}
	return false
}

// isMarked looks at the ends of a text, if it begins as marks do, or with what may be white space.
func isMarked(val []byte, by []mark) bool {
	if len(val) < 2 || val[1] > ' ' && val[1] < 0x80 && bytes.IndexByte([]byte(`<#wW\`), val[1]) < 0 {
		return false
	}
	text := strings.TrimSpace(rawjson.Text(val))
	for _, m := range by {
		if len(text) >= len(m.begin)+len(m.end) && strings.EqualFold(text[:len(m.begin)], m.begin) &&
			strings.EqualFold(text[len(text)-len(m.end):], m.end) {
			return true
		}
	}
	return false
}
