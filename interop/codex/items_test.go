package codex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
)

// TestItems: the first entry after the header, for items of every kind and for odd ones.
func TestItems(t *testing.T) {
	const message = `{"type":"message","role":%q,"content":%s}`
	role := func(role, content string) string { return item(fmt.Sprintf(message, role, content)) }
	function := func(args string) string {
		return item(`{"type":"function_call","name":"f","call_id":"c","arguments":` + args + `}`)
	}
	called := func(name, args string) string {
		return `[{"type":"toolCall","id":"c","name":"` + name + `","arguments":` + args + `}]`
	}
	out := func(kind, output string) string { return item(`{"type":"` + kind + `","call_id":"c",` + output + `}`) }
	tests := []struct{ name, text, want string }{ // want: the content and isError of a message, or the type and data of a custom entry
		{"two parts", role("assistant", `[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]`), `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
		{"two answers", role("assistant", `"a"`) + role("assistant", `[{"text":"b"}]`), `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`},
		{"nothing, then something", role("assistant", `[]`) + role("assistant", `"a"`), `[{"type":"text","text":"a"}]`},
		{"nothing", role("assistant", `[]`), `[]`},
		{"a refusal", role("assistant", `[{"type":"refusal","refusal":"no"}]`), `[{"type":"text","text":"no"}]`},
		{"parts of other kinds", role("assistant", `[{"type":"x","y":1},7,{"text":"a"}]`), `[{"type":"x","y":1},{"type":"text","text":"a"}]`},
		{"an image that is none", role("user", `[{"type":"input_image","image_url":"data:text/plain;base64,AAAA"}]`), `[{"type":"input_image","image_url":"data:text/plain;base64,AAAA"}]`},
		{"parts that are no objects", role("user", `["a",7]`), `[{"type":"text","text":"a"},{"type":"text","text":"7"}]`},
		{"thoughts", item(`{"type":"reasoning","summary":[{"text":"a"},{"text":"b"}],"content":[{"text":"c"}]}`), `"thinking":"a\n\nb",`},
		{"thoughts as they are", item(`{"type":"reasoning","summary":[],"content":[{"text":"c <é>"}]}`), `"thinking":"c \u003cé\u003e",`},
		{"arguments as text", function(`"{\"a\":\"\\u00e9\"}"`), called("f", `{"a":"\u00e9"}`)},
		{"arguments as an object", function(`{"a":1}`), called("f", `{"a":1}`)},
		{"arguments with white space", function(`" {} "`), called("f", `{}`)},
		{"arguments over two lines", function(`"{\n}"`), called("f", `{"input":"{\n}"}`)},
		{"arguments that are no object", function(`"[1]"`), called("f", `{"input":"[1]"}`)},
		{"arguments cut off", function(`"{\"a\":"`), called("f", `{"input":"{\"a\":"}`)},
		{"arguments that are null", function(`null`), called("f", `{}`)},
		{"no arguments", item(`{"type":"function_call","name":"f","call_id":"c"}`), called("f", `{}`)},
		{"a patch", item(`{"type":"custom_tool_call","name":"f","input":"x","call_id":"c"}`), called("f", `{"input":"x"}`)},
		{"a shell", item(`{"type":"local_shell_call","id":"c","action":{"command":["ls"]}}`), called("local_shell", `{"command":["ls"]}`)},
		{"a search for tools", item(`{"type":"tool_search_call","call_id":"c","arguments":{"query":"q"}}`), called("tool_search", `{"query":"q"}`)},
		{"a call without a name", item(`{"type":"function_call","call_id":"c"}`), "codex.function_call"},
		{"a call without an id", item(`{"type":"function_call","name":"f"}`), "codex.function_call"},
		{"what tools there are", out("tool_search_output", `"tools":[{"name":"f"}]`), `[{"type":"text","text":"[{\"name\":\"f\"}]"}],"isError":false`},
		{"an output in parts", out("function_call_output", `"output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:image/png;base64,AA"}]`), `[{"type":"text","text":"a"},{"type":"image","data":"AA","mimeType":"image/png"}],"isError":false`},
		{"an output with parts in it", out("function_call_output", `"output":{"content":[{"text":"a"}],"success":true}`), `[{"type":"text","text":"a"}],"isError":false`},
		{"a failure", out("function_call_output", `"output":{"content":"a","success":false}`), `[{"type":"text","text":"a"}],"isError":true`},
		{"an exit code", out("function_call_output", `"output":"{\"output\":\"\",\"metadata\":{\"exit_code\":2}}"`), `,"isError":true`},
		{"no failure", out("function_call_output", `"output":"{\"output\":\"\",\"metadata\":{\"exit_code\":0}}"`), `,"isError":false`},
		{"no output", out("function_call_output", `"output":null`), `[],"isError":false`},
		{"a message of no kind", item(`{"type":"message","role":"user","content":7}`), "codex.message"},
		{"an item of a new kind", item(`{"type":"new"}`), "codex.new"},
		{"an item of no kind", item(`{}`), "codex.line"},
		{"an item of a kind that is long", item(`{"type":"` + strings.Repeat("x", 201) + `"}`), "codex.line"},
		{"a line of a new kind", wrap("new", `{}`), "codex.new"},
		{"an event of no kind", event(`{}`), "codex.event_msg"},
		{"the user, aborted", user(" \n<turn_aborted>\n"), "codex.context"},
		{"a role of its own", role("system", `"s"`), "codex.system"},
		{"a turn without a model", wrap("turn_context", `{"cwd":"/w"}`), "codex.turn_context"},
		{"tokens that are no numbers", said("a") + event(`{"type":"token_count","info":{"last_token_usage":{"input_tokens":5,"cached_input_tokens":9,"output_tokens":-1,"reasoning_output_tokens":99999999999999999}}}`), `"usage":{"input":0,"output":0,"cacheRead":5,"cacheWrite":0,"totalTokens":5,`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := collect(t, reader(meta+tt.text))
			if len(s.Entries) < 2 {
				t.Fatal("no entry")
			}
			raw := s.Entries[1].Raw
			got := string(rawjson.Field(rawjson.Field(raw, "message"), "content"))
			switch {
			case !strings.HasPrefix(tt.want, "["):
				got = string(raw)
			case strings.Contains(tt.want, "isError"):
				got += `,"isError":` + string(rawjson.Field(rawjson.Field(raw, "message"), "isError"))
			}
			if whole := strings.HasPrefix(tt.want, "["); got != tt.want && whole || !strings.Contains(got, tt.want) {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if kind, ok := strings.CutPrefix(tt.want, "codex."); ok && rawjson.Text(rawjson.Field(raw, "customType")) != "codex."+kind {
				t.Errorf("%s", raw)
			}
		})
	}
}

// TestSizeCalls: an output has the name of its call's tool after any number of calls; at most 65,536 waiting calls are
// remembered.
func TestSizeCalls(t *testing.T) {
	testutil.SkipLong(t)
	const most = 1 << 16
	call, out := calls("@"), output("@", "o")
	var text strings.Builder
	text.WriteString(meta)
	for i := range most + 10 {
		id := fmt.Sprint("done", i)
		text.WriteString(with(call, id) + with(out, id))
	}
	for i := range most + 10 {
		text.WriteString(with(call, fmt.Sprint("open", i)))
	}
	for _, i := range []int{0, most - 1, most + 9} {
		text.WriteString(output(fmt.Sprint("open", i), "o"))
	}
	r := reader(text.String())
	n, named := 0, 0
	for {
		d, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(d.Raw, []byte(`"role":"toolResult"`)) {
			if n++; bytes.Contains(d.Raw, []byte(`"toolName":"shell"`)) {
				named++
			}
		}
	}
	if n != most+13 || named != n-1 {
		t.Errorf("%d outputs, %d with a name", n, named)
	}
}

// TestTurns: model and effort are recorded when they change, and only then.
func TestTurns(t *testing.T) {
	text := meta
	for _, turn := range []string{"a high", "a high", "a none", "b none", "b high"} {
		model, effort, _ := strings.Cut(turn, " ")
		text += wrap("turn_context", fmt.Sprintf(`{"model":%q,"effort":%q}`, model, effort))
	}
	var got []string
	for _, e := range collect(t, reader(text)).Entries {
		switch e.Type {
		case "model_change":
			got = append(got, rawjson.Text(rawjson.Field(e.Raw, "modelId")))
		case "thinking_level_change":
			got = append(got, rawjson.Text(rawjson.Field(e.Raw, "thinkingLevel")))
		}
	}
	if want := "a high off b high"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestEchoes: events that repeat an item are dropped; others are kept, within bounds.
func TestEchoes(t *testing.T) {
	testutil.SkipLong(t)
	agent := func(text string) string {
		return with(event(`{"type":"agent_message","message":"@"}`), strings.ReplaceAll(text, "\n", `\n`))
	}
	said := func(text string) string { return with(said("@"), text) }
	done := func(typ, content string) string {
		return event(`{"type":"item_completed","turn_id":"t","item":{"type":"` + typ + `","content":[` + content + `]}}`)
	}
	pictured := strings.Replace(user("q"), "}]", `},{"type":"input_image","image_url":"x"}]`, 1)
	text := func(text string) string { return fmt.Sprintf(`{"type":"Text","text":%q}`, text) }
	list := func(from, to int, line func(string) string) (text string) {
		for i := from; i < to; i++ {
			text += line(fmt.Sprint("t", i))
		}
		return text
	}
	mib := func(i int) string { return fmt.Sprint(i, strings.Repeat("-", 1<<20)) }
	thought := func(text string) string {
		return item(fmt.Sprintf(`{"type":"reasoning","summary":[{"text":%q}],"content":[{"text":"r%s"}]}`, text, text))
	}
	two := item(`{"type":"message","role":"assistant","content":[{"text":"a\n"},{"text":"b"}]}`)
	tests := []struct {
		name, text    string
		kept, dropped int
	}{
		{"the item first", said("a") + agent("a"), 0, 1},
		{"the event first", agent("a") + said("a"), 0, 1},
		{"twice", agent("a") + said("a") + agent("a"), 0, 2},
		{"another text", agent("a") + said("b"), 1, 0},
		{"no text", event(`{"type":"agent_message"}`) + event(`{"type":"agent_message","message":7}`) + said(""), 2, 0},
		{"parts with a line between", two + agent("a\n\nb"), 0, 1},
		{"parts without", two + agent("ab"), 0, 1},
		{"one part", two + agent("b"), 0, 1},
		{"a thought", thought("a") + event(`{"type":"agent_reasoning","text":"a"}`) + event(`{"type":"agent_reasoning_raw_content","text":"ra"}`), 0, 2},
		{"paged", done("AgentMessage", text("a")) + said("a") + user("q") + done("UserMessage", text("q")), 0, 2},
		{"paged, of parts", two + done("AgentMessage", text("a\n")+","+text("b")), 0, 1},
		{"paged, with an image", pictured + done("UserMessage", text("q")+`,{"type":"image"}`), 0, 1},
		{"paged, of no item", said("a") + done("Plan", text("a")) + done("AgentMessage", text("c")), 2, 0},
		{"paged, without a text", done("UserMessage", ""), 1, 0},
		{"a break between thoughts", event(`{"type":"agent_reasoning_section_break"}`), 0, 1},
		{"what a replaced history says", agent("a") + wrap("compacted", `{"message":"m","replacement_history":[{"type":"message","role":"user","content":"a"}]}`), 1, 0},
		{"as many as wait", list(0, 64, agent) + list(0, 64, said), 0, 64},
		{"more than wait", list(0, 100, agent) + list(0, 100, said), 36, 64},
		{"as many as are known", list(0, 256, said) + list(0, 256, agent), 0, 256},
		{"more than are known", list(0, 266, said) + list(0, 266, agent), 10, 256},
		{"more bytes than wait", agent(mib(0)) + agent(mib(1)) + agent(mib(2)) + agent(mib(3)) + said(mib(0)) + said(mib(1)) + said(mib(2)) + said(mib(3)), 1, 3},
		{"many bytes, one after the other", agent(mib(0)) + said(mib(0)) + agent(mib(1)) + said(mib(1)) + agent(mib(2)) + said(mib(2)) + agent(mib(3)) + said(mib(3)) + agent(mib(4)) + said(mib(4)), 0, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := reader(meta + tt.text)
			kept := 0
			for _, e := range collect(t, r).Entries {
				kind := rawjson.Text(rawjson.Field(e.Raw, "customType"))
				if strings.HasPrefix(kind, "codex.agent_") || kind == "codex.item_completed" {
					kept++
				}
			}
			told := ""
			if tt.dropped > 0 {
				told = fmt.Sprintf("events that repeat an item, left out: %d", tt.dropped)
			}
			got := ""
			if d := r.Diagnostics(); len(d) > 0 {
				got = d[len(d)-1].Detail
			}
			if kept != tt.kept || got != told {
				t.Errorf("%d events are kept, want %d; %q, want %q", kept, tt.kept, got, told)
			}
		})
	}
}

// TestHeld: lines within an answer follow it, up to 4 MiB; beyond that the answer ends.
func TestHeld(t *testing.T) {
	testutil.SkipLong(t)
	noise := event(`{"type":"task_started","x":"` + strings.Repeat("-", 1<<20) + `"}`)
	for n, want := range map[int]string{0: "a:ab", 3: "a:ab", 4: "a:a a:b"} {
		s := collect(t, reader(meta+said("a")+strings.Repeat(noise, n)+said("b")))
		if got := s.Talk(t, ""); strings.ReplaceAll(got, "|", "") != want || len(s.Entries) != 2+n+strings.Count(want, " ") {
			t.Errorf("%d lines: %s in %d entries, want %s", n, got, len(s.Entries), want)
		}
	}
}

// Codex reports in the text of an output whether the call failed, before what the command wrote.
func TestFailedCalls(t *testing.T) {
	for output, want := range map[string]string{
		`"Exit code: 2\nWall time: 0 seconds\nOutput:\n"`:                                  "true",
		`"Exit code: 0\nWall time: 0 seconds\nOutput:\nExit code: 2"`:                      "false",
		`"Chunk ID: a8\nWall time: 0.5 seconds\nProcess exited with code 1\nOutput:\n"`:    "true",
		`"Wall time: 0.5 seconds\nProcess exited with code 0\nOutput:\nExit code: 1\n"`:    "false",
		`"Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\nExit code: 1"`: "false",
		`"Process exited with code 1"`:                                                     "false",
		`"Wall time: 13.9 seconds\naborted by user"`:                                       "true",
		`"apply_patch verification failed: Failed to find lines"`:                          "true",
		`[{"type":"input_text","text":"Script failed\nWall time 0.0 seconds\nOutput:\n"}]`: "true",
		`[{"text":"Script completed"},{"text":"Script failed"}]`:                           "false",
	} {
		out := item(`{"type":"function_call_output","call_id":"c","output":` + output + `}`)
		raw := collect(t, reader(meta+out)).Entries[1].Raw
		if got := rawjson.Field(rawjson.Field(raw, "message"), "isError"); string(got) != want {
			t.Errorf("%s: isError is %s", output, got)
		}
	}
}

// A call over MCP fails by the event before its output.
func TestFailedCallOverMCP(t *testing.T) {
	for result, want := range map[string]string{
		`{"Ok":{"content":[],"isError":true}}`: "true", `{"Ok":{"content":[]}}`: "false", `{"Err":"refused"}`: "true",
	} {
		call := func(id string) string {
			return item(`{"type":"function_call","name":"f","call_id":"`+id+`","arguments":"{}"}`) +
				event(`{"type":"mcp_tool_call_end","call_id":"`+id+`","result":`+result+`}`)
		}
		out := item(`{"type":"function_call_output","call_id":"c","output":"[]"}`)
		for id, want := range map[string]string{"c": want, "d": "false"} {
			found := false
			for _, e := range collect(t, reader(meta+call(id)+out)).Entries {
				if m := rawjson.Field(e.Raw, "message"); string(rawjson.Field(m, "role")) == `"toolResult"` {
					found = string(rawjson.Field(m, "isError")) == want
				}
			}
			if !found {
				t.Errorf("%s of %s: want isError %s", result, id, want)
			}
		}
	}
}
