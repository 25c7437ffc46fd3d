package piwriter

import (
	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Thinking returns pi's block for one that says what the model thought, in any provider's form; nil =
// it says something else. Its signature is what pi sends back to the provider: of OpenAI's items that
// is the whole item.
func Thinking(b []byte) []byte {
	t, ok := message.ThoughtOf(b)
	if !ok {
		return nil
	}
	if t.Item {
		t.Signature = rawjson.AppendString(nil, b)
	}
	return thinking(t)
}

func thinking(t message.Thought) []byte {
	var redacted []byte
	if t.Redacted {
		redacted = []byte("true")
	}
	return rawjson.Object("type", []byte(`"thinking"`), "thinking", rawjson.AppendString(nil, t.Text),
		"thinkingSignature", t.Signature, "redacted", redacted)
}

// beside returns pi's block for what a message says was thought beside its content; nil = it says
// nothing. The field's name as the signature is how pi knows where to put it when it sends it back.
func beside(raw []byte) []byte {
	text, field := message.Aside(raw)
	if text == "" {
		return nil
	}
	return thinking(message.Thought{Text: text, Signature: rawjson.AppendString(nil, field)})
}
