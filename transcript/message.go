package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Message is one message as its provider gave it: a JSON object, byte for byte.
type Message struct {
	Entry string // the entry that holds it; "" = inline, or made from a summary
	Role  string // "role" as the object says it; "" = none
	Raw   json.RawMessage
}

// Text returns what a person would read of the message: its text blocks, one below the other. Thinking,
// calls, results' structure and images are not text.
func (m Message) Text() string { return Inspect(m.Raw).Text }

// Decode unmarshals the message into v, as encoding/json does it.
func (m Message) Decode(v any) error {
	if err := json.Unmarshal(m.Raw, v); err != nil {
		return fmt.Errorf("decode message of entry %q: %w", m.Entry, err)
	}
	return nil
}

// ToolCall is one call of a tool: the entry that holds it ("" = inline), the call's id and the tool's name.
type ToolCall struct{ Entry, ID, Name string }

// Shape is what could be found in a message, whatever provider it comes from.
type Shape struct {
	Role    string     // as the message says it; "" = none
	Text    string     // text blocks, one below the other; of a message of nothing but results, their text
	Calls   []ToolCall // calls of tools; ToolCall.Entry is "". A call without an id has its name as id
	Results []string   // the ids of the calls whose results the message holds
}

// Inspect finds role, text, calls and results of a message in the shapes of pi, Anthropic, OpenAI (chat
// completions and responses), Gemini and Bedrock. Of any other message it finds the role, or nothing: it
// stays opaque and still works. It never fails; what is no JSON has an empty shape.
func Inspect(message json.RawMessage) Shape {
	if end, err := rawjson.ValueEnd(message, 0, rawjson.MaxDepth); err != nil ||
		rawjson.Space(message, end) < len(message) {
		return Shape{}
	}
	p := readParts(message)
	s := Shape{Role: p.Role, Results: p.Results}
	for _, c := range p.Calls {
		s.Calls = append(s.Calls, ToolCall{ID: c.ID, Name: c.Name})
	}
	var b strings.Builder
	for _, lit := range p.Speech() {
		t := rawjson.Text(lit)
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(t)
	}
	s.Text = b.String()
	return s
}
