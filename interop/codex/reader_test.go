package codex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

var _ interop.Reader = (*Reader)(nil)

// TestConversation: the context at the end of a rollout.
func TestConversation(t *testing.T) {
	const back = `{"type":"thread_rolled_back","num_turns":%d}`
	tests := []struct{ name, text, want, diag string }{
		{"a plain line", user("q") + said("a") + user("q2"), "u:q a:a u:q2", ""},
		{"an answer in items", user("q") + item(`{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}`) + said("a") + calls("c1") + calls("c2") +
			output("c1", "o1") + output("c2", "o2") + said("b"), "u:q a:a+c1+c2 r:o1=c1 r:o2=c2 a:b", ""},
		{"two answers", user("q") + said("a") + event(tokens) + said("b"), "u:q a:a a:b", ""},
		{"events that say it again", event(`{"type":"user_message","message":"q"}`) + user("q") + said("a") + event(`{"type":"agent_message","message":"a"}`), "u:q a:a", "noted"},
		{"events that nothing else says", user("q") + event(`{"type":"agent_message","message":"z"}`), "u:q", ""},
		{
			"what Codex says", user("<environment_context>\n</environment_context>") + item(`{"type":"message","role":"developer","content":[{"type":"input_text","text":"be good"}]}`) + user("q"),
			"m:<environment_context>|</environment_context> m:be good u:q", "",
		},
		{"a rollback", user("q1") + said("a1") + user("q2") + said("a2") + user("q3") + said("a3") + event(fmt.Sprintf(back, 2)) + user("q4"), "u:q1 a:a1 u:q4", ""},
		{"a rollback of everything", user("q1") + said("a1") + event(fmt.Sprintf(back, 9)) + user("q2"), "u:q2", ""},
		{"a rollback of nothing", user("q1") + event(fmt.Sprintf(back, 0)) + event(`{"type":"thread_rolled_back"}`) + user("q2"), "u:q1 u:q2", ""},
		{"a rollback, then another", user("q1") + user("q2") + event(fmt.Sprintf(back, 1)) + user("q3") + event(fmt.Sprintf(back, 1)) + said("a"), "u:q1 a:a", ""},
		{"a compaction", user("q") + said("a") + wrap("compacted", `{"message":"sum"}`) + user("q2"), "C:sum m:q u:q2", ""},
		{
			"a compaction that replaces the history", user("q") + said("a") +
				wrap("compacted", `{"message":"sum","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"Summary:\nsum"}]}]}`) + user("q2"),
			"C:sum m:q u:q2", "",
		},
		{
			"a compaction without a message", user("q") + wrap("compacted", `{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"k"}]},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"old"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"sum"}]}]}`) + user("q2"),
			"C:sum m:k a:old u:q2", "",
		},
		{
			"a compaction that is encrypted", user("q") + wrap("compacted", `{"message":"","replacement_history":[{"type":"message","role":"user","content":"k"},{"type":"message","role":"user","content":"l"},{"type":"compaction","encrypted_content":"gAAA"}]}`) + user("q2"),
			"C:Codex kept the summary of what was said before encrypted: nobody but its provider can read it. m:k m:l u:q2", "",
		},
		{
			"a compaction that is encrypted, by its other name", user("q") + wrap("compacted", `{"replacement_history":[{"type":"compaction_summary","encrypted_content":"gAAA"},{"type":"message","role":"user","content":"k"}]}`),
			"C:Codex kept the summary of what was said before encrypted: nobody but its provider can read it. m:k", "",
		},
		{
			"an encrypted compaction that says something in clear", user("q") + wrap("compacted", `{"message":"sum","replacement_history":[{"type":"message","role":"user","content":"k"},{"type":"compaction","encrypted_content":"gAAA"}]}`),
			"C:sum m:k", "",
		},
		{
			"a compaction of which a mark is left", user("q") + wrap("compacted", `{"message":"","replacement_history":[{"type":"message","role":"user","content":"k"},{"type":"message","role":"user","content":"sum"},{"type":"context_compaction"}]}`),
			"C:sum m:k", "",
		},
		{
			"a compaction that ends with what the user said", user("q") + wrap("compacted", `{"message":"sum","replacement_history":[{"type":"message","role":"user","content":"k"},{"type":"message","role":"assistant","content":"old"}]}`) + said("new"),
			"C:sum m:k a:old a:new", "",
		},
		{
			"a rollback into what a compaction left", user("q") + wrap("compacted", `{"message":"sum","replacement_history":[{"type":"message","role":"developer","content":"d"},{"type":"message","role":"user","content":"k"},{"type":"message","role":"user","content":"l"}]}`) +
				event(fmt.Sprintf(back, 1)) + user("q2"), "C:sum m:d m:k u:q2", "",
		},
		{"a rollback behind a compaction", user("q") + wrap("compacted", `{"message":"sum"}`) + user("q2") + said("a2") + event(fmt.Sprintf(back, 1)) + user("q3"), "C:sum m:q u:q3", ""},
		{
			"tools of other kinds", user("q") + item(`{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c1"}`) + item(`{"type":"custom_tool_call_output","call_id":"c1","output":"done"}`) +
				item(`{"type":"local_shell_call","call_id":"c2","status":"completed","action":{"type":"exec","command":["ls"]}}`) + output("c2", "x") + item(`{"type":"web_search_call","status":"completed","action":{}}`),
			"u:q a:+c1 r:done=c1 a:+c2 r:x=c2 a:", "",
		},
		{"an aborted answer", user("q") + said("a") + calls("c1") + event(`{"type":"turn_aborted","reason":"interrupted"}`) + user("q2"), "u:q a:a+c1 u:q2", ""},
		{"items without envelopes", `{"id":"s1","timestamp":"2025-06-01T00:00:00.000Z","instructions":null}` + "\n" + `{"record_type":"state"}` + "\n" +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]}` + "\n" + `{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}` + "\n" +
			`{"type":"function_call_output","call_id":"c","output":"{\"output\":\"bad\",\"metadata\":{\"exit_code\":1}}"}` + "\n", `u:q a:+c r:{"output":"bad","metadata":{"exit_code":1}}=c`, ""},
		{"a torn line", user("q") + said("a")[:90], "u:q", "torn-line"},
		{"damage in the middle", user("q") + said("x")[:80] + said("a") + "1\n{}\n" + user("q2"), "u:q a:a u:q2", "bad-line converted bad-line bad-line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.text
			if !strings.HasPrefix(text, `{"id"`) {
				text = meta + text
			}
			r := reader(text)
			s := collect(t, r)
			if got := s.Talk(t, ""); got != tt.want {
				t.Errorf("context\n got %s\nwant %s", got, tt.want)
			}
			if got := kinds(r.Diagnostics()); got != tt.diag {
				t.Errorf("diagnostics %v", r.Diagnostics())
			}
			if s.Header.ID != "s1" || r.Verbatim() {
				t.Errorf("header %+v", s.Header)
			}
		})
	}
}

// TestRollbackKeeps: entries that were rolled back stay, as a branch.
func TestRollbackKeeps(t *testing.T) {
	s := collect(t, reader(meta+user("q1")+said("a1")+user("q2")+said("a2")+event(`{"type":"thread_rolled_back","num_turns":1}`)+user("q3")))
	found := false
	for _, e := range s.Entries {
		found = found || e.Type == "message" && s.Talk(t, e.ID) == "u:q1 a:a1 u:q2 a:a2"
	}
	if !found || s.Talk(t, "") != "u:q1 a:a1 u:q3" {
		t.Error(s.Talk(t, ""))
	}
}

// TestEntries: the entries for the fields of a line.
func TestEntries(t *testing.T) {
	s := collect(t, reader(meta+wrap("turn_context", `{"cwd":"/w","model":"gpt-5","effort":"high"}`)+
		item(`{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"},{"type":"input_image","image_url":"https://x/y.png"}]}`)+
		item(`{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"x"}`)+calls("c1")+event(tokens)+
		item(`{"type":"function_call_output","call_id":"c1","output":{"content":"no","success":false}}`)))
	want := []string{
		`{"type":"custom","id":"cx-1","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","customType":"codex.session_meta","data":` + strings.TrimSpace(meta) + `}`,
		`{"type":"custom","id":"cx-2","parentId":"cx-1","timestamp":"2026-01-01T00:00:01.000Z","customType":"codex.turn_context","data":{"timestamp":"2026-01-01T00:00:01.000Z","type":"turn_context","payload":{"cwd":"/w","model":"gpt-5","effort":"high"}}}`,
		`{"type":"model_change","id":"cx-2.1","parentId":"cx-2","timestamp":"2026-01-01T00:00:01.000Z","provider":"openai","modelId":"gpt-5"}`,
		`{"type":"thinking_level_change","id":"cx-2.2","parentId":"cx-2.1","timestamp":"2026-01-01T00:00:01.000Z","thinkingLevel":"high"}`,
		`{"type":"message","id":"cx-3","parentId":"cx-2.2","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"input_image","image_url":"https://x/y.png"}],"timestamp":1767225601000}}`,
		`{"type":"message","id":"cx-4","parentId":"cx-3","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"{\"type\":\"reasoning\",\"summary\":[{\"type\":\"summary_text\",\"text\":\"hm\"}],\"encrypted_content\":\"x\"}"},` +
			`{"type":"toolCall","id":"c1","name":"shell","arguments":{"command":["ls"]}}],"api":"openai-responses","provider":"openai","model":"gpt-5",` +
			`"usage":{"input":6,"output":5,"cacheRead":4,"reasoning":2,"cacheWrite":0,"totalTokens":15,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"stopReason":"toolUse","timestamp":1767225601000}}`,
		`{"type":"custom","id":"cx-6","parentId":"cx-4","timestamp":"2026-01-01T00:00:01.000Z","customType":"codex.token_count","data":` + strings.TrimSpace(event(tokens)) + `}`,
		`{"type":"message","id":"cx-7","parentId":"cx-6","timestamp":"2026-01-01T00:00:01.000Z","message":{"role":"toolResult","toolCallId":"c1","toolName":"shell","content":[{"type":"text","text":"no"}],"isError":true,"timestamp":1767225601000}}`,
	}
	for i, e := range s.Entries {
		if i >= len(want) || string(e.Raw) != want[i] {
			t.Errorf("entry %d\n got %s\nwant %s", i, e.Raw, want[min(i, len(want)-1)])
		}
	}
	if len(s.Entries) != len(want) {
		t.Errorf("%d entries", len(s.Entries))
	}
}

