package secrets

import "testing"

// A preview shows no more than a quarter of a credential, and no part of a character.
func TestPreview(t *testing.T) {
	for _, tt := range [][2]string{
		{"abcdefghijklmnopqrstu", "abcd… (21 bytes)"},
		{"abcdefgh", "ab… (8 bytes)"},
		{"abc", "… (3 bytes)"},
		{"aéééééééé", "aé… (17 bytes)"},
		{"ééé", "… (6 bytes)"},
	} {
		if got := preview(tt[0]); got != tt[1] {
			t.Errorf("preview of %d bytes is %q, want %q", len(tt[0]), got, tt[1])
		}
	}
}
