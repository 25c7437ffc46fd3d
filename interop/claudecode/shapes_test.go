package claudecode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// providers are shapes of messages: an answer with calls, and what comes back.
var providers = []struct {
	name     string
	answer   func(text string, calls []string) []string // messages
	results  func(calls []string) []string
	separate bool // each call is a message of its own
}{
	{
		name: "pi", answer: one(`{"role":"assistant","content":[{"type":"text","text":%q}%s],"stopReason":"stop"}`, `,{"type":"toolCall","id":"%[1]s","name":"ls","arguments":{"n":%[1]q}}`),
		results: each1(`{"role":"toolResult","toolCallId":"%[1]s","toolName":"ls","content":[{"type":"text","text":"out-%[1]s"}],"isError":false}`),
	},
	{
		name: "anthropic", answer: one(`{"role":"assistant","content":[{"type":"text","text":%q}%s]}`, `,{"type":"tool_use","id":"%[1]s","name":"ls","input":{"n":%[1]q}}`),
		results: all(`{"role":"user","content":[%s]}`, `{"type":"tool_result","tool_use_id":"%[1]s","content":"out-%[1]s"}`),
	},
	{
		name: "openai", answer: one(`{"role":"assistant","content":%q,"tool_calls":[%s]}`, `,{"id":"%[1]s","type":"function","function":{"name":"ls","arguments":"{\"n\":\"%[1]s\"}"}}`),
		results: each1(`{"role":"tool","tool_call_id":"%[1]s","content":"out-%[1]s"}`),
	},
	{
		name: "responses", separate: true, answer: func(text string, calls []string) []string {
			out := []string{fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, text)}
			return append(out, each1(`{"type":"function_call","call_id":"%[1]s","name":"ls","arguments":"{\"n\":\"%[1]s\"}"}`)(calls)...)
		}, results: each1(`{"type":"function_call_output","call_id":"%[1]s","output":"out-%[1]s"}`),
	},
	{
		name: "gemini", answer: one(`{"role":"model","parts":[{"text":%q}%s]}`, `,{"functionCall":{"name":"ls","args":{"n":%q}}}`),
		results: all(`{"role":"user","parts":[%s]}`, `{"functionResponse":{"name":"ls","response":"out-%s"}}`),
	},
	{
		name: "bedrock", answer: one(`{"role":"assistant","content":[{"text":%q}%s]}`, `,{"toolUse":{"toolUseId":"%[1]s","name":"ls","input":{"n":%[1]q}}}`),
		results: all(`{"role":"user","content":[%s]}`, `{"toolResult":{"toolUseId":"%[1]s","content":[{"text":"out-%[1]s"}]}}`),
	},
}

func each1(form string) func(calls []string) (out []string) {
	return func(calls []string) (out []string) {
		for _, c := range calls {
			out = append(out, fmt.Sprintf(form, c))
		}
		return out
	}
}

func one(form, call string) func(text string, calls []string) []string {
	return func(text string, calls []string) []string {
		return []string{strings.Replace(fmt.Sprintf(form, text, strings.Join(each1(call)(calls), "")), "[,", "[", 1)}
	}
}

func all(form, result string) func(calls []string) []string {
	return func(calls []string) []string {
		if len(calls) == 0 {
			return nil
		}
		return []string{fmt.Sprintf(form, strings.Join(each1(result)(calls), ","))}
	}
}

// grove is a session with branches, in messages of any shape.
type grove struct {
	entries []transcript.Draft
	said    map[string]string // by entry at which a turn ended: the conversation up to it
	calls   int
}

func (g *grove) add(parent, message string) string {
	id := fmt.Sprintf("e%d", len(g.entries))
	up := "null"
	if parent != "" {
		up = fmt.Sprintf("%q", parent)
	}
	g.entries = append(g.entries, transcript.Draft{Raw: []byte(fmt.Sprintf(`{"type":"message","id":%q,"parentId":%s,"timestamp":"2026-01-01T00:00:00.000Z","message":%s}`, id, up, message))})
	return id
}

// turn adds a question, an answer and what its calls gave.
func (g *grove) turn(t *rapid.T, at string) string {
	p := rapid.SampledFrom(providers).Draw(t, "provider")
	var calls []string
	for range rapid.IntRange(0, 3).Draw(t, "calls") {
		g.calls++
		calls = append(calls, fmt.Sprintf("k%d", g.calls))
	}
	text := fmt.Sprint("t", len(g.entries))
	said := g.said[at] + fmt.Sprintf(" u:q%d a:%s", len(g.entries), text)
	at = g.add(at, fmt.Sprintf(`{"role":"user","content":"q%d"}`, len(g.entries)))
	for _, m := range append(p.answer(text, calls), p.results(calls)...) {
		at = g.add(at, m)
	}
	for _, c := range calls {
		if p.separate {
			said += " a:"
		}
		said += "+" + c
		if p.separate {
			said += fmt.Sprintf(" r:%s=out-%s", c, c)
		}
	}
	for _, c := range calls {
		if !p.separate {
			said += fmt.Sprintf(" r:%s=out-%s", c, c)
		}
	}
	g.said[at] = said
	return at
}

