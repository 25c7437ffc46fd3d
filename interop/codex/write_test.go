package codex

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

const (
	counted = `"api":"x","provider":"openai","model":"m1","usage":{"input":12,"output":3,"cacheRead":4,"cacheWrite":1,"reasoning":2,"totalTokens":19,"cost":{"total":0}}`
	at      = `"timestamp":1767225600123`
)

func ask(text string) string { return `{"role":"user","content":` + quoted(text) + `,` + at + `}` }

func replied(blocks string) string {
	return `{"role":"assistant","content":[` + blocks + `],` + counted + `,"stopReason":"stop",` + at + `}`
}

func text(s string) string { return `{"type":"text","text":` + quoted(s) + `}` }

func call(id, name, args string) string {
	return `{"type":"toolCall","id":` + quoted(id) + `,"name":` + quoted(name) + `,"arguments":` + args + `}`
}

func gave(id, s string) string {
	return `{"role":"toolResult","toolCallId":` + quoted(id) + `,"toolName":"read","content":[` + text(s) + `],"isError":false,` + at + `}`
}

// same fails if the context that Codex computes from a file, or that of an import, is not the session's.
func same(t fataler, s *talk, head, file string, drop ...string) {
	t.Helper()
	drop = append(drop, "r:aborted")
	lines := valid(t, file)
	items := rebuilt(lines)
	paired(t, items)
	want := but(s.words(t, head), drop...)
	if diff := cmp.Diff(want, but(heard(t, items), drop...)); diff != "" {
		t.Fatalf("Codex's context (-ours +its):\n%s\n%s", diff, file)
	}
	back, tip := taken(t, file)
	if diff := cmp.Diff(want, but(unled(back.words(t, tip)), drop...)); diff != "" {
		t.Fatalf("the context of an import (-ours +its):\n%s\n%s", diff, file)
	}
}

func unled(words []string) []string {
	for i, w := range words {
		words[i] = strings.Replace(w, "s:"+lead, "s:", 1)
	}
	return words
}

// TestWriteTurns: messages, calls and results are Codex's context; the other branch is counted; OpenAI accepts the IDs
// and names.
func TestWriteTurns(t *testing.T) {
	s := talk{Header: begun}
	s.add("m", "", "model_change", `"provider":"openai","modelId":"m1"`)
	s.add("t", "m", "thinking_level_change", `"thinkingLevel":"high"`)
	s.message("u1", "t", ask("hello"))
	s.message("a1", "u1", replied(text("hm")+","+call("k1|fc_1", "read", `{"p":"a\nb"}`)+","+call("k2", "mcp.tool two", `{}`)))
	s.message("r1", "a1", gave("k1|fc_1", "one"))
	s.message("r2", "r1", gave("k2", ""))
	s.message("a2", "r2", replied(text("done")))
	s.message("u2", "a2", `{"role":"user","content":[`+text("look")+`,{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],`+at+`}`)
	s.message("a3", "u2", replied(text("left")))
	s.message("a4", "u2", replied(text("seen")))
	file, losses := s.write(t, "a4")
	same(t, &s, "a4", file, "c:mcp.tool two{}", "c:mcp_tool_two{}")
	golden(t, "session", file)
	if back, _ := taken(t, file); strings.Contains(strings.Join(back.lines, ""), "codex.user_message") || strings.Contains(strings.Join(back.lines, ""), "codex.agent_message") {
		t.Error("an event says something else than its item")
	}
	want := interop.Losses{lostBranch: 1, lostToolName: 1}
	if diff := cmp.Diff(want, losses); diff != "" {
		t.Error(diff)
	}
}

// golden compares the output with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	testutil.Golden(t, *update, "testdata/write/"+name+".golden", []byte(got))
}

// TestWriteFixtures: a session from a rollout is the same conversation when it is written again. Encrypted items are
// unchanged, calls have their kind, and Codex's own lines come back.
func TestWriteFixtures(t *testing.T) {
	for name, want := range map[string][]string{
		"turns": {
			`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Listing**"}],"content":null,"encrypted_content":"gAAA"}`,
			`{"type":"custom_tool_call","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch"}`, `{"type":"custom_tool_call_output","call_id":"call_2","output":"{\"output\":\"failed\"`,
			`{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"call_1"}`, `{"type":"message","id":"m_1","role":"assistant"`,
			`"turn_id":"t1","cwd":"/home/u/p","model":"gpt-5-codex","effort":"medium"`, `"last_token_usage":{"input_tokens":100,"cached_input_tokens":60`,
			`"git":{"branch":"main"}`, `"originator":"codex_cli_rs"`, `{"type":"agent_reasoning","text":"**Listing**"}`, `{"type":"user_message","message":"List the files."`,
		},
		"compacted": {`"encrypted_content"`, `"window_number":1`},
		"rollback":  {`"thread_rolled_back"`},
		"bare":      nil, "agent": {`{"type":"web_search_call","id":"ws_1"`, `"result":"iVBORw0KGgo="`}, "older": nil, "taken_back": nil,
	} {
		data, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		s, tip := taken(t, string(data))
		file, losses := s.write(t, tip)
		same(t, &s, tip, file, "s:[data:image/png;base6]") // which is in its call again
		for _, w := range want {
			if strings.Contains(file, w) == (name == "rollback") {
				t.Errorf("%s: %s\n%s", name, w, file)
			}
		}
		if again, _ := s.write(t, tip); again != file {
			t.Errorf("%s: another file", name)
		}
		if strings.Contains(file, "history_base") || losses[lostAborted] > 0 || losses[lostResult] > 0 {
			t.Errorf("%s: %v\n%s", name, losses, file)
		}
	}
}

