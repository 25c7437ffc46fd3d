package provider

import (
	"cmp"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// blockOf returns a block in the form that requests are made from.
func blockOf(m *message.Block) *block {
	b := &block{raw: m.Raw, typ: m.Type}
	if rawjson.IsString(m.Raw) {
		b.raw = nil
	}
	switch {
	case m.Kind == message.Text:
		b.text, b.mark = rawjson.Text(m.Text), first(b.raw, "textSignature", "thoughtSignature", "thought_signature")
		return b
	case m.Kind == message.Thinking:
		b.kind, b.thought = thinking, m.Thought()
		if b.text = b.thought.Text; b.raw == nil {
			b.field, b.typ = m.Type, ""
		}
		return b
	case m.Kind == message.Call && !m.Hosted:
		b.kind, b.call, b.mark = call, callOf(m), first(b.raw, "thoughtSignature", "thought_signature")
		return b
	case m.Kind == message.Result && !m.Hosted:
		b.kind, b.result = result, resultOf(m)
		return b
	case m.Kind == message.Attached:
		if b.image = pictureOf(m); b.image != nil {
			if b.kind, b.text = image, "[image]"; b.image.mime == "image/jpg" { // no API knows this name
				b.image.mime, b.raw = "image/jpeg", nil
			}
			return b
		}
	}
	b.kind, b.text = other, words(m)
	if m.Kind == message.Attached && !readable(m) {
		b.typ, b.raw = "", []byte("{}") // no API takes it
	}
	return b
}

// readable reports whether the bytes of a document, if it has them, are in base64.
func readable(m *message.Block) bool {
	data := m.Media().Data
	source := rawjson.Text(rawjson.Field(rawjson.Field(m.Raw, "source"), "type"))
	inside := source == "base64" || message.Object(m.Raw, "inlineData", "inline_data") != nil
	return message.IsBase64(data) || data == "" && !inside
}

// callOf returns a call.
func callOf(m *message.Block) *toolCall {
	c := &toolCall{id: rawjson.Text(m.ID), name: rawjson.Text(m.Name), args: argumentsOf(m.Body)}
	if rawjson.Field(m.Raw, "call_id") != nil {
		c.item = rawjson.Text(rawjson.Field(m.Raw, "id"))
	}
	return c
}

// argumentsOf returns the arguments of a call: of text that holds an object, the object.
func argumentsOf(val []byte) []byte {
	if inner := message.Arguments(val); rawjson.IsString(val) {
		if inner = rawjson.AppendCompact(nil, inner); braced(inner) {
			return inner
		}
	}
	return val
}

// resultOf returns the result of a call. What is in it is text, images, or blocks of one API; calls and results in it
// are words.
func resultOf(m *message.Block) *toolResult {
	r := &toolResult{id: rawjson.Text(m.ID), name: rawjson.Text(m.Name), failed: m.Failed}
	for c := m.Content(); c.Next(); {
		if k := c.Block.Kind; k == message.Call || k == message.Result {
			words := words(&c.Block)
			r.content = append(r.content, &block{kind: other, raw: c.Block.Raw, typ: c.Block.Type, text: words})
			continue
		}
		r.content = append(r.content, blockOf(&c.Block))
	}
	return r
}

// pictureOf returns the image that a block is; nil = it is none.
func pictureOf(m *message.Block) *picture {
	media := m.Media()
	switch m.Type {
	case "image", "image_url", "input_image":
	default:
		if !strings.HasPrefix(media.Mime, "image/") || media.URL != "" {
			return nil
		}
	}
	if strings.HasPrefix(media.URL, "https://") || strings.HasPrefix(media.URL, "http://") {
		return &picture{url: media.URL}
	}
	return &picture{mime: media.Mime, data: media.Data}
}

// maxShown bounds the words for a block that are its JSON, in bytes.
const maxShown = 16 << 10

// words names a block that the API has no form for. Of a document that is a text it has the text.
func words(m *message.Block) string {
	typ := cmp.Or(m.Type, "block")
	if m.Kind != message.Attached {
		if len(m.Raw) > maxShown {
			return "[" + typ + "]"
		}
		return "[" + typ + "] " + string(m.Raw)
	}
	media := m.Media()
	list := []string{typ}
	for _, s := range []string{media.Name, media.Mime} {
		if s != "" {
			list = append(list, s)
		}
	}
	head := "[" + strings.Join(list, ", ") + "]"
	if media.Text != "" {
		head += "\n" + media.Text
	}
	return head
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
