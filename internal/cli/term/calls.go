package term

import (
	"bytes"
	"encoding/json"
)

// keyArguments are the arguments that describe a call best, best first.
var keyArguments = []string{"command", "path", "file_path", "filePath", "cmd", "pattern", "query", "url", "name"}

// argument returns the argument that describes a call best, or all of them as JSON.
func argument(args string) string {
	raw := []byte(args)
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
