package claudecode

import (
	"strings"
	"testing"

	"github.com/coppice-go/coppice/transcript"
)

// script makes the lines of a file: ID^PARENT of each. The first letter of an ID is the kind of line: u a question, a
// an answer, r a result, m a message of the program, h a hook's line, p a progress line, b the boundary of a
// compaction that keeps the message PARENT and what follows it up to the line before, s a summary. +CALL adds a call
// to an answer, =CALL is what a result answers.
func script(text string) (nodes []node) {
	for line := range strings.FieldsSeq(text) {
		line, call1, calls := strings.Cut(line, "+")
		line, answers, _ := strings.Cut(line, "=")
		id, parent, _ := strings.Cut(line, "^")
		n := node{id: id, parent: parent, typ: "user"}
		switch id[0] {
		case 'a':
			n.typ = "assistant"
			if calls {
				n.content = call(call1)
			}
		case 'r':
			n.content = result(answers)
		case 'm':
			n.extra = `,"isMeta":true`
		case 'h':
			n = hook(id, parent)
		case 'p':
			n.typ, n.extra = "progress", `,"data":{"type":"hook_progress"}`
		case 'b':
			last := nodes[len(nodes)-1].id
			n = boundary(id, last, ends(parent, last))
		case 's':
			n = summary(id, parent)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// TestAsides: lines without content and repeated lines make no branches; only the user does.
func TestAsides(t *testing.T) {
	checkShapes(t, []shape{
		{
			"a hook's line hangs on the question, and the next question on it",
			script("u1 a1^u1 h^u1 u2^h a2^u2"), "u:u1 a:a1 u:u2 a:a2", nil, "",
		},
		{
			"progress lines hang on each other, and the next question on one of them",
			script("u1 a1^u1+c1 p1^a1 r1^a1=c1 p2^a1 a2^r1+c2 p3^p2 r2^a2=c2 a3^r2 u2^p3 a4^u2"),
			"u:u1 a:+c1 r:out-c1=c1 a:+c2 r:out-c2=c2 a:a3 u:u2 a:a4", nil, "",
		},
		{
			"a progress line of an earlier turn, and the next question hangs on it",
			script("u1 a1^u1 u2^a1 a2^u2 p^a1 u3^p a3^u3"), "u:u1 a:a1 u:u2 a:a2 u:u3 a:a3", nil, "",
		},
		{
			"a hook's line without a parent, as after a start of the program",
			script("u1 a1^u1 p u2^p a2^u2"), "u:u1 a:a1 u:u2 a:a2", nil, "",
		},
		{
			"an answer that hangs on a progress line from before a result",
			script("u1 a1^u1+c1 p^a1 r1^a1=c1 a2^p"), "u:u1 a:+c1 r:out-c1=c1 a:a2", nil, "",
		},
		{
			"a question is taken back before its answer, and the program goes on with a message",
			script("u1 a1^u1 h^a1 u2^h m^h a2^m"), "u:u1 a:a1 m:m a:a2",
			[]string{"u:u1 a:a1 u:u2"},
			"",
		},
		{
			"two processes, of which one began before the other one's last answer",
			script("u1 a1^u1 h1^a1 u2^h1 a2^h1 h2^a2 a3^u2 h3^a3 a4^h2 a5^h3"),
			"u:u1 a:a1 u:u2 a:a3 a:a5",
			[]string{"u:u1 a:a1 a:a2 a:a4"},
			"",
		},
		{
			"the program's message hangs on a call, after a start of the program",
			script("u1 a1^u1+c1 r1^a1=c1 a2^r1 m^a1 u2^m"), "u:u1 a:+c1 r:out-c1=c1 a:a2 m:m u:u2", nil, "",
		},
		{
			"the user goes back to a hook's line of an earlier turn",
			script("u1 a1^u1 h^a1 u2^h a2^u2 u3^h a3^u3"), "u:u1 a:a1 u:u3 a:a3",
			[]string{"u:u1 a:a1 u:u2 a:a2"},
			"",
		},
		{
			"the user goes back to the beginning, where a hook's line is",
			script("h u1^h a1^u1 u2^h"), "u:u2",
			[]string{"u:u1 a:a1"},
			"",
		},
		{
			"two processes write at the same time, each with its hook's lines",
			script("u1 a1^u1 u2^a1 u3^a1 a2^u2 a3^u3 h2^a2 h3^a3 u4^h2 u5^h3"),
			"u:u1 a:a1 u:u3 a:a3 u:u5",
			[]string{"u:u1 a:a1 u:u2 a:a2 u:u4"},
			"",
		},
		{
			"old history is written again, and the next question hangs on it",
			script("u1 a1^u1 u2^a1 a2^u2 b^u2 s^b u3^s a3^u3 u1 a1^u1 u4^a1 a4^u4"),
			"C:sum-s u:u2 a:a2 u:u3 a:a3 u:u4 a:a4", nil, "duplicate-id duplicate-id",
		},
		{
			"the same, with a hook's line between, and the user goes back after it",
			script("u1 a1^u1 u2^a1 a2^u2 u1 a1^u1 h^a1 u3^h a3^u3 u4^a1"), "u:u1 a:a1 u:u2 a:a2 u:u4",
			[]string{"u:u1 a:a1 u:u2 a:a2 u:u3 a:a3"},
			"duplicate-id duplicate-id",
		},
	})
}

// twice are files with a line that is repeated with other fields.
var twice = map[string]struct {
	nodes      []node
	want       string
	amendments int
}{
	"with a call more": {
		[]node{part("t", "u", "thinking"), part("a", "t", "text"), part("a", "t", "text", "c1"), script("r^a=c1")[0]},
		"a:text+c1 r:out-c1=c1", 1,
	},
	"there and back": {
		[]node{part("a", "u", "1"), part("a", "u", "2"), script("u2^a")[0], part("a", "u", "1"), part("a", "u", "1")},
		"a:1 u:u2", 2,
	},
	"before its message ended": {
		[]node{part("a", "u", "1"), part("a", "u", "2"), part("a2", "a", "3")}, "a:2|3", 0,
	},
	"two results": {
		[]node{
			part("a", "u", "", "c1", "c2"),
			{id: "r", parent: "a", typ: "user", content: result("c1", "c2")},
			{id: "r", parent: "a", typ: "user", content: strings.ReplaceAll(result("c1", "c2"), "out-", "new-")},
			{id: "u2", parent: "r", typ: "user"},
		}, "a:+c1+c2 r:new-c1=c1 r:new-c2=c2 u:u2", 2,
	},
	"a line without content": {append(script("p"), node{id: "p", typ: "progress"}, script("u2^p")[0]), "u:u2", 1},
	"with another parent":    {script("a^u u2^a a^u2"), "a:a u:u2", 1},
}

// part is a piece of a message of the model.
func part(id, parent, text string, calls ...string) node {
	content := call(calls...)
	switch {
	case text == "thinking":
		content = `[{"type":"thinking","thinking":"hm","signature":"s"}]`
	case text != "":
		content = strings.Replace(`[{"type":"text","text":"`+text+`"},`+content[1:], ",]", "]", 1)
	}
	return node{id: id, parent: parent, typ: "assistant", msg: "m", content: content}
}

// TestWrittenTwice: a line that is repeated with other fields amends the first one, whose text is not doubled.
func TestWrittenTwice(t *testing.T) {
	for name, tt := range twice {
		t.Run(name, func(t *testing.T) {
			s, r := read(t, file(append(script("u"), tt.nodes...)...))
			if got := s.Talk(t, ""); got != "u:u "+tt.want {
				t.Errorf("context\n got %s\nwant %s", got, tt.want)
			}
			n := 0
			for _, e := range s.Entries {
				if a, ok := e.Amendment(); ok {
					n++
					if s.ByID[a.Target] >= s.ByID[e.ID] {
						t.Errorf("%s comes before what it amends", e.Raw)
					}
				}
			}
			if n != tt.amendments {
				t.Errorf("%d amendments, want %d", n, tt.amendments)
			}
			for _, d := range r.Diagnostics() {
				if d.Kind != transcript.DiagDuplicateID {
					t.Errorf("%+v", d)
				}
			}
			writtenAgain(t, &s)
		})
	}
}
