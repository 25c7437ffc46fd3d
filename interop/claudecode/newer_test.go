package claudecode

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// boundary is a compaction boundary; meta is its metadata, "" = none.
func boundary(id, logical, meta string) node {
	return node{id: id, typ: "system", extra: fmt.Sprintf(`,"subtype":"compact_boundary","logicalParentUuid":%q,"compactMetadata":{"trigger":"auto"%s}`, logical, meta)}
}

func summary(id, parent string) node {
	return node{id: id, parent: parent, typ: "user", content: fmt.Sprintf("%q", "sum-"+id), extra: `,"isCompactSummary":true`}
}

// list is the list of rows that a compaction keeps; ends is the form of older versions.
func list(rows ...string) string {
	return fmt.Sprintf(`,"preservedMessages":{"anchorUuid":"s","uuids":["%[1]s"],"allUuids":["%[1]s","never-written"]}`, strings.Join(rows, `","`))
}

func ends(first, last string) string {
	return fmt.Sprintf(`,"preservedSegment":{"headUuid":%q,"anchorUuid":"s","tailUuid":%q}`, first, last)
}

func hook(id, parent string) node {
	return node{id: id, parent: parent, typ: "system", extra: `,"subtype":"stop_hook_summary"`}
}

// queued is a prompt typed while the model worked; more are fields of the attachment, each with a leading comma.
func queued(id, parent, more string) node {
	return node{id: id, parent: parent, typ: "attachment", extra: fmt.Sprintf(`,"attachment":{"type":"queued_command","prompt":%q%s}`, id, more)}
}

const typed, told = `,"commandMode":"prompt","origin":{"kind":"human"}`, `,"commandMode":"task-notification","origin":{"kind":"task-notification"}`

// shape is a file and the conversation that it holds.
type shape struct {
	name     string
	nodes    []node
	want     string   // context at the end
	branches []string // contexts at the other ends
	diag     string
}

