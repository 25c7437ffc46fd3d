package codex

import (
	"bytes"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// spokenText returns the text of a message as an event has it: the same bytes if there is one part.
func spokenText(list [][]byte, all []byte) []byte {
	if len(list) == 1 {
		if text := rawjson.Field(list[0], "text"); text != nil {
			return text
		}
	}
	return rawjson.AppendString(nil, plainText(all))
}

// contentParts returns content in Codex's form: text parts of type typ, and images.
func contentParts(content []byte, typ string) (list [][]byte) {
	if rawjson.IsString(content) {
		if len(content) > 2 {
			list = append(list, textPart(typ, content))
		}
		return list
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		switch string(rawjson.Field(m.Val, "type")) {
		case `"text"`:
			if text := rawjson.Field(m.Val, "text"); rawjson.IsString(text) {
				list = append(list, textPart(typ, text))
			}
		case `"image"`:
			if url := imageURL(m.Val); url != nil {
				list = append(list, rawjson.Object("type", []byte(`"input_image"`), "image_url", url))
			}
		}
	}
	return list
}

// textPart returns a text part.
func textPart(typ string, text []byte) []byte {
	return append(append(append(append([]byte(`{"type":"`), typ...), `","text":`...), text...), '}')
}

// imageURL returns an image as a data URL.
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

// messageItem returns a message item with a role.
func messageItem(role string, content []byte) []byte {
	return rawjson.Object("type", []byte(`"message"`), "role", []byte(`"`+role+`"`), "content", content)
}

// outputValue returns the result of a tool: a string, or a list if there is more than text.
func outputValue(content []byte) []byte {
	if rawjson.IsString(content) {
		return content
	}
	list := contentParts(content, "input_text")
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

// toolName returns a name that OpenAI accepts.
func toolName(name string) string {
	const most = 64
	fit := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
	return fit[:min(len(fit), most)]
}
