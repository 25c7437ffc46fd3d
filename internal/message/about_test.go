package message

import (
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
)

func TestAbout(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{
			"<command-name>/m</command-name>\n<command-message>m</command-message>\n<command-args>opus</command-args>",
			"/m opus",
		},
		{
			"<command-message>x:plan</command-message>\n<command-name>/x:plan</command-name>",
			"/x:plan",
		},
		{
			"<task-notification>\n<task-id>b1</task-id>\n<summary>Build done</summary>\n</task-notification>",
			"task notification: Build done",
		},
		{
			"<system-reminder>\nBe brief.\n</system-reminder> more",
			"reminder: Be brief. more",
		},
		{
			"<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
			"environment context: /w",
		},
		{
			"<permissions instructions> a < b",
			"permissions instructions: a < b",
		},
		{
			"<multi_agent_mode>None",
			"multi agent mode: None",
		},
		{
			"<bash-input>pwd</bash-input>",
			"! pwd",
		},
		{
			"<bash-stdout>/w</bash-stdout><bash-stderr></bash-stderr>",
			"output: /w",
		},
		{
			"<tool_use_error>File does not exist.</tool_use_error>",
			"File does not exist.",
		},
		{
			`<skill name="lsp" location="/x">Use it.</skill>`,
			"skill: Use it.",
		},
		{
			"<p align=\"center\">hello</p>",
			"",
		},
		{
			"words <system-reminder>x</system-reminder>",
			"",
		},
	} {
		got, ok := About(rawjson.AppendString(nil, []byte(tt.text)))
		if ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s: %q, %v, want %q", tt.text, got, ok, tt.want)
		}
	}
	for n := range 20 { // the beginning of a long text is enough
		text := "<system-reminder>" + strings.Repeat("a", n) + strings.Repeat("é\\", 3000) + "</system-reminder>"
		got, ok := About(rawjson.AppendString(nil, []byte(text)))
		if !ok || len(got) > 1<<13 || !strings.HasPrefix(got, "reminder: "+text[17:500]) {
			t.Errorf("%d: %v, %.100q", n, ok, got)
		}
	}
}
