package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Message is one message as its provider gave it: a JSON object, byte for byte.
type Message struct {
	Entry string // the entry that holds it; "" = inline, or made from a summary
	Role  string // "role" as in the object; "" = none
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
type ToolCall struct {
	Entry, ID, Name string
	// Arguments are what the tool is called with, as JSON: every digit and escape as the message has them. Of
	// arguments that are written as a string (OpenAI's) it is the JSON in the string, or the string itself if
	// what it holds is no JSON. nil = the message has none.
	Arguments json.RawMessage
}

// Calls returns the calls of tools that the message makes, in order. Their Entry is the message's.
func (m Message) Calls() []ToolCall {
	calls := Inspect(m.Raw).Calls
	for i := range calls {
		calls[i].Entry = m.Entry
	}
	return calls
}

// Shape is what could be found in a message, whatever provider it comes from.
type Shape struct {
	Role    string     // as in the message; "" = none
	Text    string     // text blocks, one below the other; of a message of nothing but results, their text
	Calls   []ToolCall // calls of tools; ToolCall.Entry is "". A call without an id has its name as id
	Results []string   // the ids of the calls whose results the message holds
}

// Inspect finds role, text, calls and results of a message in the shapes of pi, Anthropic, OpenAI (chat
// completions and responses), Gemini and Bedrock. Of any other message it finds the role, or nothing: it
// stays opaque and still works. It never fails; what is no JSON has an empty shape.
func Inspect(raw json.RawMessage) Shape {
	if end, err := rawjson.ValueEnd(raw, 0, rawjson.MaxDepth); err != nil || rawjson.Space(raw, end) < len(raw) {
		return Shape{}
	}
	p := readParts(raw)
	s := Shape{Role: p.Role, Calls: p.ToolCalls(), Results: texts(p.Results)}
	for i := range s.Calls {
		s.Calls[i].Arguments = message.Arguments(s.Calls[i].Arguments)
	}
	s.Text = strings.Join(texts(p.Speech()), "\n")
	return s
}
