package claudecode

import (
	"github.com/coppice-go/coppice/internal/rawjson"
)

// appendContent appends a message's content: text as it is, blocks as pi has them.
func appendContent(dst, content []byte) []byte {
	if rawjson.IsString(content) {
		return append(dst, content...)
	}
	return appendBlocks(dst, content)
}

// appendBlocks appends a list of blocks as pi has them; what is no list gives an empty one.
func appendBlocks(dst, content []byte) []byte {
	dst = append(dst, '[')
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		dst = appendBlock(dst, m.Val)
	}
	return append(dst, ']')
}

// appendBlock appends one block to an open list. Blocks that pi does not have stay as they are.
func appendBlock(dst, block []byte) []byte {
	if dst[len(dst)-1] != '[' {
		dst = append(dst, ',')
	}
	if rawjson.IsString(block) {
		return append(append(append(dst, `{"type":"text","text":`...), block...), '}')
	}
	if block[0] != '{' { // neither text nor a block: shown as what it is
		return append(rawjson.AppendString(append(dst, `{"type":"text","text":`...), string(block)), '}')
	}
	var typ, thinking, signature, data, id, name, input, source []byte
	for m := rawjson.Walk(block); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
			typ = m.Val
		case "thinking":
			thinking = m.Val
		case "signature":
			signature = m.Val
		case "data":
			data = m.Val
		case "id":
			id = m.Val
		case "name":
			name = m.Val
		case "input":
			input = m.Val
		case "source":
			source = m.Val
		}
	}
	switch string(typ) {
	case `"thinking"`:
		if !rawjson.IsString(thinking) {
			break
		}
		dst = append(append(dst, `{"type":"thinking","thinking":`...), thinking...)
		if rawjson.IsString(signature) && len(signature) > 2 {
			dst = append(append(dst, `,"thinkingSignature":`...), signature...)
		}
		return append(dst, '}')
	case `"redacted_thinking"`:
		if rawjson.IsString(data) {
			dst = append(append(dst, `{"type":"thinking","thinking":"","thinkingSignature":`...), data...)
			return append(dst, `,"redacted":true}`...)
		}
	case `"tool_use"`:
		if rawjson.IsString(id) && rawjson.IsString(name) {
			return appendCall(dst, block, id, name, input)
		}
	case `"image"`:
		kind, mime, pixels := rawjson.Field(source, "type"), rawjson.Field(source, "media_type"), rawjson.Field(source, "data")
		if string(kind) == `"base64"` && rawjson.IsString(mime) && rawjson.IsString(pixels) {
			dst = append(append(dst, `{"type":"image","data":`...), pixels...)
			return append(append(append(dst, `,"mimeType":`...), mime...), '}')
		}
	}
	return append(dst, block...)
}

// appendCall appends a tool call. Arguments are an object; others are kept in one.
func appendCall(dst, block, id, name, input []byte) []byte {
	dst = append(append(dst, `{"type":"toolCall","id":`...), id...)
	dst = append(append(dst, `,"name":`...), name...)
	switch {
	case len(input) > 0 && input[0] == '{':
		dst = append(append(dst, `,"arguments":`...), input...)
	case len(input) == 0 || string(input) == "null":
		dst = append(dst, `,"arguments":{}`...)
	default:
		dst = append(append(append(dst, `,"arguments":{"input":`...), input...), '}')
	}
	if caller := rawjson.Field(block, "caller"); caller != nil {
		dst = append(append(dst, `,"caller":`...), caller...)
	}
	return append(dst, '}')
}

// plainText gives the text of a content as one string literal.
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
