package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-go/coppice"
	"github.com/coppice-go/coppice/backend/memory"
	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/provider"
)

// talk is a conversation with one provider: what is stored, in order, and what its API was sent for it.
type talk struct {
	t      *rapid.T
	n      int
	stored []json.RawMessage
	sent   []string
}

func (k *talk) id(prefix string) string { k.n++; return fmt.Sprintf("%s%d", prefix, k.n) }

// say stores what is sent as it is.
func (k *talk) say(raw string) {
	k.stored, k.sent = append(k.stored, json.RawMessage(raw)), append(k.sent, raw)
}

// reply reads a response and stores what it returns; messages are what is sent of it later.
func (k *talk) reply(api provider.API, body string, messages ...string) provider.Reply {
	r, err := provider.ReadReply(api, "", json.RawMessage(body))
	if err != nil {
		k.t.Fatalf("%v: %s", err, body)
	}
	k.stored, k.sent = append(k.stored, r.Messages...), append(k.sent, messages...)
	return r
}

// word returns a text that is not blank, in any spelling.
func (k *talk) word() string {
	return pick(k.t, []string{`"hello"`, `"<b>&\u003c\u2028"`, `"\ud83c\udf33 🌳"`, `"\u00e9\/é"`, `"a\n\tb "`, `"{\"a\":1}"`})
}

func (k *talk) args() string {
	return pick(k.t, []string{`{}`, `{"n":12345678901234567890123,"f":1.10,"e":1E+2}`, `{"s":"\u00e9\/\ud83c\udf33","a":[1,{"b":null}]}`, `{"a":1,"a":2}`})
}

func (k *talk) anthropic() {
	open := []string{}
	for range rapid.IntRange(1, 6).Draw(k.t, "turns") {
		var blocks []string
		for _, id := range open {
			blocks = append(blocks, fmt.Sprintf(`{"tool_use_id":%q,"type":"tool_result","content":%s}`, id, pick(k.t, []string{`"x"`, `""`, `[]`, `[{"type":"text","text":"ok"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]`})))
		}
		if rapid.Bool().Draw(k.t, "") || len(open) == 0 {
			blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":%s}`, k.word()), `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"},"title":"t"}`)
		}
		if len(open) == 0 && rapid.Bool().Draw(k.t, "") {
			k.say(fmt.Sprintf(`{"content":%s,"role":"user"}`, k.word()))
		} else {
			k.say(`{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`)
		}
		open = nil
		var out []string
		for range rapid.IntRange(0, 2).Draw(k.t, "thoughts") {
			out = append(out, pick(k.t, []string{`{"type":"thinking","thinking":"a\u003cb","signature":"EqQ/+w=="}`, `{"type":"redacted_thinking","data":"abc"}`, `{"type":"thinking","thinking":"","signature":"RQ=="}`}))
		}
		out = append(out, fmt.Sprintf(`{"type":"text","text":%s,"citations":null}`, k.word()))
		for range rapid.IntRange(0, 3).Draw(k.t, "calls") {
			id := k.id("toolu_")
			open = append(open, id)
			out = append(out, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"bash","input":%s}`, id, k.args()))
		}
		content := "[" + strings.Join(out, ",") + "]"
		k.reply(provider.Anthropic, `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":`+content+
			`,"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":4}}`, `{"role":"assistant","content":`+content+`}`)
	}
	for i, id := range open {
		if i == 0 {
			k.say(fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"is_error":true,"content":"no"}%s]}`, id, rest(open[1:])))
		}
	}
}

func rest(ids []string) (s string) {
	for _, id := range ids {
		s += fmt.Sprintf(`,{"type":"tool_result","tool_use_id":%q}`, id)
	}
	return s
}

func (k *talk) chat() {
	k.say(pick(k.t, []string{`{"role":"system","content":"be brief"}`, `{"role":"developer","content":[{"type":"text","text":"be brief"}]}`}))
	for range rapid.IntRange(1, 6).Draw(k.t, "turns") {
		k.say(pick(k.t, []string{
			`{"role":"user","content":` + k.word() + `}`, `{"role":"user","name":"ann","content":"hi"}`,
			`{"content":[{"type":"text","text":` + k.word() + `},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","detail":"low"}}],"role":"user"}`,
		}))
		for range rapid.IntRange(0, 2).Draw(k.t, "rounds") {
			var calls, ids []string
			for range rapid.IntRange(1, 3).Draw(k.t, "calls") {
				id := k.id(pick(k.t, []string{"call_", "functions.read:"}))
				ids = append(ids, id)
				calls = append(calls, pick(k.t, []string{
					fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"bash","arguments":%s}}`, id, quote(k.args())),
					fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"bash","arguments":"{\n \"a\" : 1.0}"}}`, id),
					fmt.Sprintf(`{"id":%q,"type":"custom","custom":{"name":"patch","input":"*** Begin\n<"}}`, id),
				}))
			}
			m := fmt.Sprintf(`{"role":"assistant","content":%s,"refusal":null,"annotations":[],"tool_calls":[%s]%s}`, pick(k.t, []string{"null", `""`, `"\n"`, `"I look."`}),
				strings.Join(calls, ","), pick(k.t, []string{"", `,"reasoning_content":"hm\u003c"`}))
			k.reply(provider.OpenAIChat, `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-x","choices":[{"index":0,"message":`+m+
				`,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`, m)
			for _, id := range ids {
				k.say(fmt.Sprintf(`{"tool_call_id":%q,"role":"tool","content":%s}`, id, pick(k.t, []string{`""`, k.word(), `[{"type":"text","text":"x"}]`})))
			}
		}
		m := `{"role":"assistant","content":` + k.word() + `,"refusal":null}`
		k.reply(provider.OpenAIChat, `{"choices":[{"message":`+m+`,"finish_reason":"stop"}]}`, m)
	}
}

