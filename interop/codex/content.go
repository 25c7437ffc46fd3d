package codex

import (
	"bytes"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// appendContent appends a message's content in pi's form.
func appendContent(dst, content []byte) []byte {
	if rawjson.IsString(content) {
		return append(dst, content...)
	}
	dst = append(dst, '[')
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = appendBlock(dst, m.Val)
	}
	return append(dst, ']')
}

func appendBlock(dst, block []byte) []byte {
	if block[0] != '{' {
		if !rawjson.IsString(block) {
			block = rawjson.AppendString(nil, block)
		}
		return append(append(append(dst, `{"type":"text","text":`...), block...), '}')
	}
	if text := rawjson.Field(block, "text"); rawjson.IsString(text) {
		return append(append(append(dst, `{"type":"text","text":`...), text...), '}')
	}
	url := rawjson.Field(block, "image_url")
	if mime, data, ok := bytes.Cut(bytes.TrimPrefix(url, []byte(`"data:`)), []byte(";base64,")); ok &&
		bytes.HasPrefix(url, []byte(`"data:image/`)) && bytes.IndexByte(url, '\\') < 0 {
		dst = append(append(dst, `{"type":"image","data":"`...), data...)
		return append(append(append(dst, `,"mimeType":"`...), mime...), `"}`...)
	}
	return append(dst, block...)
}

// plainText returns the text of a message's content.
func plainText(content []byte) string {
	if rawjson.IsString(content) {
		return rawjson.Text(content)
	}
	var parts []string
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if t := rawjson.Text(rawjson.Field(m.Val, "text")); t != "" {
			parts = append(parts, t)
		}
	}
	return strings.Join(parts, "\n")
}
