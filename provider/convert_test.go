package provider_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coppice-go/coppice/internal/testutil"
	"github.com/coppice-go/coppice/provider"
	"github.com/coppice-go/coppice/transcript"
)

func contextOf(messages ...string) (c transcript.Context) {
	for i, m := range messages {
		raw := json.RawMessage(m)
		c.Messages = append(c.Messages, transcript.Message{Entry: fmt.Sprintf("e%d", i), Role: transcript.Inspect(raw).Role, Raw: raw})
	}
	return c
}

// shown returns a request as lines: its instructions, its messages, and the kinds of what was lost.
func shown(t *testing.T, api provider.API, o *provider.Options, messages ...string) string {
	t.Helper()
	r, err := provider.Convert(t.Context(), contextOf(messages...), api, o)
	if err != nil {
		t.Fatal(err)
	}
	if wrong := check(r); wrong != "" {
		t.Error(wrong)
	}
	var lines []string
	if r.System != nil {
		lines = append(lines, "system "+string(r.System))
	}
	for _, m := range r.Messages {
		lines = append(lines, string(m))
	}
	for _, l := range r.Lost {
		lines = append(lines, fmt.Sprintf("lost %d %s %s", l.Message, l.Entry, l.Kind))
	}
	return strings.Join(lines, "\n")
}

const (
	hi    = `{"role":"user","content":"hi"}`
	piRun = `{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"bash","arguments":{"n":12345678901234567890,"f":1.0,"s":"\u00e9\/\ud83c\udf33"}}],"api":"x","stopReason":"toolUse"}`
	piRan = `{"role":"toolResult","toolCallId":"c1","toolName":"bash","content":[{"type":"text","text":"ok"}],"isError":false,"timestamp":2}`
)

