package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

type chat struct{}

func (chat) rules() rules {
	return rules{
		adjacent: true, anyID: true, maxID: 40, maxName: 64,
		signer: "openai-completions", vendor: "openai", stored: "openai-completions",
		unsigned: true, images: message.OpenAIImages,
	}
}

// chatFields are the fields of messages: of OpenAI, and those in which others that speak this API have thinking.
var chatFields = append([]string{
	"role", "content", "name", "refusal", "audio", "annotations", "tool_calls", "tool_call_id", "reasoning_details",
}, message.Asides()...)

// extra are the fields that are stored with an item of OpenAI's, and that the API does not take.
var extra = []string{
	"api", "provider", "model", "usage", "stopReason", "finish_reason", "responseId", "timestamp", "errorMessage",
}

// bare returns an item without what is stored with it.
func bare(raw []byte) []byte {
	for _, name := range extra {
		if rawjson.Field(raw, name) != nil {
			raw = rawjson.WithField(raw, name, nil)
		}
	}
	return raw
}

func (chat) whole(t *turn, raw []byte) json.RawMessage {
	content := rawjson.Field(raw, "content")
	calls := rawjson.Field(raw, "tool_calls")
	if string(calls) == "[]" {
		return nil
	}
	isText, isList := rawjson.IsString(content), len(content) > 2 && content[0] == '['
	for _, name := range []string{"parts", "sections", "type", "toolsAdded"} {
		if rawjson.Field(raw, name) != nil {
			return nil
		}
	}
	switch rawjson.Text(rawjson.Field(raw, "role")) {
	case "user", "system", "developer":
		if !isText && !isList {
			return nil
		}
	case "tool":
		if !isText && !isList || rawjson.Field(raw, "tool_call_id") == nil || rawjson.Field(raw, "toolCallId") != nil {
			return nil
		}
	case "assistant":
		said := isText && len(content) > 2 || isList || first(raw, "refusal") != nil
		if !said && (len(calls) < 3 || calls[0] != '[') || message.Object(raw, "function_call") != nil ||
			rawjson.Field(raw, "usage") != nil && isList { // pi's
			return nil
		}
	default:
		return nil
	}
	return keep(raw, chatFields...)
}

func (chat) own(c *converter, t *turn, b *block) bool {
	switch b.kind {
	case text:
		if b.raw == nil {
			return !b.blank() || t.who == model && len(t.blocks) > 1
		}
		return b.typ == "text" && !b.blank() && only(b.raw, "type", "text", "cache_control") ||
			b.typ == "refusal" && t.who == model
	case thinking:
		return b.field != "" && c.sameModel(t) && (t.api == "" || c.signed(t))
	case call:
		inner := message.Object(b.raw, b.typ)
		k := b.call
		return t.who == model && k.id != "" && len(k.id) <= c.rules.maxID && fits(k.name, c.rules.maxName) &&
			(b.typ == "function" && rawjson.IsString(rawjson.Field(inner, "arguments")) && braced(k.args) ||
				b.typ == "custom" && rawjson.IsString(rawjson.Field(inner, "input")))
	case result:
		plain := func(in *block) bool { return in.kind == text && (in.raw == nil || c.api.own(c, t, in)) }
		return rawjson.Field(b.raw, "tool_call_id") != nil && b.result.id != "" && len(b.result.id) <= c.rules.maxID &&
			!slices.ContainsFunc(b.result.content, func(in *block) bool { return !plain(in) })
	case image:
		return t.who == user && b.typ == "image_url" && message.Object(b.raw, "image_url") != nil
	case other:
	}
	return t.who == user && (b.typ == "file" && message.Object(b.raw, "file") != nil ||
		b.typ == "input_audio" && message.Object(b.raw, "input_audio") != nil)
}

// takes reports thinking whose signature is the name of the field that held it, as pi has it.
func (chat) takes(c *converter, t *turn, b *block) bool {
	if !c.signed(t) || t.who != model || b.thought.Text == "" {
		return false
	}
	if name := rawjson.Text(b.thought.Signature); b.field == "" && slices.Contains(message.Asides(), name) {
		b.field = name
	}
	return b.field != ""
}

func (chat) instructions([]*block) json.RawMessage { return nil }

