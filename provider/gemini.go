package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

type gemini struct{}

func (gemini) rules() rules {
	return rules{
		adjacent: true, userFirst: true, noSystem: true, maxName: 64, wordFirst: true, onlyThinking: true,
		signer: "google", vendor: "google", stored: "google-generative-ai", family: "gemini",
		images: message.GeminiImages, noAddress: true,
	}
}

func (gemini) whole(t *turn, raw []byte) json.RawMessage {
	role, parts := rawjson.Field(raw, "role"), rawjson.Field(raw, "parts")
	if string(role) != `"user"` && string(role) != `"model"` || len(parts) < 3 || parts[0] != '[' ||
		rawjson.Field(raw, "content") != nil {
		return nil
	}
	return keep(raw, "role", "parts")
}

func (g gemini) own(c *converter, t *turn, b *block) bool {
	if b.raw == nil || !t.whole || rawjson.Field(b.raw, "type") != nil {
		return false
	}
	switch b.kind {
	case text:
		return !b.blank() && only(b.raw, "text", "thoughtSignature") && g.ownMark(c, t, b)
	case thinking:
		return t.who == model && c.native(t) && g.ownMark(c, t, b)
	case call:
		inner := message.Object(b.raw, "functionCall")
		args := rawjson.Field(inner, "args")
		return t.who == model && b.call.name == c.nameOf(b.call) && (braced(args) || args == nil && inner != nil) &&
			g.ownMark(c, t, b)
	case result:
		inner := message.Object(b.raw, "functionResponse")
		return t.who == user && braced(rawjson.Field(inner, "response")) &&
			!slices.ContainsFunc(b.result.content, func(in *block) bool { return in.kind != text && in.raw == nil })
	case image:
		return t.who == user && message.Object(b.raw, "inlineData") != nil
	case other:
	}
	for _, name := range []string{"inlineData", "fileData"} {
		if message.Object(b.raw, name) != nil {
			return t.who == user
		}
	}
	return t.who == model && message.Object(b.raw, "executableCode", "codeExecutionResult") != nil
}

// ownMark reports whether the signature of a part, if it has one, goes back to the API.
func (gemini) ownMark(c *converter, t *turn, b *block) bool {
	mark := message.GeminiSignature(b.raw)
	return mark == nil || t.who == model && c.native(t) && message.IsSignature(mark)
}

// mark returns the signature of a text or a call that is rewritten; nil = none.
func (gemini) mark(c *converter, t *turn, b *block) []byte {
	if !c.signed(t) || !message.IsSignature(b.mark) {
		return nil
	}
	return b.mark
}

func (gemini) takes(c *converter, t *turn, b *block) bool {
	sign := b.thought.Signature
	return t.who == model && c.signed(t) && !b.thought.Item && !b.thought.Redacted && b.field == "" &&
		(message.IsSignature(sign) || sign == nil && b.thought.Text != "")
}

func (gemini) instructions(blocks []*block) json.RawMessage {
	var list [][]byte
	for _, b := range blocks {
		if !b.blank() {
			list = append(list, rawjson.Object("text", str(b.text)))
		}
	}
	if list == nil {
		return nil
	}
	return rawjson.Object("parts", rawjson.List(list))
}

func (g gemini) write(c *converter, turns []*turn) (out []json.RawMessage) {
	head := 0
	for i, t := range turns {
		for _, b := range t.blocks {
			switch {
			case i > 0 && b.kind == result:
				head = i + 1
			case i < len(turns)-1 && b.kind == call:
				head = len(turns)
			}
		}
	}
	put := func(role string, list [][]byte) {
		if len(list) > 0 {
			out = append(out, rawjson.Object("role", []byte(role), "parts", rawjson.List(list)))
		}
	}
	for _, chunk := range chunks(turns, head) {
		if len(chunk) == 1 && chunk[0].raw != nil {
			out = append(out, chunk[0].raw)
			continue
		}
		if turns[0].who == model {
			put(`"model"`, g.answer(c, chunk))
			continue
		}
		var results, rest [][]byte
		for _, t := range chunk {
			for _, b := range t.blocks {
				if b.kind != result {
					rest = append(rest, g.part(c, t, b))
					continue
				}
				made, images := g.result(c, t, b)
				results, rest = append(results, made), append(rest, images...)
			}
		}
		put(`"user"`, results)
		put(`"user"`, rest)
	}
	return out
}

// unsigned is what Google documents as the signature of a call that no Gemini made.
const unsigned = `"skip_thought_signature_validator"`

func (g gemini) answer(c *converter, turns []*turn) (list [][]byte) {
	calls := 0
	for _, t := range turns {
		for _, b := range t.blocks {
			if b.kind == call {
				calls++
			}
			switch {
			case b.asIs && b.raw != nil:
				list = append(list, b.raw)
			case b.kind == thinking:
				list = append(list, rawjson.Object("text", str(b.thought.Text),
					"thought", []byte("true"), "thoughtSignature", b.thought.Signature))
			case b.kind == call:
				mark := g.mark(c, t, b)
				if mark == nil && calls == 1 && strings.HasPrefix(c.opts.Model, "gemini-3") {
					mark = []byte(unsigned)
				}
				list = append(list, rawjson.Object("functionCall", rawjson.Object(
					"name", str(c.toolName(b.call)), "args", c.arguments(b.call)),
					"thoughtSignature", mark))
			case b.kind == text && g.mark(c, t, b) != nil:
				list = append(list, rawjson.Object("text", str(b.text), "thoughtSignature", b.mark))
			case b.kind == text && strings.TrimSpace(b.text) == "":
			default:
				list = append(list, g.part(c, t, b))
			}
		}
	}
	if list == nil {
		list = [][]byte{rawjson.Object("text", []byte(`"(nothing)"`))}
	}
	return list
}

func (gemini) part(c *converter, t *turn, b *block) []byte {
	switch {
	case b.asIs && b.raw != nil:
		return b.raw
	case b.kind == image && t.who == user:
		return rawjson.Object("inlineData", rawjson.Object("mimeType", str(b.image.mime),
			"data", str(b.image.data)))
	}
	return rawjson.Object("text", str(c.worded(t, b).text))
}

// result returns the part of a result, and its images, which older models take as parts of their own only.
func (g gemini) result(c *converter, t *turn, b *block) (made []byte, images [][]byte) {
	if b.asIs && b.raw != nil {
		return b.raw, nil
	}
	all, images := c.apart(t, b, g.part)
	if all == "" && images != nil {
		all = noOutput(images)
	}
	field := "output"
	if b.result.failed {
		field = "error"
	}
	k, id := b.result.call, []byte(nil)
	if k.sentID != "" {
		id = str(k.sentID)
	}
	return rawjson.Object("functionResponse", rawjson.Object("id", id, "name", str(c.nameOf(k)),
		"response", rawjson.Object(field, str(all)))), images
}