// What no API has becomes the user's, in pi's words.
func TestRolesOfPi(t *testing.T) {
	messages := []string{
		`{"role":"compactionSummary","summary":"So far.","tokensBefore":9,"timestamp":1}`,
		`{"role":"branchSummary","summary":"A try.","fromId":"x","timestamp":1}`,
		`{"role":"bashExecution","command":"ls","output":"a","exitCode":1,"cancelled":false,"truncated":true,"fullOutputPath":"/o","timestamp":1}`,
		`{"role":"bashExecution","command":"secret","output":"a","cancelled":false,"truncated":false,"excludeFromContext":true}`,
		`{"role":"custom","customType":"note","content":"Mind this.","display":false}`,
		`{"role":"oracle","content":"Beware."}`,
	}
	texts := []string{
		"The conversation history before this point was compacted into the following summary:\n\n<summary>\nSo far.\n</summary>",
		"The following is a summary of a branch that this conversation came back from:\n\n<summary>\nA try.</summary>",
		"Ran `ls`\n```\na\n```\n\nCommand exited with code 1\n\n[Output truncated. Full output: /o]",
		"Mind this.", "Beware.",
	}
	for _, api := range provider.APIs() {
		r, err := provider.Convert(t.Context(), contextOf(messages...), api, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range r.Messages {
			if role := transcript.Inspect(m).Role; role != "user" {
				t.Errorf("%s: role %s", api, role)
			}
			got = append(got, transcript.Inspect(m).Text)
		}
		if diff := cmp.Diff(strings.Join(texts, "\n"), strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", api, diff)
		}
		if len(r.Lost) != 1 || r.Lost[0].Kind != provider.LostRole || r.Lost[0].Message != 5 || r.Lost[0].Entry != "e5" {
			t.Errorf("%s: lost %v", api, r.Lost)
		}
	}
}

// One conversation of pi's, for each API: arguments keep every digit and escape.
func TestCallsOfPi(t *testing.T) {
	const text = `{\"n\":12345678901234567890,\"f\":1.0,\"s\":\"\\u00e9\\/\\ud83c\\udf33\"}`
	for api, want := range map[provider.API]string{
		provider.Anthropic: hi + `
{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"bash","input":{"n":12345678901234567890,"f":1.0,"s":"\u00e9\/\ud83c\udf33"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"ok"}]}]}`,
		provider.OpenAIChat: hi + `
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"` + text + `"}}]}
{"role":"tool","tool_call_id":"c1","content":"ok"}`,
		provider.OpenAIResponses: hi + `
{"type":"function_call","call_id":"c1","name":"bash","arguments":"` + text + `"}
{"type":"function_call_output","call_id":"c1","output":"ok"}`,
		provider.Gemini: `{"role":"user","parts":[{"text":"hi"}]}
{"role":"model","parts":[{"functionCall":{"name":"bash","args":{"n":12345678901234567890,"f":1.0,"s":"\u00e9\/\ud83c\udf33"}}}]}
{"role":"user","parts":[{"functionResponse":{"name":"bash","response":{"output":"ok"}}}]}`,
	} {
		if diff := cmp.Diff(want, shown(t, api, nil, hi, piRun, piRan)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", api, diff)
		}
	}
}

// A conversation with one provider continues with each of the others, there and back.
func TestFromEachToEach(t *testing.T) {
	native := map[provider.API][]string{
		provider.Anthropic: {
			hi, `{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_1","name":"ls","input":{"n":1.0}}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"a"}]},{"type":"text","text":"go on"}]}`,
		},
		provider.OpenAIChat: {
			hi, `{"role":"assistant","content":"I look.","tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"ls","arguments":"{\"n\":1.0}"}}]}`,
			`{"role":"tool","tool_call_id":"toolu_1","content":"a"}`, `{"role":"user","content":"go on"}`,
		},
		provider.OpenAIResponses: {
			hi, `{"role":"assistant","content":[{"type":"output_text","text":"I look."}]}`,
			`{"type":"function_call","call_id":"toolu_1","name":"ls","arguments":"{\"n\":1.0}"}`, `{"type":"function_call_output","call_id":"toolu_1","output":"a"}`,
			`{"role":"user","content":"go on"}`,
		},
		provider.Gemini: {
			`{"role":"user","parts":[{"text":"hi"}]}`, `{"role":"model","parts":[{"text":"I look."},{"functionCall":{"name":"ls","args":{"n":1.0}}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"a"}}}]}`, `{"role":"user","parts":[{"text":"go on"}]}`,
		},
	}
	said := func(list []string) (s string) {
		for _, m := range list {
			shape := transcript.Inspect(json.RawMessage(m))
			if shape.Text != "" {
				s += shape.Text + "\n"
			}
			for _, c := range shape.Calls {
				s += c.Name + string(c.Arguments) + "\n"
			}
		}
		return s
	}
	for from, messages := range native {
		for _, to := range provider.APIs() {
			got := strings.Split(shown(t, to, nil, messages...), "\n")
			if from == to {
				if diff := cmp.Diff(messages, got); diff != "" {
					t.Errorf("%s to itself (-want +got):\n%s", from, diff)
				}
				continue
			}
			// Anthropic's user message has the result and the next words: only the words are compared then.
			want, is := strings.ReplaceAll(said(messages), "a\n", ""), strings.ReplaceAll(said(got), "a\n", "")
			if diff := cmp.Diff(want, is); diff != "" {
				t.Errorf("%s to %s (-want +got):\n%s\n%s", from, to, diff, strings.Join(got, "\n"))
			}
		}
	}
}

// What breaks requests, and how it is repaired.
func TestRepairs(t *testing.T) {
	call := func(id string) string {
		return `{"role":"assistant","content":[{"type":"tool_use","id":"` + id + `","name":"ls","input":{}}]}`
	}
	result := func(id string) string {
		return `{"type":"tool_result","tool_use_id":"` + id + `","content":"r"}`
	}
	long := strings.Repeat("x", 80)
	for name, tt := range map[string]struct {
		api      provider.API
		options  *provider.Options
		messages []string
		want     string
	}{
		"an open call at the end": {
			provider.Anthropic, &provider.Options{Interrupted: "cut off"},
			[]string{hi, call("a")},
			hi + "\n" + call("a") + `
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"cut off"}],"is_error":true}]}
lost 1 e1 open-call`,
		},
		"left out": {provider.Anthropic, &provider.Options{OpenCalls: provider.Omit}, []string{hi, call("a")}, hi + "\nlost 1 e1 open-call\nlost 1 e1 message"},
		"a result after the user spoke": {
			provider.Anthropic, nil,
			[]string{hi, call("a"), `{"role":"user","content":"well?"}`, `{"role":"user","content":[` + result("a") + `]}`},
			hi + "\n" + call("a") + "\n" + `{"role":"user","content":[` + result("a") + "]}\n" + `{"role":"user","content":"well?"}` + "\nlost 3 e3 order",
		},
		"a text before the result": {
			provider.Anthropic, nil,
			[]string{hi, call("a"), `{"role":"user","content":[{"type":"text","text":"here"},` + result("a") + `]}`},
			hi + "\n" + call("a") + "\n" + `{"role":"user","content":[` + result("a") + `,{"type":"text","text":"here"}]}` + "\nlost 2 e2 order",
		},
		"two calls of one id": {
			provider.Anthropic, nil,
			[]string{hi, call("a"), `{"role":"user","content":[` + result("a") + `]}`, call("a"), `{"role":"user","content":[` + result("a") + `]}`},
			hi + "\n" + call("a") + "\n" + `{"role":"user","content":[` + result("a") + "]}\n" + call("a_2") + "\n" +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_2","content":[{"type":"text","text":"r"}]}]}`,
		},
		"an id that is too long": {
			provider.Anthropic, nil,
			[]string{hi, call(long), `{"role":"user","content":[` + result(long) + `]}`},
			hi + "\n" + call(strings.Repeat("x", 47)+"_d929cdeea7e6a0f4") + "\n" +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + strings.Repeat("x", 47) + `_d929cdeea7e6a0f4","content":[{"type":"text","text":"r"}]}]}`,
		},
		"a result without a call": {
			provider.OpenAIChat, nil,
			[]string{hi, `{"role":"tool","tool_call_id":"zz","content":"left over"}`},
			hi + "\n" + `{"role":"user","content":[{"type":"text","text":"Result of a call that is not in this context:"},{"type":"text","text":"left over"}]}` + "\nlost 1 e1 orphan-result",
		},
		"results in a message each": {
			provider.Anthropic, nil,
			[]string{
				hi, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{}},{"type":"tool_use","id":"b","name":"ls","input":{}}]}`,
				`{"role":"user","content":[` + result("b") + `]}`, `{"role":"user","content":[` + result("a") + `,{"type":"text","text":"t"}]}`,
			},
			hi + "\n" + `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{}},{"type":"tool_use","id":"b","name":"ls","input":{}}]}
{"role":"user","content":[` + result("b") + "," + result("a") + `,{"type":"text","text":"t"}]}`,
		},
		"calls in a message each": {
			provider.Anthropic, nil,
			[]string{hi, call("a"), call("b"), `{"role":"user","content":[` + result("a") + `,` + result("b") + `]}`},
			hi + "\n" + `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{}},{"type":"tool_use","id":"b","name":"ls","input":{}}]}
{"role":"user","content":[` + result("a") + "," + result("b") + `]}`,
		},
		"results in a message of a tool": {
			provider.Anthropic, nil,
			[]string{
				hi, call("a"), call("b"),
				`{"role":"tool","content":[{"type":"tool_result","id":"a","content":"a"},` +
					`{"type":"tool_result","id":"b","content":"b","is_error":true}]}`,
			},
			hi + "\n" + `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{}},` +
				`{"type":"tool_use","id":"b","name":"ls","input":{}}]}` + "\n" +
				`{"role":"user","content":[` +
				`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"a"}]},` +
				`{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"b"}],"is_error":true}]}`,
		},
		"a call and a result in a result": {
			provider.Gemini, nil,
			[]string{
				`{"role":"user","parts":[{"text":"hi"}]}`, call("a"),
				`{"role":"user","content":[` +
					`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},` +
					`{"type":"tool_use","id":"b","name":"n"},{"type":"tool_result","tool_use_id":"b"}]}]}`,
			},
			`{"role":"user","parts":[{"text":"hi"}]}` + "\n" +
				`{"role":"model","parts":[{"functionCall":{"name":"ls","args":{}}}]}` + "\n" +
				`{"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"output":"x\n` +
				`[tool_use] {\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"n\"}\n` +
				`[tool_result] {\"type\":\"tool_result\",\"tool_use_id\":\"b\"}"}}}]}` +
				"\nlost 2 e2 block\nlost 2 e2 block",
		},
		"an answer that was refused": {
			provider.Anthropic, nil,
			[]string{
				hi, `{"role":"assistant","content":"I","finish_reason":"content_filter"}`,
				`{"role":"user","content":"again"}`,
			},
			hi + "\n" + `{"role":"user","content":"again"}` + "\nlost 1 e1 failed-turn",
		},
		"an answer that was aborted": {
			provider.Anthropic, nil,
			[]string{hi, `{"role":"assistant","content":[{"type":"text","text":"I"}],"stopReason":"aborted"}`, `{"role":"user","content":"again"}`},
			hi + "\n" + `{"role":"user","content":"again"}` + "\nlost 1 e1 failed-turn",
		},
		"the model first": {
			provider.Anthropic, nil,
			[]string{`{"role":"assistant","content":"hello"}`},
			`{"role":"user","content":[{"type":"text","text":"(The conversation before this point is not in this context.)"}]}
{"role":"assistant","content":"hello"}
lost 0 e0 start`,
		},
		"instructions in the middle": {
			provider.Anthropic, nil,
			[]string{`{"role":"system","content":"A","sections":{"x":"B","y":null}}`, hi, `{"role":"developer","content":"C"}`},
			`system [{"type":"text","text":"A"},{"type":"text","text":"B"},{"type":"text","text":"C"}]` + "\n" + hi + "\nlost 2 e2 order",
		},
		"nothing to say": {
			provider.Anthropic, nil,
			[]string{hi, `{"role":"user","content":" \n"}`, `{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"x"}]}`, `7`},
			hi + "\n" + `{"role":"user","content":[{"type":"text","text":"x"}]}` + "\nlost 1 e1 message\nlost 3 e3 message",
		},
		"an image in an error": {
			provider.Anthropic, nil,
			[]string{hi, call("a"), `{"role":"toolResult","toolCallId":"a","toolName":"ls","isError":true,"content":[{"type":"text","text":"no"},{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","mimeType":"image/png"}]}`},
			hi + "\n" + call("a") + "\n" + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"no"},{"type":"text","text":"(image after the results)"}],"is_error":true},{"type":"text","text":"Image of the failed call a:"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]}`,
		},
		"an image in an error of Anthropic's own shape": {
			provider.Anthropic, nil,
			[]string{hi, call("a"), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]}]}`},
			hi + "\n" + call("a") + "\n" + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"(image after the results)"}],"is_error":true},{"type":"text","text":"Image of the failed call a:"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]}`,
		},
		"calls in a message each, chat": {
			provider.OpenAIChat, nil,
			[]string{
				hi, `{"role":"assistant","content":"I","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
				`{"role":"assistant","content":"look","tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
				`{"role":"tool","tool_call_id":"b","content":"2"}`, `{"role":"tool","tool_call_id":"a","content":"1"}`,
			},
			hi + "\n" + `{"role":"assistant","content":"I\nlook","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","tool_call_id":"b","content":"2"}
{"role":"tool","tool_call_id":"a","content":"1"}`,
		},
		"an image of a tool, gemini": {
			provider.Gemini, &provider.Options{Model: "gemini-3-pro"},
			[]string{
				hi, `{"role":"assistant","content":[{"type":"toolCall","id":"a","name":"f","arguments":{}},{"type":"toolCall","id":"b","name":"g","arguments":{}}]}`,
				`{"role":"toolResult","toolCallId":"a","content":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","mimeType":"image/png"}],"isError":true}`,
				`{"role":"toolResult","toolCallId":"b","content":"x"}`, `{"role":"user","content":"and?"}`,
			},
			`{"role":"user","parts":[{"text":"hi"}]}
{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"name":"g","args":{}}}]}
{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"error":"(see attached image)"}}},{"functionResponse":{"name":"g","response":{"output":"x"}}}]}
{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]}
{"role":"user","parts":[{"text":"and?"}]}`,
		},
		"a result that names another tool": {
			provider.Gemini, nil,
			[]string{
				`{"role":"user","parts":[{"text":"hi"}]}`, `{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}}]}`,
				`{"role":"user","parts":[{"functionResponse":{"id":"a","name":"g","response":{"output":"x"}}}]}`,
			},
			`{"role":"user","parts":[{"text":"hi"}]}
{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}}}]}
{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"x"}}}]}`,
		},
		"a tool of OpenAI's own with a text for a result": {
			provider.OpenAIResponses, nil,
			[]string{
				hi, `{"type":"computer_call","id":"cu_1","call_id":"a","action":{"type":"click"},"status":"completed"}`,
				`{"role":"toolResult","toolCallId":"a","toolName":"computer","content":"clicked"}`,
			},
			hi + "\n" + `{"type":"function_call","call_id":"a","name":"computer","arguments":"{\"type\":\"click\"}"}
{"type":"function_call_output","call_id":"a","output":"clicked"}`,
		},
		"and without any": {
			provider.OpenAIResponses, nil,
			[]string{hi, `{"type":"computer_call","id":"cu_1","call_id":"a","action":{"type":"click"},"status":"completed"}`},
			hi + "\nlost 1 e1 open-call\nlost 1 e1 message",
		},
		"arguments over several lines": {
			provider.Anthropic, nil,
			[]string{hi, `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{\n  \"a\" : 1.0 }\n"}}]}`, `{"role":"tool","tool_call_id":"a","content":"x"}`},
			hi + "\n" + `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"ls","input":{"a":1.0}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}]}`,
		},
		"one id twice, and one result": {
			provider.Anthropic, &provider.Options{Interrupted: "cut off"},
			[]string{hi, call("a"), `{"role":"user","content":"again"}`, call("a"), `{"role":"user","content":[` + result("a") + `]}`},
			hi + "\n" + call("a") + "\n" + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"cut off"}],"is_error":true}]}
{"role":"user","content":"again"}
` + call("a_2") + "\n" + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a_2","content":[{"type":"text","text":"r"}]}]}` + "\nlost 1 e1 open-call",
		},
		"an error of Gemini's": {
			provider.Anthropic, nil,
			[]string{hi, `{"role":"model","parts":[{"functionCall":{"id":"a","name":"ls","args":{}}}]}`, `{"role":"user","parts":[{"functionResponse":{"id":"a","name":"ls","response":{"error":"no"}}}]}`},
			hi + "\n" + call("a") + "\n" + `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"no"}],"is_error":true}]}`,
		},
		"an image of a tool, chat": {
			provider.OpenAIChat, nil,
			[]string{hi, piRun, `{"role":"toolResult","toolCallId":"c1","toolName":"bash","isError":true,"content":[{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","mimeType":"image/png"}]}`, `{"role":"user","content":"and?"}`},
			hi + "\n" + `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"n\":12345678901234567890,\"f\":1.0,\"s\":\"\\u00e9\\/\\ud83c\\udf33\"}"}}]}
{"role":"tool","tool_call_id":"c1","content":"(see attached image)"}
{"role":"user","content":[{"type":"text","text":"Attached image(s) from tool result:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}}]}
{"role":"user","content":"and?"}
lost 2 e2 error-flag`,
		},
		"a name and arguments that it does not take": {
			provider.Anthropic, nil,
			[]string{hi, `{"type":"custom_tool_call","call_id":"c","name":"mcp.patch","input":"*** Begin"}`, `{"type":"custom_tool_call_output","call_id":"c","output":"done"}`},
			hi + "\n" + `{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"mcp_patch","input":{"input":"*** Begin"}}]}
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"done"}]}]}
lost 1 e1 name
lost 1 e1 arguments`,
		},
		"five cache marks": {
			provider.Anthropic, nil,
			[]string{
				`{"role":"user","content":[{"type":"text","text":"1","cache_control":{"type":"ephemeral"}},{"type":"text","text":"2","cache_control":{"type":"ephemeral"}}]}`,
				`{"role":"user","content":[{"type":"text","text":"3","cache_control":{"type":"ephemeral"}},{"type":"text","text":"4","cache_control":{"type":"ephemeral"}},{"type":"text","text":"5","cache_control":{"type":"ephemeral"}}]}`,
			},
			`{"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"2","cache_control":{"type":"ephemeral"}}]}
{"role":"user","content":[{"type":"text","text":"3","cache_control":{"type":"ephemeral"}},{"type":"text","text":"4","cache_control":{"type":"ephemeral"}},{"type":"text","text":"5","cache_control":{"type":"ephemeral"}}]}
lost 0 e0 cache-mark`,
		},
		"a document for another": {
			provider.Gemini, nil,
			[]string{`{"role":"user","content":[{"type":"document","title":"plan","source":{"type":"base64","media_type":"application/pdf","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"}},{"type":"image","data":"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ","mimeType":"image/tiff"}]}`},
			`{"role":"user","parts":[{"text":"[document, plan, application/pdf]"},` +
				`{"text":"[image left out: it is image/png, and declared as \"image/tiff\"]"}]}` +
				"\nlost 0 e0 image\nlost 0 e0 block",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, shown(t, tt.api, tt.options, tt.messages...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Thinking goes to the API and the model that signed it.
func TestThinking(t *testing.T) {
	pi := func(api, vendor, model, block string) string {
		return `{"role":"assistant","content":[` + block + `,{"type":"text","text":"so"}],"api":"` + api + `","provider":"` + vendor + `","model":"` + model + `"}`
	}
	signed := `{"type":"thinking","thinking":"hm","thinkingSignature":"Uw=="}`
	rs := `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}`
	itself := `{"type":"thinking","thinking":"hm","thinkingSignature":` + quote(rs) + `}`
	for name, tt := range map[string]struct {
		api     provider.API
		model   string
		message string
		want    string // of the message, after the user's; "" = thinking is lost
	}{
		"anthropic":               {provider.Anthropic, "m", pi("anthropic-messages", "anthropic", "m", signed), `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"Uw=="},{"type":"text","text":"so"}]}`},
		"redacted":                {provider.Anthropic, "m", pi("anthropic-messages", "anthropic", "m", `{"type":"thinking","thinking":"","thinkingSignature":"RA==","redacted":true}`), `{"role":"assistant","content":[{"type":"redacted_thinking","data":"RA=="},{"type":"text","text":"so"}]}`},
		"any model":               {provider.Anthropic, "", pi("anthropic-messages", "anthropic", "m", signed), `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"Uw=="},{"type":"text","text":"so"}]}`},
		"another model":           {provider.Anthropic, "n", pi("anthropic-messages", "anthropic", "m", signed), ""},
		"another API":             {provider.Anthropic, "m", pi("openai-responses", "openai", "m", itself), ""},
		"without a signature":     {provider.Anthropic, "m", pi("anthropic-messages", "anthropic", "m", `{"type":"thinking","thinking":"hm"}`), ""},
		"of no one":               {provider.Anthropic, "", `{"role":"assistant","content":[` + signed + `,{"type":"text","text":"so"}]}`, ""},
		"native, another model":   {provider.Anthropic, "n", `{"role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm","signature":"S"},{"type":"text","text":"so"}]}`, ""},
		"an item":                 {provider.OpenAIResponses, "m", pi("openai-codex-responses", "openai", "m", itself), rs + "\n" + `{"role":"assistant","content":[{"type":"output_text","text":"so"}]}`},
		"an item, another model":  {provider.OpenAIResponses, "n", pi("openai-responses", "openai", "m", itself), ""},
		"an item that is broken":  {provider.OpenAIResponses, "m", pi("openai-responses", "openai", "m", `{"type":"thinking","thinking":"hm","thinkingSignature":"{\"type\":"}`), ""},
		"the name of a field":     {provider.OpenAIChat, "m", pi("openai-completions", "deepseek", "m", `{"type":"thinking","thinking":"hm","thinkingSignature":"reasoning_content"}`), `{"role":"assistant","content":"so","reasoning_content":"hm"}`},
		"no name of a field":      {provider.OpenAIChat, "m", pi("openai-completions", "deepseek", "m", signed), ""},
		"gemini":                  {provider.Gemini, "m", pi("google-generative-ai", "google", "m", signed), `{"role":"model","parts":[{"text":"hm","thought":true,"thoughtSignature":"Uw=="},{"text":"so"}]}`},
		"gemini of another model": {provider.Gemini, "n", pi("google-generative-ai", "google", "m", signed), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, tt.api, &provider.Options{Model: tt.model}, hi, tt.message)
			if tt.want == "" {
				if strings.Contains(got, "hm") || strings.Contains(got, "rs_1") || !strings.HasSuffix(got, "lost 1 e1 thinking") {
					t.Errorf("it was sent, or nothing says that it was not:\n%s", got)
				}
				got = shown(t, tt.api, &provider.Options{Model: tt.model, Thinking: provider.AsText}, hi, tt.message)
				if !strings.Contains(got, "hm") || !strings.HasSuffix(got, "lost 1 e1 thinking") || strings.Contains(got, `"signature"`) {
					t.Errorf("it is not text:\n%s", got)
				}
				return
			}
			if _, answer, _ := strings.Cut(got, "\n"); answer != tt.want {
				t.Errorf(" got %s\nwant %s", answer, tt.want)
			}
		})
	}
}