// TestWriteLosses: exactly what Codex cannot express is counted.
func TestWriteLosses(t *testing.T) {
	stub := `"customType":"codex.line","data":{"stub":{"bytes":9,"limit":4}}`
	for name, c := range map[string]struct {
		typ, fields string
		want        interop.Losses
	}{
		"label":         {"label", `"targetId":"u"`, interop.Losses{`entries of type "label"`: 1}},
		"custom":        {"custom", `"customType":"x"`, interop.Losses{lostCustom: 1}},
		"ours":          {"custom", `"customType":"coppice.commit"`, interop.Losses{}},
		"stub":          {"custom", stub, interop.Losses{piwriter.LostStub: 1}},
		"edit":          {"context_edit", `"targetId":"u","replacement":null`, interop.Losses{lostEdit: 1}},
		"level":         {"thinking_level_change", `"thinkingLevel":"max"`, interop.Losses{lostLevel: 1}},
		"summary":       {"branch_summary", `"fromId":"u","summary":"s"`, interop.Losses{lostSummary: 1}},
		"told":          {"custom_message", `"customType":"x","content":"c","display":true`, interop.Losses{lostTold: 1}},
		"hidden":        {"message", `"message":{"role":"bashExecution","command":"ls","output":"","cancelled":false,"truncated":false,"excludeFromContext":true,` + at + `}`, interop.Losses{lostHidden: 1}},
		"command":       {"message", `"message":{"role":"bashExecution","command":"ls","output":"","cancelled":false,"truncated":false,` + at + `}`, interop.Losses{lostCommand: 1}},
		"thinking":      {"message", `"message":` + replied(`{"type":"thinking","thinking":"hm","thinkingSignature":"s"},`+text("a")), interop.Losses{lostThinking: 1}},
		"empty":         {"message", `"message":` + ask(""), interop.Losses{lostEmpty: 1}},
		"open":          {"message", `"message":` + replied(call("k", "n", "{}")), interop.Losses{lostAborted: 1}},
		"orphan":        {"message", `"message":` + gave("k", "r"), interop.Losses{lostResult: 1}},
		"document":      {"message", `"message":{"role":"user","content":[{"type":"document","title":"T","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"}}]}`, interop.Losses{piwriter.LostDocument: 1, piwriter.LostShape: 1}},
		"length":        {"message", `"message":` + strings.Replace(replied(text("a")), `"stop"`, `"length"`, 1), interop.Losses{lostStop: 1}},
		"cost":          {"message", `"message":` + strings.Replace(replied(text("a")), `"total":0`, `"total":0.5`, 1), interop.Losses{lostCost: 1}},
		"provider":      {"message", `"message":` + strings.Replace(replied(text("a")), `"openai"`, `"other"`, 1), interop.Losses{lostProvider: 1}},
		"a picture":     {"message", `"message":` + replied(`{"type":"image","data":"AAAA","mimeType":"image/png"}`), interop.Losses{piwriter.LostBlock: 1}},
		"nothing":       {"message", `"message":` + replied(text("a")), interop.Losses{}},
		"world":         {"custom", `"customType":"codex.world_state","data":{"timestamp":"2026-01-01T00:00:00Z","type":"world_state","payload":{}}`, interop.Losses{lostLine: 1}},
		"a search":      {"custom", `"customType":"codex.web_search_call","data":{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"web_search_call","status":"completed","action":{"type":"search","query":"q"}}}`, interop.Losses{}},
		"a bad search":  {"custom", `"customType":"codex.web_search_call","data":{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"web_search_call","action":7}}`, interop.Losses{lostLine: 1}},
		"a forged call": {"custom", `"customType":"codex.function_call","data":{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"function_call","call_id":"x","name":"n","arguments":"{}"}}`, interop.Losses{lostLine: 1}},
		"a bad turn":    {"custom", `"customType":"codex.turn_context","data":{"timestamp":"2026-01-01T00:00:00Z","type":"turn_context","payload":{"model":"m"}}`, interop.Losses{lostLine: 1}},
		"an undone one": {"custom", `"customType":"codex.thread_rolled_back","data":{"timestamp":"2026-01-01T00:00:00Z","type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":1}}`, interop.Losses{}},
	} {
		s := talk{Header: begun}
		s.message("u", "", ask("q"))
		s.add("x", "u", c.typ, c.fields)
		file, losses := s.write(t, "x")
		paired(t, rebuilt(valid(t, file)))
		taken(t, file)
		if diff := cmp.Diff(c.want, losses); diff != "" {
			t.Errorf("%s (-want +got):\n%s%s", name, diff, file)
		}
	}
}

