package draw

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/coppice-go/coppice/transcript"
)

// call is a call of a tool as one line shows it.
type call struct{ name, arg string }

// block is what the providers' ways to write calls and thoughts have in common.
type block struct {
	Name         string          `json:"name"`
	Arguments    json.RawMessage `json:"arguments"` // pi; OpenAI: a string that holds them
	Input        json.RawMessage `json:"input"`     // Anthropic
	Args         json.RawMessage `json:"args"`      // Gemini
	FunctionCall *block          `json:"functionCall"`
	Function     *block          `json:"function"`
	Thinking     string          `json:"thinking"`
}

// blocks gives the parts of a message, whatever its provider calls them.
func blocks(raw json.RawMessage) []block {
	var m struct {
		Content json.RawMessage `json:"content"`
		Parts   []block         `json:"parts"`
		Calls   []block         `json:"tool_calls"`
	}
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	var content []block
	if json.Unmarshal(m.Content, &content) != nil {
		content = nil // plain text
	}
	return append(append(content, m.Parts...), m.Calls...)
}

// calls gives the calls of a message, with their arguments where they can be found.
func calls(raw json.RawMessage, shape transcript.Shape) []call {
	var out []call
	for _, b := range blocks(raw) {
		for _, inner := range []*block{b.FunctionCall, b.Function} {
			if inner != nil {
				b = *inner
			}
		}
		for _, args := range []json.RawMessage{b.Arguments, b.Input, b.Args} {
			if b.Name != "" && len(args) > 0 {
				out = append(out, call{b.Name, argument(args)})
			}
		}
	}
	if len(out) == len(shape.Calls) {
		return out
	}
	out = out[:0]
	for _, c := range shape.Calls {
		out = append(out, call{name: c.Name})
	}
	return out
}

// telling are the arguments that say most about a call, best first.
var telling = []string{"command", "path", "file_path", "filePath", "cmd", "pattern", "query", "url", "name"}

// argument gives what is most telling of a call's arguments.
func argument(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		for _, name := range telling {
			if json.Unmarshal(object[name], &text) == nil && text != "" {
				return text
			}
		}
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil || compact.String() == "{}" {
		return ""
	}
	return compact.String()
}

// thinking gives what the model thought, where the message says it.
func thinking(raw json.RawMessage) string {
	var parts []string
	for _, b := range blocks(raw) {
		if b.Thinking != "" {
			parts = append(parts, b.Thinking)
		}
	}
	return strings.Join(parts, "\n")
}
