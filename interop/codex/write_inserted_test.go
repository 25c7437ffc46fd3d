package codex

import (
	"strings"
	"testing"
)

// TestWriteInserted: an event of the user's is written for what a person typed, and for no text that a program
// inserted.
func TestWriteInserted(t *testing.T) {
	s := talk{header: begun}
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
