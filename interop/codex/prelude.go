package codex

import (
	"bytes"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// prefixMark begins, and where the beginning alone may be the user's too, ends what Codex says in the user's name.
type prefixMark struct{ begin, end string }

var contextMarks = []prefixMark{
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

// preludeTags begin what Codex says as the developer before a turn.
var preludeTags = []prefixMark{
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

// contextual reports whether Codex, and not the user, says a content of role user: by the kinds of its parts, which
// versions of 2026 name, else by the marks of any part.
func contextual(content, kinds []byte) bool {
	known, parts := 0, 0
	for m := rawjson.Walk(kinds); m.Closing == ']' && m.Next(); known++ {
		switch kind, _, _ := strings.Cut(rawjson.Text(m.Val), "."); kind {
		case "user":
			return false
		case "", "unknown", "images", "audio": // media that were the user's may be among the latter
			known = -1 << 30
		}
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		parts++
	}
	return known > 0 && known == parts || marked(content, contextMarks)
}

// isPrelude reports whether a content is what Codex says as the developer before a turn, and says anew
// where it went back.
func isPrelude(content []byte) bool { return marked(content, preludeTags) }

// marked reports whether a part of a content has one of these marks.
func marked(content []byte, by []prefixMark) bool {
	if rawjson.IsString(content) {
		return isMarked(content, by)
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if text := rawjson.Field(m.Val, "text"); text != nil && isMarked(text, by) {
			return true
		}
	}
	return false
}

// isMarked looks at the ends of a text, if it begins as marks do, or with what may be white space.
func isMarked(val []byte, by []prefixMark) bool {
	if !rawjson.IsString(val) || val[1] > ' ' && val[1] < 0x80 && bytes.IndexByte([]byte(`<#wW\`), val[1]) < 0 {
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
