package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// chainOf makes a path of lines, each the child of the one before. %P in a line is its parent.
func chainOf(t testing.TB, lines ...string) []Entry {
	t.Helper()
	path := make([]Entry, 0, len(lines))
	parent := ""
	for i, s := range lines {
		quotedParent := "null"
		if parent != "" {
			quotedParent = `"` + parent + `"`
		}
		l, err := ParseLine([]byte(strings.Replace(s, "%P", quotedParent, 1)))
		if err != nil {
			t.Fatalf("line %d: %v", i, err)
		}
		path = append(path,
			Entry{Ordinal: uint64(i), ID: l.ID, ParentID: l.ParentID, Type: l.Type, Time: l.Time, Raw: l.Raw})
		parent = l.ID
	}
	return path
}

const at = `"timestamp":"2026-01-01T00:00:00.001Z"`

// TestContextMessageBytes pins what messages look like: raw ones byte for byte, made ones in pi's shape.
func TestContextMessageBytes(t *testing.T) {
	tests := []struct {
		name    string
		profile Profile
		lines   []string
		want    []string // raw bytes
		ids     []string
	}{
		{
			"raw bytes stay", Coppice,
			[]string{`{"type":"message","id":"a","parentId":%P,` + at + `,"message":{"role" : "user", "n":1.50e1,"content":"\u0041<&>"}}`},
			[]string{`{"role" : "user", "n":1.50e1,"content":"\u0041<&>"}`},
			[]string{"a"},
		},
		{
			"compaction", Pi,
			[]string{`{"type":"compaction","id":"c","parentId":%P,` + at + `,"summary":"S\u00e9 <b>","tokensBefore":12.0,"firstKeptEntryId":"x"}`},
			[]string{`{"role":"compactionSummary","summary":"S\u00e9 <b>","tokensBefore":12.0,"timestamp":1767225600001}`},
			[]string{""},
		},
		{
			"compaction of wrong types", Coppice,
			[]string{`{"type":"compaction","id":"c","parentId":%P,"summary":5,"tokensBefore":"x","firstKeptEntryId":7,"systemMessage":"no"}`},
			[]string{`{"role":"compactionSummary","summary":"","tokensBefore":0,"timestamp":0}`},
			[]string{""},
		},
		{
			"branch summary", Coppice,
			[]string{`{"type":"branch_summary","id":"b","parentId":%P,` + at + `,"fromId":"z","summary":"S"}`},
			[]string{`{"role":"branchSummary","summary":"S","fromId":"z","timestamp":1767225600001}`},
			[]string{""},
		},
		{
			"custom message", Coppice,
			[]string{`{"type":"custom_message","id":"m","parentId":%P,` + at + `,"customType":"k","content":[{"type":"text","text":"x"}],"display":true,"details":{"a":1}}`},
			[]string{`{"role":"custom","customType":"k","content":[{"type":"text","text":"x"}],"display":true,"details":{"a":1},"timestamp":1767225600001}`},
			[]string{"m"},
		},
		{
			"custom message kept out of the model", Atomic,
			[]string{`{"type":"custom_message","id":"m","parentId":%P,` + at + `,"customType":"k","content":"x","display":false,"excludeFromContext":true}`},
			[]string{`{"role":"custom","customType":"k","content":"x","display":false,"timestamp":1767225600001,"excludeFromContext":true}`},
			[]string{"m"},
		},
		{
			"operator's names", Operator,
			[]string{
				`{"type":"branch_summary","id":"b","parentId":%P,"timestamp":1767225600.5,"from_id":"z","summary":""}`,
				`{"type":"custom_message","id":"m","parentId":%P,"timestamp":1767225600.5,"custom_type":"k","content":[],"display":true}`,
				`{"type":"compaction","id":"c","parentId":%P,"timestamp":1767225600.5,"summary":"S","first_kept_entry_id":"b","tokens_before":3}`,
			},
			[]string{
				`{"role":"compactionSummary","summary":"S","tokensBefore":3,"timestamp":1767225600500}`,
				`{"role":"branchSummary","summary":"","fromId":"z","timestamp":1767225600500}`,
				`{"role":"custom","customType":"k","content":[],"display":true,"timestamp":1767225600500}`,
			},
			[]string{"", "", "m"},
		},
		{
			"an edited message keeps its other fields", Pi,
			[]string{
				`{"type":"message","id":"a","parentId":%P,"message":{"role":"assistant","content":[],"model":"m","x":1}}`,
				`{"type":"message","id":"b","parentId":%P,"message":{"content":"old","role":"user"}}`,
				`{"type":"context_edit","id":"e","parentId":%P,"targetId":"a","replacement":{"content":"new"}}`,
				`{"type":"context_edit","id":"f","parentId":%P,"targetId":"b","replacement":{"content":"new"}}`,
			},
			[]string{`{"role":"assistant","content":[{"type":"text","text":"new"}],"model":"m","x":1}`, `{"content":"new","role":"user"}`},
			[]string{"a", "b"},
		},
		{
			"omp clears signatures where it takes a call away", OMP,
			[]string{`{"type":"message","id":"a","parentId":%P,"message":{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"s"},` +
				`{"type":"redactedThinking","data":"d"},{"type":"toolCall","id":"k","name":"n"},{"type":"text","text":"x"}],"stopReason":"toolUse"}}`},
			[]string{`{"role":"assistant","content":[{"type":"thinking","thinking":"t"},{"type":"text","text":"x"}],"stopReason":"toolUse"}`},
			[]string{"a"},
		},
		{
			"omp keeps a turn that a note on interrupted thinking follows", OMP,
			[]string{
				`{"type":"message","id":"a","parentId":%P,"message":{"role":"assistant","content":[],"stopReason":"aborted"}}`,
				`{"type":"custom_message","id":"n","parentId":%P,"customType":"interrupted-thinking","content":"x","display":false}`,
			},
			[]string{`{"role":"assistant","content":[],"stopReason":"aborted"}`, `{"role":"custom","customType":"interrupted-thinking","content":"x","display":false,"timestamp":0}`},
			[]string{"a", "n"},
		},
		{
			"omp: the provider's own compaction", OMP,
			[]string{
				`{"type":"message","id":"a","parentId":%P,"message":{"role":"user","content":"a"}}`,
				`{"type":"message","id":"b","parentId":%P,"message":{"role":"user","content":"b"}}`,
				`{"type":"compaction","id":"c","parentId":%P,"summary":"S","tokensBefore":1,"firstKeptEntryId":"a","providerReplayThroughEntryId":"a",` +
					`"preserveData":{"openaiRemoteCompaction":{"provider":"openai","replacementHistory":[{"x":1}]}}}`,
			},
			[]string{
				`{"role":"compactionSummary","summary":"S","tokensBefore":1,"timestamp":0,"providerPayload":{"type":"openaiResponsesHistory","provider":"openai","items":[{"x":1}]}}`,
				`{"role":"user","content":"b"}`,
			},
			[]string{"", "b"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := BuildContext(chainOf(t, tt.lines...), tt.profile)
			var raw, ids []string
			for _, m := range c.Messages {
				raw, ids = append(raw, string(m.Raw)), append(ids, m.Entry)
				if r := rawjson.Text(rawjson.Field(m.Raw, "role")); r != m.Role {
					t.Errorf("Role %q of a message that says %q", m.Role, r)
				}
			}
			if diff := cmp.Diff(tt.want, raw); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.ids, ids); diff != "" {
				t.Errorf("entries (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAtomicFlattensWhatIsKept pins the one text that atomic makes of a verbatim compaction.
func TestAtomicFlattensWhatIsKept(t *testing.T) {
	path := chainOf(t,
		`{"type":"message","id":"a","parentId":%P,"message":{"role":"user","content":"before"}}`,
		`{"type":"message","id":"u","parentId":%P,"message":{"role":"user","content":[{"type":"text","text":"look"},{"type":"image","data":"AA==","mimeType":"image/png"}]}}`,
		`{"type":"message","id":"b","parentId":%P,"message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"yes"},{"type":"toolCall","id":"k","name":"read","arguments":{"path":"a", "n": [1, 2]}}]}}`,
		`{"type":"message","id":"r","parentId":%P,"message":{"role":"toolResult","toolCallId":"k","content":[{"type":"text","text":"data"}]}}`,
		`{"type":"branch_summary","id":"s","parentId":%P,"summary":"B","fromId":"x"}`,
		`{"type":"message","id":"x","parentId":%P,"message":{"role":"bashExecution","command":"ls","output":""}}`,
		`{"type":"compaction","id":"c","parentId":%P,"summary":"[User]: before","tokensBefore":9,"firstKeptEntryId":"u","details":{"strategy":"verbatim-lines"}}`,
	)
	got := BuildContext(path, Atomic)
	if len(got.Messages) != 1 || got.Messages[0].Role != "custom" {
		t.Fatalf("messages %v", got.Messages)
	}
	var m struct {
		Content []struct{ Type, Text, Data string }
		Details struct {
			Strategy     string
			TokensBefore int
		}
	}
	if err := json.Unmarshal(got.Messages[0].Raw, &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Content) != 3 || m.Content[1].Data != "AA==" || m.Details.TokensBefore != 9 || m.Details.Strategy != "verbatim-lines" {
		t.Fatalf("message %s", got.Messages[0].Raw)
	}
	want := verbatimPreface + "[User]: before\n\n[User]: look" + "|" +
		"\n\n[Assistant thinking]: hm\n\n[Assistant]: yes\n\n[Assistant tool calls]: read(path=\"a\", n=[1,2])\n\n[Tool result]: data" +
		"\n\n[User]: The following is a summary of a branch that this conversation came back from:\n\n<summary>\nB</summary>" +
		"\n\n[User]: Ran `ls`\n(no output)"
	if diff := cmp.Diff(want, m.Content[0].Text+"|"+m.Content[2].Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// TestOpenCalls finds calls without results in the shapes of several providers.
func TestOpenCalls(t *testing.T) {
	path := chainOf(t,
		`{"type":"message","id":"a","parentId":%P,"message":{"role":"assistant","content":[{"type":"tool_use","id":"k1","name":"n1","input":{}},{"type":"tool_use","id":"k2","name":"n2","input":{}}]}}`,
		`{"type":"message","id":"b","parentId":%P,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"k1","content":"x"}]}}`,
		`{"type":"message","id":"c","parentId":%P,"message":{"role":"assistant","tool_calls":[{"id":"k3","type":"function","function":{"name":"n3","arguments":"{}"}}]}}`,
		`{"type":"message","id":"d","parentId":%P,"message":{"role":"tool","tool_call_id":"k3","content":"x"}}`,
		`{"type":"message","id":"e","parentId":%P,"message":{"role":"assistant","stopReason":"error","content":[{"type":"toolCall","id":"k4","name":"n4"}]}}`,
		`{"type":"message","id":"f","parentId":%P,"message":{"role":"assistant","content":[{"type":"toolCall","id":"k5","name":"n5"}]}}`,
		`{"type":"message","id":"g","parentId":%P,"message":{"role":"tool","tool_call_id":"k9","content":"x"}}`,
	)
	c := BuildContext(path, Coppice)
	none := json.RawMessage("{}")
	want := []ToolCall{{Entry: "a", ID: "k2", Name: "n2", Arguments: none}, {Entry: "f", ID: "k5", Name: "n5"}}
	if diff := cmp.Diff(want, c.OpenCalls); diff != "" {
		t.Errorf("open calls (-want +got):\n%s", diff)
	}
	var got []string
	for _, d := range c.Diagnostics {
		got = append(got, fmt.Sprint(d.Kind, " ", d.Entry, " ", d.Ordinal))
	}
	if diff := cmp.Diff([]string{"orphan-result g 6", "open-call a 0", "open-call e 4", "open-call f 5"}, got); diff != "" {
		t.Errorf("diagnostics (-want +got):\n%s", diff)
	}
	if len(c.Messages) != len(path) {
		t.Errorf("%d messages: nothing may be repaired unasked", len(c.Messages))
	}
}

// TestBrokenAnswers: an answer that failed without a text or a call is no part of the context; another one is.
func TestBrokenAnswers(t *testing.T) {
	const call = `[{"type":"toolCall","id":"k","name":"n"}]`
	var lines []string
	for _, message := range []string{
		`u","parentId":%P,"message":{"role":"user","content":"go"`,
		`a","parentId":%P,"message":{"role":"assistant","stopReason":"error","errorMessage":"529","content":[]`,
		`b","parentId":%P,"message":{"role":"assistant","stopReason":"aborted","content":"half"`,
		`c","parentId":%P,"message":{"role":"assistant","finish_reason":"content_filter","content":"half"`,
		`d","parentId":%P,"message":{"role":"assistant","stopReason":"error","content":` + call,
		`e","parentId":%P,"message":{"role":"toolResult","toolCallId":"k","isError":true,"content":[]`,
		`f","parentId":%P,"message":{"role":"assistant","stopReason":"stop","content":"done"`,
	} {
		lines = append(lines, `{"type":"message","id":"`+message+`}}`)
	}
	path := chainOf(t, lines...)
	for _, tt := range []struct {
		profile Profile
		want    string
	}{{Coppice, "u b c d e f"}, {Pi, "u a b c d e f"}, {OMP, "u c f"}} {
		var got []string
		for _, m := range BuildContext(path, tt.profile).Messages {
			got = append(got, m.Entry)
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("profile %q: %v, want %s", tt.profile, got, tt.want)
		}
	}
}

// TestContextDiagnosticsAreBounded: a hundred, and a count.
func TestContextDiagnosticsAreBounded(t *testing.T) {
	var lines []string
	for i := range 250 {
		lines = append(lines, fmt.Sprintf(`{"type":"message","id":"e%d","parentId":%%P,"message":[]}`, i))
	}
	c := BuildContext(chainOf(t, lines...), Coppice)
	if n := len(c.Diagnostics); n != 101 || c.Diagnostics[100].Kind != DiagMore ||
		c.Diagnostics[100].Detail != "150 more" {
		t.Errorf("%d diagnostics, the last %+v", n, c.Diagnostics[n-1])
	}
}

func TestUnknownProfileIsCoppice(t *testing.T) {
	if Profile("nobody").Valid() || !OMP.Valid() || !Coppice.Valid() {
		t.Error("Valid")
	}
	path := chainOf(t, `{"type":"message","id":"a","parentId":%P,"message":{"role":"user","content":"x"}}`, `{"type":"leaf","id":"l","parentId":%P,"targetId":null}`)
	if c := BuildContext(path, "nobody"); len(c.Messages) != 0 || c.Leaf != "" {
		t.Errorf("context %+v", c)
	}
}

// longPath is one conversation of n entries: turns of a user's message, a call, its result and an answer.
func longPath(n int) []Entry {
	path := make([]Entry, 0, n)
	for i := range n {
		var m string
		switch i % 4 {
		case 0:
			m = fmt.Sprintf(`{"role":"user","content":"message %d %s"}`, i, strings.Repeat("x", 100))
		case 1:
			m = fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"%s"},{"type":"toolCall","id":"call%d","name":"read","arguments":{"path":"p"}}],"provider":"p","model":"m","stopReason":"toolUse"}`, strings.Repeat("y", 60), i)
		case 2:
			m = fmt.Sprintf(`{"role":"toolResult","toolCallId":"call%d","toolName":"read","content":[{"type":"text","text":"%s"}],"isError":false}`, i-1, strings.Repeat("z", 150))
		default:
			m = `{"role":"assistant","content":[{"type":"text","text":"done"}],"provider":"p","model":"m","stopReason":"stop"}`
		}
		id, parent := fmt.Sprintf("e%07d", i), ""
		raw := fmt.Sprintf(`{"type":"message","id":"%s","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":%s}`, id, m)
		if i > 0 {
			parent = path[i-1].ID
		}
		path = append(path, Entry{Ordinal: uint64(i), ID: id, ParentID: parent, Type: "message", Raw: []byte(raw)})
	}
	return path
}
