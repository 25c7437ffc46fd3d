package message_test

import (
	"testing"

	"github.com/coppice-go/coppice/internal/message"
)

// TestApart: what programs insert is separated from what a person wrote with it.
func TestApart(t *testing.T) {
	const reminder = "<system-reminder>\nbe brief\n</system-reminder>"
	const command = "<command-name>/x</command-name>\n  <command-args></command-args>"
	const ide = "# Context from my IDE setup:\n\n## Open tabs:\n- a.go\n\n## My request for Codex:\n"
	const prior = "\n## Prior conversation with Codex:\n" + `{"text":"\n## My request for Codex:\nno"}` +
		"\n## My request for Codex:\n"
	const environment = "<environment_context>\n<cwd>/w</cwd></environment_context>"
	for _, tt := range []struct{ text, before, typed, after string }{
		{"chart the reef", "", "chart the reef", ""},
		{"", "", "", ""},
		{reminder, reminder, "", ""},
		{reminder + "\n" + reminder, reminder + "\n" + reminder, "", ""},
		{reminder + "\n\nchart the reef", reminder + "\n\n", "chart the reef", ""},
		{"chart the reef\n\n" + reminder + "\n", "", "chart the reef", "\n\n" + reminder + "\n"},
		{reminder + "chart" + "\n" + reminder, reminder, "chart", "\n" + reminder},
		{"what is a " + reminder, "", "what is a " + reminder, ""},
		{"<system-reminder> is a tag", "", "<system-reminder> is a tag", ""},
		{"a < b\n</system-reminder>", "", "a < b\n</system-reminder>", ""},
		{"[Request interrupted by user for tool use]", "[Request interrupted by user for tool use]", "", ""},
		{"[1] is first", "", "[1] is first", ""},
		{command, command, "", ""},
		{ide + "chart the reef", ide, "chart the reef", ""},
		{prior + "chart the reef", prior, "chart the reef", ""},
		{"# A plan\n\n1. chart the reef", "", "# A plan\n\n1. chart the reef", ""},
		{environment, environment, "", ""},
	} {
		before, typed, after := message.Apart(tt.text)
		if before != tt.before || typed != tt.typed || after != tt.after {
			t.Errorf("%q: %q, %q, %q", tt.text, before, typed, after)
		}
	}
}

// TestInserted: a message with any text of the user is the user's; for Codex, any inserted part decides.
func TestInserted(t *testing.T) {
	const reminder = `{"type":"text","text":"<system-reminder>x</system-reminder>"}`
	const environment = `{"type":"input_text","text":"<environment_context>x"}`
	const summary = "This session is being continued from a previous conversation that ran out of context."
	for _, tt := range []struct {
		program, content string
		want             bool
	}{
		{"claude-code", `"<task-notification>\n<task-id>b</task-id>\n</task-notification>"`, true},
		{"claude-code", `"[Request interrupted by user]"`, true},
		{"claude-code", `"` + summary + ` Then"`, true},
		{"claude-code", `[` + reminder + `]`, true},
		{"claude-code", `[` + reminder + `,{"type":"text","text":"chart"}]`, false},
		{"claude-code", `[` + reminder + `,{"type":"image","source":{"type":"base64"}}]`, false},
		{"claude-code", `"Unknown skill: buddy"`, true},
		{"claude-code", `"Unknown skill: buddy?\nWhy"`, false},
		{"claude-code", `"Unknown skill: "`, false},
		{"claude-code", `"chart"`, false},
		{"claude-code", `""`, false},
		{"claude-code", `[]`, false},
		{"codex", `[` + environment + `]`, true},
		{"codex", `[` + environment + `,{"type":"input_text","text":"chart"}]`, true},
		{"codex", `[{"type":"input_text","text":"chart"}]`, false},
		{"codex", `"# Context from my IDE setup:\n## My request for Codex:\nchart"`, false},
		{"codex", `[{"type":"input_text","text":"chart"},{"type":"input_text","text":"<image name=[Image #1]>"},` +
			`{"type":"input_image"},{"type":"input_text","text":"</image>"}]`, false},
		{"codex", `"\n# Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request for Codex:\n"`, false},
		{"pi", `"<skill name=\"a\">do</skill>"`, true},
		{"operator", `[` + reminder + `]`, false},
	} {
		if got := message.Inserted(tt.program, "user", []byte(tt.content)); got != tt.want {
			t.Errorf("%s %s: %v", tt.program, tt.content, got)
		}
	}
}