// saidAt returns the conversation on the path to an entry; a result has the name of its call.
func saidAt(t testing.TB, s *session, id string) string {
	t.Helper()
	calls, out := map[string]string{}, ""
	for _, e := range s.Path(t, id) {
		var v struct {
			Message struct {
				Role, ToolCallID string
				Content          json.RawMessage
			}
		}
		if err := json.Unmarshal(e.Raw, &v); err != nil {
			t.Fatal(err)
		}
		var blocks []struct {
			Type, Text, ID string
			Arguments      struct{ N string }
		}
		var text string
		if json.Unmarshal(v.Message.Content, &text) != nil && v.Message.Content != nil {
			if err := json.Unmarshal(v.Message.Content, &blocks); err != nil {
				t.Fatalf("%v: %s", err, v.Message.Content)
			}
		}
		switch v.Message.Role {
		case "":
			continue
		case "toolResult":
			out += " r:" + calls[v.Message.ToolCallID] + "="
		default:
			out += " " + v.Message.Role[:1] + ":"
		}
		out += text
		for _, b := range blocks {
			out += strings.Trim(b.Text, `"`) // Gemini's are JSON
			if b.Type == "toolCall" {
				calls[b.ID] = b.Arguments.N
				out += "+" + b.Arguments.N
			}
		}
	}
	return out
}

// TestWriteShapes: calls, results and texts of every provider's messages are read back on every branch, each result
// with its call; and Claude Code loads the file. The same holds for an imported session that was continued.
func TestWriteShapes(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		g := grove{said: map[string]string{}}
		text, root := "", ""
		header := interop.Header{ID: "mine", Cwd: "/w"}
		if rapid.Bool().Draw(rt, "imported") {
			text = file(node{id: "11111111-1111-4111-8111-111111111111", typ: "user", content: `"q"`},
				node{id: "22222222-1111-4111-8111-111111111111", parent: "11111111-1111-4111-8111-111111111111", typ: "assistant", content: call("ls")},
				node{id: "33333333-1111-4111-8111-111111111111", parent: "22222222-1111-4111-8111-111111111111", typ: "user", content: result("ls")})
			s, _ := read(t, text)
			for _, e := range s.Entries {
				g.entries = append(g.entries, transcript.Draft{Raw: e.Raw})
				root = e.ID
			}
			header, g.said[root] = s.Header, " u:q a:+ r:=out-ls"
		}
		known := len(g.entries)
		tips, places, at := map[string]bool{}, []string{root}, root
		for range rapid.IntRange(1, 6).Draw(rt, "turns") {
			if rapid.IntRange(0, 2).Draw(rt, "back") == 0 {
				at = rapid.SampledFrom(places).Draw(rt, "back to")
			}
			delete(tips, at)
			at = g.turn(rt, at)
			places, tips[at] = append(places, at), true
		}
		var out bytes.Buffer
		out.WriteString(text)
		losses, err := Append(&out, header, known, transcript.Drafts(g.entries...), at)
		if err != nil {
			rt.Fatal(err)
		}
		for kind := range losses {
			if !strings.HasSuffix(kind, "rewritten") {
				rt.Fatalf("lost: %v", losses)
			}
		}
		if err := loads(out.String()); err != nil {
			rt.Fatalf("%v\n%s", err, out.String())
		}
		s, r := read(t, out.String())
		if got, want := saidAt(t, &s, ""), g.said[at]; got != want || len(r.Diagnostics()) > 0 {
			rt.Fatalf("at the end\n got %s\nwant %s\n%v\n%s", got, want, r.Diagnostics(), out.String())
		}
		said := map[string]bool{}
		for _, e := range s.Entries {
			said[saidAt(t, &s, e.ID)] = true
		}
		for tip := range tips {
			if !said[g.said[tip]] {
				rt.Fatalf("no branch says\n%s\n%s", g.said[tip], out.String())
			}
		}
	})
}

