package transcript_test

import (
	"testing"

	"github.com/coppice-go/coppice/transcript"
)

func TestTitle(t *testing.T) {
	for _, tc := range []struct {
		typ, raw, want string
		ok             bool
	}{
		{"session_info", `{"type":"session_info","name":"a b"}`, "a b", true},
		{"session_info", `{"type":"session_info"}`, "", true},
		{"title_change", `{"type":"title_change","title":"t"}`, "t", true},
		{"message", `{"type":"message","name":"x"}`, "", false},
	} {
		got, ok := transcript.Entry{Type: tc.typ, Raw: []byte(tc.raw)}.Title()
		if got != tc.want || ok != tc.ok {
			t.Errorf("%s: %q %v, want %q %v", tc.raw, got, ok, tc.want, tc.ok)
		}
	}
}
