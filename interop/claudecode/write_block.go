package claudecode

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// blocks returns a list of blocks in Anthropic's form.
func (w *writer) blocks(content []byte) []byte {
	var list [][]byte
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if b := w.block(m.Val); b != nil {
			list = append(list, b)
		}
	}
	return rawjson.List(list)
}

// block returns a block in Anthropic's form; nil = it has no content or no equivalent.
func (w *writer) block(block []byte) []byte {
	if rawjson.IsString(block) {
		block = rawjson.Object("type", []byte(`"text"`), "text", block)
	}
	typ := rawjson.Text(rawjson.Field(block, "type"))
	switch typ {
	case wrappedBlockType:
		return w.block(rawjson.Field(block, "block"))
	case "text":
		text, cites := rawjson.Field(block, "text"), rawjson.Field(block, "citations")
		if len(cites) <= len("[]") || cites[0] != '[' {
			cites = nil
		}
		if rawjson.IsString(text) && strings.TrimSpace(rawjson.Text(text)) != "" {
			return rawjson.Object("type", []byte(`"text"`), "text", text, "citations", cites)
		}
		return nil // Anthropic rejects empty text
	case "image":
		if b := imageBlock(block); b != nil {
			return b
		}
	default:
		if isAnthropicBlock(typ) {
			// Claude Code sets its own, and Anthropic rejects more than four
			return rawjson.WithField(block, "cache_control", nil)
		}
	}
	w.lose("blocks of type " + printable(typ))
	return nil
}

// isAnthropicBlock reports whether a type is one of Anthropic's blocks that are written unchanged.
func isAnthropicBlock(typ string) bool {
	switch typ {
	case "document", "tool_reference", "server_tool_use", "search_result", "mcp_tool_use", "container_upload":
		return true
	}
	return strings.HasSuffix(typ, "_tool_result")
}

// imageBlock returns an image of pi or Anthropic in Anthropic's form; nil = it has no data.
func imageBlock(block []byte) []byte {
	if src := rawjson.Field(block, "source"); len(src) > 0 && src[0] == '{' {
		return rawjson.WithField(block, "cache_control", nil)
	}
	data, mime := rawjson.Field(block, "data"), rawjson.Field(block, "mimeType")
	if head, coded, ok := strings.Cut(string(data), ";base64,"); ok && strings.HasPrefix(head, `"data:`) {
		data, mime = []byte(`"`+coded), []byte(head[:1]+strings.TrimPrefix(head, `"data:`)+`"`)
	}
	if !rawjson.IsString(data) || !rawjson.IsString(mime) || strings.HasPrefix(string(data), `"blob:`) ||
		strings.HasPrefix(string(data), `"data:`) {
		return nil
	}
	source := rawjson.Object("type", []byte(`"base64"`), "media_type", mime, "data", data)
	return rawjson.Object("type", []byte(`"image"`), "source", source)
}

// bySigner reports whether the thinking in a message is Anthropic's, by the API and provider that the message names.
func bySigner(message []byte) bool {
	api, provider := rawjson.Text(rawjson.Field(message, "api")), rawjson.Text(rawjson.Field(message, "provider"))
	return api == "anthropic-messages" || provider == "anthropic"
}

const lostThinking = "thinking that Anthropic did not sign"

// thinking returns a thinking block if Anthropic signed it: Anthropic rejects any other. A block in the shape of
// Anthropic or Bedrock counts as signed.
func (w *writer) thinking(block []byte, signed bool) []byte {
	text, signature := rawjson.Field(block, "thinking"), rawjson.Field(block, "thinkingSignature")
	redacted := rawjson.IsTrue(rawjson.Field(block, "redacted"))
	if own := rawjson.Field(block, "signature"); !rawjson.IsString(signature) && rawjson.IsString(own) {
		signature, signed = own, true
	}
	if typ := rawjson.Text(rawjson.Field(block, "type")); typ != "thinking" {
		signature, signed, redacted = rawjson.Field(block, "data"), true, true
	}
	if !signed || !rawjson.IsString(signature) || len(signature) == 2 {
		w.lose(lostThinking)
		return nil
	}
	if redacted {
		return rawjson.Object("type", []byte(`"redacted_thinking"`), "data", signature)
	}
	if !rawjson.IsString(text) {
		text = []byte(`""`)
	}
	return rawjson.Object("type", []byte(`"thinking"`), "thinking", text, "signature", signature)
}

// call returns the block of a call in the shape of pi or Anthropic.
func (w *writer) call(it sourceEntry, said *writtenAnswer, block []byte) []byte {
	id, name := rawjson.Text(rawjson.Field(block, "id")), rawjson.Field(block, "name")
	if !rawjson.IsString(name) || len(name) == 2 {
		w.lose("calls without a tool's name")
		return nil
	}
	args := rawjson.Field(block, "arguments")
	if args == nil {
		args = rawjson.Field(block, "input")
	}
	switch {
	case len(args) == 0 || string(args) == "null":
		args = []byte("{}")
	case args[0] != '{':
		args = rawjson.Object("input", args)
	}
	written := w.callNamed(it.ID, id)
	said.calls = append(said.calls, writtenCall{id, written})
	return rawjson.Object("type", []byte(`"tool_use"`), "id", rawjson.AppendString(nil, written), "name", name,
		"input", args, "caller", rawjson.Field(block, "caller"))
}
