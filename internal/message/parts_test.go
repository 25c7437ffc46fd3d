package message

import (
	"encoding/json"
	"testing"
)

// Documents and images that are elsewhere are told of, whoever's shape they have.
func TestFile(t *testing.T) {
	for in, want := range map[string]File{
		`{"type":"document","title":"a.pdf","source":{"type":"base64","media_type":"application/pdf","data":"QUJDRA=="}}`: {"a.pdf", "application/pdf", 4},
		`{"type":"document","title":null,"source":{"type":"text","media_type":"text/plain","data":"plain"}}`:              {"", "text/plain", 5},
		`{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}`:                                             {"https://x/y.pdf", "", -1},
		`{"type":"document","source":{"type":"file","file_id":"file_1"}}`:                                                 {"file_1", "", -1},
		`{"type":"image","source":{"type":"url","url":"https://x/y.png"}}`:                                                {"https://x/y.png", "", -1},
		`{"type":"image","data":"PHN2Zz4=","mimeType":"image/svg+xml"}`:                                                   {"", "image/svg+xml", 5},
		`{"type":"file","file":{"filename":"b.pdf","file_data":"data:application/pdf;base64,QUJD"}}`:                      {"b.pdf", "application/pdf", 3},
		`{"type":"input_file","file_id":"file-2"}`:                                                                        {"file-2", "", -1},
		`{"type":"image_url","image_url":{"url":"https://x/z.png"}}`:                                                      {"https://x/z.png", "image", -1},
		`{"inlineData":{"mimeType":"application/pdf","data":"QUJD"}}`:                                                     {"", "application/pdf", 3},
		`{"fileData":{"mimeType":"video/mp4","fileUri":"gs://b/v.mp4"}}`:                                                  {"gs://b/v.mp4", "video/mp4", -1},
		`{"document":{"name":"c","format":"pdf","source":{"bytes":"QUI="}}}`:                                              {"c", "pdf", 2},
	} {
		if got, ok := one(t, in).File(); !ok || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", in, got, ok, want)
		}
	}
	for _, in := range []string{`{"type":"text","text":"x"}`, `{"type":"toolCall","name":"x","arguments":{}}`} {
		if got, ok := one(t, in).File(); ok {
			t.Errorf("%s: got %+v, want none", in, got)
		}
	}
}