// newer are shapes of files as later versions of Claude Code write them.
var newer = []shape{
	{
		"a compaction whose end is a hook's line, which the next names", append(turns(),
			boundary("b", "h", list("a2", "h")+ends("a2", "h")), summary("s", "b"), node{id: "u2", parent: "h", typ: "user"}),
		"C:sum-s a:a2 u:u2", nil, "",
	},
	{
		"the same without a list", append(turns(),
			boundary("b", "h", ends("a2", "h")), summary("s", "b"), node{id: "u2", parent: "h", typ: "user"}),
		"C:sum-s a:a2 u:u2", nil, "",
	},
	{
		"a list alone, and the next names the summary", append(turns(),
			boundary("b", "h", list("a2", "h")), summary("s", "b"), node{id: "u2", parent: "s", typ: "user"}),
		"C:sum-s a:a2 u:u2", nil, "",
	},
	{
		"a list alone, and the next names the end", append(turns(),
			boundary("b", "a2", list("a2")), summary("s", "b"), node{id: "u2", parent: "a2", typ: "user"}),
		"C:sum-s a:a2 u:u2", nil, "",
	},
	{
		"a logical parent that was never written", append(turns(),
			boundary("b", "never-written", list("a2", "h")+ends("a2", "h")), summary("s", "b"), node{id: "u2", parent: "s", typ: "user"}),
		"C:sum-s a:a2 u:u2", nil, "",
	},
	{
		"the first row kept is an attachment", append(turns(),
			node{id: "x", parent: "h", typ: "attachment"}, node{id: "u2", parent: "x", typ: "user"}, node{id: "a3", parent: "u2", typ: "assistant"},
			boundary("b", "a3", ends("x", "a3")), summary("s", "b"), node{id: "u3", parent: "s", typ: "user"}),
		"C:sum-s u:u2 a:a3 u:u3", nil, "",
	},
	{
		"the first row kept is a result", append(turns(),
			boundary("b", "a2", list("r1", "a2")), summary("s", "b"), node{id: "u2", parent: "s", typ: "user"}),
		"C:sum-s a:a1+c1 r:out-c1=c1 a:a2 u:u2", nil, "",
	},
	{
		"the first row kept stands on another branch", append(turns(),
			node{id: "u2", parent: "a2", typ: "user"}, node{id: "u3", parent: "a2", typ: "user"}, node{id: "a3", parent: "u3", typ: "assistant"},
			boundary("b", "a3", list("u2", "u3", "a3")), summary("s", "b"), node{id: "u4", parent: "s", typ: "user"}),
		"C:sum-s u:u3 a:a3 u:u4",
		[]string{"u:u1 a:a1+c1 r:out-c1=c1 a:a2 u:u2"},
		"",
	},
	{
		"the last row is written behind the boundary", append(turns(),
			boundary("b", "a3", list("r1", "a2", "a3")+ends("r1", "a3")), summary("s", "b"), node{id: "a3", parent: "s", typ: "assistant"}, node{id: "u2", parent: "a3", typ: "user"}),
		"C:sum-s a:a1+c1 r:out-c1=c1 a:a2 a:a3 u:u2", nil, "",
	},
	{
		"the same, and no list", append(turns(),
			boundary("b", "a3", ends("a2", "a3")), summary("s", "b"), node{id: "a3", parent: "s", typ: "assistant"}, node{id: "u2", parent: "a3", typ: "user"}),
		"C:sum-s a:a2 a:a3 u:u2", nil, "orphan",
	},
	{
		"the last row is written before the boundary and again behind it", append(turns(),
			node{id: "u2", parent: "h", typ: "user"}, node{id: "a3", parent: "u2", typ: "assistant"},
			boundary("b", "a3", list("u2", "a3")), summary("s", "b"), node{id: "a3", parent: "s", typ: "assistant"}, node{id: "u3", parent: "a3", typ: "user"}),
		"C:sum-s u:u2 a:a3 u:u3",
		[]string{"u:u1 a:a1+c1 r:out-c1=c1 a:a2 u:u2 a:a3"},
		"duplicate-id",
	},
	{
		"behind a second compaction a line names one before the first", append(turns(),
			node{id: "x", parent: "a2", typ: "attachment"}, boundary("b", "a2", list("a2")), summary("s", "b"),
			node{id: "u2", parent: "s", typ: "user"}, node{id: "a3", parent: "u2", typ: "assistant"},
			boundary("b2", "a3", list("a3")), summary("s2", "b2"), node{id: "u3", parent: "x", typ: "user"}),
		"C:sum-s2 a:a3 u:u3", nil, "",
	},
	{
		"a second compaction writes the history once more, with another envelope", append(turns(),
			boundary("b", "a2", list("a2")), summary("s", "b"), node{id: "u2", parent: "s", typ: "user"}, node{id: "a3", parent: "u2", typ: "assistant"},
			again(node{id: "u1", typ: "user"}), again(node{id: "a1", parent: "u1", typ: "assistant", content: call1}), hook("h2", "a1"),
			boundary("b2", "h2", list("a3", "h2")+ends("a3", "h2")), summary("s2", "b2"), node{id: "u3", parent: "s2", typ: "user"}),
		"C:sum-s2 a:a3 u:u3", nil, "duplicate-id duplicate-id",
	},
	{
		"the file ends while it does", append(turns(),
			node{id: "u2", parent: "a2", typ: "user"}, queued("q", "u2", typed), node{id: "a3", parent: "q", typ: "assistant"},
			again(node{id: "u1", typ: "user"}), again(node{id: "a1", parent: "u1", typ: "assistant", content: call1}), again(queued("q", "u2", typed))),
		"u:u1 a:a1+c1 r:out-c1=c1 a:a2 u:u2 u:q a:a3", nil, "duplicate-id duplicate-id duplicate-id",
	},
	{
		"two compactions that keep the same end", append(turns(),
			boundary("b", "a2", ends("a2", "a2")), summary("s", "b"), boundary("b2", "a2", ends("a2", "a2")), summary("s2", "b2"), node{id: "u2", parent: "a2", typ: "user"}),
		"C:sum-s2 a:a2 u:u2", nil, "",
	},
	{
		"somebody goes back to before a compaction that has no list", append(turns(),
			boundary("b", "a2", ends("a2", "a2")), summary("s", "b"), node{id: "u2", parent: "a2", typ: "user"}, node{id: "u3", parent: "r1", typ: "user"}),
		"u:u1 a:a1+c1 r:out-c1=c1 u:u3",
		[]string{"C:sum-s a:a2 u:u2"},
		"",
	},
	{
		"a system line at the end names the end of what is kept", append(turns(),
			boundary("b", "a2", ends("a2", "h")), summary("s", "b"), hook("h2", "h")),
		"C:sum-s a:a2", nil, "",
	},
	{
		"the earlier part is kept, the later one is in the summary", append(turns(),
			node{id: "u2", parent: "a2", typ: "user"}, node{id: "a3", parent: "u2", typ: "assistant"},
			boundary("b", "a3", list("u1", "a1", "r1", "a2")), summary("s", "b"), node{id: "u3", parent: "s", typ: "user"}),
		"C:sum-s u:u1 a:a1+c1 r:out-c1=c1 a:a2 u:u3",
		[]string{"u:u1 a:a1+c1 r:out-c1=c1 a:a2 u:u2 a:a3"},
		"",
	},
	{
		"rows that are nowhere in the file", append(turns(),
			boundary("b", "a2", list("x", "y")+ends("x", "y")), summary("s", "b"), node{id: "u2", parent: "s", typ: "user"}),
		"C:sum-s u:u2", nil, "",
	},

	{
		"a compaction that keeps itself, and what is not written yet", append(turns(),
			boundary("b", "a2", list("b", "s")+ends("b", "b")), summary("s", "b"), node{id: "u2", parent: "s", typ: "user"}),
		"C:sum-s u:u2", nil, "",
	},

	{
		"typed while the model worked", append(turns()[:3], queued("q", "r1", typed), node{id: "a2", parent: "q", typ: "assistant"}),
		"u:u1 a:a1+c1 r:out-c1=c1 u:q a:a2", nil, "",
	},
	{
		"told by the program meanwhile", append(turns()[:3], queued("q", "r1", told), node{id: "a2", parent: "q", typ: "assistant"}),
		"u:u1 a:a1+c1 r:out-c1=c1 m:q a:a2", nil, "",
	},
	{
		"by another agent", append(turns()[:3], queued("q", "r1", `,"commandMode":"prompt","origin":{"kind":"peer","from":"x"}`), queued("q2", "q", `,"isMeta":true`), queued("q3", "q2", `,"commandMode":"of-tomorrow"`)),
		"u:u1 a:a1+c1 r:out-c1=c1 m:q m:q2 m:q3", nil, "",
	},
	{
		"nothing typed", append(turns()[:3], node{id: "q", parent: "r1", typ: "attachment", extra: `,"attachment":{"type":"queued_command","prompt":""}`}, node{id: "a2", parent: "q", typ: "assistant"}),
		"u:u1 a:a1+c1 r:out-c1=c1 a:a2", nil, "",
	},
	{
		"another one of the same id", append(turns()[:3], queued("q", "r1", typed), node{id: "q", parent: "r1", typ: "attachment", extra: `,"attachment":{"type":"queued_command","prompt":"new"}`}),
		"u:u1 a:a1+c1 r:out-c1=c1 u:new", nil, "duplicate-id",
	},
	{
		"a result of the same id of which another thing is said", append(turns()[:3], node{id: "r1", parent: "a1", typ: "user", content: result("c1"), extra: `,"toolUseResult":{"n":1}`}),
		"u:u1 a:a1+c1 r:out-c1=c1", nil, "duplicate-id",
	},
	{
		"typed, without a parent", append(turns()[:3], queued("q", "", typed), node{id: "a2", parent: "q", typ: "assistant"}),
		"u:u1 a:a1+c1 r:out-c1=c1 u:q a:a2", nil, "",
	},
	{"typed between the results of one message", []node{
		{id: "u1", typ: "user"},
		{id: "a1", parent: "u1", typ: "assistant", content: call("c1", "c2")},
		{id: "r1", parent: "a1", typ: "user", content: result("c1")},
		queued("q", "r1", typed), queued("q2", "q", told),
		{id: "r2", parent: "q2", typ: "user", content: result("c2")},
		{id: "a2", parent: "r2", typ: "assistant"},
	}, "u:u1 a:+c1+c2 r:out-c1=c1 r:out-c2=c2 u:q m:q2 a:a2", nil, ""},
	{
		"typed, and kept by a compaction", append(turns(),
			node{id: "u2", parent: "a2", typ: "user"}, queued("q", "u2", typed), boundary("b", "q", list("q")), summary("s", "b"), node{id: "a3", parent: "s", typ: "assistant"}),
		"C:sum-s u:q a:a3", nil, "",
	},
}

