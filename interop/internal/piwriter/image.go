package piwriter

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// image returns pi's block for any provider's image whose bytes are there; nil = there are none.
func image(b []byte) []byte {
	block := func(data, mime []byte) []byte {
		return rawjson.Object("type", []byte(`"image"`), "data", data, "mimeType", stringOr(mime, "image/png"))
	}
	for _, src := range [][]byte{
		b, rawjson.Field(b, "source"), rawjson.Field(b, "inlineData"),
		rawjson.Field(b, "inline_data"),
	} {
		if data := first(src, "data"); data != nil {
			if mime := first(src, "mimeType", "mime_type", "media_type", "mediaType"); mime != nil &&
				strings.HasPrefix(rawjson.Text(mime), "image/") {
				return block(data, mime)
			}
		}
	}
	if inner := innerOf(b, "image"); inner != nil { // Bedrock's
		if data, format := first(rawjson.Field(inner, "source"), "bytes"),
			rawjson.Text(rawjson.Field(inner, "format")); data != nil && format != "" {
			return block(data, rawjson.AppendString(nil, "image/"+format))
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

// maxShown bounds the text that replaces a block.
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