var callIDs = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// loads checks a file against the rules of Claude Code and its provider: unique IDs of lines, parents first, adjacent
// lines for a message's ID, unique calls, and results after them.
func loads(text string) error {
	type line struct {
		Type, UUID, SessionID, Version, Cwd, Timestamp string
		ParentUUID, LogicalParentUUID                  *string
		IsSidechain                                    *bool
		Message                                        *struct {
			Role, ID, Model string
			Content         json.RawMessage
			Usage           map[string]any
		}
	}
	seen, called, sent := map[string]line{}, map[string]bool{}, map[string]string{}
	var last string
	for i, raw := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		var l line
		if err := json.Unmarshal([]byte(raw), &l); err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		fault := func(what string) error { return fmt.Errorf("line %d: %s: %s", i+1, what, raw) }
		if l.Type != "user" && l.Type != "assistant" && l.Type != "system" {
			continue
		}
		_, twice := seen[l.UUID]
		if _, err := time.Parse(time.RFC3339, l.Timestamp); err != nil || l.UUID == "" || twice || l.SessionID == "" || l.Version == "" || l.Cwd == "" || l.IsSidechain == nil {
			return fault("its envelope")
		}
		if l.ParentUUID != nil && seen[*l.ParentUUID].UUID == "" {
			return fault("its parent is not before it")
		}
		seen[l.UUID] = l
		if l.Type == "system" {
			continue
		}
		if l.Message == nil || l.Message.Role != l.Type {
			return fault("its message")
		}
		var blocks []map[string]any
		var said string
		if json.Unmarshal(l.Message.Content, &said) != nil && json.Unmarshal(l.Message.Content, &blocks) != nil || said == "" && len(blocks) == 0 {
			return fault("its content")
		}
		if l.Type == "assistant" {
			if was, ok := sent[l.Message.ID]; ok && was != last || l.Message.ID == "" || l.Message.Model == "" {
				return fault("its message's id")
			}
			for _, name := range []string{"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
				if _, ok := l.Message.Usage[name].(float64); !ok && l.Message.ID != "msg_"+l.UUID { // the reader's tests write less
					return fault("its usage")
				}
			}
			sent[l.Message.ID] = l.UUID
		}
		last = l.UUID
		for _, b := range blocks {
			switch b["type"] {
			case "tool_use":
				id, _ := b["id"].(string)
				if called[id] || !callIDs.MatchString(id) || l.Type != "assistant" {
					return fault("its call")
				}
				called[id] = true
			case "tool_result":
				id, _ := b["tool_use_id"].(string)
				found := false
				for at := &l; !found && at.ParentUUID != nil; {
					up := seen[*at.ParentUUID]
					found = up.Type == "assistant" && strings.Contains(string(up.Message.Content), fmt.Sprintf("%q", id))
					at = &up
				}
				if !found || l.Type != "user" {
					return fault("a result without its call")
				}
			case "text", "thinking", "redacted_thinking", "image", "document", "server_tool_use", "web_search_tool_result":
			default:
				return fault(fmt.Sprint("a block of type ", b["type"]))
			}
		}
	}
	return nil
}

