package claudecode

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/transcript"
)

// named returns the line at which Claude Code continues because the file names it; "" = the last line decides.
func named(t testing.TB, text string) string {
	t.Helper()
	leaf, sure, there := "", false, map[string]bool{}
	for line := range strings.Lines(text) {
		raw := []byte(line)
		there[rawjson.Text(rawjson.Field(raw, "uuid"))] = true
		if rawjson.Text(rawjson.Field(raw, "type")) != "last-prompt" {
			continue
		}
		if to := rawjson.Text(rawjson.Field(raw, "leafUuid")); to != "" {
			sure = rawjson.IsTrue(rawjson.Field(raw, "explicit")) || sure && to == leaf
			leaf = to
		}
	}
	if !sure || !there[leaf] {
		return ""
	}
	return leaf
}

// TestAppendHead: if the session's head is elsewhere, two lines move the file's end there, one for Claude Code and one
// for programs that use the last line. If the head is at the end there are none.
func TestAppendHead(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(generate(rt).lines, "\n") + "\n"
		s, _ := read(t, text)
		head := rapid.SampledFrom(s.Entries).Draw(rt, "head").ID
		if len(transcript.BuildContext(s.Path(t, head), transcript.Coppice).OpenCalls) > 0 {
			return // no branch begins between the results of one message
		}
		var out bytes.Buffer
		out.WriteString(text)
		losses, err := Append(&out, s.Header, len(s.Entries), drafts(&s), head)
		if err != nil {
			rt.Fatal(err)
		}
		want, added := s.Talk(t, head), out.String()[len(text):]
		if want == "" {
			if added != "" || len(losses) != 1 || losses[lostStart] != 1 {
				rt.Fatalf("before the first message: %v\n%s", losses, added)
			}
			return
		}
		again, _ := read(t, out.String())
		if got := again.Talk(t, ""); got != want || len(losses) > 0 || want == s.Talk(t, "") != (added == "") {
			rt.Fatalf("at %s, %v\n got %s\nwant %s\n%s", head, losses, got, want, added)
		}
		if to := named(t, out.String()); added != "" {
			if strings.Count(added, "\n") != 2 || to == "" || again.Talk(t, to) != want {
				rt.Fatalf("Claude Code goes on at %q\n%s", to, added)
			}
		}
	})
}

// TestAppendBehindNamed: a file in which the user went back names the line at which it continues. Lines that are
// appended name a new one, because Claude Code would not see them otherwise.
func TestAppendBehindNamed(t *testing.T) {
	tree := file(node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant"}, node{id: "u2", parent: "a1", typ: "user"})
	more := `{"type":"message","id":"4f0a4b1e-0000-4000-8000-000000000001","parentId":"u2","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"more"}}`
	const mine = "4f0a4b1e-0000-4000-8000-000000000001"
	for _, tt := range []struct{ prompts, want string }{
		{"", ""},
		{`{"type":"last-prompt","leafUuid":"u2","sessionId":"s1"}` + "\n", ""},
		{`{"type":"last-prompt","leafUuid":"a1","explicit":true,"sessionId":"s1"}` + "\n", mine},
		{`{"type":"last-prompt","leafUuid":"a1","explicit":true,"sessionId":"s1"}` + "\n" + `{"type":"last-prompt","leafUuid":"a1","sessionId":"s1"}` + "\n", mine},
		{`{"type":"last-prompt","leafUuid":"a1","explicit":true,"sessionId":"s1"}` + "\n" + `{"type":"last-prompt","leafUuid":"u2","sessionId":"s1"}` + "\n", ""},
	} {
		text := tree + tt.prompts
		s, _ := read(t, text)
		known, last := len(s.Entries), s.Entries[len(s.Entries)-1].ID
		var out bytes.Buffer
		if _, err := Append(&out, s.Header, known, drafts(&s), last); err != nil || out.Len() > 0 {
			t.Errorf("untouched: %v, %s", err, out.String())
		}
		l := collectOne(t, []byte(more))
		s.Entries = append(s.Entries, l.Entry(uint64(known)))
		out.WriteString(text)
		if _, err := Append(&out, s.Header, known, drafts(&s), mine); err != nil {
			t.Fatal(err)
		}
		if got := named(t, out.String()); got != tt.want {
			t.Errorf("behind %s it goes on at %q, want %q\n%s", tt.prompts, got, tt.want, out.String()[len(text):])
		}
		again, _ := read(t, out.String())
		if got := again.Talk(t, ""); !strings.HasSuffix(got, "u:more") {
			t.Errorf("it says %s", got)
		}
	}
}

// TestReadNamed: the head of a file in which the user went back is where Claude Code continues: at the line that the
// file names, until it names another.
func TestReadNamed(t *testing.T) {
	tree := file(node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant"}, node{id: "u2", parent: "a1", typ: "user"}, node{id: "x", parent: "u2", typ: "user", extra: `,"isSidechain":true`})
	prompt := func(leaf, more string) string {
		return `{"type":"last-prompt","leafUuid":"` + leaf + `"` + more + `,"sessionId":"s1"}` + "\n"
	}
	const outright = `,"explicit":true`
	for _, tt := range []struct{ more, want string }{
		{"", "u:u1 a:a1 u:u2"},
		{prompt("a1", ""), "u:u1 a:a1 u:u2"},
		{prompt("a1", outright), "u:u1 a:a1"},
		{prompt("a1", outright) + prompt("a1", ""), "u:u1 a:a1"},
		{prompt("a1", outright) + prompt("u2", ""), "u:u1 a:a1 u:u2"},
		{prompt("a1", outright) + prompt("u1", outright), "u:u1"},
		{prompt("a1", outright) + node{id: "u3", parent: "a1", typ: "user"}.line() + "\n", "u:u1 a:a1 u:u3"},
		{prompt("a1", outright) + node{id: "u3", parent: "u2", typ: "user"}.line() + "\n", "u:u1 a:a1 u:u2 u:u3"},
		{prompt("nobody", outright), "u:u1 a:a1 u:u2"},
		{prompt("x", outright), "u:u1 a:a1 u:u2"},
		{prompt("a1", outright) + node{id: "u3", parent: "a1", typ: "user"}.line() + "\n" + prompt("u3", ""), "u:u1 a:a1 u:u3"},
	} {
		s, _ := read(t, tree+tt.more)
		if got := s.Talk(t, ""); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.more, got, tt.want)
		}
	}
}
