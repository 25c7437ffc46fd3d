package codex

import (
	"strings"
	"testing"
)

// TestWriteInserted: an event of the user's is written for what a person typed, and for no text that a program
// inserted.
func TestWriteInserted(t *testing.T) {
	s := talk{Header: begun}
	s.message("u1", "", ask("<system-reminder>be brief</system-reminder>"))
	s.message("u2", "u1", ask("chart the reef"))
	s.message("u3", "u2", ask("[Request interrupted by user]"))
	file, losses := s.write(t, "u3")
	same(t, &s, "u3", file)
	if n := strings.Count(file, `"type":"user_message"`); n != 1 {
		t.Errorf("%d events of the user's\n%s", n, file)
	}
	if n := strings.Count(file, `"role":"user"`); n != 3 || len(losses) != 0 {
		t.Errorf("%d messages with role user, losses %v\n%s", n, losses, file)
	}
}

// TestWriteFailed: the words of an answer that failed are not written as the model's, but for one whose call was
// answered.
func TestWriteFailed(t *testing.T) {
	failed := func(stop, content string) string {
		return strings.Replace(replied(content), `"stopReason":"stop"`, `"stopReason":"`+stop+`"`, 1)
	}
	s := talk{Header: begun}
	s.message("u1", "", ask("chart the reef"))
	s.message("a1", "u1", replied(text("where?")))
	s.message("a2", "a1", failed("error", text("half an ans")))
	s.message("a3", "a2", failed("aborted", text("I was going to")))
	s.message("a4", "a3", failed("aborted", text("let me see")+","+call("c", "read", `{}`)))
	s.message("r4", "a4", gave("c", "sand"))
	s.message("a5", "r4", failed("aborted", call("d", "read", `{}`)))
	s.message("a6", "a5", replied(text("done")))
	file, losses := s.write(t, "a6")
	for _, words := range []string{"half an ans", "I was going to", `"call_id":"d"`} {
		if strings.Contains(file, words) {
			t.Errorf("%s is in the file\n%s", words, file)
		}
	}
	if losses[lostBroken] != 3 || losses[lostAborted] != 0 {
		t.Errorf("losses %v", losses)
	}
	back := collect(t, reader(file))
	if got, want := back.Talk(t, ""), "u:chart the reef a:where? a:let me see+c r:sand=c a:done"; got != want {
		t.Errorf("read again: %s, want %s", got, want)
	}
}