func (k *talk) responses() {
	for range rapid.IntRange(1, 6).Draw(k.t, "turns") {
		k.say(pick(k.t, []string{
			`{"role":"user","content":` + k.word() + `}`, `{"type":"message","role":"developer","content":[{"type":"input_text","text":"be brief"}]}`,
			`{"content":[{"type":"input_text","text":` + k.word() + `},{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"},{"type":"input_file","file_id":"f"}],"role":"user"}`,
		}))
		for range rapid.IntRange(0, 2).Draw(k.t, "rounds") {
			var items, outputs []string
			items = append(items, `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"a\u003c"}],"encrypted_content":"gAAA"}`)
			for range rapid.IntRange(1, 3).Draw(k.t, "calls") {
				id := k.id("call_")
				switch rapid.IntRange(0, 2).Draw(k.t, "") {
				case 0:
					items = append(items, fmt.Sprintf(`{"id":"fc_1","type":"function_call","status":"completed","arguments":%s,"call_id":%q,"name":"bash"}`, quote(k.args()), id))
					outputs = append(outputs, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%s}`, id, pick(k.t, []string{`""`, k.word(), `[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","detail":"auto"}]`})))
				case 1:
					items = append(items, fmt.Sprintf(`{"type":"custom_tool_call","id":"ctc_1","call_id":%q,"name":"patch","input":"*** Begin\n"}`, id))
					outputs = append(outputs, fmt.Sprintf(`{"call_id":%q,"type":"custom_tool_call_output","output":"done"}`, id))
				default:
					items = append(items, fmt.Sprintf(`{"type":"local_shell_call","id":"lsh_1","call_id":%q,"action":{"type":"exec","command":["ls"]},"status":"completed"}`, id))
					outputs = append(outputs, fmt.Sprintf(`{"type":"local_shell_call_output","call_id":%q,"output":"x"}`, id))
				}
			}
			k.reply(provider.OpenAIResponses, `{"id":"resp_1","object":"response","status":"completed","model":"gpt-x","output":[`+strings.Join(items, ",")+
				`],"usage":{"input_tokens":9,"output_tokens":2,"total_tokens":11}}`, items...)
			if rapid.Bool().Draw(k.t, "") {
				k.say(`{"role":"user","content":"meanwhile"}`) // results may come after it
			}
			for _, o := range outputs {
				k.say(o)
			}
		}
		m := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":` + k.word() + `}]}`
		k.reply(provider.OpenAIResponses, `{"status":"completed","output":[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"}},`+m+`]}`,
			`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search"}}`, m)
	}
}

func (k *talk) gemini() {
	for range rapid.IntRange(1, 6).Draw(k.t, "turns") {
		k.say(pick(k.t, []string{
			`{"role":"user","parts":[{"text":` + k.word() + `}]}`,
			`{"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}},{"text":"see"},{"fileData":{"mimeType":"application/pdf","fileUri":"u"}}],"role":"user"}`,
		}))
		for range rapid.IntRange(0, 2).Draw(k.t, "rounds") {
			parts, results := []string{`{"text":"hm","thought":true}`}, []string{}
			for i := range rapid.IntRange(1, 3).Draw(k.t, "calls") {
				mark, id := "", ""
				if i == 0 {
					mark = `,"thoughtSignature":"Eq\u003d"`
				}
				if rapid.Bool().Draw(k.t, "") {
					id = fmt.Sprintf(`"id":%q,`, k.id("g"))
				}
				name := pick(k.t, []string{"ls", "cat"})
				parts = append(parts, fmt.Sprintf(`{"functionCall":{%s"name":%q,"args":%s}%s}`, id, name, k.args(), mark))
				results = append(results, fmt.Sprintf(`{"functionResponse":{%s"name":%q,"response":{"output":%s}}}`, id, name, k.word()))
			}
			m := `{"parts":[` + strings.Join(parts, ",") + `],"role":"model"}`
			k.reply(provider.Gemini, `{"candidates":[{"content":`+m+`,"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":9},"modelVersion":"gemini-3-pro","responseId":"r"}`, m)
			k.say(`{"role":"user","parts":[` + strings.Join(results, ",") + `]}`)
		}
		m := `{"role":"model","parts":[{"text":` + k.word() + `,"thoughtSignature":"Eq=="},{"text":"","thoughtSignature":"Eq"}]}`
		k.reply(provider.Gemini, `{"candidates":[{"content":`+m+`}],"modelVersion":"gemini-3-pro"}`, m)
	}
}

// A session of one provider comes back byte for byte for that provider, out of a store.
func TestOneProviderByteForByte(t *testing.T) {
	for api, converse := range map[provider.API]func(*talk){
		provider.Anthropic: (*talk).anthropic, provider.OpenAIChat: (*talk).chat,
		provider.OpenAIResponses: (*talk).responses, provider.Gemini: (*talk).gemini,
	} {
		t.Run(string(api), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				k := &talk{t: t}
				converse(k)
				store, err := coppice.New(memory.New(), nil)
				if err != nil {
					t.Fatal(err)
				}
				s, err := store.Create("s", nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range k.stored {
					if _, err := s.Append(t.Context(), entry.Message(m)); err != nil {
						t.Fatal(err)
					}
				}
				c, err := s.Context(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				r, err := provider.Convert(t.Context(), c, api, nil)
				if err != nil || len(r.Lost) > 0 {
					t.Fatalf("%v, lost %v", err, r.Lost)
				}
				if wrong := checkNative(r); wrong != "" {
					t.Fatalf("the test's own conversation: %s", wrong)
				}
				for i := range max(len(r.Messages), len(k.sent)) {
					if i >= len(r.Messages) || i >= len(k.sent) || string(r.Messages[i]) != k.sent[i] {
						t.Fatalf("message %d\n got %s\nwant %s", i, at(r.Messages, i), at(k.sent, i))
					}
				}
			})
		})
	}
}

func at[T ~string | ~[]byte](list []T, i int) string {
	if i >= len(list) {
		return "nothing"
	}
	return string(list[i])
}

// checkNative is check, without the types that only these conversations have.
func checkNative(r provider.Request) string {
	kept := r.Messages[:0:0]
	for _, m := range r.Messages {
		if !strings.Contains(string(m), `"local_shell_call`) {
			kept = append(kept, m)
		}
	}
	r.Messages = kept
	if wrong := check(r); !strings.HasSuffix(wrong, "without its following item") {
		return wrong
	}
	return ""
}
