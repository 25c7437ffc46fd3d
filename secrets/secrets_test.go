package secrets_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/secrets"
	"github.com/coppice-go/coppice/transcript"
)

// counts returns numbers by kind as text.
func counts(by map[string]int) string {
	var list []string
	for _, kind := range slices.Sorted(maps.Keys(by)) {
		list = append(list, fmt.Sprintf("%s %d", kind, by[kind]))
	}
	return strings.Join(list, ", ")
}

// What the rules find in the corpus. docs/secrets.md has these figures.
func TestCorpus(t *testing.T) {
	const (
		wantTrue   = 315
		wantMissed = "aws-secret-access-key 1, base64-twice 1, netrc 1, password-symbols 6, password-words 6, " +
			"query 1, session-secret 1"
		wantFalse = 2500
		wantWrong = "fixture 19"
	)
	missed, wrong := map[string]int{}, map[string]int{}
	list := trueSamples()
	for _, s := range list {
		text, found := secrets.Redact(s.text)
		if len(found) == 0 || strings.Contains(text, s.secret) {
			missed[s.kind]++
			t.Logf("missed: %v", s)
		}
	}
	none := falseSamples()
	for _, s := range none {
		if _, found := secrets.Redact(s.text); len(found) > 0 {
			wrong[s.kind]++
			t.Logf("wrong: %s in %v", found[0].Rule, s)
		}
	}
	if len(list) != wantTrue || len(none) != wantFalse {
		t.Errorf("%d true and %d false samples, want %d and %d", len(list), len(none), wantTrue, wantFalse)
	}
	if got := counts(missed); got != wantMissed {
		t.Errorf("missed %s, want %s", got, wantMissed)
	}
	if got := counts(wrong); got != wantWrong {
		t.Errorf("wrong %s, want %s", got, wantWrong)
	}
}

// One long text has what many short ones have: the search does not depend on where a text begins.
func TestLongText(t *testing.T) {
	var text strings.Builder
	var lost []string
	list := trueSamples()
	for _, s := range list {
		if _, found := secrets.Redact(s.text); len(found) == 0 {
			continue
		}
		text.WriteString(strings.Repeat("all of it is prose.\n", 200) + s.text + "\n")
		lost = append(lost, s.secret)
	}
	out, found := secrets.Redact(text.String())
	lost = slices.DeleteFunc(lost, func(secret string) bool { return !strings.Contains(out, secret) })
	if len(lost) > 0 {
		t.Errorf("%d of %d credentials were not found, the first is of %d bytes", len(lost), len(list), len(lost[0]))
	}
	for i := 1; i < len(found); i++ {
		if found[i].Start < found[i-1].End {
			t.Fatalf("finding %d begins in the one before: %v", i, found[i-1:i+1])
		}
	}
}

// What was redacted once has nothing more, whatever the rule: a second import of a file makes the same entries.
func TestRedactedStays(t *testing.T) {
	for _, s := range append(trueSamples(), falseSamples()...) {
		once, _ := secrets.Redact(s.text)
		if twice, found := secrets.Redact(once); twice != once {
			t.Errorf("%s: %v in what was redacted: %.300q", s.kind, found, once)
		}
		raw, err := json.Marshal(map[string]string{"text": s.text, "password": s.text})
		if err != nil {
			t.Fatal(err)
		}
		once2, _ := secrets.RedactJSON(raw)
		if twice, found := secrets.RedactJSON(once2); string(twice) != string(once2) {
			t.Errorf("%s: %v in JSON that was redacted: %.300q", s.kind, found, once2)
		}
	}
}

func token() string {
	d := dice(7)
	return d.fill("ghp_{A36}")
}

