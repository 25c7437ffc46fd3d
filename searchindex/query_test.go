package searchindex

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-go/coppice/transcript"
)

func parse(t *testing.T, text string) Query {
	t.Helper()
	q, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// The mark is on what was found, where case changes the length of a text too.
func TestMarks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ query, text, want string }{
		{"needle", "\u0130\u0130\u0130 a Needle", "Needle"},
		{"istanbul", "a\n\n\u0130stanbul b", "\u0130stanbul"},
		{`"a b"`, "x  a\n b", "a b"},
		{"re:n..dle", "some \n  needle there", "needle"},
		{"re:\\s+needle", "some \n  needle there", "needle"},
		{"re:x*", "needle", ""},
		{"needle other", strings.Repeat("日本", 100) + "needle" + strings.Repeat("\u00e9", 300) + "other", "needle"},
		{"re:n.*r", "n" + strings.Repeat("\u00e9", 300) + "r", ""},
	} {
		snippet, mark, found := parse(t, c.query).Find(c.text)
		if !found || !utf8.ValidString(snippet) || len(snippet) > 200 {
			t.Fatalf("%s: %v %q", c.query, found, snippet)
		}
		if got := snippet[mark[0]:mark[1]]; c.want != "" && got != c.want || !utf8.ValidString(got) {
			t.Errorf("%s: %q is marked in %q", c.query, got, snippet)
		}
	}
}

// Whatever an entry holds and whatever is looked for: nothing panics, what is shown is one line that cannot
// fool a terminal, and every word of a text that is asked for by itself is found in it.
func FuzzFind(f *testing.F) {
	f.Add("needle", `{"role":"user","content":"a needle"}`)
	f.Add("re:(?i)a+\\x1b", `{"role":"assistant","content":[{"type":"toolCall","name":"x","arguments":{"a":[1,"\u001b]0;t\u0007"]}}]}`)
	f.Add("\"\u0130 b", `{"role":"user","content":"\u0130\n b\u202e"}`)
	f.Fuzz(func(t *testing.T, text, message string) {
		line := `{"type":"message","id":"a","parentId":null,"message":` + message + `}`
		l, err := transcript.ParseLine([]byte(line))
		if err != nil {
			return
		}
		said, _, _ := said(l.Entry(0))
		if !utf8.ValidString(said) || strings.ContainsFunc(said, unreadable) {
			t.Fatalf("%q", said)
		}
		if q, err := Parse(text); err == nil {
			snippet, mark, _ := q.Find(said)
			if !utf8.ValidString(snippet[mark[0]:mark[1]]) || strings.ContainsAny(snippet, "\n\t") || len(snippet) > 400 {
				t.Fatalf("%q %v", snippet, mark)
			}
			match(q)
			short(q)
		}
		if len(said) > 2000 {
			return // each word is looked for in all of it
		}
		for word := range strings.FieldsSeq(said) {
			if _, _, ok := Words(word).Find(said); !ok {
				t.Fatalf("%q is not found in %q", word, said)
			}
		}
	})
}
