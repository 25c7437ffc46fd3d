package piwriter_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

var ofPi = regexp.MustCompile(`"(?:id|toolCallId)":"([^"]+)","(?:name|toolName)":"([^"]+)"(?:,"arguments":\{"n":(\d+)\}|,"content":\[\{"type":"text","text":"(\d+)"\}\])`)

// talk is a session: its entries are named a, b, c... and each has the one before as parent, unless it names another:
// "b>...".
type talk []string

// paired describes each call and each result: the name of its tool and a number; a result begins with "=" and that of
// its call. It fails if two calls have one ID, or if an ID differs in a second pass.
func (s talk) paired(t *testing.T) string {
	t.Helper()
	ids := piwriter.CallIDs{}
	var first, out string
	for range 2 {
		calls, said := map[string]string{}, []string{}
		for i, entry := range s {
			parent, message, ok := strings.Cut(entry, ">")
			if !ok {
				parent, message = string(rune('a'+i-1)), entry
			}
			got, _ := made(string(ids.Message(string(rune('a'+i)), parent, []byte(message))))
			for _, m := range ofPi.FindAllStringSubmatch(got, -1) {
				id, what := m[1], m[2]+m[3]+m[4]
				switch {
				case m[4] != "":
					said = append(said, calls[id]+"="+what)
				case calls[id] != "":
					t.Errorf("two calls have the id %s", id)
				default:
					calls[id] = what
				}
			}
			out += got
		}
		if first == "" {
			first, out = out, ""
			continue
		}
		if first != out {
			t.Errorf("read again it is\n%s\nnot\n%s", out, first)
		}
		return strings.Join(said, " ")
	}
	return ""
}

func gemini(calls ...string) string {
	var parts []string
	for _, c := range calls {
		parts = append(parts, fmt.Sprintf(`{"functionCall": {"name":%q,"args":{"n":%s}} }`, c[:1], c[1:]))
	}
	return `{"role":"model","parts":[{"text":"so"},` + strings.Join(parts, ",") + `]}`
}

func gave(results ...string) string {
	var parts []string
	for _, r := range results {
		parts = append(parts, fmt.Sprintf(`{"functionResponse":{"name":%q,"response":{"output":%q}}}`, r[:1], r[1:]))
	}
	return `{"role":"user","parts":[` + strings.Join(parts, ",") + `]}`
}

// TestIDs: calls without ids get one each, and a result that of the call that it belongs to.
func TestIDs(t *testing.T) {
	user := `{"role":"user","parts":[{"text":"q"}]}`
	for _, tt := range []struct {
		name string
		talk talk
		want string
	}{
		{"one after the other", talk{gemini("f1"), gave("f1"), gemini("f2"), gave("f2")}, "f1=f1 f2=f2"},
		{"at once", talk{gemini("f1", "g2", "f3"), gave("f1", "f3", "g2")}, "f1=f1 f3=f3 g2=g2"},
		{"results one by one", talk{gemini("f1", "f2", "g3"), gave("f1"), gave("g3"), gave("f2")}, "f1=f1 g3=g3 f2=f2"},
		{"calls one by one", talk{gemini("f1"), gemini("f2"), gave("f1", "f2")}, "f1=f1 f2=f2"},
		{"no answer before the user speaks", talk{gemini("f1"), user, gemini("f2"), gave("f2")}, "f2=f2"},
		{"no answer before a new round", talk{gemini("f1", "f2"), gave("f1"), gemini("f3"), gave("f3")}, "f1=f1 f3=f3"},
		{"branches", talk{gemini("f1", "f2"), gave("f1"), gave("f2"), "a>" + gave("f1"), gave("f2"), "a>" + gemini("f3"), gave("f1", "f2", "f3")}, "f1=f1 f2=f2 f1=f1 f2=f2 f1=f1 f2=f2 f3=f3"},
		{"other entries between", talk{gemini("f1"), "", "", gave("f1")}, "f1=f1"},
		{
			"some have ids", talk{
				`{"role":"model","parts":[{"functionCall":{"id":"own","name":"f","args":{"n":1}}},{"functionCall":{"id":null,"name":"f","args":{"n":2}}}]}`,
				`{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]}`,
			}, "f1=f1 f2=f2",
		},
		{
			"the other way round", talk{
				`{"role":"model","parts":[{"functionCall":{"id":"own","name":"f","args":{"n":1}}},{"functionCall":{"name":"f","args":{"n":2}}}]}`,
				`{"role":"user","parts":[{"functionResponse":{"id":"own","name":"f","response":{"output":"1"}}},{"functionResponse":{"name":"f","response":{"output":"2"}}}]}`,
			}, "f1=f1 f2=f2",
		},
		{
			"openai's oldest", talk{
				`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"n\":1}"}}`, `{"role":"function","name":"f","content":"1"}`,
				`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"n\":2}"}}`, `{"role":"function","name":"f","content":"2"}`,
			}, "f1=f1 f2=f2",
		},
		{
			"ollama", talk{
				`{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"n":1}}},{"function":{"name":"f","arguments":{"n":2}}}]}`,
				`{"role":"tool","tool_name":"f","content":"1"}`, `{"role":"tool","tool_name":"f","content":"2"}`,
			}, "f1=f1 f2=f2",
		},
		{"a result of nobody", talk{user, gave("f1")}, "=f1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.talk.paired(t); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestIDsLeaveAlone: what lacks nothing is the same bytes, and nothing is remembered of it once all is answered.
func TestIDsLeaveAlone(t *testing.T) {
	ids, parent := piwriter.CallIDs{}, ""
	for i, message := range []string{
		`{"role":"user","content":"about \"functionCall\""}`,
		`{ "role":"model", "parts":[ {"functionCall": {"id":"k","name":"f"} } ] }`,
		`{"role":"user","parts":[{"functionResponse":{"id":"k","name":"f","response":{}}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"x"}`,
		`{"role":"assistant","content":[{"type":"toolCall","id":"t","name":"functionCall","arguments":{}}]}`,
		`7`, `{"parts":7,"tool_calls":"function_call"}`,
	} {
		id := fmt.Sprint(i)
		raw := []byte(message)
		if got := ids.Message(id, parent, raw); len(got) != len(raw) || &got[0] != &raw[0] {
			t.Errorf("%s became %s", message, got)
		}
		parent = id
	}
	if ids.Message("x", parent, nil) != nil || len(ids) != 2 {
		t.Errorf("%d entries are remembered, want the two with calls", len(ids))
	}
}

// TestIDsBounded: calls without results neither slow down later messages nor take memory beyond the bound.
func TestIDsBounded(t *testing.T) {
	ids := piwriter.CallIDs{}
	calls := strings.Repeat(`{"functionCall":{"name":"f"}},`, 50_000)
	ids.Message("0", "", []byte(`{"role":"model","parts":[`+strings.TrimSuffix(calls, ",")+`]}`))
	answered := 0
	for i := range 20_000 {
		got := ids.Message(fmt.Sprint(i+1), fmt.Sprint(i), []byte(gave("f1", "g1")))
		if strings.Contains(string(got), `"id":"call_`) {
			answered++
		}
	}
	if answered != 256 {
		t.Errorf("%d results have a call, want 256", answered)
	}
}
