package rawjson_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// depth returns how deep brackets nest in valid JSON.
func depth(p []byte) (most int) {
	now, quoted := 0, false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}

// FuzzValue compares the scanner of JSON with encoding/json: the same input is valid, the members of an object are the
// same, and invalid input is walked without a panic.
func FuzzValue(f *testing.F) {
	for _, s := range []string{
		`{"a":1,"a":2,"b":[{},"\ud800",1e999999,-0.0,"\u0000"]}`, `[1,2,]`, `{"a" : }`, "{\"\xdd\xdd\":0}", "\xef\xbb\xbf{}", "{}\r\n", "nul", `"\x"`, `01`, `-`, `1e`, "\"\x1f\"", "\"\xff\"",
		`{"timestamp":"2026-02-29T25:61:61.000Z","n":1767225600000.5}`, strings.Repeat("[", 512) + strings.Repeat("]", 512), strings.Repeat(`{"a":`, 513) + "1" + strings.Repeat("}", 513),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		end, err := rawjson.ValueEnd(p, 0, rawjson.MaxDepth)
		whole := err == nil && rawjson.Space(p, end) == len(p)
		if valid := json.Valid(p); whole != valid && (whole || depth(p) <= rawjson.MaxDepth) {
			t.Fatalf("%q is valid %v, and is found to be %v: %v", p, valid, whole, err)
		}
		m := rawjson.Walk(p)
		for m.Next() {
			if len(m.Val) == 0 {
				t.Fatalf("%q: an empty value", p)
			}
		}
		_, _ = rawjson.Time(p), rawjson.Text(p)
		if whole {
			sameMembers(t, p)
			sameText(t, bytes.TrimSpace(p))
		}
	})
}

// sameMembers expects of valid JSON the members that encoding/json finds: the last of a name counts.
func sameMembers(t *testing.T, p []byte) {
	var want map[string]json.RawMessage
	if json.Unmarshal(p, &want) != nil || want == nil {
		return
	}
	got := map[string]json.RawMessage{}
	m := rawjson.Walk(p)
	m.Strict = true
	for m.Next() {
		got[string([]rune(string(m.Key)))] = bytes.Clone(m.Val) // there, an invalid byte is U+FFFD
	}
	if m.Err != nil {
		t.Fatalf("%q: %v", p, m.Err)
	}
	for name, val := range want {
		if !bytes.Equal(bytes.TrimSpace(val), got[name]) && len(got) == len(want) {
			t.Fatalf("%q: %q is %q, want %q", p, name, got[name], val)
		}
		if field := rawjson.Field(p, name); field != nil && !bytes.Equal(field, got[name]) {
			t.Fatalf("%q: field %q is %q, want %q", p, name, field, got[name])
		}
	}
}

// sameText expects of a valid value the text and the time that package json and package time find.
func sameText(t *testing.T, val []byte) {
	var want string
	if json.Unmarshal(val, &want) != nil || val[0] != '"' {
		want = ""
	}
	if got := rawjson.Text(val); got != want {
		t.Fatalf("%q is read as %q, want %q", val, got, want)
	}
	at, err := time.Parse(time.RFC3339Nano, want)
	if got := rawjson.Time(val); val[0] == '"' && (err == nil) != !got.IsZero() && !at.IsZero() || err == nil && !got.Equal(at) {
		t.Fatalf("%q is the time %v, want %v, %v", val, got, at, err)
	}
	if s := rawjson.AppendString(nil, want); !json.Valid(s) || !reflect.DeepEqual(rawjson.Text(s), strings.ToValidUTF8(want, "\ufffd")) {
		t.Fatalf("%q is written as %q", want, s)
	}
}
