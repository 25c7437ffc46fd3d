package piwriter_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

// FuzzMessages: whatever a message is, what it becomes is JSON that stays as it is when it is looked at again, with
// ids and without.
func FuzzMessages(f *testing.F) {
	for _, s := range []string{
		`{"role":"model","parts":[{"text":"t","thought":true,"thoughtSignature":"QQ=="},{"functionCall":{"name":"n","args":{}}}],"usageMetadata":{"promptTokenCount":3,"cachedContentTokenCount":2},"finishReason":"STOP"}`,
		`{"role":"user","parts":[{"functionResponse":{"name":"n","response":{"output":"x"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}}]}`,
		`{"role":"assistant","content":[{"reasoningContent":{"redactedContent":"AA=="}},{"toolUse":{"toolUseId":"t","name":"n","input":{}}}],"usage":{"inputTokens":1}}`,
		`{"role":"user","content":[{"toolResult":{"toolUseId":"t","content":[{"json":{}},{"image":{"format":"png","source":{"bytes":"AA=="}}}]}}]}`,
		`{"role":"assistant","content":null,"reasoning":"r","tool_calls":[{"function":{"name":"n","arguments":"{}"}}],"usage":{"prompt_tokens":5,"prompt_tokens_details":{"cached_tokens":9}}}`,
		`{"type":"reasoning","summary":[{"text":"s"}],"encrypted_content":"e"}`, `{"role":"function","name":"n","content":"c"}`, `[]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) || bytes.ContainsAny(raw, "\r\n") {
			return
		}
		raw = bytes.TrimSpace(raw)
		ids := piwriter.CallIDs{}
		for _, message := range [][]byte{raw, ids.Message("a", "", raw), ids.Message("b", "a", raw)} {
			if !json.Valid(message) {
				t.Fatalf("with ids: %s", message)
			}
			for _, p := range piwriter.Messages(message, at, piwriter.Dialect{}, func(string) {}) {
				if p.Type != "message" {
					if !json.Valid(p.Body) {
						t.Fatalf("%s: %s", p.Type, p.Body)
					}
					continue
				}
				again := piwriter.Messages(p.Message, at, piwriter.Dialect{}, func(kind string) { t.Fatalf("pi does not load it, %s: %s", kind, p.Message) })
				if !json.Valid(p.Message) || len(again) != 1 || !bytes.Equal(again[0].Message, p.Message) {
					t.Fatalf("not settled: %s", p.Message)
				}
			}
		}
	})
}