func TestDetect(t *testing.T) {
	var many strings.Builder
	for i := range 20_000 {
		many.WriteString(user(fmt.Sprint(i * i * i * 7919)))
	}
	packed := pack(t, []byte(meta+many.String()))
	long := meta[:len(meta)-3] + `,"base_instructions":"` + strings.Repeat("x", 1<<17)
	for text, want := range map[string]bool{
		meta: true, "\ufeff\n" + meta: true, "\ufeff" + meta: true, string(packed): true, string(packed[:64<<10]): true, "\x28\xb5\x2f\xfd" + strings.Repeat("\x00", 100): false, long[:65536]: true, user("q"): true,
		`{"id":"x","timestamp":"2025-06-01T00:00:00.000Z","instructions":null,"git":{}}`:                                             true,
		`{"type":"message","role":"user","content":[]}`:                                                                              true,
		`{"type":"session","version":3,"id":"s"}` + "\n" + meta:                                                                      false,
		`{"type":"title","v":1,"title":"t"}` + "\n" + meta:                                                                           false,
		`{"type":"message","id":"a","parentId":null,"timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"a"}}`: false,
		`{"type":"metadata","id":"a","created_at":1}` + "\n" + `{"role":"user","content":"x"}`:                                       false,
		`{"parentUuid":null,"type":"user","uuid":"x","sessionId":"s","timestamp":"2026-01-01T00:00:00.000Z","message":{}}`:           false,
		`{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item"}` + "\n":                                                     false, `{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","pa`: true,
		"": false, "{": false, "\x28\xb5\x2f\xfd": false, "\x28\xb5\x2f\xfdnoise": false,
	} {
		if Detect([]byte(text)) != want {
			t.Errorf("Detect(%.90q) is not %v", text, want)
		}
	}
}

