package codex

import (
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
)

func typedEvent(text string) string {
	return event(`{"type":"user_message","message":` + quoted(text) + `}`)
}

// TestTyped: an event shows which messages of role user a person typed.
func TestTyped(t *testing.T) {
	ask := func(text string) string { return user(text) + typedEvent(text) }
	long := strings.Repeat(event(`{"type":"warning","message":"w"}`), maxUndecided)
	old := strings.Replace(meta, "0.104.0", "0.91.0", 1)
	picture := item(`{"type":"message","role":"user","content":[` +
		`{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}`)
	page := event(`{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"q"}]}}`)
	for _, tt := range []struct{ name, text, want string }{
		{
			"a text of a later version",
			meta + user("[notice] x") + ask("q") + said("a") + user("[notice] y") + said("b"),
			"m:[notice] x u:q a:a m:[notice] y a:b",
		},
		{"a typed text like Codex's", meta + ask("<skill>mine</skill>") + said("a"), "u:<skill>mine</skill> a:a"},
		{"twice the same", meta + ask("go on") + ask("go on") + said("a"), "u:go on u:go on a:a"},
		{"lines between", meta + user("q") + event(tokens) + typedEvent("q") + said("a"), "u:q a:a"},
		{"an event of another text", meta + user("q") + typedEvent("Q!") + said("a"), "u:q a:a"},
		{"a picture", meta + picture + typedEvent("") + said("a"), "u: a:a"},
		{"no events", meta + user("q") + said("a") + user("r") + said("b"), "u:q a:a u:r a:b"},
		{"an older version", old + ask("q") + said("a") + user("meanwhile") + said("b"), "u:q a:a u:meanwhile a:b"},
		{"events elsewhere", meta + typedEvent("q") + user("q") + said("a") + user("r") + said("b"), "u:q a:a u:r a:b"},
		{"pages", meta + user("q") + page + said("a") + user("r") + said("b"), "u:q a:a u:r a:b"},
		{"at the end", meta + ask("q") + said("a") + user("x"), "u:q a:a m:x"},
		{"too many lines", meta + user("q") + long + typedEvent("q") + said("a"), "u:q a:a"},
	} {
		s := collect(t, reader(tt.text))
		if got := s.Talk(t, ""); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestFailedAnswers: an answer that was broken off is known as failed, one that was complete before is not.
func TestFailedAnswers(t *testing.T) {
	const (
		aborted = `{"type":"turn_aborted","reason":"interrupted"}`
		failed  = `{"type":"error","message":"too many requests","codex_error_info":"other"}`
		retried = `{"type":"stream_error","message":"reconnecting"}`
	)
	note := user("<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>")
	thought := item(`{"type":"reasoning","summary":[],"encrypted_content":"x"}`)
	for _, tt := range []struct{ name, text, want string }{
		{"aborted", said("a") + event(aborted), "aborted "},
		{"aborted, with a note for the model", said("a") + note + event(aborted), "aborted "},
		{"an error", said("a") + event(failed), "error too many requests"},
		{
			"an error at the end of the turn", said("a") + event(failed) + event(`{"type":"task_complete"}`),
			"error too many requests",
		},
		{"an error that ends the turn", said("a") + event(failed) + note + event(aborted), "error too many requests"},
		{"after its count", said("a") + event(tokens) + event(failed) + note + event(aborted), "stop "},
		{"after the output of its call", calls("c") + output("c", "o") + event(aborted), "toolUse "},
		{"before the output of its call", thought + calls("c") + event(aborted), "aborted "},
		{"while another question waits", said("a") + user("q2") + event(failed), "stop "},
		{"a second try", said("a") + event(retried) + said("b") + event(tokens), "error reconnecting, stop "},
		{"a count that comes late", said("a") + note + event(aborted) + event(tokens), "aborted "},
	} {
		s := collect(t, reader(meta+user("q")+tt.text))
		var got []string
		for _, e := range s.Entries {
			m := rawjson.Field(e.Raw, "message")
			if textField(m, "role") == "assistant" {
				got = append(got, textField(m, "stopReason")+" "+textField(m, "errorMessage"))
			}
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestSettled: lines that a later one can change are not settled.
func TestSettled(t *testing.T) {
	note := user("<turn_aborted>\nThe user interrupted the turn.\n</turn_aborted>")
	begin := meta + user("q") + typedEvent("q")
	for _, tt := range []struct{ name, settled, rest string }{
		{"who wrote it", begin + said("a") + event(tokens), user("r")},
		{"an event shows it", begin + said("a") + event(tokens) + user("r") + typedEvent("r"), ""},
		{"an answer that may fail", begin, said("a") + note},
		{"it failed", begin + said("a") + note + event(`{"type":"turn_aborted","reason":"interrupted"}`), ""},
	} {
		tail, at := Program.Tail(), int64(0)
		for line := range strings.Lines(tt.settled + tt.rest) {
			tail.Line([]byte(line), at, at+int64(len(line)))
			at += int64(len(line))
		}
		if got := tail.Stable(); got != int64(len(tt.settled)) {
			t.Errorf("%s: %d bytes are settled, want %d of %d", tt.name, got, len(tt.settled), at)
		}
	}
}