const call1 = `[{"type":"text","text":"a1"},{"type":"tool_use","id":"c1","name":"Bash","input":{}}]`

// turns is a question, an answer with a call, its result, another answer, and a message of a hook.
func turns() []node {
	return []node{
		{id: "u1", typ: "user"},
		{id: "a1", parent: "u1", typ: "assistant", content: call1},
		{id: "r1", parent: "a1", typ: "user", content: result("c1")},
		{id: "a2", parent: "r1", typ: "assistant"},
		hook("h", "a2"),
	}
}

// again is a line as a later compaction writes it.
func again(n node) node {
	n.extra += `,"slug":"brave-otter"`
	return n
}

// TestNewer: files of later versions become the conversation that Claude Code continues; nothing is lost.
func TestNewer(t *testing.T) { checkShapes(t, newer) }

func checkShapes(t *testing.T, shapes []shape) {
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			s, r := read(t, file(tt.nodes...))
			if got := s.Talk(t, ""); got != tt.want {
				t.Errorf("context\n got %s\nwant %s", got, tt.want)
			}
			if got := kinds(r.Diagnostics()); got != tt.diag {
				t.Errorf("diagnostics %v", r.Diagnostics())
			}
			if got := branches(t, &s); !slices.Equal(got, tt.branches) {
				t.Errorf("other branches %q", got)
			}
			for _, n := range tt.nodes {
				if _, ok := s.ByID[n.id]; !ok && !strings.HasPrefix(n.id, "b") { // a boundary is one with its summary
					t.Errorf("%s is nowhere", n.id)
				}
			}
			paired(t, &s)
			writtenAgain(t, &s)
		})
	}
}