func pack(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestCompressed: a compressed rollout has the same entries. A truncated one is read as far as possible, with a
// diagnostic.
func TestCompressed(t *testing.T) {
	text := meta
	for i := range 2000 {
		text += user(fmt.Sprint("q", i)) + said(fmt.Sprint("a", i*i*i))
	}
	plain, packed := collect(t, reader(text)), pack(t, []byte(text))
	again := collect(t, reader(string(packed)))
	if plain.Talk(t, "") != again.Talk(t, "") || len(again.Entries) != 4001 {
		t.Errorf("%d entries", len(again.Entries))
	}
	r := reader(string(packed[:len(packed)-100]))
	n, err := 0, error(nil)
	for ; err == nil; n++ {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "rollout.jsonl") {
		t.Errorf("after %d entries: %v", n, err)
	}
}

func TestNotSession(t *testing.T) {
	for _, text := range []string{"", "\n\n", "diary\n", `{"type":"session","version":3,"id":"s"}` + "\n", strings.Repeat("x\n", 5000), `{"type":"user","uuid":"x","parentUuid":null,"sessionId":"s","message":{}}`} {
		r := reader(text)
		if _, err := r.Header(); !errors.Is(err, interop.ErrNotSession) {
			t.Errorf("%.40q: %v", text, err)
		}
		if _, err := r.Next(); !errors.Is(err, interop.ErrNotSession) {
			t.Errorf("%.40q: %v", text, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestWrongTypes: no field of a wrong type hides a line, or makes one that cannot be stored.
func TestWrongTypes(t *testing.T) {
	testutil.SkipLong(t)
	values := []string{"null", "true", "0", "-1e999", `""`, `"x"`, "[]", `[1,"a",null,{}]`, "{}", `{"a":{}}`}
	for _, l := range []string{
		meta, user("q"), said("a"), calls("c"), output("c", "o"), event(tokens), wrap("turn_context", `{"model":"m","effort":"e"}`),
		wrap("compacted", `{"message":"m","replacement_history":[]}`), item(`{"type":"reasoning","summary":[],"content":null}`), event(`{"type":"thread_rolled_back","num_turns":1}`),
		event(`{"type":"agent_message","message":"z"}`), began("t"), count(1, 1), event(`{"type":"thread_name_updated","thread_id":"s1","thread_name":"n"}`),
		item(letter(`"type":"agent_message","content":[{"type":"input_text","text":"z"}]`)), wrap("inter_agent_communication", letter(`"content":"z","encrypted_content":"g","trigger_turn":true`)),
		item(`{"type":"web_search_call","action":{}}`), item(`{"type":"image_generation_call","result":"iVBORw0K"}`), replaced("m", `,"window_number":1,"resume_metadata":{}`, "k"),
		item(`{"type":"message","role":"user","content":[{"text":"k"}],"internal_chat_message_metadata_passthrough":{"content_item_kinds":["hooks.x"]}}`),
	} {
		l = strings.TrimSpace(l)
		p := rawjson.Field([]byte(l), "payload")
		for _, v := range values {
			for m := rawjson.Walk([]byte(l)); m.Next(); {
				changed := rawjson.WithField([]byte(l), string(m.Key), []byte(v))
				s := collect(t, reader(meta+user("q0")+string(changed)+"\n"+user("end")))
				if !strings.HasSuffix(s.Talk(t, ""), "u:end") {
					t.Errorf("%s = %s: %s", m.Key, v, s.Talk(t, ""))
				}
			}
			for m := rawjson.Walk(p); m.Next(); {
				changed := rawjson.WithField([]byte(l), "payload", rawjson.WithField(p, string(m.Key), []byte(v)))
				s := collect(t, reader(meta+user("q0")+string(changed)+"\n"+user("end")))
				if !strings.HasSuffix(s.Talk(t, ""), "u:end") {
					t.Errorf("%s = %s: %s", m.Key, v, s.Talk(t, ""))
				}
			}
		}
	}
}

// TestSameConversation: generated turns with parallel calls, doubled events, rollbacks and noise come out as
// they went in.
func TestSameConversation(t *testing.T) {
	testutil.SkipLong(t)
	rapid.Check(t, func(rt *rapid.T) {
		text, n := meta, 0
		// The number of texts up to the end of each turn is in said0.
		said0 := []string{""}
		noise := func() {
			for rapid.IntRange(0, 3).Draw(rt, "noise") == 0 {
				text += rapid.SampledFrom([]string{event(`{"type":"task_started"}`), event(tokens), wrap("world_state", `{}`), item(`{"type":"ghost_snapshot"}`), "\n"}).Draw(rt, "line")
			}
		}
		for range rapid.IntRange(1, 6).Draw(rt, "turns") {
			if back := rapid.IntRange(-3, len(said0)-1).Draw(rt, "back"); back > 0 {
				text += event(fmt.Sprintf(`{"type":"thread_rolled_back","num_turns":%d}`, back))
				said0 = said0[:len(said0)-back]
			}
			n++
			talk := strings.TrimSpace(fmt.Sprintf("%s u:q%d", said0[len(said0)-1], n))
			text += user(fmt.Sprint("q", n)) + event(fmt.Sprintf(`{"type":"user_message","message":"q%d"}`, n))
			for range rapid.IntRange(1, 3).Draw(rt, "rounds") {
				noise()
				n++
				text += said(fmt.Sprint("a", n)) + event(fmt.Sprintf(`{"type":"agent_message","message":"a%d"}`, n))
				talk += fmt.Sprint(" a:a", n)
				k := rapid.IntRange(0, 3).Draw(rt, "calls")
				outs := ""
				for i := range k {
					id := fmt.Sprintf("c%d-%d", n, i)
					text, outs, talk = text+calls(id), outs+output(id, "o"), talk+"+"+id
				}
				text += outs
				for i := range k {
					talk += fmt.Sprintf(" r:o=c%d-%d", n, i)
				}
				if k == 0 {
					text += event(tokens)
				}
			}
			noise()
			said0 = append(said0, talk)
		}
		s := collect(t, reader(text))
		if got := s.Talk(t, ""); got != said0[len(said0)-1] {
			rt.Fatalf("context\n got %s\nwant %s\n%s", got, said0[len(said0)-1], text)
		}
		for _, e := range s.Entries {
			if p := s.Path(t, e.ID); p[0].ID != "cx-1" {
				rt.Fatalf("%s stands in another tree", e.ID)
			}
		}
	})
}

type endless struct {
	n    int
	line func(i int) string
	i    int
	rest string
}

func (l *endless) Read(p []byte) (int, error) {
	for l.rest == "" {
		if l.i == l.n {
			return 0, io.EOF
		}
		l.rest = l.line(l.i)
		l.i++
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// TestSizeHostile: memory for long files and endless lines stays within the documented bounds.
func TestSizeHostile(t *testing.T) {
	testutil.SkipLong(t)
	testutil.SkipLong(t)
	const many, long, end = 10_000, 6, 1000
	block := strings.Repeat("y", 1<<20)
	call := said(block[:64<<10])
	longUser, longOutput, large := with(user("@"), strings.Repeat(block, 24)), with(output("c", "@"), strings.Repeat(block, 24)), with(said("@"), block)
	for name, c := range map[string]struct {
		n, least int
		line     func(i int) string
		most     uint64 // MiB held, the lines that the test itself holds included; 0 = 300
	}{
		"tiny lines":              {n: 5 * many, least: 5 * many, most: 85, line: func(int) string { return `{"type":"x"}` + "\n" }},
		"items of one answer":     {n: many, least: 1, line: func(i int) string { return calls(fmt.Sprint("c", i)) }},
		"rollbacks":               {n: many, least: many, line: func(int) string { return event(`{"type":"thread_rolled_back","num_turns":1}`) }},
		"turns":                   {n: many, least: many, line: func(int) string { return user("q") }},
		"events that wait":        {n: many, least: many, line: func(i int) string { return event(fmt.Sprintf(`{"type":"agent_message","message":"%d"}`, i)) }},
		"lines within one answer": {n: many, least: many, line: func(i int) string { return []string{said("a"), event(`{"type":"task_started"}`)}[min(i, 1)] }},
		"a line without end": {n: 202, least: 2, line: func(i int) string {
			switch i {
			case 0:
				return `{"timestamp":"2026-01-01T00:00:00.000Z","type":"response_item","payload":{"type":"message","text":"`
			case 201:
				return "\"}}\n" + user("q")
			}
			return block
		}},
		"a large answer":        {n: 9, least: 1, line: func(int) string { return large }},
		"an answer without end": {n: end, least: max(2, end/200), line: func(int) string { return call }},
		"long lines":            {n: long, least: 2 * long, line: func(i int) string { return []string{longUser, longOutput}[i%2] + user("q") }},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(interop.Source{Name: "s", Open: func() (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(strings.NewReader(meta), &endless{n: c.n, line: c.line})), nil
			}}, interop.Options{Now: now})
			if c.most == 0 {
				c.most = 300
			}
			const every = 2500 // entries
			n, peak := 0, uint64(0)
			for {
				d, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				if _, err := transcript.ParseLine(d.Raw); err != nil {
					t.Fatal(err)
				}
				if n++; n < 30 || n%every == 0 {
					peak = max(peak, testutil.Live())
				}
			}
			if n < c.least || peak > c.most<<20 || len(r.Diagnostics()) > 101 {
				t.Errorf("%d entries, %d MiB, %d diagnostics", n, peak>>20, len(r.Diagnostics()))
			}
		})
	}
}
