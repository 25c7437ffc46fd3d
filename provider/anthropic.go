package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

type anthropic struct{}

func (anthropic) rules() rules {
	return rules{
		adjacent: true, userFirst: true, noSystem: true, global: true, maxID: 64, maxName: 128, maxMarks: 4,
		signer: "anthropic", vendor: "anthropic", stored: "anthropic-messages", thinkingFirst: true, family: "claude",
		images: message.AnthropicImages, secure: true,
	}
}

func (anthropic) whole(t *turn, raw []byte) json.RawMessage {
	var role, content []byte
	for m := rawjson.Walk(raw); m.Next(); {
		switch string(m.Key) {
		case "role":
			role = m.Val
		case "content":
			content = m.Val
		case "tool_calls", "function_call", "parts", "toolCallId", "tool_call_id", "refusal", "audio":
			if string(m.Val) != "null" && string(m.Val) != "[]" {
				return nil
			}
		}
	}
	if string(role) != `"user"` && string(role) != `"assistant"` || len(content) == 0 ||
		content[0] != '"' && content[0] != '[' {
		return nil
	}
	return keep(raw, "role", "content")
}

func (anthropic) own(c *converter, t *turn, b *block) bool {
	if b.raw == nil {
		return b.kind == text && !b.blank() // content that is a string
	}
	switch b.kind {
	case text:
		return b.typ == "text" && !b.blank() && only(b.raw, "type", "text", "cache_control", "citations")
	case thinking:
		return t.who == model && anthropicThought(b) && c.native(t)
	case call:
		return b.typ == "tool_use" && t.who == model && fits(b.call.id, c.rules.maxID) &&
			fits(b.call.name, c.rules.maxName) && braced(rawjson.Field(b.raw, "input"))
	case result:
		return b.typ == "tool_result" && t.who == user && fits(b.result.id, c.rules.maxID) && anthropicResult(c, t, b)
	case image:
		return t.who == user && rawjson.Field(b.raw, "source") != nil
	case other:
	}
	switch {
	case b.typ == "document", b.typ == "search_result", b.typ == "container_upload":
		return t.who == user || b.typ != "document"
	case b.typ == "server_tool_use", b.typ == "mcp_tool_use", b.typ == "compaction",
		b.typ != "tool_result" && strings.HasSuffix(b.typ, "_tool_result"):
		return t.who == model
	}
	return b.typ == "tool_reference" && first(b.raw, "tool_name") != nil
}

func anthropicThought(b *block) bool {
	if b.typ == "redacted_thinking" {
		return message.IsSignature(rawjson.Field(b.raw, "data"))
	}
	return b.typ == "thinking" && message.IsSignature(rawjson.Field(b.raw, "signature")) &&
		rawjson.IsString(rawjson.Field(b.raw, "thinking")) && only(b.raw, "type", "thinking", "signature")
}

