package claudecode

import (
	"errors"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

var _ interop.Family = (*Reader)(nil)

// TestConversation: the messages of a file are one path, whatever its links.
func TestConversation(t *testing.T) {
	progress := func(id, parent string) node {
		return node{id: id, parent: parent, typ: "progress", extra: `,"data":{"n":1}`}
	}
	tests := []struct {
		name  string
		nodes []node
		want  string // context at the end
		diag  string
	}{
		{"a plain line", []node{{id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant"}, {id: "u2", parent: "a1", typ: "user"}}, "u:u1 a:a1 u:u2", ""},
		{"a message in pieces", []node{
			{id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant", msg: "m"}, {id: "a2", parent: "a1", typ: "assistant", msg: "m"}, {id: "u2", parent: "a2", typ: "user"},
		}, "u:u1 a:a1|a2 u:u2", ""},
		{"parallel calls whose results hang on their own pieces", []node{
			{id: "u1", typ: "user"},
			{id: "a1", parent: "u1", typ: "assistant", msg: "m", content: call("c1")},
			{id: "a2", parent: "a1", typ: "assistant", msg: "m", content: call("c2")},
			{id: "a3", parent: "a2", typ: "assistant", msg: "m", content: call("c3")},
			{id: "r2", parent: "a2", typ: "user", content: result("c2")},
			{id: "r1", parent: "a1", typ: "user", content: result("c1")},
			{id: "r3", parent: "a3", typ: "user", content: result("c3")},
			{id: "a4", parent: "r2", typ: "assistant"},
		}, "u:u1 a:+c1+c2+c3 r:out-c2=c2 r:out-c1=c1 r:out-c3=c3 a:a4", ""},
		{"results between the pieces", []node{
			{id: "u1", typ: "user"},
			{id: "a1", parent: "u1", typ: "assistant", msg: "m", content: call("c1")},
			{id: "r1", parent: "a1", typ: "user", content: result("c1")},
			{id: "a2", parent: "r1", typ: "assistant", msg: "m", content: call("c2")},
			{id: "r2", parent: "a2", typ: "user", content: result("c2")},
			{id: "a3", parent: "r2", typ: "assistant"},
		}, "u:u1 a:+c1+c2 r:out-c1=c1 r:out-c2=c2 a:a3", ""},
		{"a piece before the one that it names", []node{
			{id: "u1", typ: "user"},
			{id: "a1", parent: "u1", typ: "assistant", msg: "m"},
			{id: "a4", parent: "a3", typ: "assistant", msg: "m", content: call("c2")},
			{id: "a2", parent: "a1", typ: "assistant", msg: "m"},
			{id: "a3", parent: "a2", typ: "assistant", msg: "m", content: call("c1")},
			{id: "r1", parent: "a3", typ: "user", content: result("c1")},
			{id: "r2", parent: "a4", typ: "user", content: result("c2")},
			{id: "a5", parent: "r1", typ: "assistant"},
		}, "u:u1 a:a1|a2+c1+c2 r:out-c1=c1 r:out-c2=c2 a:a5", ""},
		{"a result that comes after what goes on", []node{
			{id: "u1", typ: "user"},
			{id: "a1", parent: "u1", typ: "assistant", content: call("c1", "c2")},
			{id: "r1", parent: "a1", typ: "user", content: result("c1")},
			{id: "a2", parent: "r1", typ: "assistant"},
			{id: "u2", parent: "a2", typ: "user"},
			{id: "r2", parent: "a1", typ: "user", content: result("c2")},
		}, "u:u1 a:+c1+c2 r:out-c1=c1 r:out-c2=c2 a:a2 u:u2", ""},
		{"a result in front of its call", []node{
			{id: "r1", typ: "user", content: result("c1")}, {id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant", content: call("c1")},
		}, "u:u1 a:+c1 r:out-c1=c1", ""},
		{"links through lines that say nothing", []node{
			{id: "u1", typ: "user"},
			progress("p1", "u1"), progress("p2", "p1"),
			{id: "x", parent: "p2", typ: "attachment", extra: `,"attachment":{"type":"file"}`},
			{id: "a1", parent: "x", typ: "assistant", content: call("c1")},
			progress("p3", "a1"),
			{id: "r1", parent: "p3", typ: "user", content: result("c1")},
			{id: "s", parent: "r1", typ: "system", extra: `,"subtype":"turn_duration"`},
			{id: "a2", parent: "s", typ: "assistant"},
		}, "u:u1 a:+c1 r:out-c1=c1 a:a2", ""},
		{"a parent that is not there", []node{{id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant"}, {id: "u2", parent: "gone", typ: "user"}}, "u:u1 a:a1 u:u2", "orphan"},
		{"a parent that is not there, further up", []node{
			{id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant"}, progress("p", "gone"), {id: "u2", parent: "p", typ: "user"},
		}, "u:u1 a:a1 u:u2", ""},
		{"no links at all", []node{{id: "u1", typ: "user"}, {id: "a1", typ: "assistant"}, {id: "u2", typ: "user"}}, "u:u1 a:a1 u:u2", ""},
		{"children before parents", []node{{id: "u2", parent: "a1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant"}, {id: "u1", typ: "user"}}, "u:u1 a:a1 u:u2", ""},
		{"text beside results", []node{
			{id: "u1", typ: "user"},
			{id: "a1", parent: "u1", typ: "assistant", content: call("c1", "c2")},
			{id: "r", parent: "a1", typ: "user", content: strings.TrimSuffix(result("c1", "c2"), "]") + `,{"type":"text","text":"and"}]`},
			{id: "a2", parent: "r", typ: "assistant"},
		}, "u:u1 a:+c1+c2 r:out-c1=c1 r:out-c2=c2 u:and a:a2", ""},
		{"a result without a call", []node{{id: "u1", typ: "user"}, {id: "r1", parent: "u1", typ: "user", content: result("c9")}}, "u:u1 r:out-c9=c9", "orphan-result"},
		{"what the program says", []node{{id: "u1", typ: "user"}, {id: "m1", parent: "u1", typ: "user", extra: `,"isMeta":true`}, {id: "a1", parent: "m1", typ: "assistant"}}, "u:u1 m:m1 a:a1", ""},
		{"compaction", []node{
			{id: "u1", typ: "user"},
			{id: "a1", parent: "u1", typ: "assistant"},
			{id: "b", typ: "system", extra: `,"subtype":"compact_boundary","logicalParentUuid":"a1","compactMetadata":{"trigger":"auto","preTokens":77}`},
			{id: "s", parent: "b", typ: "user", content: `"sum"`, extra: `,"isCompactSummary":true`},
			{id: "u2", parent: "s", typ: "user"},
			{id: "a2", parent: "u2", typ: "assistant"},
		}, "C:sum u:u2 a:a2", ""},
		{"compaction that keeps the end", []node{
			{id: "u1", typ: "user"},
			{id: "a1", parent: "u1", typ: "assistant"},
			{id: "u2", parent: "a1", typ: "user"},
			{id: "a2", parent: "u2", typ: "assistant"},
			{id: "b", typ: "system", extra: `,"subtype":"compact_boundary","logicalParentUuid":"a2","compactMetadata":{"preservedSegment":{"headUuid":"u2","anchorUuid":"s","tailUuid":"a2"}}`},
			{id: "s", parent: "b", typ: "user", content: `"sum"`, extra: `,"isCompactSummary":true`},
			{id: "u3", parent: "a2", typ: "user"},
		}, "C:sum u:u2 a:a2 u:u3", ""},
		{"compaction without a summary, and a summary without a boundary", []node{
			{id: "u1", typ: "user"},
			{id: "b", typ: "system", extra: `,"subtype":"compact_boundary"`},
			{id: "u2", parent: "b", typ: "user"},
			{id: "s", parent: "u2", typ: "user", content: `[{"type":"text","text":"sum"}]`, extra: `,"isCompactSummary":true`},
			{id: "u3", parent: "s", typ: "user"},
		}, "C:sum u:u3", ""},
		{"the same lines again", []node{
			{id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant"}, {id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant"}, {id: "u2", parent: "a1", typ: "user"},
		}, "u:u1 a:a1 u:u2", "duplicate-id duplicate-id"},
		{"the same lines again, with calls", []node{
			{id: "u1", typ: "user"},
			{id: "a1", parent: "u1", typ: "assistant", content: call("c1")},
			{id: "a1", parent: "u1", typ: "assistant", content: call("c1")},
			{id: "r1", parent: "a1", typ: "user", content: result("c1")},
			{id: "r1", parent: "a1", typ: "user", content: result("c1")},
			{id: "u2", parent: "r1", typ: "user"},
		}, "u:u1 a:+c1 r:out-c1=c1 u:u2", "duplicate-id duplicate-id"},
		{"another line of the same id", []node{{id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant"}, {id: "a1", parent: "u1", typ: "assistant", content: `"new"`}, {id: "u2", parent: "a1", typ: "user"}}, "u:u1 a:new u:u2", "duplicate-id"},
		{"a circle", []node{{id: "u1", parent: "a2", typ: "user"}, {id: "a2", parent: "u1", typ: "assistant"}, {id: "u2", parent: "a2", typ: "user"}}, "u:u1 a:a2 u:u2", "cycle"},
		{"a circle of lines that say nothing", []node{{id: "u1", typ: "user"}, progress("p1", "p2"), progress("p2", "p1"), {id: "u2", parent: "p1", typ: "user"}}, "u:u1 u:u2", ""},
		{"its own parent", []node{{id: "u1", typ: "user"}, {id: "u2", parent: "u2", typ: "user"}}, "u:u1 u:u2", "orphan"},
		{"an error of the provider", []node{{id: "u1", typ: "user"}, {id: "a1", parent: "u1", typ: "assistant", extra: `,"isApiErrorMessage":true`}}, "u:u1 a:a1", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, r := read(t, file(tt.nodes...))
			if got := s.Talk(t, ""); got != tt.want {
				t.Errorf("context\n got %s\nwant %s", got, tt.want)
			}
			if got := kinds(r.Diagnostics()); got != tt.diag {
				t.Errorf("diagnostics %v", r.Diagnostics())
			}
			if s.Entries[0].ID != "cc-session" || s.Entries[0].ParentID != "" {
				t.Errorf("first entry %s", s.Entries[0].Raw)
			}
			for _, e := range s.Entries[1:] {
				if e.ParentID == "" {
					t.Errorf("a second root: %s", e.Raw)
				}
			}
			for _, e := range s.Entries {
				if s.ByID[e.ParentID] > s.ByID[e.ID] {
					t.Errorf("%s comes before its parent", e.ID)
				}
			}
		})
	}
}

// TestBranches: branches that the user made stay, and the head is at the end of the file.
func TestBranches(t *testing.T) {
	s, _ := read(t, file(
		node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant", content: call("c1")}, node{id: "r1", parent: "a1", typ: "user", content: result("c1")},
		node{id: "a2", parent: "r1", typ: "assistant"},
		node{id: "old", parent: "a2", typ: "user"}, node{id: "a3", parent: "old", typ: "assistant"},
		node{id: "p", parent: "a2", typ: "progress"},
		node{id: "new", parent: "a2", typ: "user"}, node{id: "a4", parent: "new", typ: "assistant"},
		node{id: "first", typ: "user"}, node{id: "a5", parent: "first", typ: "assistant"},
		node{id: "back", parent: "a4", typ: "user"},
	))
	for id, want := range map[string]string{
		"a3": "u:u1 a:+c1 r:out-c1=c1 a:a2 u:old a:a3",
		"":   "u:u1 a:+c1 r:out-c1=c1 a:a2 u:new a:a4 u:back",
		"a5": "u:first a:a5",
	} {
		if got := s.Talk(t, id); got != want {
			t.Errorf("at %q: %s", id, got)
		}
	}
}

// TestEntries: the entries for the fields of a line.
func TestEntries(t *testing.T) {
	content := `[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"redacted_thinking","data":"x"},{"type":"text","text":"é\n"},` +
		`{"type":"tool_use","id":"c1","name":"Read","input":{"n":1.50}},{"type":"server_tool_use","id":"w1","name":"web"}]`
	last := `{"parentUuid":"u1","isSidechain":false,"userType":"external","cwd":"/w","sessionId":"s1","version":"2.0.1","gitBranch":"other","type":"assistant",` +
		`"message":{"id":"m1","role":"assistant","model":"claude-y","content":[],"stop_reason":"max_tokens","usage":{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":7,"cache_creation_input_tokens":11},"container":{"id":"k"}},"uuid":"a1","timestamp":"2026-01-01T00:00:00.000Z","requestId":"req"}` + "\n"
	last = strings.Replace(last, `"content":[]`, `"content":`+content, 1)
	s, _ := read(t, file(
		node{id: "u1", typ: "user", content: `[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},{"type":"document","source":{}}]`})+last+
		file(node{id: "r1", parent: "a1", typ: "user", content: `[{"type":"tool_result","tool_use_id":"c1","is_error":true,"content":[{"type":"text","text":"bad"}]}]`, extra: `,"toolUseResult":{"k":1}`}))
	want := []string{
		`{"type":"custom","id":"cc-session","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","customType":"claude-code.session","data":{"sessionId":"s1","envelope":{"userType":"external","cwd":"/w","sessionId":"s1","version":"2.0.1","gitBranch":"main"}}}`,
		`{"type":"message","id":"u1","parentId":"cc-session","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"document","source":{}}],"timestamp":1767225600000}}`,
		`{"type":"model_change","id":"a1.model","parentId":"u1","timestamp":"2026-01-01T00:00:00.000Z","provider":"anthropic","modelId":"claude-y"}`,
		`{"type":"message","id":"a1","parentId":"a1.model","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},{"type":"thinking","thinking":"","thinkingSignature":"x","redacted":true},{"type":"text","text":"é\n"},` +
			`{"type":"toolCall","id":"c1","name":"Read","arguments":{"n":1.50}},{"type":"server_tool_use","id":"w1","name":"web"}],"api":"anthropic-messages","provider":"anthropic","model":"claude-y","responseId":"m1",` +
			`"usage":{"input":3,"output":5,"cacheRead":7,"cacheWrite":11,"totalTokens":26,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"length","rawStopReason":"max_tokens","timestamp":1767225600000},` +
			`"claudeCode":{"gitBranch":"other","requestId":"req","message":{"container":{"id":"k"}}}}`,
		`{"type":"message","id":"r1","parentId":"a1","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"Read","content":[{"type":"text","text":"bad"}],"isError":true,"details":{"k":1},"timestamp":1767225600000}}`,
	}
	for i, e := range s.Entries {
		if i >= len(want) || string(e.Raw) != want[i] {
			t.Errorf("entry %d: %s", i, e.Raw)
		}
	}
}

// TestTitles: the name that a person gave counts more than one that was made, and that of another session not.
func TestTitles(t *testing.T) {
	talk := file(node{id: "u1", typ: "user"})
	const other, own = `{"type":"summary","summary":"other","leafUuid":"gone"}` + "\n", `{"type":"summary","summary":"own","leafUuid":"u1"}` + "\n"
	const made, agent = `{"type":"ai-title","aiTitle":"made","sessionId":"s1"}` + "\n", `{"type":"agent-name","agentName":"agent","sessionId":"s1"}` + "\n"
	const first, second = `{"type":"custom-title","customTitle":"first","sessionId":"s1"}` + "\n", `{"type":"custom-title","customTitle":"second","sessionId":"s1"}` + "\n"
	const placed = `{"type":"custom-title","customTitle":"placed","sessionId":"s1","uuid":"c1","parentUuid":"u1"}` + "\n"
	for text, names := range map[string]string{
		talk + other: "", other + own + talk: "own", own + made + talk: "made", made + talk + agent: "made agent",
		talk + first + made + agent: "first", first + talk + second + own: "first second", first + talk + first + second + made: "first second",
		talk + placed + second: "placed second",
	} {
		s, _ := read(t, text)
		want := names[strings.LastIndex(names, " ")+1:] // the last one is the session's name
		if s.Header.Title != want || rawjson.Text(rawjson.Field(s.Header.Raw, "title")) != want {
			t.Errorf("title %q, want %q", s.Header.Title, want)
		}
		var named []string
		for _, e := range s.Entries {
			if name, ok := e.Title(); ok {
				named = append(named, name)
			}
		}
		if strings.Join(named, " ") != names {
			t.Errorf("named %q, want %q", named, names)
		}
	}
}

// TestOrder: lines without content are kept whole, in file order, on the path to later lines.
func TestOrder(t *testing.T) {
	lines := []string{
		`{"type":"file-history-snapshot","messageId":"u1","snapshot":{"a": [1.0]}}`,
		node{id: "u1", typ: "user"}.line(),
		`{"type":"queue-operation","operation":"enqueue","sessionId":"s1"}`,
		node{id: "s", parent: "u1", typ: "system", extra: `,"subtype":"informational","content":"hi"`}.line(),
		node{id: "a1", parent: "u1", typ: "assistant"}.line(),
		`{"type":"of-tomorrow","x":null}`,
	}
	s, r := read(t, strings.Join(lines, "\n")+"\n")
	var types []string
	for _, e := range s.Path(t, "") {
		typ := e.Type
		if typ == "custom" {
			typ = rawjson.Text(rawjson.Field(e.Raw, "customType"))
			if data := string(rawjson.Field(e.Raw, "data")); typ != "claude-code.session" && !strings.Contains(strings.Join(lines, "\n"), data) {
				t.Errorf("data %s", data)
			}
		}
		types = append(types, typ)
	}
	want := "claude-code.session claude-code.file-history-snapshot message claude-code.queue-operation claude-code.system model_change message claude-code.of-tomorrow"
	if got := strings.Join(types, " "); got != want {
		t.Errorf("path %s", got)
	}
	if r.Verbatim() || len(r.Diagnostics()) > 0 {
		t.Error(r.Diagnostics())
	}
}

func TestDetect(t *testing.T) {
	long := node{id: "u1", typ: "user", content: `"` + strings.Repeat("x", 100_000) + `"`}.line()
	for text, want := range map[string]bool{
		file(node{id: "u1", typ: "user"}):                                         true,
		"\ufeff\n\nnoise\n" + file(node{id: "a1", parent: "u", typ: "assistant"}): true,
		`{"type":"file-history-snapshot","messageId":"x","snapshot":{}}` + "\n":   true,
		`{"type":"summary","summary":"s","leafUuid":"x"}`:                         true,
		long[:65536]: true,
		`{"type":"session","version":3,"id":"s"}` + "\n" + file(node{id: "u1", typ: "user"}):         false,
		`{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"a"}}` + "\n": false,
		`{"type":"user","message":"x"}`:                                             false,
		`{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{}}`:   false,
		`{"type":"title","v":1,"title":"T"}` + "\n" + `{"type":"session","id":"s"}`: false,
		"":  false,
		"{": false,
		`{"type":"summary","id":"x","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","summary":"a branch of pi's"}` + "": false,
	} {
		if Detect([]byte(text)) != want {
			t.Errorf("Detect(%.80q) is not %v", text, want)
		}
	}
}

func TestNotSession(t *testing.T) {
	for _, text := range []string{"", "\n\n", "Dear diary\n", `{"type":"session","version":3,"id":"s"}` + "\n", strings.Repeat("no JSON\n", 5000), `{"a":1}`} {
		r := NewReader(source("x", map[string]string{"x": text}), options())
		if _, err := r.Header(); !errors.Is(err, interop.ErrNotSession) {
			t.Errorf("%.40q: %v", text, err)
		}
		if _, err := r.Next(); !errors.Is(err, interop.ErrNotSession) {
			t.Errorf("%.40q: Next: %v", text, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamage: no damage hides what is intact, and each is reported.
func TestDamage(t *testing.T) {
	u, a, b := node{id: "u1", typ: "user"}.line(), node{id: "a1", parent: "u1", typ: "assistant"}.line(), node{id: "u2", parent: "a1", typ: "user"}.line()
	lf := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	nul := strings.Repeat("\x00", 300)
	tests := []struct {
		name, text, want string
		bad              int
		diag             string
	}{
		{"whole", lf(u, a, b), "u:u1 a:a1 u:u2", 0, ""},
		{"torn at the end", lf(u, a) + b[:70], "u:u1 a:a1", 1, "torn-line"},
		{"torn in the middle", lf(u, a[:90], b), "u:u1 u:u2", 1, "bad-line orphan"},
		{"no newline at the end", lf(u, a) + b, "u:u1 a:a1 u:u2", 0, "converted"},
		{"behind a torn line", lf(u, a[:90]+a, b), "u:u1 a:a1 u:u2", 1, "bad-line converted"},
		{"two in one line", lf(u+a, b), "u:u1 a:a1 u:u2", 0, "converted"},
		{"two in one line, the second torn", lf(u, a+b[:50]), "u:u1 a:a1", 1, "converted bad-line"},
		{"CR LF", strings.ReplaceAll(lf(u, a, b), "\n", "\r\n"), "u:u1 a:a1 u:u2", 0, "converted"},
		{"byte order mark", "\ufeff" + lf(u, a, b), "u:u1 a:a1 u:u2", 0, "converted"},
		{"blank lines and space", lf("", " "+u+"\t", "", a, b, ""), "u:u1 a:a1 u:u2", 0, ""},
		{"NULs around", lf(nul+u, a+nul, b) + nul, "u:u1 a:a1 u:u2", 3, "bad-line bad-line bad-line"},
		{"NULs behind a torn line", lf(u, a[:80]+nul+a, b), "u:u1 a:a1 u:u2", 1, "bad-line converted"},
		{"no objects", lf(u, "1", "null", `"x"`, "[]", `{}`, a, b), "u:u1 a:a1 u:u2", 5, "bad-line bad-line bad-line bad-line bad-line"},
		{"nested too deeply", lf(u, `{"type":"x","d":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`}`, a, b), "u:u1 a:a1 u:u2", 1, "bad-line"},
		{"nested too deeply to be kept inside of an entry", lf(u, `{"type":"x","d":`+strings.Repeat("[", 511)+strings.Repeat("]", 511)+`}`, a, b), "u:u1 a:a1 u:u2", 1, "bad-line"},
		{"nested as deeply as can be", lf(u, `{"type":"x","d":`+strings.Repeat("[", 509)+strings.Repeat("]", 509)+`}`, a, b), "u:u1 a:a1 u:u2", 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, r := read(t, tt.text)
			if got := s.Talk(t, ""); got != tt.want {
				t.Errorf("context %s", got)
			}
			if r.BadLines() != tt.bad || kinds(r.Diagnostics()) != tt.diag {
				t.Errorf("%d bad, %v", r.BadLines(), r.Diagnostics())
			}
		})
	}
}

// TestWrongTypes: no field of a wrong type hides a line, or makes one that cannot be stored.
func TestWrongTypes(t *testing.T) {
	testutil.SkipLong(t)
	values := []string{"null", "true", "0", "-1e999", `""`, `"x"`, "[]", `[1,"a",null,{}]`, "{}", `{"a":{}}`}
	u := node{id: "u1", typ: "user", content: result("c1"), extra: `,"toolUseResult":{"agentId":"a"},"isMeta":false,"isCompactSummary":false,"logicalParentUuid":null`}.line()
	a := node{id: "a1", parent: "u1", typ: "assistant", content: call("c1"), extra: `,"isApiErrorMessage":false`}.line()
	b := node{id: "b1", parent: "a1", typ: "system", extra: `,"subtype":"compact_boundary","compactMetadata":{"preTokens":1}`}.line()
	for _, line := range []string{u, a, b} {
		for m := rawjson.Walk([]byte(line)); m.Next(); {
			for _, v := range values {
				changed := string(rawjson.WithField([]byte(line), string(m.Key), []byte(v)))
				s, _ := read(t, file(node{id: "u0", typ: "user"})+changed+"\n"+a+"\n"+file(node{id: "end", parent: "a1", typ: "user"}))
				if got := s.Talk(t, "end"); !strings.HasSuffix(got, "u:end") {
					t.Errorf("%s = %s: %s", m.Key, v, got)
				}
			}
		}
		msg := rawjson.Field([]byte(line), "message")
		for m := rawjson.Walk(msg); m.Next(); {
			for _, v := range values {
				changed := rawjson.WithField([]byte(line), "message", rawjson.WithField(msg, string(m.Key), []byte(v)))
				read(t, file(node{id: "u0", typ: "user"})+string(changed)+"\n")
			}
		}
		for block := rawjson.Walk(rawjson.Field(msg, "content")); block.Next(); {
			for m := rawjson.Walk(block.Val); m.Next(); {
				for _, v := range values {
					content := "[" + string(rawjson.WithField(block.Val, string(m.Key), []byte(v))) + "," + v + "]"
					changed := rawjson.WithField([]byte(line), "message", rawjson.WithField(msg, "content", []byte(content)))
					read(t, file(node{id: "u0", typ: "user"})+string(changed)+"\n")
				}
			}
		}
	}
}

// TestChanged: if a file grows while it is read, the reader returns the old content; if it shrinks, an error.
func TestChanged(t *testing.T) {
	files := map[string]string{"s": file(node{id: "u1", typ: "user"}, node{id: "a1", parent: "u1", typ: "assistant"})}
	r := NewReader(source("s", files), options())
	h, err := r.Header()
	if err != nil {
		t.Fatal(err)
	}
	files["s"] += file(node{id: "u2", parent: "a1", typ: "user"})
	s := readtest.Collect(t, h, r.Next)
	if got := s.Talk(t, ""); got != "u:u1 a:a1" {
		t.Error(got)
	}
	r = NewReader(source("s", files), options())
	if _, err := r.Header(); err != nil {
		t.Fatal(err)
	}
	files["s"] = file(node{id: "u1", typ: "user"})
	for err == nil {
		var d transcript.Draft
		d, err = r.Next()
		_ = d
	}
	if !strings.Contains(err.Error(), "changed while it was read") {
		t.Error(err)
	}
}