// Texts are looked at as they are decoded, with the names of their members, and within strings that are JSON.
func TestRedactJSON(t *testing.T) {
	secret := token()
	d := dice(9)
	password := d.fill("{A20}")
	inner, err := json.Marshal(map[string]any{"cmd": "echo " + secret, "n": 1})
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(string(inner))
	if err != nil {
		t.Fatal(err)
	}
	escaped := `\u0067` + secret[1:] // g
	for _, tt := range []struct {
		name, raw, want string
		places          []string
	}{
		{"none", `{"a": [1, "x", null], "b":{}}`, `{"a": [1, "x", null], "b":{}}`, nil},
		{
			"spaces stay", `{ "a" : "` + secret + `" , "n":1.50 }`, `{ "a" : "[secret: github-pat]" , "n":1.50 }`,
			[]string{"/a"},
		},
		{"escapes", `["` + escaped + `"]`, `["[secret: github-pat]"]`, []string{"/0"}},
		{"a name", `{"` + secret + `":1}`, `{"[secret: github-pat]":1}`, []string{""}},
		{
			"by its name",
			`{"x/y":{"password":"` + password + `"}}`, `{"x/y":{"password":"[secret: generic-api-key]"}}`,
			[]string{"/x~1y/password"},
		},
		{
			"in a string", `{"arguments":` + string(quoted) + `}`,
			`{"arguments":"{\"cmd\":\"echo [secret: github-pat]\",\"n\":1}"}`,
			[]string{"/arguments/cmd"},
		},
		{"no JSON", `x ` + secret, `x [secret: github-pat]`, []string{""}},
		{"a string", `"` + secret + `"`, `"[secret: github-pat]"`, []string{""}},
		{"nothing", ``, ``, nil},
	} {
		out, found := secrets.RedactJSON([]byte(tt.raw))
		var places []string
		for _, p := range found {
			places = append(places, p.Path)
		}
		if diff := cmp.Diff(tt.want, string(out)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.places, places); diff != "" {
			t.Errorf("%s: places (-want +got)\n%s", tt.name, diff)
		}
	}
}

// The hook changes both forms of a draft.
func TestRedactDraft(t *testing.T) {
	secret := token()
	for _, d := range []transcript.Draft{
		{Body: json.RawMessage(`{"message":{"content":"` + secret + `"}}`)},
		{Raw: []byte(`{"type":"message","id":"a","message":{"content":"` + secret + `"}}`)},
	} {
		if err := secrets.RedactDraft(t.Context(), &d); err != nil {
			t.Fatal(err)
		}
		if text := string(d.Body) + string(d.Raw); strings.Contains(text, secret) ||
			!strings.Contains(text, secrets.Stub("github-pat")) {
			t.Errorf("the draft is %s", text)
		}
	}
}

// What any text may hold: no call panics, findings lie within the text, and the rest of it stays.
func FuzzRedact(f *testing.F) {
	for _, s := range trueSamples() {
		f.Add(s.text)
	}
	f.Add("curl curl -u \"" + strings.Repeat("key=", 100))
	f.Fuzz(func(t *testing.T, text string) {
		out, found := secrets.Redact(text)
		var want strings.Builder
		at := 0
		for _, p := range found {
			if p.Start < at || p.End <= p.Start || p.End > len(text) {
				t.Fatalf("findings %v in %q", found, text)
			}
			want.WriteString(text[at:p.Start] + secrets.Stub(p.Rule))
			at = p.End
		}
		if want.WriteString(text[at:]); out != want.String() {
			t.Fatalf("%q became %q", text, out)
		}
		raw, places := secrets.RedactJSON([]byte(text))
		if json.Valid([]byte(text)) && !json.Valid(raw) {
			t.Fatalf("%q became %q, which is no JSON, by %v", text, raw, places)
		}
	})
}

// BenchmarkRedactJSON is the speed on entries with code, hashes and prose, and on what is made to be slow.
func BenchmarkRedactJSON(b *testing.B) {
	var usual strings.Builder
	for _, s := range falseSamples() {
		usual.WriteString(s.text + "\n")
	}
	for _, tt := range []struct{ name, text string }{
		{"usual", usual.String()},
		{"image", strings.Repeat("iVBORw0KGgoAAAANSUhEUgAA", 10_000)},
		{"names", strings.Repeat("key=token:secret=", 10_000)},
		{"curl", strings.Repeat("curl -H ", 20_000)},
		{"keys", strings.Repeat("-----BEGIN PRIVATE ", 10_000)},
		{"long", strings.Repeat("https://eyJa.ey", 15_000)},
	} {
		raw, err := json.Marshal(map[string]string{"text": tt.text})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(tt.name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				secrets.RedactJSON(raw)
			}
		})
	}
}
