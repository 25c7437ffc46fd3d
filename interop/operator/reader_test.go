package operator

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/readtest"
	"github.com/coppice-go/coppice/transcript"
)

var (
	testNow = readtest.Now
	lf      = readtest.Lines
	readAll = readtest.All[*Reader]
)

func open(data []byte) *Reader {
	return NewReader(interop.Bytes("x.jsonl", data), interop.Options{Now: testNow})
}

const head = `{"type":"session","version":3,"id":"0196-s","timestamp":1767225600.25,"cwd":"/w"}`

// TestLines pins what every kind of line becomes.
func TestLines(t *testing.T) {
	const base = `"id":"a","timestamp":1767225600.123456,"parent_id":"p"`
	const out = `"id":"a","parentId":"p","timestamp":"2026-01-01T00:00:00.123456Z"`
	tests := []struct{ name, in, want string }{
		{"level", `{"type":"thinking_level_change",` + base + `,"thinking_level":"high"}`, `{"type":"thinking_level_change",` + out + `,"thinkingLevel":"high"}`},
		{"model", `{"type":"model_change",` + base + `,"model_id":"m","provider_id":"p"}`, `{"type":"model_change",` + out + `,"modelId":"m","provider":"p"}`},
		{"compaction", `{"type":"compaction",` + base + `,"summary":"S","first_kept_entry_id":"k","tokens_before":5,"details":null,"from_hook":false}`, `{"type":"compaction",` + out + `,"summary":"S","firstKeptEntryId":"k","tokensBefore":5,"details":null,"fromHook":false}`},
		{"branch summary", `{"type":"branch_summary",` + base + `,"from_id":"f","summary":""}`, `{"type":"branch_summary",` + out + `,"fromId":"f","summary":""}`},
		{"label", `{"type":"label",` + base + `,"label":null,"target_id":"t"}`, `{"type":"label",` + out + `,"label":null,"targetId":"t"}`},
		{"leaf", `{"type":"leaf",` + base + `,"target_id":"t"}`, `{"type":"leaf","id":"a","parentId":"t","timestamp":"2026-01-01T00:00:00.123456Z","targetId":"t","fromId":"p"}`},
		{"leaf to nowhere", `{"type":"leaf",` + base + `,"target_id":null}`, `{"type":"leaf","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.123456Z","targetId":null,"fromId":"p"}`},
		{"custom", `{"type":"custom",` + base + `,"custom_type":"x","data":{"snake_case":1.0}}`, `{"type":"custom",` + out + `,"customType":"x","data":{"snake_case":1.0}}`},
		{"custom message", `{"type":"custom_message",` + base + `,"custom_type":"x","content":[{"type":"text","content":"t"}],"display":true}`, `{"type":"custom_message",` + out + `,"customType":"x","content":[{"type":"text","text":"t"}],"display":true}`},
		{"name", `{"type":"session_info",` + base + `,"name":"N"}`, `{"type":"session_info",` + out + `,"name":"N"}`},
		{"channel", `{"type":"channel",` + base + `,"name":"tg","chat_id":"1"}`, `{"type":"custom",` + out + `,"customType":"operator.channel","data":{"name":"tg","chat_id":"1"}}`},
		{"unknown", `{"type":"dream",` + base + `,"target_id":[1]}`, `{"type":"custom",` + out + `,"customType":"operator.dream","data":{"target_id":[1]}}`},
		{"unknown field", `{"type":"label",` + base + `,"target_id":"t","colour":"red"}`, `{"type":"label",` + out + `,"targetId":"t","colour":"red"}`},
		{
			"user", `{"type":"message",` + base + `,"message":{"contents":[{"type":"text","content":"hi"},{"type":"image","images":["iVBORw0","http://x/y"]},{"type":"audio","audio":["A"]}],"id":"u","timestamp":1767225600.5,"role":"user"},"meta":{"reply_to":"z"}}`,
			`{"type":"message",` + out + `,"message":{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image","data":"iVBORw0","mimeType":"image/png"},{"type":"image_url","image_url":{"url":"http://x/y"}},{"type":"audio","audio":["A"]}],"timestamp":1767225600500,"id":"u"},"meta":{"reply_to":"z"}}`,
		},
		{
			"assistant", `{"type":"message",` + base + `,"message":{"contents":[{"type":"thinking","content":"hm","signature":"s"},{"type":"tool_call","id":"c","name":"n","kind":"read","args":{"a":1},"metadata":{}}],"timestamp":1,"role":"assistant","usage":{"input_tokens":1,"output_tokens":2,"cache_read_tokens":3,"cache_write_tokens":4,"cost":{"cache_read":0.5}},"stop_reason":"tool_calls","error":""}}`,
			`{"type":"message",` + out + `,"message":{"role":"assistant","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cost":{"cacheRead":0.5},"totalTokens":10},"stopReason":"toolUse","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"toolCall","id":"c","name":"n","kind":"read","arguments":{"a":1}}],"timestamp":1000}}`,
		},
		{"failed", `{"type":"message",` + base + `,"message":{"contents":[],"timestamp":1.0,"role":"assistant","stop_reason":"content_filter","error":"no"}}`, `{"type":"message",` + out + `,"message":{"role":"assistant","stopReason":"error","rawStopReason":"content_filter","errorMessage":"no","content":[],"timestamp":1000}}`},
		{"text alone", `{"type":"message",` + base + `,"message":{"role":"user","content":"plain","timestamp":2}}`, `{"type":"message",` + out + `,"message":{"role":"user","content":"plain","timestamp":2000}}`},
		{"summary", `{"type":"message",` + base + `,"message":{"role":"compaction_summary","summary":"S","tokens_before":3,"timestamp":2}}`, `{"type":"message",` + out + `,"message":{"role":"compactionSummary","summary":"S","tokensBefore":3,"timestamp":2000}}`},
		{"no message", `{"type":"message",` + base + `}`, `{"type":"message",` + out + `}`},
		{"message of another kind", `{"type":"message",` + base + `,"message":7}`, `{"type":"message",` + out + `,"message":7}`},
	}
	for _, tt := range tests {
		_, lines, err := readAll(open([]byte(lf(head, tt.in))))
		if err != nil || len(lines) != 1 {
			t.Errorf("%s: %d lines, %v", tt.name, len(lines), err)
			continue
		}
		if diff := cmp.Diff(tt.want, string(lines[0].Raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// A message with several results becomes a run of messages; the entry's children follow the last one, and references to
// the entry mean the first.
func TestSeveralResults(t *testing.T) {
	_, lines, err := readAll(open([]byte(lf(head,
		`{"type":"message","id":"c","parent_id":null,"timestamp":1.0,"message":{"role":"assistant","contents":[{"type":"tool_call","id":"k1","name":"ls","args":{}},{"type":"tool_call","id":"k2","name":"cat","args":{}}],"timestamp":1}}`,
		`{"type":"message","id":"r","parent_id":"c","timestamp":2.0,"message":{"role":"tool","contents":[{"type":"tool_result","id":"k1","content":"one","is_error":false,"metadata":{"m":1},"terminate":true},{"type":"tool_result","id":"k2","content":"two","is_error":true,"metadata":{}}],"timestamp":2,"id":"uu"}}`,
		`{"type":"label","id":"l","parent_id":"r","timestamp":3.0,"target_id":"r","label":"x"}`,
		`{"type":"leaf","id":"f","parent_id":"l","timestamp":4.0,"target_id":"r"}`))))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"type":"message","id":"r","parentId":"c","timestamp":"1970-01-01T00:00:02.000Z","message":{"role":"toolResult","toolCallId":"k1","toolName":"ls","content":[{"type":"text","text":"one"}],"details":{"m":1},"terminate":true,"isError":false,"timestamp":2000,"id":"uu"}}`,
		`{"type":"message","id":"r.1","parentId":"r","timestamp":"1970-01-01T00:00:02.000Z","message":{"role":"toolResult","toolCallId":"k2","toolName":"cat","content":[{"type":"text","text":"two"}],"isError":true,"timestamp":2000},"partOf":"r"}`,
		`{"type":"label","id":"l","parentId":"r.1","timestamp":"1970-01-01T00:00:03.000Z","targetId":"r","label":"x"}`,
		`{"type":"leaf","id":"f","parentId":"r.1","timestamp":"1970-01-01T00:00:04.000Z","targetId":"r.1","fromId":"l"}`,
	}
	var got []string
	for _, l := range lines[1:] {
		got = append(got, string(l.Raw))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestHeader(t *testing.T) {
	tests := []struct{ name, in, raw string }{
		{"usual", head, `{"type":"session","version":3,"id":"0196-s","timestamp":"2026-01-01T00:00:00.250Z","cwd":"/w"}`},
		{"parent, and more", `{"type":"session","version":3,"id":"s","timestamp":0,"cwd":"/w","parent_session":"/old","x":[1]}`, `{"type":"session","version":3,"id":"s","timestamp":"1970-01-01T00:00:00.000Z","cwd":"/w","parentSession":"/old","x":[1]}`},
		{"no parent", `{"type":"session","id":"s","timestamp":1,"cwd":"/w","parent_session":null}`, `{"type":"session","version":3,"id":"s","timestamp":"1970-01-01T00:00:01.000Z","cwd":"/w"}`},
		{"as the document has it", `{"type":"session_header","id":"s","timestamp":1,"cwd":"/w"}`, `{"type":"session","version":3,"id":"s","timestamp":"1970-01-01T00:00:01.000Z","cwd":"/w"}`},
		{"older", `{"type":"metadata","id":"s","created_at":"2026-04-01T10:00:00.5","updated_at":"u","metadata":{"cwd":"/w","title":"T"}}`, `{"type":"session","version":3,"id":"s","timestamp":"2026-04-01T10:00:00.500Z","cwd":"/w","updatedAt":"u","metadata":{"cwd":"/w","title":"T"}}`},
	}
	for _, tt := range tests {
		h, _, err := readAll(open([]byte(lf(tt.in))))
		if err != nil || string(h.Raw) != tt.raw || h.ID == "" || h.Cwd != "/w" || h.Created.IsZero() {
			t.Errorf("%s: %s, %+v, %v", tt.name, h.Raw, h, err)
		}
		if (h.Parent != "") != strings.Contains(tt.raw, "parentSession") || (h.Title != "") != (tt.name == "older") {
			t.Errorf("%s: parent %q, title %q", tt.name, h.Parent, h.Title)
		}
	}
}

// The older form has no ids: the order is the chain.
func TestOlderForm(t *testing.T) {
	r := open([]byte(lf(`{"type":"metadata","id":"s","created_at":"2026-04-01T10:00:00","updated_at":"u","metadata":{}}`,
		`{"role":"human","content":"q","id":"own","timestamp":1767225600.5}`, `{"role":"ai","content":"a"}`, `garbage`, `{"role":"tool","content":[{"type":"tool_result","id":"k","content":"1"},{"type":"tool_result","id":"k2","content":"2"}]}`, `{"role":"user","content":"q2"}`)))
	h, lines, err := readAll(r)
	if err != nil || len(lines) != 5 || r.BadLines() != 1 || r.Verbatim() || h.Made {
		t.Fatalf("%d lines, %d bad, %v", len(lines), r.BadLines(), err)
	}
	parents, found := transcript.ResolveParents(lines)
	if diff := cmp.Diff([]int64{-1, 0, 1, 2, 3}, parents); diff != "" || found != nil {
		t.Errorf("parents %v, %v", parents, found)
	}
	c := transcript.BuildContext(entriesOf(lines), transcript.Operator)
	var roles []string
	for _, m := range c.Messages {
		roles = append(roles, m.Role)
	}
	if diff := cmp.Diff([]string{"user", "assistant", "toolResult", "toolResult", "user"}, roles); diff != "" {
		t.Error(diff)
	}
}

func entriesOf(lines []transcript.Line) []transcript.Entry {
	var out []transcript.Entry
	for i, l := range lines {
		out = append(out, l.Entry(uint64(i)))
	}
	return out
}

// Every digit of a time comes back.
func TestTimes(t *testing.T) {
	for _, s := range []string{"1767225600.123456", "1767225600.1234567", "1767225600.5", "1767225600.0", "0.001", "0.0", "253402300799.999", "5.0"} {
		if got := string(secondsOf(isoTime([]byte(s)))); got != s {
			t.Errorf("%s became %s", s, got)
		}
		if got := string(secondsOfMillis(appendMillis(nil, []byte(s)))); got != s {
			t.Errorf("%s became %s by way of milliseconds", s, got)
		}
	}
	for in, want := range map[string]string{
		`5`: `"1970-01-01T00:00:05.000Z"`, `1.7672256e9`: `"2026-01-01T00:00:00.000Z"`, `"2026-01-01T00:00:00Z"`: `"2026-01-01T00:00:00Z"`,
		`-5`: `-5`, `1e300`: `1e300`, `null`: `null`, `{}`: `{}`, `99999999999999999999`: `99999999999999999999`,
	} {
		if got := string(isoTime([]byte(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// TestDamage: what is damaged is passed over and reported, and hides nothing.
func TestDamage(t *testing.T) {
	const a = `{"type":"session_info","id":"a","parent_id":null,"timestamp":1.0,"name":"n"}`
	const b = `{"type":"session_info","id":"b","parent_id":"a","timestamp":2.0,"name":"n"}`
	tests := []struct {
		name, in, ids string
		bad           int
	}{
		{"whole", lf(head, a, b), "a b", 0},
		{"torn last line", lf(head, a, b) + a[:30], "a b", 1},
		{"behind a torn line", lf(head, a[:30]+a, b), "a b", 1},
		{"two on a line", lf(head, a+b), "a b", 0},
		{"NUL", lf(head, a) + strings.Repeat("\x00", 100) + lf(b), "a b", 1},
		{"CR LF and a mark", "\ufeff" + strings.ReplaceAll(lf(head, a, b), "\n", "\r\n"), "a b", 0},
		{"bad line in the middle", lf(head, a, "{", b), "a b", 1},
		{"no header", lf(a, b), "a b", 0},
		{"two headers", lf(head, a, head, b), "a b", 1},
		{"no type", lf(head, a, `{"id":"x"}`, b), "a b", 1},
		{"no id", lf(head, a, strings.Replace(b, `"id":"b",`, "", 1)), "a *", 0},
		{"id of another kind", lf(head, a, strings.Replace(b, `"b"`, "7", 1)), "a *", 0},
		{"double id", lf(head, a, a, b), "a a b", 0},
		{"too deep", lf(head, `{"type":"dream","id":"d","parent_id":null,"timestamp":1,"x":`+strings.Repeat("[", 511)+strings.Repeat("]", 511)+`}`, a), "d a", 0},
		{"header without an id", lf(`{"type":"session","timestamp":1,"cwd":"/"}`, a), "a", 0},
		{"empty", "", "!", 0},
		{"prose", "Dear diary\n", "!", 1},
	}
	for _, tt := range tests {
		r := open([]byte(tt.in))
		_, lines, err := readAll(r)
		var ids []string
		for _, l := range lines {
			id := l.ID
			if len(id) > 3 {
				id = "*"
			}
			ids = append(ids, id)
		}
		got := strings.Join(ids, " ")
		if errors.Is(err, interop.ErrNotSession) {
			got = "!"
		} else if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got != tt.ids || r.BadLines() != tt.bad {
			t.Errorf("%s: %q, %d bad, %v", tt.name, got, r.BadLines(), r.Diagnostics())
		}
		if tt.name != "whole" && tt.name != "double id" && tt.name != "empty" && len(r.Diagnostics()) == 0 {
			t.Errorf("%s: nothing is said of it", tt.name)
		}
	}
}

// An entry over the limit becomes a stub that keeps its place and its structure.
func TestLarge(t *testing.T) {
	long := strings.Repeat("x", 5<<20)
	_, lines, err := readAll(open([]byte(lf(head,
		`{"type":"message","id":"a","message":{"role":"user","contents":[{"type":"text","content":"`+long+`"},{"type":"text","content":"short"}],"timestamp":1.0},"timestamp":1.0,"parent_id":"p"}`,
		`{"role":"x"}`,
		`{"type":"session_info","id":"b","parent_id":"a","timestamp":2.0,"name":"n"}`))))
	if err != nil || len(lines) < 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if l := lines[0]; l.ID != "a" || l.ParentID != "p" || len(l.Raw) > 1000 || !bytes.Contains(l.Raw, []byte(`"short"`)) || !bytes.Contains(l.Raw, []byte(`"stub":{"bytes":52430`)) {
		t.Errorf("stub %.600s", l.Raw)
	}
}
