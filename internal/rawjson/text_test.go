package rawjson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// quotedByJSON quotes a text with package json, except texts that are not escaped.
func quotedByJSON(t testing.TB, s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == '"' || r == '\\' || r >= 0x7f }) < 0 {
		return `"` + s + `"`
	}
	p, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(p)
}

// textByJSON unquotes a text with package json, except unchecked ones: texts of ASCII without an escape.
func textByJSON(val []byte) string {
	if len(val) < 2 || val[0] != '"' {
		return ""
	}
	if in := val[1 : len(val)-1]; bytes.IndexFunc(in, func(r rune) bool { return r == '\\' || r >= 0x80 }) < 0 {
		return string(in)
	}
	var s string
	if json.Unmarshal(val, &s) != nil {
		return ""
	}
	return s
}

// FuzzText compares the reading and the writing of texts with encoding/json: byte for byte the same, for any input.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "plain", "<a> & b", `"quoted" \ and / 'so'`, "\b\f\n\r\t\x00\x1f\x7f", "é\u2028\u2029\u202a\ufffd\U0001f600", "<\x80", "\xff\xfe<", "a\xc3", "\"<", "\u00a0 <",
		"\xe0\x80\x80\xe0\xa0\x80\xed\x9f\xbf\xed\xa0\x80\xee\x80\x80\xef\xbf\xbf", "\xf0\x8f\xbf\xbf\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\xf4\x90\x80\x80\xf5", "\xc0\x80\xc1\xbf\xc2\x80\xdf\xbf\xc2", "\xe1\x80<\xe2\x80\xe2\x80\xa8",
		`\u0041\u00e9\u2028\ud83d\ude00`, `\ud800`, `\udc00x`, `\ud83dx`, `\ud83d\u0041`, `\ud83d\ud83d\ude00`, `\ud83d\n`, `\/\b\f\n\r\t\"\\`, `\u000`, `\`, `\x`, `\u00`, "\\u00e9\xff", `\ufffd`, `\uD7FF\uE000\ud7ff\ue000`,
		"\\n\t", `\n" `, `é"`, `a"b`, `a"\n`, `"\n"  `, `"12345678\n"`, "1234567\x7f<", "1234567\x1f", "1234567\"", `1234567\\`, "1234567<", "01234567\x80", "\xe2\x80\\u00a8", strings.Repeat("a\\n", 300),
	} {
		f.Add([]byte(s))
	}
	for _, c := range "<>&\"\\\n\x7f\u00e9\u2028" { // at each index of a step of eight
		for at := range 8 {
			f.Add([]byte("\t1234567" + "7654321"[:at] + string(c) + "12345678"))
			f.Add([]byte("7654321"[:at] + string(c) + "12345678"))
		}
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		want := "x" + quotedByJSON(t, string(p))
		if got := rawjson.AppendString([]byte("x"), p); string(got) != want {
			t.Errorf("%q is quoted as %s, want %s", p, got, want)
		}
		if got := rawjson.AppendKey([]byte("x"), string(p)); string(got) != want+":" {
			t.Errorf("%q is a key as %s, want %s:", p, got, want)
		}
		for _, val := range [][]byte{append(append([]byte{'"'}, p...), '"'), p} {
			want := textByJSON(val)
			if got := rawjson.AppendText([]byte("x"), val); string(got) != "x"+want {
				t.Errorf("%s is appended as %q, want %q", val, got, want)
			}
			if got := rawjson.Text(val); got != want {
				t.Errorf("%s is read as %q, want %q", val, got, want)
			}
		}
	})
}

// TestAppendCompact compares the removed white space with json.Compact.
func TestAppendCompact(t *testing.T) {
	for _, s := range []string{
		`{}`, ` { "a" : [ 1 , 2.50e+3 , "x \" y" , "\\" ] , "b":{ } } `, "\t\r\n[\n]\n", `"  a b  "`, `{"a":"\u2028` + "\u2028" + `< >"}`, "true ",
	} {
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(s)); err != nil {
			t.Fatal(err)
		}
		if got := rawjson.AppendCompact([]byte("x"), []byte(s)); string(got) != "x"+want.String() {
			t.Errorf("%q becomes %q, want %q", s, got, want.String())
		}
	}
}
