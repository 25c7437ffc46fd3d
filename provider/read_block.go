package provider

import (
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// readBlock reads a part of a message in any provider's shape.
func readBlock(raw []byte) *block {
	if rawjson.IsString(raw) {
		return &block{kind: text, text: rawjson.Text(raw)}
	}
	typ := rawjson.Text(rawjson.Field(raw, "type"))
	b := &block{raw: raw, typ: typ}
	if thought, ok := message.ThoughtOf(raw); ok {
		b.kind, b.thought, b.text = thinking, thought, thought.Text
		return b
	}
	if inner := object(raw, "functionCall", "function_call", "toolUse", "function", "custom"); inner != nil {
		return callOf(raw, inner, typ)
	}
	if inner := object(raw, "functionResponse", "function_response", "toolResult"); inner != nil {
		return resultOf(raw, inner, nil)
	}
	switch {
	case typ == "toolCall", typ == "tool_call", typ == "tool_use", typ == "function_call",
		strings.HasSuffix(typ, "_call") && rawjson.IsString(rawjson.Field(raw, "call_id")):
		return callOf(raw, raw, typ)
	case typ == "tool_result":
		return resultOf(raw, raw, nil)
	case typ == "text", typ == "input_text", typ == "output_text", typ == "refusal", typ == "":
		for _, name := range []string{"text", "content", "refusal"} {
			if s := rawjson.Field(raw, name); rawjson.IsString(s) {
				b.text, b.mark = rawjson.Text(s), first(raw, "textSignature", "thoughtSignature", "thought_signature")
				return b
			}
		}
	}
	if p := pictureOf(raw); p != nil {
		b.kind, b.image, b.text = image, p, "[image]"
		return b
	}
	b.kind, b.text = other, words(raw)
	return b
}

// callOf reads a call; outer may hold its id.
func callOf(outer, inner []byte, typ string) *block {
	c := &toolCall{name: rawjson.Text(rawjson.Field(inner, "name"))}
	for _, o := range [][]byte{outer, inner} {
		if id := first(o, "call_id", "id", "toolUseId"); c.id == "" && id != nil {
			c.id = rawjson.Text(id)
		}
	}
	if rawjson.Field(outer, "call_id") != nil {
		c.item = rawjson.Text(rawjson.Field(outer, "id"))
	}
	if own, ok := strings.CutSuffix(typ, "_call"); ok && c.name == "" && own != "function" && own != "custom_tool" &&
		own != "tool" {
		c.name = own // a tool of the provider's
	}
	for _, name := range []string{"arguments", "input", "args", "action", "operation"} {
		if v := rawjson.Field(inner, name); v != nil {
			c.args = argumentsOf(v)
			break
		}
	}
	b := &block{kind: call, raw: outer, typ: typ, call: c}
	b.mark = first(outer, "thoughtSignature", "thought_signature")
	return b
}

// argumentsOf returns the arguments of a call: of text that holds JSON, the JSON.
func argumentsOf(val []byte) []byte {
	if !rawjson.IsString(val) {
		return val
	}
	inner := rawjson.AppendText(nil, val)
	const depth = rawjson.MaxDepth - 8 // it is put into a message
	if end, err := rawjson.ValueEnd(inner, 0, depth); err == nil && rawjson.Space(inner, end) == len(inner) &&
		inner[rawjson.Space(inner, 0)] == '{' {
		return rawjson.AppendCompact(nil, inner)
	}
	return val
}

// object returns the first of these fields that is an object; nil = none is.
func object(raw []byte, names ...string) []byte {
	for _, name := range names {
		if v := rawjson.Field(raw, name); len(v) > 0 && v[0] == '{' {
			return v
		}
	}
	return nil
}

// first returns the first of these fields that is a string with something in it; nil = none is.
func first(raw []byte, names ...string) []byte {
	for _, name := range names {
		if v := rawjson.Field(raw, name); rawjson.IsString(v) && len(v) > 2 {
			return v
		}
	}
	return nil
}

// resultOf reads the result of a call, which is a block or a message of its own.
func resultOf(outer, inner []byte, t *turn) *block {
	r := &toolResult{turn: t, failed: rawjson.IsTrue(rawjson.Field(inner, "isError")) ||
		rawjson.IsTrue(rawjson.Field(inner, "is_error")) || rawjson.Text(rawjson.Field(inner, "status")) == "error"}
	r.id = rawjson.Text(first(inner, "tool_use_id", "toolCallId", "tool_call_id", "toolUseId", "call_id"))
	if r.id == "" {
		r.id = rawjson.Text(first(inner, "id"))
	}
	r.name = rawjson.Text(first(inner, "toolName", "name"))
	for _, name := range []string{"content", "output", "response"} {
		v := rawjson.Field(inner, name)
		if v == nil {
			continue
		}
		if name == "response" {
			v = response(v, r)
		}
		r.content = append(r.content, blocksOf(v)...)
		if v[0] == '{' { // of a tool that is the provider's own
			r.content = append(r.content, said(string(v)))
		}
		break
	}
	r.content = append(r.content, blocksOf(rawjson.Field(inner, "parts"))...)
	typ := rawjson.Text(rawjson.Field(outer, "type"))
	return &block{kind: result, raw: outer, typ: typ, result: r}
}

// response returns the text of a Gemini function's response.
func response(val []byte, r *toolResult) []byte {
	text, failed := message.FunctionResponse(val)
	r.failed = r.failed || failed
	return text
}

// pictureOf returns the image that a block is; nil = it is none.
func pictureOf(raw []byte) *picture {
	b := message.Parse(message.Wrap("user", rawjson.List([][]byte{raw}))).Blocks[0]
	if mime, data, ok := b.Image(); ok && data != "" {
		return &picture{mime: mime, data: data}
	}
	if b.Picture != nil && b.Picture.Source != nil && b.Picture.Source.Bytes != "" { // Bedrock's
		return &picture{mime: "image/" + b.Picture.Format, data: b.Picture.Source.Bytes}
	}
	url := rawjson.Field(raw, "image_url")
	if inner := rawjson.Field(url, "url"); inner != nil {
		url = inner
	}
	if src := rawjson.Field(raw, "source"); b.Type == "image" && src != nil {
		url = rawjson.Field(src, "url")
	}
	if s := rawjson.Text(url); strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://") {
		return &picture{url: s}
	}
	return nil
}

// maxShown bounds the words for a block that are its JSON, in bytes.
const maxShown = 16 << 10

// words says what a block is that the API has no form for.
func words(raw []byte) string {
	blocks := message.Parse(message.Wrap("user", rawjson.List([][]byte{raw}))).Blocks
	if len(blocks) == 0 {
		return ""
	}
	b := blocks[0]
	typ := b.Type
	if typ == "" {
		typ = "block"
	}
	if f, ok := b.File(); ok {
		said := []string{typ}
		for _, s := range []string{f.Name, f.Mime} {
			if s != "" {
				said = append(said, s)
			}
		}
		return "[" + strings.Join(said, ", ") + "]" + documentText(raw)
	}
	if len(raw) > maxShown {
		return "[" + typ + "]"
	}
	return "[" + typ + "] " + string(raw)
}

// documentText returns the text of a document that is one, on a line of its own.
func documentText(raw []byte) string {
	src := rawjson.Field(raw, "source")
	if rawjson.Text(rawjson.Field(src, "type")) != "text" {
		return ""
	}
	return "\n" + rawjson.Text(rawjson.Field(src, "data"))
}