// A call that no Gemini made carries, for the models that ask for a signature, the one that Google documents for it.
func TestGeminiSignatures(t *testing.T) {
	for model, want := range map[string]bool{"gemini-3-pro": true, "gemini-2.5-flash": false, "": false} {
		got := shown(t, provider.Gemini, &provider.Options{Model: model}, hi, piRun, piRan)
		if strings.Contains(got, `"thoughtSignature":"skip_thought_signature_validator"`) != want {
			t.Errorf("%q: %s", model, got)
		}
	}
}

// What OpenAI's items were paired with is not named once it is left out.
func TestItemsLoseTheirIDs(t *testing.T) {
	messages := []string{
		hi, `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA","model":"m"}`,
		`{"type":"function_call","id":"fc_1","call_id":"c","name":"ls","arguments":"{}","model":"m"}`,
		`{"type":"function_call_output","call_id":"c","output":"x"}`,
	}
	got := shown(t, provider.OpenAIResponses, &provider.Options{Model: "n"}, messages...)
	want := hi + `
{"type":"function_call","call_id":"c","name":"ls","arguments":"{}"}
{"type":"function_call_output","call_id":"c","output":"x"}
lost 1 e1 thinking
lost 1 e1 message`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Images that the context only refers to are read, within bounds.
func TestImages(t *testing.T) {
	sum, gone, broken := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	data, err := base64.StdEncoding.DecodeString(onePixel)
	if err != nil {
		t.Fatal(err)
	}
	blob := func(_ context.Context, s string) ([]byte, error) {
		switch s {
		case sum:
			return data, nil
		case gone:
			return nil, fmt.Errorf("no such blob: %w", fs.ErrNotExist)
		}
		return nil, errors.New("the disk is on fire")
	}
	image := func(ref string) string {
		return `{"role":"user","content":[{"type":"text","text":"see"},{"type":"image","data":"` + ref + `","mimeType":"image/png"}]}`
	}
	b64 := base64.StdEncoding.EncodeToString(data)
	for name, tt := range map[string]struct {
		ref     string
		options *provider.Options
		want    string // "" = named in words
	}{
		"ours":           {"coppice-blob:sha256:" + sum + ":33", &provider.Options{Blob: blob}, b64},
		"omp's":          {"blob:sha256:" + sum, &provider.Options{Blob: blob}, b64},
		"gone":           {"blob:sha256:" + gone, &provider.Options{Blob: blob}, ""},
		"no one to ask":  {"blob:sha256:" + sum, nil, ""},
		"too large":      {"blob:sha256:" + sum, &provider.Options{Blob: blob, MaxImage: 32}, ""},
		"all too large":  {"blob:sha256:" + sum, &provider.Options{Blob: blob, MaxImages: 32}, ""},
		"just as large":  {"blob:sha256:" + sum, &provider.Options{Blob: blob, MaxImage: 33, MaxImages: 33}, b64},
		"here all along": {onePixel, &provider.Options{Blob: blob}, onePixel},
	} {
		for _, api := range provider.APIs() {
			got := shown(t, api, tt.options, image(tt.ref))
			if lost := strings.Contains(got, "lost 0 e0 image"); lost != (tt.want == "") || !strings.Contains(got, tt.want) ||
				strings.Contains(got, `"blob:`) || strings.Contains(got, `"coppice-blob:`) {
				t.Errorf("%s, %s: %s", name, api, got)
			}
		}
	}
	_, err = provider.Convert(t.Context(), contextOf(image("blob:sha256:"+broken)), provider.Anthropic, &provider.Options{Blob: blob})
	if !errors.Is(err, provider.ErrImage) || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("a store that fails: %v", err)
	}
	// Of several only those that fit together are read.
	r, err := provider.Convert(t.Context(), contextOf(image("blob:sha256:"+sum), image("blob:sha256:"+sum)), provider.Anthropic,
		&provider.Options{Blob: blob, MaxImages: 65})
	if err != nil || strings.Count(string(r.Body()), b64) != 1 || len(r.Lost) != 1 || r.Lost[0].Message != 1 {
		t.Errorf("%v, lost %v: %s", err, r.Lost, r.Body())
	}
}

