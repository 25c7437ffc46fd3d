package piwriter

import (
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// toolResult is the result of a tool, wherever it was. content is a list of pi's blocks.
type toolResult struct {
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

// block returns pi's block for any provider's, or the result of a tool that it is.
func (n *normaliser) block(b []byte) ([]byte, *toolResult) {
	if rawjson.IsString(b) {
		return textBlock(b), nil
	}
	if (blockFine(b, n.shown...) || blockFine(b, n.said...) || blockFine(b, "image")) && !anthropicThinking(b) {
		return b, nil
	}
	if inner := innerOf(b, "functionCall", "function_call", "toolUse", "function", "custom"); inner != nil {
		return n.call(b, inner), nil
	}
	if inner := innerOf(b, "functionResponse", "function_response", "toolResult"); inner != nil {
		return nil, n.toolResult(inner)
	}
	if thinking := Thinking(b); thinking != nil {
		return thinking, nil
	}
	switch typ := rawjson.Text(rawjson.Field(b, "type")); {
	case typ == "toolCall", typ == "tool_call", typ == "function_call", typ == "custom_tool_call",
		strings.HasSuffix(typ, "tool_use"):
		return n.call(b, b), nil
	case strings.HasSuffix(typ, "tool_result"):
		return nil, n.toolResult(b)
	case typ == "text", typ == "input_text", typ == "output_text", typ == "refusal", typ == "":
		if t := first(b, "text", "content", "refusal"); t != nil || message.GeminiSignature(b) != nil {
			return rawjson.Object("type", []byte(`"text"`), "text", stringOr(t, ""),
				"textSignature", message.GeminiSignature(b)), nil
		}
		if v := rawjson.Field(b, "json"); v != nil { // Bedrock's results
			return textBlock(rawjson.AppendString(nil, v)), nil
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

// anthropicThinking reports whether thinking is Anthropic's, and not pi's, which has another name for the signature.
func anthropicThinking(b []byte) bool {
	return rawjson.IsString(rawjson.Field(b, "signature")) && string(rawjson.Field(b, "type")) == `"thinking"` &&
		rawjson.Field(b, "thinkingSignature") == nil
}

// call returns pi's block of a call. The id may stand on either level.
func (n *normaliser) call(outer, inner []byte) []byte {
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
		if end, err := rawjson.ValueEnd([]byte(s), 0, rawjson.MaxDepth-8); err == nil &&
			end == len(strings.TrimRight(s, " \n\r\t")) && strings.HasPrefix(s, "{") {
			args = []byte(compact(s))
		} else {
			args = rawjson.Object("input", args)
		}
	}
	if len(args) == 0 || args[0] != '{' {
		args = []byte("{}")
	}
	return rawjson.Object("type", []byte(`"toolCall"`), "id", stringOr(id, "unknown"),
		"name", stringOr(name, "unknown"), "arguments", args, "thoughtSignature", message.GeminiSignature(outer))
}

// compact takes line feeds out of JSON text: a line holds none.
func compact(s string) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(s)
}

func (n *normaliser) toolResult(b []byte) *toolResult {
	r := &toolResult{
		id: first(b, "tool_use_id", "toolUseId", "toolCallId", "id"), name: first(b, "name", "toolName"),
		isError: rawjson.Field(b, "is_error"),
	}
	if r.id == nil {
		r.id = r.name
	}
	if string(rawjson.Field(b, "status")) == `"error"` {
		r.isError = []byte("true")
	}
	content := rawjson.Field(b, "content")
	if resp := rawjson.Field(b, "response"); content == nil && resp != nil {
		var failed bool
		if content, failed = message.FunctionResponse(resp); failed {
			r.isError = []byte("true")
		}
	}
	r.content = []byte("[]")
	for _, list := range [][]byte{content, rawjson.Field(b, "parts")} {
		for _, part := range n.runs(list) {
			if part.result == nil {
				r.content = joined(r.content, part.content)
			}
		}
	}
	return r
}