// branches returns the contexts of all leaves except the last, without custom entries.
func branches(t *testing.T, s *session) (out []string) {
	t.Helper()
	up := map[string]bool{}
	said := func(e transcript.Entry) bool { return e.Type != "custom" && e.Type != "session_info" }
	for _, e := range slices.Backward(s.Entries) {
		up[e.ParentID] = up[e.ParentID] || up[e.ID] || said(e)
	}
	here := s.Talk(t, "")
	for _, e := range s.Entries {
		if talk := s.Talk(t, e.ID); said(e) && !up[e.ID] && talk != here {
			out = append(out, talk)
		}
	}
	return out
}

// paired checks that no path has a result without its call.
func paired(t *testing.T, s *session) {
	t.Helper()
	for _, e := range s.Entries {
		called := map[string]bool{}
		for _, m := range transcript.BuildContext(s.Path(t, e.ID), transcript.Coppice).Messages {
			sh := transcript.Inspect(m.Raw)
			for _, c := range sh.Calls {
				called[c.ID] = true
			}
			for _, id := range sh.Results {
				if !called[id] {
					t.Errorf("at %s: the result of %s without its call", e.ID, id)
				}
			}
		}
	}
}

// writtenAgain checks that a session written for Claude Code reads as the same conversation.
func writtenAgain(t *testing.T, s *session) {
	t.Helper()
	var out bytes.Buffer
	if _, err := Write(&out, s.Header, drafts(s)); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		meta := rawjson.Field([]byte(line), "compactMetadata")
		if rawjson.Field(meta, "preservedMessages") != nil {
			t.Errorf("rows of another file are said to be kept: %s", meta)
		}
		for m := rawjson.Walk(rawjson.Field(meta, "preservedSegment")); m.Closing == '}' && m.Next(); {
			if !strings.Contains(out.String(), `"uuid":`+string(m.Val)) {
				t.Errorf("%s is not in the file: %s", m.Key, meta)
			}
		}
	}
	next, _ := read(t, out.String())
	if got, want := next.Talk(t, ""), s.Talk(t, ""); got != want {
		t.Errorf("written and read again\n got %s\nwant %s\n%s", got, want, out.String())
	}
}

