package transcript

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// A preview is one line of valid UTF-8 of at most 80 bytes, whatever the text, and the text itself when
// it fits; read from a literal it is the same as from the text.
func TestPreviewProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOfN(rapid.OneOf(
			rapid.RuneFrom([]rune("abc é日🌳\n\t\r\x1b\u202e\u2028\u0000\"\\/")), rapid.Rune()), 0, 120, -1).Draw(t, "text")
		var plain, lit preview
		plain.Add(s)
		lit.Literal(rawjson.AppendString(nil, s), false)
		got := plain.String()
		if lit.String() != got {
			t.Fatalf("from the text %q, from the literal %q", got, lit.String())
		}
		if len(got) > previewMax || !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t\x1b\u2028\u202e") {
			t.Fatalf("preview %q", got)
		}
		if got != strings.TrimSpace(got) {
			t.Fatalf("preview %q begins or ends with a space", got)
		}
		whole := strings.Join(strings.Fields(clean(s)), " ")
		switch body, cut := strings.CutSuffix(got, cutMark); {
		case len(whole) <= previewMax && got != whole:
			t.Fatalf("got %q, want %q", got, whole)
		case len(whole) > previewMax && (!cut || !strings.HasPrefix(whole, body) || len(got) < previewMax-len(cutMark)-utf8.UTFMax):
			t.Fatalf("got %q of %q", got, whole)
		}
	})
}

// clean drops what a preview drops.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		var v preview
		v.Rune('x')
		if v.Rune(r); v.n == 1 && !v.gap {
			return -1
		}
		return r
	}, s)
}
