package shape

import (
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// result is the result of a tool, wherever it stood. content is a list of pi's blocks.
type result struct {
	id, name, content, isError []byte
}

// blocksFine reports a list of pi's blocks of these types.
func blocksFine(list []byte, types ...string) bool {
	if len(list) == 0 || list[0] != '[' {
		return false
	}
	for m := rawjson.Walk(list); m.Next(); {
		if !blockFine(m.Val, types...) {
			return false
		}
	}
	return true
}

func blockFine(block []byte, types ...string) bool {
	var typ, args []byte
	var text, thinking, data, mime, id, name bool
	for m := rawjson.Walk(block); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
			typ = m.Val
		case "text":
			text = rawjson.IsString(m.Val)
		case "thinking":
			thinking = rawjson.IsString(m.Val)
		case "data":
			data = rawjson.IsString(m.Val)
		case "mimeType":
			mime = rawjson.IsString(m.Val)
		case "id":
			id = rawjson.IsString(m.Val)
		case "name":
			name = rawjson.IsString(m.Val)
		case "arguments":
			args = m.Val
		}
	}
	if !rawjson.IsString(typ) || !isOneOf(typ[1:len(typ)-1], types) {
		return false
	}
	switch string(typ) {
	case `"text"`:
		return text
	case `"thinking"`:
		return thinking
	case `"image"`:
		return data && mime
	case `"toolCall"`:
		return id && name && len(args) > 0 && args[0] == '{'
	}
	return true // a type of the target's own
}

func isOneOf(typ []byte, types []string) bool {
	return slices.Contains(types, string(typ))
}

func textBlock(literal []byte) []byte {
	return append(append([]byte(`{"type":"text","text":`), literal...), '}')
}

// block gives pi's block for any provider's, or the result of a tool that it is.
func (n *normal) block(b []byte) ([]byte, *result) {
	if rawjson.IsString(b) {
		return textBlock(b), nil
	}
	if blockFine(b, n.shown...) || blockFine(b, n.said...) || blockFine(b, "image") {
		return b, nil
	}
	if inner := innerOf(b, "functionCall", "function_call", "toolUse", "function", "custom"); inner != nil {
		return n.call(b, inner), nil
	}
	if inner := innerOf(b, "functionResponse", "function_response", "toolResult"); inner != nil {
		return nil, n.toolResult(inner)
	}
	switch typ := rawjson.Text(rawjson.Field(b, "type")); {
	case typ == "thinking", typ == "reasoning":
		return rawjson.Object("type", []byte(`"thinking"`), "thinking", stringOr(firstOf(b, "thinking", "text", "content"), ""),
			"thinkingSignature", first(b, "thinkingSignature", "signature", "encrypted_content")), nil
	case typ == "redactedThinking", typ == "redacted_thinking":
		return rawjson.Object("type", []byte(`"thinking"`), "thinking", []byte(`""`), "thinkingSignature", first(b, "data"), "redacted", []byte("true")), nil
	case typ == "toolCall", typ == "tool_call", typ == "function_call", typ == "custom_tool_call", strings.HasSuffix(typ, "tool_use"):
		return n.call(b, b), nil
	case strings.HasSuffix(typ, "tool_result"):
		return nil, n.toolResult(b)
	case typ == "text", typ == "input_text", typ == "output_text", typ == "refusal", typ == "":
		if t := firstOf(b, "text", "content", "refusal"); t != nil {
			return textBlock(t), nil
		}
	}
	if img := image(b); img != nil {
		return img, nil
	}
	n.lose(LostBlock)
	return textBlock(rawjson.AppendString(nil, blockText(b))), nil
}

func innerOf(b []byte, names ...string) []byte {
	for _, name := range names {
		if v := rawjson.Field(b, name); len(v) > 0 && v[0] == '{' {
			return v
		}
	}
	return nil
}

func firstOf(b []byte, names ...string) []byte { return first(b, names...) }