// TestWriteMessages: the exact lines of single messages, and the losses.
func TestWriteMessages(t *testing.T) {
	const rewritten = "messages that lack what the format needs, or are in another provider's shape: rewritten"
	const zero = `"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}`
	head := func(model, content, stop, usage string) string {
		return fmt.Sprintf(`{"id":"msg_ID","type":"message","role":"assistant","model":%q,"content":%s,"stop_reason":%s,"stop_sequence":null,%s}`, model, content, stop, usage)
	}
	tests := []struct {
		name, message string
		want          []string
		losses        string
	}{
		{
			"anthropic, whole", `{"id":"msg_1","type":"message","role":"assistant","model":"claude-y","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a","citations":[{"type":"x"}],"cache_control":{"type":"ephemeral"}},{"type":"server_tool_use","id":"srv","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srv","content":[]}],"stop_reason":"stop_sequence","stop_sequence":"X","usage":{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":7,"cache_creation_input_tokens":8,"cache_creation":{"ephemeral_1h_input_tokens":8},"service_tier":"standard"}}`,
			[]string{`{"id":"msg_1","type":"message","role":"assistant","model":"claude-y","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"a","citations":[{"type":"x"}]},{"type":"server_tool_use","id":"srv","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srv","content":[]}],"stop_reason":"stop_sequence","stop_sequence":"X","usage":{"input_tokens":5,"output_tokens":6,"cache_read_input_tokens":7,"cache_creation_input_tokens":8,"cache_creation":{"ephemeral_1h_input_tokens":8},"service_tier":"standard"}}`},
			"map[]",
		},
		{
			"anthropic user", `{"role":"user","content":[{"type":"tool_result","tool_use_id":"gone","content":"one"},{"type":"text","text":"q"},{"type":"image","source":{"type":"url","url":"https://x"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="},"title":"T"}]}`,
			[]string{`{"role":"user","content":"one"}`, `{"role":"user","content":[{"type":"text","text":"q"},{"type":"image","source":{"type":"url","url":"https://x"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="},"title":"T"}]}`},
			"map[results whose call is not there: written as text:1]",
		},
		{
			"pi", `{"role":"assistant","provider":"anthropic","model":"claude-y","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"s"},{"type":"toolCall","id":"k","name":"n","arguments":{"x":1}}],"stopReason":"toolUse","usage":{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"cacheWrite1h":1,"cost":{"total":0.5}}}`,
			[]string{head("claude-y", `[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"k","name":"n","input":{"x":1}}]`, `"tool_use"`,
				`"usage":{"input_tokens":1,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,"output_tokens":2,"cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":1}}`)},
			"map[costs of messages:1]",
		},
		{
			"openai", `{"role":"assistant","content":null,"tool_calls":[{"id":"k|1","type":"function","function":{"name":"n","arguments":"{torn"}}],"finish_reason":"tool_calls","usage":{"prompt_tokens":10,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}`,
			[]string{head("claude-z", `[{"type":"tool_use","id":"toolu_07f3328fbecbdea18f507192","name":"n","input":{"input":"{torn"}}]`, `"tool_use"`,
				`"usage":{"input_tokens":6,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":2}`)},
			"map[" + rewritten + ":1]",
		},
		{
			"openai user", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x"}},{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,AAAA"}},{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}`,
			[]string{`{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://x"}},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AAAA"},"title":"a.pdf"},{"type":"text","text":"[file, wav, 3 bytes, not in this file]"}]}`},
			"map[documents and recordings that Claude Code has no form for: named in words, without their bytes:1 " + rewritten + ":1]",
		},
		{
			"gemini", `{"role":"model","parts":[{"text":"hm","thought":true},{"text":"a"},{"functionCall":{"name":"n","args":{}}}],"finishReason":"MAX_TOKENS","modelVersion":"gemini-3","usageMetadata":{"promptTokenCount":10,"cachedContentTokenCount":4,"candidatesTokenCount":3,"thoughtsTokenCount":2}}`,
			[]string{head("gemini-3", `[{"type":"text","text":"a"},{"type":"tool_use","id":"call_c4561e31d44f88833f9e1781","name":"n","input":{}}]`, `"max_tokens"`,
				`"usage":{"input_tokens":6,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":5}`)},
			"map[" + rewritten + ":1 thinking that Anthropic did not sign:1]",
		},
		{
			"gemini user", `{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"inlineData":{"mimeType":"text/plain","data":"aGk="}}]}`,
			[]string{`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}},{"type":"document","source":{"type":"text","media_type":"text/plain","data":"hi"}}]}`},
			"map[" + rewritten + ":1]",
		},
		{
			"bedrock", `{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},{"text":"a"}],"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":2}}`,
			[]string{head("claude-z", `[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"}]`, `"end_turn"`,
				`"usage":{"input_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}`)},
			"map[" + rewritten + ":1]",
		},
		{
			"bedrock, redacted", `{"role":"assistant","content":[{"reasoningContent":{"redactedContent":"cmVk"}},{"reasoningContent":{"reasoningText":{"text":"hm"}}},{"text":"a"}],"stopReason":"guardrail_intervened","modelId":"m-x","usage":{"inputTokens":1,"outputTokens":2,"cacheReadInputTokens":3,"cacheWriteInputTokens":4}}`,
			[]string{head("m-x", `[{"type":"redacted_thinking","data":"cmVk"},{"type":"text","text":"a"}]`, `"refusal"`,
				`"usage":{"input_tokens":1,"cache_creation_input_tokens":4,"cache_read_input_tokens":3,"output_tokens":2}`)},
			"map[" + rewritten + ":1 thinking that Anthropic did not sign:1]",
		},
		{
			"openai, thought aloud", `{"role":"assistant","content":"a","reasoning_content":"hm","finish_reason":"content_filter","usage":{"input_tokens":300,"input_tokens_details":{"cached_tokens":256},"output_tokens":50,"total_tokens":350,"cost":0.5}}`,
			[]string{head("claude-z", `[{"type":"text","text":"a"}]`, `"refusal"`,
				`"usage":{"input_tokens":44,"cache_creation_input_tokens":0,"cache_read_input_tokens":256,"output_tokens":50}`)},
			"map[costs of messages:1 " + rewritten + ":1 thinking that Anthropic did not sign:1]",
		},
		{"library's own", `{"role":"assistant","content":"a"}`, []string{head("claude-z", `[{"type":"text","text":"a"}]`, `"end_turn"`, zero)}, "map[]"},
		{"aborted", `{"role":"assistant","content":"a","stopReason":"aborted"}`, []string{head("claude-z", `[{"type":"text","text":"a"}]`, `null`, zero)}, "map[]"},
		{"an unknown block", `{"role":"user","content":[{"type":"hologram","url":"h"}]}`, []string{`{"role":"user","content":[{"type":"text","text":"[hologram: h]"}]}`}, "map[blocks that the format has no form for: kept as text:1 " + rewritten + ":1]"},
		{"an unknown role", `{"role":"oracle","content":"o"}`, []string{`{"role":"user","content":"o"}`}, "map[messages of roles that the format does not have: kept as custom messages:1]"},
		{"developer", `{"role":"developer","content":[{"type":"input_text","text":"d"}]}`, []string{`{"role":"user","content":[{"type":"text","text":"d"}]}`}, "map[messages of role developer: written as the program's own:1]"},
		{"reasoning alone", `{"type":"reasoning","encrypted_content":"x","summary":[]}`, nil, "map[thinking that Anthropic did not sign:1]"},
		{"details", `{"role":"toolResult","toolCallId":"there","content":[{"type":"text","text":"r"}],"details":{"x":1}}`, []string{`{"role":"user","content":[{"tool_use_id":"there","type":"tool_result","content":[{"type":"text","text":"r"}]}]}`}, "map[details of results of tools:1]"},
		{"a program says nothing", `{"role":"developer","content":[{"type":"text","text":" "}]}`, nil, "map[messages of role developer: written as the program's own:1 messages without content that Claude Code can show:1]"},
		{"nobody says anything", `{"role":"user","content":[{"type":"text","text":""}]}`, nil, "map[messages without content that Claude Code can show:1]"},
		{"no object", `7`, nil, "map[messages that are no objects:1]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			losses, err := Write(&out, interop.Header{ID: "mine", Cwd: "/w"}, func(yield func(transcript.Draft, error) bool) {
				_ = yield(transcript.Draft{Raw: []byte(`{"type":"model_change","id":"m","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","provider":"anthropic","modelId":"claude-z"}`)}, nil) &&
					yield(transcript.Draft{Raw: []byte(`{"type":"message","id":"a","parentId":"m","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"there","name":"n","input":{}}]}}`)}, nil) &&
					yield(transcript.Draft{Raw: []byte(`{"type":"message","id":"b","parentId":"a","timestamp":"2026-01-01T00:00:00.000Z","message":` + tt.message + `}`)}, nil)
			})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				var l struct {
					Message json.RawMessage
					UUID    string
				}
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatal(err)
				}
				got = append(got, strings.ReplaceAll(string(l.Message), strings.ReplaceAll(l.UUID, "-", ""), "ID"))
			}
			if diff := cmp.Diff(tt.want, slices.Clone(got[1:]), cmp.Transformer("none", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Error(diff)
			}
			if got := fmt.Sprint(losses); got != tt.losses {
				t.Errorf("losses %s, want %s", got, tt.losses)
			}
			if err := loads(out.String()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWriteWays: an entry below a message with several lines continues from all of them. The result of a call on
// another branch is no result here, and the model of that branch is not in force.
func TestWriteWays(t *testing.T) {
	var g grove
	q := g.add("", `{"role":"user","content":"q"}`)
	g.add(g.add(q, `{"role":"assistant","model":"claude-y","content":[{"type":"tool_use","id":"k","name":"n","input":{}}]}`),
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"k","content":"here"}]}`)
	two := g.add(q, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"k","content":"alone"},{"type":"text","text":"said"}]}`)
	g.add(two, `{"role":"assistant","content":"end"}`)
	var out bytes.Buffer
	losses, err := Write(&out, interop.Header{ID: "mine", Cwd: "/w"}, transcript.Drafts(g.entries...))
	if err != nil || len(losses) != 1 || losses["results whose call is not there: written as text"] != 1 {
		t.Errorf("%v %v", losses, err)
	}
	if err := loads(out.String()); err != nil {
		t.Error(err)
	}
	s, _ := read(t, out.String())
	if got := s.Talk(t, ""); got != "u:q m:alone u:said a:end" {
		t.Error(got)
	}
	if last := s.Entries[len(s.Entries)-1]; !strings.Contains(string(last.Raw), `"model":"unknown"`) {
		t.Errorf("the model of another branch: %s", last.Raw)
	}
}