// anthropicResult reports content that Anthropic takes as that of a result; of one that is an error only text.
func anthropicResult(c *converter, t *turn, b *block) bool {
	if !only(b.raw, "type", "tool_use_id", "content", "is_error", "cache_control") {
		return false
	}
	for _, in := range b.result.content {
		switch {
		case in.kind == text && in.raw == nil:
		case in.kind == text || in.kind == image || in.kind == other:
			if b.result.failed && in.kind != text || !c.api.own(c, t, in) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

func (anthropic) takes(c *converter, t *turn, b *block) bool {
	return t.who == model && message.IsSignature(b.thought.Signature) && !b.thought.Item && b.field == "" &&
		c.signed(t)
}

func (anthropic) instructions(blocks []*block) json.RawMessage {
	var list [][]byte
	for _, b := range blocks {
		if !b.blank() {
			list = append(list, textOf("text", b))
		}
	}
	if list == nil {
		return nil
	}
	return rawjson.List(list)
}

func (a anthropic) write(c *converter, turns []*turn) (out []json.RawMessage) {
	head := 0
	for i, t := range turns {
		last := t.blocks[len(t.blocks)-1].kind
		for _, b := range t.blocks {
			switch {
			case i > 0 && b.kind == result: // results are in one message
				head = i + 1
			case i < len(turns)-1 && t.who == model && (b.kind == call || last == thinking):
				head = len(turns)
			}
		}
	}
	for _, chunk := range chunks(turns, head) {
		if len(chunk) == 1 && chunk[0].raw != nil {
			out = append(out, chunk[0].raw)
			continue
		}
		var list, after [][]byte
		for _, t := range chunk {
			for _, b := range t.blocks {
				if b.kind != result {
					list, after = append(list, after...), nil
				}
				made, more := a.block(c, t, b)
				list, after = append(list, made), append(after, more...)
			}
		}
		role := `"user"`
		if turns[0].who == model {
			role = `"assistant"`
		}
		out = append(out, rawjson.Object("role", []byte(role), "content", rawjson.List(append(list, after...))))
	}
	return out
}

// trimMarks takes cache_control off all blocks but the last ones that may have it. A program that
// stores what it sends, with the mark on the newest message each time, has more of them than the API takes.
func (c *converter) trimMarks() {
	if c.rules.maxMarks == 0 {
		return
	}
	left := c.rules.maxMarks
	for _, t := range slices.Backward(c.turns) {
		for _, b := range slices.Backward(t.blocks) {
			c.trimMark(t, b, &left)
			if b.kind != result {
				continue
			}
			for _, in := range slices.Backward(b.result.content) {
				if c.trimMark(t, in, &left) {
					b.asIs = false
				}
			}
		}
	}
}

func (c *converter) trimMark(t *turn, b *block, left *int) (gone bool) {
	if !b.asIs || b.raw == nil || len(rawjson.Field(b.raw, "cache_control")) <= len("null") {
		return false
	}
	if *left--; *left >= 0 {
		return false
	}
	b.raw = rawjson.WithField(b.raw, "cache_control", nil)
	t.touch()
	c.lose(t, LostMark, "cache_control, left out: the API takes four, those of the last blocks")
	return true
}

// block returns a block, and what follows the results.
func (a anthropic) block(c *converter, t *turn, b *block) (made []byte, after [][]byte) {
	if b.asIs && b.raw != nil {
		return b.raw, nil
	}
	switch b.kind {
	case thinking:
		if b.thought.Redacted {
			return rawjson.Object("type", []byte(`"redacted_thinking"`), "data", b.thought.Signature), nil
		}
		return rawjson.Object("type", []byte(`"thinking"`), "thinking", str(b.thought.Text),
			"signature", b.thought.Signature), nil
	case call:
		return rawjson.Object("type", []byte(`"tool_use"`), "id", str(b.call.sentID),
			"name", str(c.toolName(b.call)), "input", c.arguments(b.call)), nil
	case result:
		return a.result(c, t, b)
	case image:
		return a.image(c, t, b), nil
	case text, other:
	}
	return textOf("text", c.worded(t, b)), nil
}

func (a anthropic) result(c *converter, t *turn, b *block) (made []byte, after [][]byte) {
	var list [][]byte
	for _, in := range b.result.content {
		if in.blank() {
			continue
		}
		if in.kind == other && b.result.failed {
			in.asIs = false
		}
		one, _ := a.block(c, t, in)
		if in.kind == image && b.result.failed { // an error is text alone
			list = append(list, textOf("text", textBlock("(image after the results)")))
			after = append(after, textOf("text", textBlock("Image of the failed call "+b.result.call.sentID+":")), one)
			continue
		}
		list = append(list, one)
	}
	var content, failed []byte
	if len(list) > 0 {
		content = rawjson.List(list)
	}
	if b.result.failed {
		failed = []byte("true")
	}
	return rawjson.Object("type", []byte(`"tool_result"`), "tool_use_id",
		str(b.result.call.sentID), "content", content, "is_error", failed), after
}

func (anthropic) image(c *converter, t *turn, b *block) []byte {
	switch {
	case t.who != user:
	case b.image.url != "":
		return rawjson.Object("type", []byte(`"image"`), "source",
			rawjson.Object("type", []byte(`"url"`), "url", str(b.image.url)))
	default:
		return rawjson.Object("type", []byte(`"image"`), "source", rawjson.Object("type", []byte(`"base64"`),
			"media_type", str(b.image.mime), "data", str(b.image.data)))
	}
	return textOf("text", c.worded(t, b))
}

// textOf returns a block of text of the type that the API has for it.
func textOf(typ string, b *block) []byte {
	return rawjson.Object("type", []byte(`"`+typ+`"`), "text", str(b.text))
}

// keep returns an object without other fields than these.
func keep(raw []byte, names ...string) json.RawMessage {
	out := []byte{'{'}
	for m := rawjson.Walk(raw); m.Next(); {
		if slices.Contains(names, string(m.Key)) {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(rawjson.AppendKey(out, m.Key), m.Val...)
		}
	}
	return append(out, '}')
}

// only reports an object without other fields than these.
func only(raw []byte, names ...string) bool {
	for m := rawjson.Walk(raw); m.Next(); {
		if !slices.Contains(names, string(m.Key)) {
			return false
		}
	}
	return true
}

// braced reports an object.
func braced(val []byte) bool { return len(val) > 0 && val[0] == '{' }
