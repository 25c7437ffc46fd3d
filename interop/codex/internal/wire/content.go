// Package wire has the words of Codex's rollouts: how what is said is put in them, and what Codex needs of what it is
// to load.
package wire

import (
	"bytes"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/codex/internal/rollout"
)

// Words gives the words of a message as an event says them: of one part the very same bytes.
func Words(list [][]byte, all []byte) []byte {
	if len(list) == 1 {
		if text := rawjson.Field(list[0], "text"); text != nil {
			return text
		}
	}
	return rawjson.AppendString(nil, rollout.PlainText(all))
}

// Content gives content as Codex has it: texts of this type, and images.
func Content(content []byte, typ string) (list [][]byte) {
	if rawjson.IsString(content) {
		if len(content) > 2 {
			list = append(list, Text(typ, content))
		}
		return list
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		switch string(rawjson.Field(m.Val, "type")) {
		case `"text"`:
			if text := rawjson.Field(m.Val, "text"); rawjson.IsString(text) {
				list = append(list, Text(typ, text))
			}
		case `"image"`:
			if url := imageURL(m.Val); url != nil {
				list = append(list, rawjson.Object("type", []byte(`"input_image"`), "image_url", url))
			}
		}
	}
	return list
}

// Text gives a part of a content that is a text.
func Text(typ string, text []byte) []byte {
	return append(append(append(append([]byte(`{"type":"`), typ...), `","text":`...), text...), '}')
}

// imageURL gives an image as an address that holds it.
func imageURL(block []byte) []byte {
	data, mime := rawjson.Field(block, "data"), rawjson.Field(block, "mimeType")
	if !rawjson.IsString(data) || !rawjson.IsString(mime) {
		return nil
	}
	if bytes.HasPrefix(data, []byte(`"data:`)) {
		return data
	}
	out := make([]byte, 0, len(data)+len(mime)+len(`data:;base64,`))
	out = append(append(out, `"data:`...), mime[1:len(mime)-1]...)
	return append(append(out, `;base64,`...), data[1:]...)
}

// Message gives a message of a role.
func Message(role string, content []byte) []byte {
	return rawjson.Object("type", []byte(`"message"`), "role", []byte(`"`+role+`"`), "content", content)
}

// Output gives what a tool gave: a text, or a list where it is more.
func Output(content []byte) []byte {
	if rawjson.IsString(content) {
		return content
	}
	list := Content(content, "input_text")
	switch {
	case len(list) == 0:
		return []byte(`""`)
	case len(list) == 1:
		if text := rawjson.Field(list[0], "text"); text != nil {
			return text
		}
	}
	return rawjson.List(list)
}

// ToolName gives a name that OpenAI takes.
func ToolName(name string) string {
	const most = 64
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return fit[:min(len(fit), most)]
}
