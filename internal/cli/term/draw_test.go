package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/transcript"
)

func unset(string) string { return "" }

// build makes a tree of entries "id parent text" with a head.
func build(t *testing.T, head string, entries ...string) *transcript.Tree {
	t.Helper()
	b := transcript.NewTreeBuilder()
	at := map[string]int64{"": -1}
	for i, e := range entries {
		id, rest, _ := strings.Cut(e, " ")
		parent, text, _ := strings.Cut(rest, " ")
		if parent == "-" {
			parent = ""
		}
		body := json.RawMessage(fmt.Sprintf(`{"message":{"role":"user","content":%q}}`, text))
		raw, err := transcript.Draft{Type: "message", Body: body}.Line(id, parent, time.Unix(int64(i), 0))
		if err != nil {
			t.Fatal(err)
		}
		l, err := transcript.ParseLine(raw)
		if err != nil {
			t.Fatal(err)
		}
		p, ok := at[parent]
		if !ok {
			t.Fatalf("no %s", parent)
		}
		b.AddRow(transcript.RowOf(l, p))
		at[id] = int64(i)
	}
	return b.Tree(head, []transcript.Branch{{Name: "main", Head: head}}, nil)
}

func drawn(t *testing.T, tree *transcript.Tree, o TreeOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := Tree(New(&b, unset), tree, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// atEnd matches the id at the end of a line.
var atEnd = regexp.MustCompile(`(?m) +(\w+)$`)

func TestTreeShapes(t *testing.T) {
	for _, tt := range []struct {
		name, head string
		entries    []string
		want       string
	}{
		{"nothing", "", nil, ""},
		{"one", "a", []string{"a - x"}, "● user      (head, main) x @a\n"},
		{"two roots", "b", []string{"a - x", "b - y"}, "○ user      ‹1/2› x @a\n● user      ‹2/2› (head, main) y @b\n"},
		{"a fork below a fork", "e", []string{"a - x", "b a x", "c b x", "d b x", "e a x"}, `● user      x @a
├─○ user      ‹1/2› x @b
│ ├─○ user      ‹1/2› x @c
│ ○ user      ‹2/2› x @d
● user      ‹2/2› (head, main) x @e
`},
		{"the head in the middle", "a", []string{"a - x", "b a x", "c a x", "d c x"}, `● user      (head, main) x @a
├─○ user      ‹1/2› x @b
╰─○ user      ‹2/2› x @c
  ○ user      x @d
`},
		{"before the first entry", "", []string{"a - x", "b a x"}, "○ user      x @a\n○ user      x @b\n"},
	} {
		if got := atEnd.ReplaceAllString(drawn(t, build(t, tt.head, tt.entries...), TreeOptions{}), " @$1"); got != tt.want {
			t.Errorf("%s:\n%swant\n%s", tt.name, got, tt.want)
		}
	}
}

// The head and the branches at entries that are not drawn are named on the nearest drawn ancestor.
func TestMarksOfHiddenEntries(t *testing.T) {
	b := transcript.NewTreeBuilder()
	for i, r := range []codec.Row{
		{ID: "u1", Type: "message", Role: "user"},
		{ID: "a1", Type: "message", Role: "assistant"},
		{ID: "k1", Type: "custom"},
		{ID: "k2", Type: "custom"},
		{ID: "u2", Type: "message", Role: "user"},
	} {
		if r.Parent = int64(i) - 1; r.ID == "u2" {
			r.Parent = 1
		}
		b.AddRow(r)
	}
	tr := b.Tree("k2", []transcript.Branch{{Name: "main", Head: "k2"}, {Name: "old", Head: "k1"}, {Name: "side", Head: "u2"}}, nil)
	for _, tt := range []struct {
		o    TreeOptions
		want string
	}{
		{TreeOptions{}, "● user @u1\n● assistant (head, main at k2, old at k1) @a1\n╰─○ user      (side) @u2\n"},
		{TreeOptions{Filter: "user-only"}, "● user      (head, main at k2, old at k1) @u1\n╰─○ user      (side) @u2\n"},
		{TreeOptions{Folds: map[uint64]bool{0: true}}, "● user      (head, main at k2, old at k1, side at u2) +2 @u1\n"},
		{TreeOptions{Only: []uint64{0, 4}}, "● user @u1\n○ user      (side) @u2\n"},
	} {
		if got := atEnd.ReplaceAllString(drawn(t, tr, tt.o), " @$1"); got != tt.want {
			t.Errorf("%+v:\n%swant\n%s", tt.o, got, tt.want)
		}
	}
}

// Versions that are not on the current path are drawn oldest first, in whatever order they were appended.
func TestVersionsByTime(t *testing.T) {
	b := transcript.NewTreeBuilder()
	for i, r := range []codec.Row{{ID: "u1", Time: 1}, {ID: "b1", Time: 30_000}, {ID: "b2", Time: 20_000}, {ID: "b3", Time: 10_000}} {
		r.Type, r.Role, r.Parent = "message", "user", int64(min(i, 1))-1
		b.AddRow(r)
	}
	got := atEnd.ReplaceAllString(drawn(t, b.Tree("b2", nil, nil), TreeOptions{}), " @$1")
	if want := "● user @u1\n├─○ user      ‹1/3› @b3\n├─○ user      ‹3/3› @b1\n● user      ‹2/3› (head) @b2\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A line that is cut in the middle shows how much is missing.
func TestEnds(t *testing.T) {
	entries := []string{"e0 - x"}
	for i := 1; i < 50; i++ {
		entries = append(entries, fmt.Sprintf("e%d e%d x", i, i-1))
	}
	got := drawn(t, build(t, "e49", entries...), TreeOptions{Ends: 2})
	if n := strings.Count(got, "\n"); n != 5 || !strings.Contains(got, "┊ 46 more entries\n") {
		t.Errorf("%d lines:\n%s", n, got)
	}
}

// Depth causes no recursion, and the indentation has a bound.
func TestDeepTrees(t *testing.T) {
	b := transcript.NewTreeBuilder()
	const depth = 5_000
	for i := range depth { // each entry has a newer sibling that ends at once
		for n, parent := range []int64{int64(2*i - 2), int64(2*i - 2)} {
			raw := fmt.Appendf(nil, `{"type":"message","id":"%08x","parentId":null,"message":{"role":"user","content":"x"}}`, 2*i+n)
			l, err := transcript.ParseLine(raw)
			if err != nil {
				t.Fatal(err)
			}
			b.AddRow(transcript.RowOf(l, max(parent, -1)))
		}
	}
	got := drawn(t, b.Tree("", nil, nil), TreeOptions{})
	if n := strings.Count(got, "\n"); n != 2*depth {
		t.Errorf("%d lines", n)
	}
	widest := 0
	for line := range strings.Lines(got) {
		widest = max(widest, Columns(line))
	}
	if widest > maxGutter+openWidth {
		t.Errorf("a line of %d columns", widest)
	}
}

func TestToolNames(t *testing.T) {
	for preview, want := range map[string][]string{
		"read(a.go), bash(go test ./..., x)": {"read", "bash"},
		"read(a.go), ba…":                    {"read"},
		"just a text (with brackets)":        nil,
		"":                                   nil,
	} {
		if got := toolNames(preview); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", preview, got, want)
		}
	}
}

// Calls are found in the formats of every provider.
func TestCalls(t *testing.T) {
	for name, raw := range map[string]string{
		"pi":        `{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"toolCall","id":"1","name":"bash","arguments":{"timeout":3,"command":"ls"}}]}`,
		"anthropic": `{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"bash","input":{"command":"ls"}}]}`,
		"openai":    `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}}]}`,
		"gemini":    `{"role":"model","parts":[{"functionCall":{"name":"bash","args":{"command":"ls"}}}]}`,
	} {
		if got := shown(t, raw); strings.Count(got, "→") != 1 || !strings.Contains(got, "→ bash ls\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
	odd := `{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"odd"}]}`
	if got := shown(t, odd); !strings.Contains(got, "→ odd") {
		t.Errorf("without arguments: %s", got)
	}
	for raw, want := range map[string]string{`{}`: "", `{"x":1}`: `{"x":1}`, `[1]`: `[1]`, `text`: ""} {
		if got := argument(raw); got != want {
			t.Errorf("argument(%s) = %q, want %q", raw, got, want)
		}
	}
}

// shown returns a message in the form of a conversation.
func shown(t *testing.T, raw string) string {
	t.Helper()
	var b bytes.Buffer
	e := transcript.Entry{ID: "1", Type: "message", Raw: json.RawMessage(`{"message":` + raw + `}`)}
	if err := NewConversation(New(&b, unset), ConversationOptions{}).Add(e); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Old values are those at the time of their change, although list indexes shift.
func TestState(t *testing.T) {
	var b bytes.Buffer
	patch := `[{"op":"remove","path":"/l/0"},{"op":"remove","path":"/l/0"},{"op":"replace","path":"/a~1b","value":{"c":"<x>"}},
		{"op":"move","from":"/n","path":"/m"},{"op":"add","path":"/k","value":9007199254740993},{"op":"test","path":"/k","value":1}]`
	if err := DiffState(New(&b, unset), json.RawMessage(patch), json.RawMessage(`{"l":["one","two","three"],"a/b":null,"n":1}`)); err != nil {
		t.Fatal(err)
	}
	want := `  - /l/0  was "one"
  - /l/0  was "two"
  ~ /a~1b  null → {"c":"<x>"}
  ~ /m  move of /n
  + /k  9007199254740993
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	if err := DiffState(New(&b, unset), json.RawMessage(`[{"op":"remove","path":""}]`), json.RawMessage(`{"x":1}`)); err != nil {
		t.Fatal(err)
	}
	if b.String() != "  - (all)  was {\"x\":1}\n" {
		t.Errorf("%q", b.String())
	}
	if DiffState(New(&b, unset), json.RawMessage(`{`), nil) == nil {
		t.Error("no error for a patch that is none")
	}
	b.Reset()
	many := strings.Repeat(`{"op":"add","path":"/x","value":1},`, maxChanges+5)
	if err := DiffState(New(&b, unset), json.RawMessage("["+strings.TrimSuffix(many, ",")+"]"), nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "… 5 more changes") {
		t.Error("the end of a long list is not named")
	}
}

// A conversation of unknown and hostile entries can be read, and contains no terminal control sequences.
func TestTalk(t *testing.T) {
	var b bytes.Buffer
	talk := NewConversation(New(&b, unset), ConversationOptions{Data: true})
	for _, raw := range []string{
		`{"type":"message","id":"a","message":{"role":"user","content":"x\u001b[2Jy"}}`,
		`{"type":"message","id":"b","message":{"weird":{"deep":[1,2]}}}`,
		`{"type":"message","id":"c","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r1\nr2"}]}}`,
		`{"type":"message","id":"c2","message":{"role":"toolResult","toolCallId":"1","toolName":"bash","content":"no","isError":true}}`,
		`{"type":"message","id":"c3","message":{"role":"tool","content":"Exit code: 2\nWall time: 0 s\nOutput:\nr3"}}`,
		`{"type":"message","id":"c4","message":{"role":"tool","content":"Wall time: 0 s\nOutput:\nr4"}}`,
		`{"type":"custom","id":"d","customType":"my.kind","data":1}`,
		`{"type":"never-seen","id":"e"}`,
		`{"type":"label","id":"f","targetId":"a","label":"L"}`,
		`{"type":"label","id":"g","targetId":"a"}`,
		`{"type":"session_info","id":"h","name":"T"}`,
		`{"type":"custom_message","id":"i","customType":"k","content":"note it","display":true}`,
		`{"type":"custom_message","id":"j","customType":"k"}`,
		`{"type":"custom_message","id":"k2","customType":"k","content":"1\n2\n3\n4\n5\n6\n7"}`,
		`{"type":"model_change","id":"k3","model":"p/m"}`,
		`{"type":"branch_summary","id":"k","summary":"it went wrong"}`,
		`{"type":"compaction","id":"l","summary":5}`,
		`{"type":"message","id":"m","message":{"role":"user","content":[{"type":"document","title":"Q3","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}}`,
		`{"type":"message","id":"n","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"document","source":{"type":"base64","media_type":"text/csv","data":"AAAA"}}]}]}}`,
		`{"type":"message","id":"o","message":{"role":"assistant","content":[{"type":"server_tool_use","id":"w","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"w","content":[]},{"type":"text","text":"found it"}]}}`,
		`{"type":"message","id":"p","message":{"role":"assistant","content":[],"stopReason":"error","errorMessage":"overloaded"}}`,
	} {
		l, err := transcript.ParseLine([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		if err := talk.Add(transcript.Entry{ID: l.ID, Type: l.Type, Raw: l.Raw}); err != nil {
			t.Fatal(err)
		}
	}
	got := b.String()
	for _, want := range []string{
		"x[2Jy", `{"weird":{"deep":[1,2]}}`, "← result", "    r1\n    r2\n", "✗ bash", "── custom my.kind", "── never-seen",
		"── label [L] on a", "── label cleared on a", "── title T", "note it", "it went wrong",
		"c3\n    Exit code: 2\n    r3\n  ← result  c4\n    r4\n", "  4\n  … 3 more lines\n", "── model p/m\n",
		"attached: Q3  application/pdf  3 B", "attached: text/csv  3 B", "found it", "→ web_search", "✗ overloaded",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("an escape came through: %q", got)
	}
	b.Reset()
	talk = NewConversation(New(&b, unset), ConversationOptions{})
	err := talk.Add(transcript.Entry{ID: "d", Type: "custom", Raw: []byte(`{"type":"custom"}`)})
	if err != nil || b.Len() > 0 {
		t.Errorf("data of a program: %q, %v", &b, err)
	}
}
