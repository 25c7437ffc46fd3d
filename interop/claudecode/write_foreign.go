package claudecode

import (
	"bytes"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

// wrappedBlockType is the type of a block that carries one of Anthropic's through package piwriter.
const wrappedBlockType = "claude-code.block"

var piDialect = piwriter.Dialect{Blocks: []string{wrappedBlockType}}

// parts returns the messages to write for a message, in the shape of pi or Anthropic. A message in one of these is
// returned unchanged; package piwriter converts those of other providers.
func (w *writer) parts(it sourceEntry) []piwriter.Part {
	if isNative(it.message) {
		return []piwriter.Part{{Type: "message", Message: it.message}}
	}
	message := it.message
	for _, name := range []string{"content", "parts", "contents"} {
		if list := rawjson.Field(message, name); len(list) > 0 && list[0] == '[' {
			message = rawjson.WithField(message, name, w.wrapped(list))
		}
	}
	return piwriter.Messages(message, it.Time, piDialect, w.lose)
}

// isNative reports whether a message has the shape of pi or Anthropic.
func isNative(message []byte) bool {
	role := rawjson.Text(rawjson.Field(message, "role"))
	switch role {
	case "user", "assistant", "toolResult":
	default:
		return false
	}
	for _, name := range []string{
		"parts", "contents", "tool_calls", "function_call", "reasoning_content",
		"reasoning", "reasoning_text",
	} {
		if v := rawjson.Field(message, name); v != nil && string(v) != "null" && string(v) != "[]" {
			return false
		}
	}
	if role == "toolResult" && rawjson.Field(message, "toolCallId") == nil {
		return false
	}
	content := rawjson.OrNull(rawjson.Field(message, "content"))
	return rawjson.IsString(content) || string(content) == "null" || nativeBlocks(role, content)
}

func nativeBlocks(role string, list []byte) bool {
	return rawjson.Every(list, func(b []byte) bool { return nativeBlock(role, b) })
}

// nativeBlock reports whether a block is valid in a message of this role, in the shape of pi or Anthropic.
func nativeBlock(role string, b []byte) bool {
	if rawjson.IsString(b) {
		return true
	}
	text := func(name string) bool { return rawjson.IsString(rawjson.Field(b, name)) }
	switch typ := rawjson.Text(rawjson.Field(b, "type")); typ {
	case "text":
		return text("text")
	case "image":
		return rawjson.Field(b, "source") != nil || text("data") && text("mimeType")
	case "thinking":
		return role == "assistant" && text("thinking")
	case "redacted_thinking", "redactedThinking":
		return role == "assistant" && text("data")
	case "toolCall", "tool_use":
		return role == "assistant" && text("id") && text("name")
	case "tool_result":
		return role == "user" && text("tool_use_id")
	case "document":
		return bytes.HasPrefix(rawjson.Field(b, "source"), []byte("{"))
	default:
		return isAnthropicBlock(typ)
	}
}

// wrapped returns a list in which the blocks that Anthropic supports and package piwriter does not are wrapped. Nested
// documents, and audio, become a text that names them.
func (w *writer) wrapped(list []byte) []byte {
	var out [][]byte
	for m := rawjson.Walk(list); m.Next(); {
		b := m.Val
		switch inner := w.anthropic(b); {
		case inner != nil:
			b = rawjson.Object("type", []byte(`"`+wrappedBlockType+`"`), "block", inner)
		case isResult(b):
			b = w.plainResult(b)
		default:
			if d, ok := documentOf(b); ok {
				w.lose(lostDocument)
				b = d.words()
			}
		}
		out = append(out, b)
	}
	return rawjson.List(out)
}

// anthropic returns Anthropic's block for one that package piwriter does not support; nil = there is none.
func (w *writer) anthropic(b []byte) []byte {
	typ := rawjson.Text(rawjson.Field(b, "type"))
	switch {
	case typ == "image" && rawjson.Field(b, "source") != nil, typ == "document" && nativeBlock("user", b),
		isAnthropicBlock(typ) && typ != "document":
		return b
	case typ == "thinking" && rawjson.IsString(rawjson.Field(b, "signature")), typ == "redacted_thinking",
		typ == "redactedThinking":
		return b
	case rawjson.Field(b, "reasoningContent") != nil: // Bedrock's signature is Anthropic's
		return piwriter.Thinking(b)
	}
	if typ == "image_url" || typ == "input_image" {
		url := rawjson.Field(b, "image_url")
		if inner := rawjson.Field(url, "url"); inner != nil {
			url = inner
		}
		if strings.HasPrefix(string(url), `"https://`) || strings.HasPrefix(string(url), `"http://`) {
			return rawjson.Object("type", []byte(`"image"`), "source",
				rawjson.Object("type", []byte(`"url"`), "url", url))
		}
	}
	if d, ok := documentOf(b); ok {
		return d.block()
	}
	return nil
}

func isResult(b []byte) bool {
	return rawjson.Text(rawjson.Field(b, "type")) == "tool_result" || rawjson.Field(b, "toolResult") != nil
}

// plainResult returns a result whose documents are replaced by a text: package piwriter does not support them there.
func (w *writer) plainResult(b []byte) []byte {
	inner, in := rawjson.Field(b, "toolResult"), true
	if inner == nil {
		inner, in = b, false
	}
	list := rawjson.Field(inner, "content")
	if len(list) == 0 || list[0] != '[' {
		return b
	}
	var out [][]byte
	for m := rawjson.Walk(list); m.Next(); {
		is := m.Val
		if d, ok := documentOf(is); ok {
			w.lose(lostDocument)
			is = d.words()
		}
		out = append(out, is)
	}
	inner = rawjson.WithField(inner, "content", rawjson.List(out))
	if in {
		return rawjson.WithField(b, "toolResult", inner)
	}
	return inner
}

const lostDocument = "documents and recordings that Claude Code has no form for: named in words, without their bytes"

// document is a file in another provider's block.
type document struct{ name, mime, data string }

// documentOf returns the file in a block of OpenAI, Gemini or Bedrock, or false if there is none, it is an image, or it
// is stored elsewhere.
func documentOf(b []byte) (d document, ok bool) {
	text := func(object []byte, names ...string) string {
		for _, n := range names {
			if v := rawjson.Field(object, n); rawjson.IsString(v) {
				return rawjson.Text(v)
			}
		}
		return ""
	}
	inner := b
	for _, name := range []string{
		"file", "inlineData", "inline_data", "document", "input_audio", "audio", "video",
		"source",
	} {
		if v := rawjson.Field(b, name); len(v) > 0 && v[0] == '{' {
			inner = v
			break
		}
	}
	d.name = text(inner, "filename", "file_name", "displayName", "display_name", "name", "title")
	if d.name == "" {
		d.name = text(b, "filename", "title", "name")
	}
	d.mime = text(inner, "mimeType", "mime_type", "media_type", "format")
	d.data = text(inner, "file_data", "data")
	if src := rawjson.Field(inner, "source"); d.data == "" && src != nil {
		d.data = text(src, "bytes", "data")
	}
	if head, coded, found := strings.Cut(d.data, ";base64,"); found && strings.HasPrefix(head, "data:") {
		d.mime, d.data = head[len("data:"):], coded
	}
	return d, d.data != "" && !strings.HasPrefix(d.mime, "image/") &&
		rawjson.Text(rawjson.Field(b, "type")) != "image"
}

// block returns Anthropic's document; nil = Anthropic does not support the type.
func (d document) block() []byte {
	var title []byte
	if d.name != "" {
		title = rawjson.AppendString(nil, d.name)
	}
	source := func(kind, mime, data string) []byte {
		return rawjson.Object("type", []byte(`"document"`), "source",
			rawjson.Object("type", rawjson.AppendString(nil, kind),
				"media_type", rawjson.AppendString(nil, mime), "data", rawjson.AppendString(nil, data)), "title", title)
	}
	switch {
	case d.mime == "application/pdf" || d.mime == "pdf" ||
		d.mime == "" && strings.HasSuffix(strings.ToLower(d.name), ".pdf"):
		return source("base64", "application/pdf", d.data)
	case strings.HasPrefix(d.mime, "text/") || d.mime == "txt" || d.mime == "md" || d.mime == "csv" ||
		d.mime == "html":
		if plain, err := base64.StdEncoding.DecodeString(d.data); err == nil {
			return source("text", "text/plain", string(plain))
		}
	}
	return nil
}

func (d document) words() []byte {
	said := "[file"
	if d.name != "" {
		said += ": " + d.name
	}
	if d.mime != "" {
		said += ", " + d.mime
	}
	said += ", " + strconv.Itoa(len(d.data)*3/4) + " bytes, not in this file]"
	return rawjson.Object("type", []byte(`"text"`), "text", rawjson.AppendString(nil, said))
}