func (k chat) write(c *converter, turns []*turn) (out []json.RawMessage) {
	if turns[0].who == model {
		head := 0
		for _, t := range turns[:len(turns)-1] {
			if slices.ContainsFunc(t.blocks, func(b *block) bool { return b.kind == call }) || onlyThinks(t) {
				head = len(turns)
			}
		}
		for _, chunk := range chunks(turns, head) {
			if len(chunk) == 1 && chunk[0].raw != nil {
				out = append(out, chunk[0].raw)
			} else {
				out = append(out, k.answer(c, chunk))
			}
		}
		return out
	}
	var late [][]byte // images of results: a message of a tool has none
	flush := func() {
		if late != nil {
			head := textOf("text", textBlock("Attached image(s) from tool result:"))
			late = append([][]byte{head}, late...)
			out = append(out, rawjson.Object("role", []byte(`"user"`), "content", rawjson.List(late)))
			late = nil
		}
	}
	for _, t := range turns {
		if t.raw != nil {
			if !t.answers() {
				flush()
			}
			out = append(out, t.raw)
			continue
		}
		var rest []*block
		for _, b := range t.blocks {
			if b.kind != result {
				rest = append(rest, b)
				continue
			}
			made, images := k.result(c, t, b)
			out, late = append(out, made), append(late, images...)
		}
		if len(rest) > 0 {
			flush()
			out = append(out, k.userMessage(c, t, rest))
		}
	}
	flush()
	return out
}

func onlyThinks(t *turn) bool {
	return !slices.ContainsFunc(t.blocks, func(b *block) bool { return b.kind != thinking })
}

// answer returns the message that turns of the model become.
func (k chat) answer(c *converter, turns []*turn) json.RawMessage {
	var texts []string
	var calls [][]byte
	thoughts := map[string][]string{}
	for _, t := range turns {
		for _, b := range t.blocks {
			switch {
			case b.kind == thinking:
				thoughts[b.field] = append(thoughts[b.field], b.thought.Text)
			case b.kind == call && b.asIs:
				calls = append(calls, b.raw)
			case b.kind == call:
				calls = append(calls, rawjson.Object("id", str(b.call.sentID),
					"type", []byte(`"function"`), "function", rawjson.Object(
						"name", str(c.toolName(b.call)),
						"arguments", str(c.arguments(b.call)))))
			case !b.blank():
				texts = append(texts, c.worded(t, b).text)
			}
		}
	}
	content := []byte("null")
	if len(texts) > 0 {
		content = str(strings.Join(texts, "\n"))
	}
	out := rawjson.Object("role", []byte(`"assistant"`), "content", content)
	for _, field := range message.Asides() {
		if list := thoughts[field]; list != nil {
			out = rawjson.WithField(out, field, str(strings.Join(list, "\n")))
		}
	}
	if calls != nil {
		out = rawjson.WithField(out, "tool_calls", rawjson.List(calls))
	}
	return out
}

// userMessage returns a message of the user, or instructions.
func (k chat) userMessage(c *converter, t *turn, blocks []*block) json.RawMessage {
	role := []byte(`"user"`)
	if t.who == system {
		role = []byte(`"system"`)
	}
	if len(blocks) == 1 && blocks[0].kind == text {
		return rawjson.Object("role", role, "content", str(blocks[0].text))
	}
	var list [][]byte
	for _, b := range blocks {
		if !b.blank() {
			list = append(list, k.part(c, t, b))
		}
	}
	return rawjson.Object("role", role, "content", rawjson.List(list))
}

// part returns a part of a user's message.
func (chat) part(c *converter, t *turn, b *block) []byte {
	switch {
	case b.asIs && b.raw != nil:
		return b.raw
	case b.kind == image && t.who == user:
		return rawjson.Object("type", []byte(`"image_url"`), "image_url",
			rawjson.Object("url", str(b.image.address())))
	}
	return textOf("text", c.worded(t, b))
}

// result returns the message of a tool, and its images.
func (k chat) result(c *converter, t *turn, b *block) (made json.RawMessage, images [][]byte) {
	all, images := c.apart(t, b, k.part)
	if all == "" {
		all = noOutput(images)
	}
	c.flag(t, b)
	return rawjson.Object("role", []byte(`"tool"`), "tool_call_id", str(b.result.call.sentID),
		"content", str(all)), images
}

// apart returns the texts of a result, joined, and the parts that its images make.
func (c *converter) apart(t *turn, b *block, part func(*converter, *turn, *block) []byte) (string, [][]byte) {
	var texts []string
	var images [][]byte
	for _, in := range b.result.content {
		if in.kind == image {
			images = append(images, part(c, t, in))
			continue
		}
		texts = append(texts, c.worded(t, in).text)
	}
	return strings.Join(texts, "\n"), images
}

// noOutput is the text of a result that has none.
func noOutput(images [][]byte) string {
	if len(images) > 0 {
		return "(see attached image)"
	}
	return "(no tool output)"
}

// flag reports that an API has no mark for a result that is an error.
func (c *converter) flag(t *turn, b *block) {
	if b.result.failed && b.raw != nil {
		c.lose(t, LostFlag, "the result of call "+b.result.id)
	}
}
