package term

import (
	"bytes"
	"encoding/json"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/transcript"
)

// call is a call of a tool as one line shows it.
type call struct{ name, arg string }

// calls returns the calls of a message, with their arguments where they can be found.
func calls(m message.Parts, shape transcript.Shape) []call {
	var out []call
	for _, b := range m.Blocks {
		if name, args, ok := b.Call(); ok {
			out = append(out, call{name, argument(args)})
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

// keyArguments are the arguments that describe a call best, best first.
var keyArguments = []string{"command", "path", "file_path", "filePath", "cmd", "pattern", "query", "url", "name"}

// argument returns the argument that describes a call best, or all of them as JSON.
func argument(raw json.RawMessage) string {
	raw = message.Arguments(raw)
	var text string
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) == nil {
		for _, name := range keyArguments {
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