func TestConvertFails(t *testing.T) {
	if _, err := provider.Convert(t.Context(), contextOf(hi), "cohere", nil); !errors.Is(err, provider.ErrAPI) {
		t.Errorf("an API that does not exist: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := provider.Convert(ctx, contextOf(hi), provider.Gemini, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// The list of losses has a bound, and what is past it a count.
func TestManyLosses(t *testing.T) {
	messages := make([]string, provider.MaxLosses+7)
	for i := range messages {
		messages[i] = `{}`
	}
	r, err := provider.Convert(t.Context(), contextOf(messages...), provider.Anthropic, nil)
	if err != nil || len(r.Lost) != provider.MaxLosses || r.MoreLost != 7 || string(r.Body()) != `{"messages":[]}` {
		t.Errorf("%d, %d more, %v: %s", len(r.Lost), r.MoreLost, err, r.Body())
	}
}

// manyCalls returns messages of an assistant with n calls, and of their results, by what is odd in them.
func manyCalls(n int) map[string][]string {
	repeated := func(format string) string {
		list := make([]string, n)
		for i := range n {
			list[i] = strings.ReplaceAll(format, "#", strconv.Itoa(n-i))
		}
		return strings.Join(list, ",")
	}
	const call = `{"type":"tool_use","id":"c#","name":"f","input":{}}`
	const result = `{"type":"tool_result","tool_use_id":"c#","content":"x"}`
	return map[string][]string{
		"one id": {`{"role":"assistant","content":[` + repeated(strings.ReplaceAll(call, "#", "")) + `]}`},
		"results later": {
			`{"role":"assistant","content":[` + repeated(call) + `]}`,
			`{"role":"user","content":[{"type":"text","text":"first"},` + repeated(result) + `]}`,
		},
		"results alone":    {`{"role":"user","content":[` + repeated(result) + `]}`},
		"answers in a row": slices.Repeat([]string{`{"role":"assistant","content":[` + call + `]}`}, n),
	}
}

// Thousands of calls and results become a valid request, whatever their ids and their order.
func TestManyCalls(t *testing.T) {
	testutil.SkipLong(t)
	for name, messages := range manyCalls(3_000) {
		for _, api := range provider.APIs() {
			r, err := provider.Convert(t.Context(), contextOf(messages...), api, nil)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := check(r); wrong != "" {
				t.Errorf("%s, %s: %.200s", name, api, wrong)
			}
		}
	}
}
