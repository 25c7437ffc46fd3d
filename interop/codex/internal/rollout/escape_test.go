package rollout

import (
	"encoding/json"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// FuzzText holds the two ways of reading and writing a text together: what appendText and appendQuoted give is
// byte for byte what rawjson gives by way of package json.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "plain", "<a> & b", `"quoted" \ and / 'so'`, "\b\f\n\r\t\x00\x1f\x7f", "é\u2028\u2029\ufffd\U0001f600", "<\x80", "\xff\xfe<", "a\xc3", "\"<", "\u00a0 <",
		`\u0041\u00e9\u2028\ud83d\ude00`, `\ud800`, `\udc00x`, `\ud83dx`, `\/\b\f\n\r\t\"\\`, `\u000`, `\`, `\x`, `\u00`, "\\u00e9\xff", `\ufffd`, `\uD7FF\uE000\ud7ff\ue000`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if got, want := appendQuoted([]byte("x"), p), rawjson.AppendString([]byte("x"), string(p)); string(got) != string(want) {
			t.Errorf("%q is quoted as %s, want %s", p, got, want)
		}
		val := append(append([]byte{'"'}, p...), '"')
		got := appendText([]byte("x"), val)
		if want := "x" + rawjson.Text(val); json.Valid(val) && string(got) != want {
			t.Errorf("%s is read as %q, want %q", val, got, want)
		}
		if got := appendText([]byte("x"), p); len(p) > 0 && p[0] != '"' && string(got) != "x" {
			t.Errorf("%s is no text and is read as %q", p, got)
		}
	})
}