// TestAppendBeforeCompaction: a head moved to the last message before a compaction stays there when the file is read
// again, although lines that name this message otherwise continue from the compaction.
func TestAppendBeforeCompaction(t *testing.T) {
	text := file(append(turns(), boundary("b", "a2", ends("a2", "a2")), summary("s", "b"))...)
	s, _ := read(t, text)
	var out bytes.Buffer
	if losses, err := Append(&out, s.Header, len(s.Entries), drafts(&s), "a2"); err != nil || len(losses) > 0 {
		t.Fatal(losses, err)
	}
	next, _ := read(t, text+out.String())
	if got := next.Talk(t, ""); got != "u:u1 a:a1+c1 r:out-c1=c1 a:a2" {
		t.Errorf("it goes on at %s\n%s", got, out.String())
	}
}

// TestManyCompactions: the kept rows are found in bounded time, and kept when the bound is exceeded.
func TestManyCompactions(t *testing.T) {
	nodes, at := []node{{id: "u1", typ: "user"}}, "u1"
	for i := range 60 {
		m, b, s := fmt.Sprint("m", i), fmt.Sprint("b", i), fmt.Sprint("s", i)
		nodes = append(nodes, node{id: m, parent: at, typ: "user"}, boundary(b, m, list("u1", m)), summary(s, b))
		at = s
	}
	s, r := read(t, file(nodes...))
	for i := range 60 {
		if got, want := s.Talk(t, fmt.Sprint("s", i)), fmt.Sprintf("C:sum-s%d u:u1 u:m0", i); !strings.HasPrefix(got, want) {
			t.Fatalf("it begins %.60s, want %s", got, want)
		}
	}
	if len(r.Diagnostics()) > 0 {
		t.Error(r.Diagnostics())
	}
}

// TestForkedAgent: the transcript of an agent that began with its parent's conversation names a first parent that is
// not in the file.
func TestForkedAgent(t *testing.T) {
	const side = `,"isSidechain":true,"agentId":"x"`
	lines := file(node{id: "u1", parent: "of-the-parent", typ: "user", extra: side}, node{id: "a1", parent: "u1", typ: "assistant", extra: side}, node{id: "u2", parent: "gone", typ: "user", extra: side})
	for ref, diag := range map[string]string{"": "orphan orphan", `{"type":"fork-context-ref","agentId":"x","parentSessionId":"s1","parentLastUuid":"of-the-parent","contextLength":3}` + "\n": "orphan"} {
		s, r := read(t, ref+lines)
		if got := s.Talk(t, ""); got != "u:u1 a:a1 u:u2" || kinds(r.Diagnostics()) != diag {
			t.Errorf("behind %q: %s, %v", ref, got, r.Diagnostics())
		}
	}
}

