package claudecode

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
)

// children reads all of them.
func children(t testing.TB, r *Reader) []session {
	t.Helper()
	var out []session
	for c, err := range r.Children() {
		if err != nil {
			t.Fatal(err)
		}
		s := session{Header: c.Header, ByID: map[string]int{}}
		for d, err := range c.Entries {
			if err != nil {
				t.Fatal(err)
			}
			one := collectOne(t, d.Raw)
			s.ByID[one.ID] = len(s.Entries)
			s.Entries = append(s.Entries, one.Entry(uint64(len(s.Entries))))
		}
		out = append(out, s)
	}
	return out
}

// TestSidechains: messages of a session's agents are in sessions of their own, and not in the conversation.
func TestSidechains(t *testing.T) {
	const side = `,"isSidechain":true`
	text := file(
		node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant", content: call("task1", "task2")},
		node{id: "x1", typ: "user", extra: side}, node{id: "y1", typ: "user", extra: side},
		node{id: "x2", parent: "x1", typ: "assistant", msg: "mx", extra: side}, node{id: "y2", parent: "y1", typ: "assistant", content: call("cy"), extra: side},
		node{id: "x3", parent: "x2", typ: "assistant", msg: "mx", content: call("cx"), extra: side}, node{id: "p", parent: "y2", typ: "progress", extra: side},
		node{id: "y3", parent: "p", typ: "user", content: result("cy"), extra: side}, node{id: "x4", parent: "x3", typ: "user", content: result("cx"), extra: side},
		node{id: "x5", parent: "gone", typ: "assistant", extra: side},
		node{id: "r1", parent: "a1", typ: "user", content: result("task1")}, node{id: "r2", parent: "a1", typ: "user", content: result("task2")},
	)
	s, r := read(t, text)
	if got := s.Talk(t, ""); got != "u:u1 a:+task1+task2 r:out-task1=task1 r:out-task2=task2" {
		t.Errorf("session: %s", got)
	}
	for range 2 { // they can be read again
		kids := children(t, r)
		if len(kids) != 2 {
			t.Fatalf("%d children", len(kids))
		}
		for i, want := range []string{"u:x1 a:x2+cx r:out-cx=cx a:x5", "u:y1 a:+cy r:out-cy=cy"} {
			if got := kids[i].Talk(t, ""); got != want {
				t.Errorf("child %d: %s", i, got)
			}
			if h := kids[i].Header; h.Parent != "s1" || h.ID != []string{"x1", "y1"}[i] || h.Created.IsZero() || h.Cwd != "/w" {
				t.Errorf("header %+v", h)
			}
		}
	}
}

// TestSubagentFiles: the other files that a session names are its children; each can also be read alone.
func TestSubagentFiles(t *testing.T) {
	const agent = `,"isSidechain":true,"agentId":"ab12"`
	sub := file(node{id: "x1", typ: "user", extra: agent}, node{id: "x2", parent: "x1", typ: "assistant", extra: agent})
	used := func(id string) string { return fmt.Sprintf(`,"toolUseResult":{"agentId":%q}`, id) }
	main := file(
		node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant", content: call("c1")},
		node{id: "p", parent: "a1", typ: "progress", extra: `,"data":{"type":"agent_progress","agentId":"cd34"}`},
		node{id: "r1", parent: "a1", typ: "user", content: result("c1"), extra: used("ab12")},
		node{id: "r2", parent: "a1", typ: "user", content: result("c1"), extra: used("../../etc/passwd")},
		node{id: "r3", parent: "a1", typ: "user", content: result("c1"), extra: used("gone")},
		node{id: "r4", parent: "a1", typ: "user", content: result("c1"), extra: used("broken")},
	)
	files := map[string]string{
		"dir/11.jsonl": main, "s1/subagents/agent-ab12.jsonl": sub, "agent-cd34.jsonl": strings.ReplaceAll(sub, "ab12", "cd34"),
		"11/subagents/agent-broken.jsonl": "no JSON\n", "../../etc/passwd": sub,
	}
	_, r := readFile(t, "dir/11.jsonl", files)
	kids := children(t, r)
	var ids []string
	for _, k := range kids {
		ids = append(ids, k.Header.ID)
		if k.Header.Parent != "s1" || k.Talk(t, "") != "u:x1 a:x2" {
			t.Errorf("%+v: %s", k.Header, k.Talk(t, ""))
		}
	}
	if got := strings.Join(ids, " "); got != "agent-cd34 agent-ab12" {
		t.Errorf("children %s", got)
	}
	if got := kinds(r.Diagnostics()); got != "noted noted" {
		t.Error(r.Diagnostics())
	}
	s, _ := read(t, sub)
	if s.Header.ID != "agent-ab12" || s.Header.Parent != "s1" || s.Talk(t, "") != "u:x1 a:x2" {
		t.Errorf("%+v: %s", s.Header, s.Talk(t, ""))
	}
}

// TestManySidechains: children are read in few passes, and need not be held all at once.
func TestManySidechains(t *testing.T) {
	testutil.SkipLong(t)
	n := size()
	var b bytes.Buffer
	b.WriteString(file(node{id: "u1", typ: "user"}))
	for i := range n {
		b.WriteString(file(node{id: fmt.Sprint("x", i), typ: "user", extra: `,"isSidechain":true`}))
	}
	for i := range n {
		b.WriteString(file(node{id: fmt.Sprint("y", i), parent: fmt.Sprint("x", n-1-i), typ: "assistant", extra: `,"isSidechain":true`}))
	}
	opened := 0
	src := interop.Source{Name: "s", Open: func() (io.ReadCloser, error) {
		opened++
		return io.NopCloser(bytes.NewReader(b.Bytes())), nil
	}}
	r := NewReader(src, options())
	count, entries := 0, 0
	for c, err := range r.Children() {
		if err != nil {
			t.Fatal(err)
		}
		for range c.Entries {
			entries++
		}
		count++
	}
	if count != n || entries != n*4 || opened > 5+2*b.Len()/maxBatch { // the beginning, a question, a model, an answer
		t.Errorf("%d children, %d entries, opened %d times", count, entries, opened)
	}
}