// TestWriteMeta: the file has an ID that Codex accepts, and the origin of the session.
func TestWriteMeta(t *testing.T) {
	h := interop.Header{ID: "mine", Cwd: "/w", Title: "T", Parent: "not a thread", Raw: []byte(`{"type":"session","internal":true,"agent":"scout"}`)}
	s := talk{Header: h}
	s.message("u", "", ask("q"))
	file, losses := s.write(t, "u")
	first := valid(t, file)[0].payload
	if first["id"] != SessionID(h) || SessionID(h) == SessionID(begun) || SessionID(begun) != begun.ID || losses[lostTitle] != 1 {
		t.Errorf("%v, %v", first, losses)
	}
	if got, want := fmt.Sprint(first["source"]), "map[subagent:map[other:scout]]"; got != want {
		t.Errorf("source %s, want %s", got, want)
	}
	if back, _ := taken(t, file); rawjson.Text(rawjson.Field(back.Header.Raw, "agent")) != "scout" || back.Header.Cwd != "/w" {
		t.Errorf("%s", back.Header.Raw)
	}
	env := interop.Env{Getenv: func(string) string { return "" }, Home: "/home/me"}
	late := time.Date(2026, 1, 1, 23, 30, 0, 0, time.Local).UTC() // the name has the time of the place
	name, err := Program.File(env, begun.ID, "/w", late)
	want := filepath.FromSlash("/home/me/.codex/sessions/2026/01/01/rollout-2026-01-01T23-30-00-" + begun.ID + ".jsonl")
	if err != nil || name != want {
		t.Errorf("%s, want %s, %v", name, want, err)
	}
}

// TestWriteStart: before the first entry the file has only its first line; an unknown head is an error.
func TestWriteStart(t *testing.T) {
	s := talk{Header: begun}
	s.message("u", "", ask("q"))
	if file, _ := s.write(t, ""); len(valid(t, file)) != 1 {
		t.Error(file)
	}
	if _, err := Write(io.Discard, begun, s.all(), "gone"); !errors.Is(err, interop.ErrHead) {
		t.Error(err)
	}
	other := &talk{Header: begun}
	turn := 0
	two := func(yield func(transcript.Draft, error) bool) {
		if turn++; turn == 1 {
			s.all()(yield)
		} else {
			other.all()(yield)
		}
	}
	if _, err := Write(io.Discard, begun, two, "u"); err == nil {
		t.Error("other entries at the second walk, and no error")
	}
	if _, err := Write(broken{}, begun, s.all(), "u"); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// TestWriteHostile: entries that are invalid, in cycles, before their parents, or repeated.
func TestWriteHostile(t *testing.T) {
	s := talk{Header: begun}
	s.lines = append(s.lines, `{"type":"session","version":3,"id":"s"}`, `no line`)
	s.message("a", "b", ask("a"))
	s.message("b", "a", ask("b"))
	s.message("c", "gone", ask("<environment_context>"))
	s.message("c", "c", ask("again"))
	s.message("d", "c", `{"role":"user","content":[{"type":"text"},7,null,{"type":"image","data":1},{"type":"text","text":"\u0000 </script> \u2028"}],`+at+`}`)
	s.add("e", "d", "compaction", `"summary":7,"firstKeptEntryId":{},"details":{"codex":[]},"preserveData":{"openaiRemoteCompaction":{"replacementHistory":[7]}}`)
	s.message("f", "e", `{"role":"assistant","content":[{"type":"toolCall","id":"","name":"","arguments":{}},{"type":"toolCall","id":"\u0001","name":"é","arguments":{}}],"usage":{"input":-1,"output":1e99},"stopReason":7}`)
	s.message("g", "f", `7`)
	s.message("h", "g", ``+`null`)
	for _, head := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		file, _ := s.write(t, head)
		paired(t, rebuilt(valid(t, file)))
		taken(t, file)
	}
}

// TestWriteBounded: history for compactions is held up to the bound; over it a compaction has only its summary.
func TestSizeWrite(t *testing.T) {
	testutil.SkipLong(t)
	testutil.SkipLong(t)
	s := talk{Header: begun}
	long := strings.Repeat("x", 4<<20)
	parent := ""
	for i := range 9 {
		id := fmt.Sprint("u", i)
		s.message(id, parent, ask(long))
		parent = id
	}
	for from, want := range map[string]int{"u0": 1, "u2": 0} {
		c := talk{Header: begun, lines: slices.Clone(s.lines)}
		c.add("c", parent, "compaction", `"summary":"short","firstKeptEntryId":"`+from+`"`)
		file, losses := c.write(t, "c")
		if losses[lostKept] != want {
			t.Errorf("from %s: %v", from, losses)
		}
		if items := rebuilt(valid(t, file)); len(items) != 1+7*(1-want) {
			t.Errorf("from %s: %d items", from, len(items))
		}
	}
}
