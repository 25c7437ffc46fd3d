package claudecode

import (
	"github.com/coppice-go/coppice/internal/rawjson"
)

// appendContent appends a message's content in pi's form.
func appendContent(dst, content []byte) []byte {
	if rawjson.IsString(content) {
		return append(dst, content...)
	}
	return appendBlocks(dst, content)
}

// appendBlocks appends a list of blocks in pi's form; a value that is not a list becomes an empty one.
func appendBlocks(dst, content []byte) []byte {
	dst = append(dst, '[')
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		dst = appendBlock(dst, m.Val)
	}
	return append(dst, ']')
}

// appendBlock appends one block to an open list.
func appendBlock(dst, val []byte) []byte {
	b := readBlock(val)
	return b.append(dst)
}

// block is a block of a message. Its fields are slices of the line.
type block struct {
	raw, typ, thinking, signature, data, id, name, input, source, caller []byte
	answers, content, failed                                             []byte // of a result
}

// readBlock parses a block; if val is not an object only raw is set.
func readBlock(val []byte) (b block) {
	b.raw = val
	for m := rawjson.Walk(val); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
			b.typ = m.Val
		case "thinking":
			b.thinking = m.Val
		case "signature":
			b.signature = m.Val
		case "data":
			b.data = m.Val
		case "id":
			b.id = m.Val
		case "name":
			b.name = m.Val
		case "input":
			b.input = m.Val
		case "source":
			b.source = m.Val
		case "caller":
			b.caller = m.Val
		case "tool_use_id":
			b.answers = m.Val
		case "content":
			b.content = m.Val
		case "is_error":
			b.failed = m.Val
		}
	}
	return b
}

// append appends the block to an open list. Blocks that pi does not have stay unchanged.
func (b *block) append(dst []byte) []byte {
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	if rawjson.IsString(b.raw) {
		return append(append(append(dst, `{"type":"text","text":`...), b.raw...), '}')
	}
	if b.raw[0] != '{' { // neither a string nor an object: shown as JSON
		return append(rawjson.AppendString(append(dst, `{"type":"text","text":`...), string(b.raw)), '}')
	}
	switch string(b.typ) {
	case `"thinking"`:
		if !rawjson.IsString(b.thinking) {
			break
		}
		dst = append(append(dst, `{"type":"thinking","thinking":`...), b.thinking...)
		if rawjson.IsString(b.signature) && len(b.signature) > 2 {
			dst = append(append(dst, `,"thinkingSignature":`...), b.signature...)
		}
		return append(dst, '}')
	case `"redacted_thinking"`:
		if rawjson.IsString(b.data) {
			dst = append(append(dst, `{"type":"thinking","thinking":"","thinkingSignature":`...), b.data...)
			return append(dst, `,"redacted":true}`...)
		}
	case `"tool_use"`:
		if rawjson.IsString(b.id) && rawjson.IsString(b.name) {
			return b.appendCall(dst)
		}
	case `"image"`:
		var kind, mime, pixels []byte
		for m := rawjson.Walk(b.source); m.Closing == '}' && m.Next(); {
			switch string(m.Key) {
			case "type":
				kind = m.Val
			case "media_type":
				mime = m.Val
			case "data":
				pixels = m.Val
			}
		}
		if string(kind) == `"base64"` && rawjson.IsString(mime) && rawjson.IsString(pixels) {
			dst = append(append(dst, `{"type":"image","data":`...), pixels...)
			return append(append(append(dst, `,"mimeType":`...), mime...), '}')
		}
	}
	return append(dst, b.raw...)
}

// appendCall appends a tool call. Arguments that are not an object are wrapped in one.
func (b *block) appendCall(dst []byte) []byte {
	dst = append(append(dst, `{"type":"toolCall","id":`...), b.id...)
	dst = append(append(dst, `,"name":`...), b.name...)
	switch {
	case len(b.input) > 0 && b.input[0] == '{':
		dst = append(append(dst, `,"arguments":`...), b.input...)
	case len(b.input) == 0 || string(b.input) == "null":
		dst = append(dst, `,"arguments":{}`...)
	default:
		dst = append(append(append(dst, `,"arguments":{"input":`...), b.input...), '}')
	}
	if b.caller != nil {
		dst = append(append(dst, `,"caller":`...), b.caller...)
	}
	return append(dst, '}')
}

// plainText returns the text of a content as one JSON string.
func plainText(content []byte) []byte {
	if rawjson.IsString(content) {
		return content
	}
	text := ""
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		t := rawjson.Text(m.Val)
		if t == "" {
			t = rawjson.Text(rawjson.Field(m.Val, "text"))
		}
		if text != "" && t != "" {
			text += "\n"
		}
		text += t
	}
	return rawjson.AppendString(nil, text)
}