// call gives pi's block of a call. The id may stand on either level.
func (n *normal) call(outer, inner []byte) []byte {
	id := first(outer, "call_id", "id", "toolUseId")
	if v := first(inner, "call_id", "id", "toolUseId"); id == nil {
		id = v
	}
	name := first(inner, "name")
	if id == nil {
		id = name
	}
	var args []byte
	for _, field := range []string{"arguments", "input", "args"} {
		if v := rawjson.Field(inner, field); v != nil {
			args = v
			break
		}
	}
	if s := rawjson.Text(args); s != "" && rawjson.IsString(args) {
		if end, err := rawjson.ValueEnd([]byte(s), 0, rawjson.MaxDepth-8); err == nil && end == len(strings.TrimRight(s, " \n\r\t")) && strings.HasPrefix(s, "{") {
			args = []byte(compact(s))
		} else {
			args = rawjson.Object("input", args)
		}
	}
	if len(args) == 0 || args[0] != '{' {
		args = []byte("{}")
	}
	return rawjson.Object("type", []byte(`"toolCall"`), "id", stringOr(id, "unknown"), "name", stringOr(name, "unknown"), "arguments", args)
}

// compact takes line feeds out of JSON text: a line holds none.
func compact(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
}

func (n *normal) toolResult(b []byte) *result {
	r := &result{id: first(b, "tool_use_id", "toolUseId", "toolCallId", "id"), name: first(b, "name", "toolName"), isError: rawjson.Field(b, "is_error")}
	if r.id == nil {
		r.id = r.name
	}
	if string(rawjson.Field(b, "status")) == `"error"` {
		r.isError = []byte("true")
	}
	content := rawjson.Field(b, "content")
	if content == nil {
		if resp := rawjson.Field(b, "response"); resp != nil {
			content = rawjson.AppendString(nil, string(resp))
		}
	}
	r.content = []byte("[]")
	for _, part := range n.runs(content) {
		if part.result == nil {
			r.content = joined(r.content, part.content)
		}
	}
	return r
}

// image gives pi's block for any provider's image whose bytes are there; nil = there are none.
func image(b []byte) []byte {
	block := func(data, mime []byte) []byte {
		return rawjson.Object("type", []byte(`"image"`), "data", data, "mimeType", stringOr(mime, "image/png"))
	}
	for _, src := range [][]byte{b, rawjson.Field(b, "source"), rawjson.Field(b, "inlineData"), rawjson.Field(b, "inline_data")} {
		if data := first(src, "data"); data != nil {
			if mime := first(src, "mimeType", "mime_type", "media_type", "mediaType"); mime != nil && strings.HasPrefix(rawjson.Text(mime), "image/") {
				return block(data, mime)
			}
		}
	}
	url := rawjson.Field(b, "image_url")
	if len(url) > 0 && url[0] == '{' {
		url = rawjson.Field(url, "url")
	}
	if url == nil {
		url = rawjson.Field(b, "url")
	}
	if head, data, ok := strings.Cut(rawjson.Text(url), ";base64,"); ok && strings.HasPrefix(head, "data:image/") {
		return block(rawjson.AppendString(nil, data), rawjson.AppendString(nil, strings.TrimPrefix(head, "data:")))
	}
	return nil
}

// maxShown bounds the text that stands in the place of a block.
const maxShown = 16 << 10

// blockText says in words what a block was.
func blockText(b []byte) string {
	wrapped := append(append([]byte(`{"role":"user","content":[`), b...), "]}"...)
	if t := transcript.Inspect(wrapped).Text; t != "" {
		return t
	}
	typ := rawjson.Text(rawjson.Field(b, "type"))
	if typ == "" {
		typ = "block"
	}
	if inner := rawjson.Field(b, "image_url"); len(inner) > 0 && inner[0] == '{' {
		b = inner
	}
	for _, name := range []string{"url", "path", "name", "title"} {
		if s := rawjson.Text(rawjson.Field(b, name)); s != "" {
			return "[" + typ + ": " + s[:min(len(s), maxShown)] + "]"
		}
	}
	if len(b) <= maxShown && len(b) > 0 {
		return "[" + typ + "] " + string(b)
	}
	return "[" + typ + "]"
}