func TestImage(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"image","data":"QQ==","mimeType":"image/png"}`:                                       "image/png QQ==",
		`{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"QQ=="}}`:          "image/gif QQ==",
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,QQ=="}}`:                       "image/png QQ==",
		`{"type":"input_image","image_url":"data:image/jpeg;base64,QQ=="}`:                            "image/jpeg QQ==",
		`{"inlineData":{"mimeType":"image/webp","data":"QQ=="}}`:                                      "image/webp QQ==",
		`{"type":"image","source":{"type":"url","url":"https://x/y.png"}}`:                            "",
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QQ=="}}`: "",
	} {
		got := ""
		if mime, data, ok := one(t, in).Image(); ok {
			got = mime + " " + data
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// Results that stand among the parts of a message say whose they are, and what they say.
func TestResult(t *testing.T) {
	for in, want := range map[string]Result{
		`{"type":"tool_result","tool_use_id":"a","content":"x","is_error":true}`:                                                                                              {Call: "a", Text: "x", Failed: true},
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"text","text":"y"}]}`:                                                          {Call: "a", Text: "x\ny"},
		`{"type":"web_search_tool_result","tool_use_id":"a","content":[{"type":"web_search_result","url":"u","title":"t","encrypted_content":"zz"}]}`:                         {Call: "a", Text: "t\nu"},
		`{"type":"bash_code_execution_tool_result","tool_use_id":"a","content":{"stdout":"o"}}`:                                                                               {Call: "a", Text: `{"stdout":"o"}`},
		`{"functionResponse":{"name":"f","response":{"r":1}}}`:                                                                                                                {Call: "f", Text: `{"r":1}`},
		`{"toolResult":{"toolUseId":"b","status":"error","content":[{"text":"x"},{"json":{"y":1}}]}}`:                                                                         {Call: "b", Text: "x\n{\"y\":1}", Failed: true},
		`{"type":"tool_result","tool_use_id":"a","content":[]}`:                                                                                                               {Call: "a"},
		`{"type":"tool_result","tool_use_id":"a"}`:                                                                                                                            {Call: "a"},
		`{"type":"tool_result","tool_use_id":7,"content":[{"type":"text","text":7},{"type":"document","title":"d","source":{"type":"text","media_type":"m","data":"data"}}]}`: {},
	} {
		got, ok := one(t, in).Result()
		if got.Blocks = nil; !ok || got.Call != want.Call || got.Text != want.Text || got.Failed != want.Failed {
			t.Errorf("%s: got %+v, %v, want %+v", in, got, ok, want)
		}
	}
	if _, ok := one(t, `{"type":"server_tool_use","id":"a","name":"x","input":{}}`).Result(); ok {
		t.Error("a call is a result")
	}
}

// OpenAI's items are messages of one part; a model that broke off says why.
func TestOf(t *testing.T) {
	m := Parse(json.RawMessage(`{"type":"function_call","call_id":"c","name":"look","arguments":"{\"at\":1}"}`))
	name, args, ok := m.Blocks[0].Call()
	if !ok || name != "look" || string(Arguments(args)) != `{"at":1}` {
		t.Errorf("got %q %s %v", name, args, ok)
	}
	for in, want := range map[string]string{
		`{"role":"assistant","stopReason":"aborted","errorMessage":"why"}`: "why",
		`{"role":"assistant","stopReason":"error"}`:                        "error",
		`{"role":"assistant","stopReason":"stop","errorMessage":"why"}`:    "",
	} {
		if got := Parse(json.RawMessage(in)).Stopped; got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}

// What was thought is told of in any provider's shape, once, and is not among what was said.
func TestThoughts(t *testing.T) {
	for in, want := range map[string]string{
		`{"role":"assistant","content":[{"type":"thinking","thinking":"a","thinkingSignature":"s"},{"type":"text","text":"x"}]}`:                                         "a",
		`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},{"type":"text","text":"x"}]}`:             "ab",
		`{"role":"model","parts":[{"text":"a","thought":true},{"text":"b","thought":true,"thoughtSignature":"s"},{"text":"x"}]}`:                                         "a|b",
		`{"role":"model","parts":[{"text":"a","thought":true,"function_call":null},{"text":"x","thought":null}]}`:                                                        "a",
		`{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"a","signature":"s"}}},{"reasoningContent":{"redactedContent":"r"}},{"text":"x"}]}`: "a",
		`{"role":"assistant","reasoning_content":"a","content":"x"}`:                                                                                                     "a",
		`{"role":"assistant","reasoning":"a","content":[{"type":"thinking","thinking":"b"},{"type":"text","text":"x"}]}`:                                                 "a|b",
		`{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"a"},{"type":"summary_text","text":"b"}]}`:                                                "a\n\nb",
		`{"type":"reasoning","id":"r","summary":[],"content":[{"type":"reasoning_text","text":"a"}],"encrypted_content":"e"}`:                                            "a",
		`{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"a"}],"content":[{"type":"reasoning_text","text":"long"}]}`:                               "a",
		`{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"},{"type":"text","text":"x","thinking":7}]}`:                                               "",
	} {
		m := Parse(json.RawMessage(in))
		if got := m.Thoughts("|"); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
		for _, b := range m.Blocks {
			if text, ok := b.Speech(); ok && text != "x" {
				t.Errorf("%s: says %q", in, text)
			}
		}
	}
}

func one(t *testing.T, block string) Block {
	t.Helper()
	m := Parse(json.RawMessage(`{"role":"user","content":[` + block + `]}`))
	if len(m.Blocks) != 1 {
		t.Fatalf("%s: %d parts", block, len(m.Blocks))
	}
	return m.Blocks[0]
}