// TestQueuedEntry: a prompt typed while the model worked is a normal message; its text and images are there once.
func TestQueuedEntry(t *testing.T) {
	const image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}`
	q := node{id: "q", parent: "u1", typ: "attachment", extra: `,"attachment":{"type":"queued_command","prompt":[{"type":"text","text":"see"},` + image + `],"commandMode":"prompt","source_uuid":"z"}`}
	s, _ := read(t, file(node{id: "u1", typ: "user"}, q, node{id: "a1", parent: "q", typ: "assistant"}))
	const want = `{"type":"message","id":"q","parentId":"u1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"timestamp":1767225600000},"claudeCode":{"attachment":{"type":"queued_command","commandMode":"prompt","source_uuid":"z"}}}`
	if got := string(s.Entries[s.ByID["q"]].Raw); got != want {
		t.Errorf("got %s", got)
	}
	first, _ := read(t, file(q))
	if env := rawjson.Field(rawjson.Field(first.Entries[0].Raw, "data"), "envelope"); rawjson.Field(env, "attachment") != nil {
		t.Errorf("every line is said to hold it: %s", env)
	}
	odd := file(node{id: "u1", typ: "user", extra: `,"attachment":{"type":"queued_command","prompt":"other"}`})
	if s, _ := read(t, odd); s.Talk(t, "") != "u:u1" || !strings.Contains(string(s.Entries[1].Raw), `"prompt":"other"`) {
		t.Errorf("a user's line with a field of that name: %s", s.Entries[1].Raw)
	}
}

// TestAgentsOfWorkflows: agents of a workflow's runs are found if the session's file names the run, or if a file in the
// session's folder does; the run's journal is not an agent.
func TestAgentsOfWorkflows(t *testing.T) {
	main := file(node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant", content: call("c1")},
		node{id: "p", parent: "a1", typ: "progress", extra: `,"data":{"agentId":"n"}`},
		node{id: "r1", parent: "a1", typ: "user", content: result("c1"), extra: `,"toolUseResult":{"status":"async_launched","runId":"wf_1"}`},
		node{id: "r2", parent: "a1", typ: "user", content: result("c1"), extra: `,"toolUseResult":{"runId":"../../other"}`})
	journal := `{"type":"started","key":"v2:x","agentId":"n"}` + "\n"
	files := map[string]string{
		"11.jsonl": main, "11/subagents/agent-a.jsonl": agentText("s1", "a"), "11/workflows/wf_2.json": "{}",
		"11/subagents/workflows/wf_1/agent-n.jsonl": agentText("s1", "n"), "11/subagents/workflows/wf_1/journal.jsonl": journal,
		"s1/subagents/workflows/wf_2/agent-m.jsonl": agentText("s1", "m"), "s1/subagents/workflows/wf_2/agent-o.jsonl": agentText("s2", "o"),
		"11/subagents/workflows/wf_3/agent-k.jsonl": agentText("s1", "k"), "other/agent-l.jsonl": agentText("s1", "l"),
	}
	r := NewReader(source("11.jsonl", files), options())
	var got []string
	for c, err := range r.Children() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, c.Header.ID+" "+c.File)
		for range c.Entries {
		}
	}
	want := []string{"agent-a 11/subagents/agent-a.jsonl", "agent-n 11/subagents/workflows/wf_1/agent-n.jsonl", "agent-m s1/subagents/workflows/wf_2/agent-m.jsonl"}
	if !slices.Equal(got, want) {
		t.Errorf("children %q", got)
	}
	if d := r.Diagnostics(); len(d) != 1 || !strings.Contains(d[0].Detail, "agent-o") {
		t.Error(d)
	}
}

// TestManyRuns: the folders that are looked into are bounded.
func TestManyRuns(t *testing.T) {
	var text strings.Builder
	text.WriteString(file(node{id: "a1", typ: "assistant", content: call("c1")}))
	for i := range 1200 {
		text.WriteString(file(node{id: fmt.Sprint("r", i), parent: "a1", typ: "user", content: result("c1"), extra: fmt.Sprintf(`,"toolUseResult":{"runId":"wf_%d"}`, i)}))
	}
	src, asked := source("11.jsonl", map[string]string{"11.jsonl": text.String()}), 0
	src.List = func(string) ([]string, error) { asked++; return nil, nil }
	r := NewReader(interop.Source{Name: src.Name, Open: src.Open, Beside: src.Beside, List: src.List}, options())
	if kids := children(t, r); len(kids) != 0 || asked > 2*1000+5 {
		t.Errorf("%d children, %d folders", len(kids), asked)
	}
	if d := r.Diagnostics(); len(d) != 1 || !strings.Contains(d[0].Detail, "200 runs") {
		t.Error(d)
	}
}
