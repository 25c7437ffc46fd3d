package provider

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

type responses struct{}

func (responses) rules() rules {
	return rules{
		global: true, maxID: 64, maxName: 64, thinkingFirst: true,
		signer: "-responses", vendor: "openai", stored: "openai-responses",
		images: message.OpenAIImages,
	}
}

func (responses) whole(t *turn, raw []byte) json.RawMessage {
	typ := rawjson.Text(rawjson.Field(raw, "type"))
	content := rawjson.Field(raw, "content")
	switch rawjson.Text(rawjson.Field(raw, "role")) {
	case "":
		if typ == "" || typ == "message" || t.who == user && !strings.HasSuffix(typ, "_output") &&
			!strings.HasSuffix(typ, "_response") {
			return nil
		}
		return identified(raw)
	case "user", "system", "developer", "assistant":
		if typ != "" && typ != "message" || !rawjson.IsString(content) && (len(content) < 3 || content[0] != '[') {
			return nil
		}
	default:
		return nil
	}
	for _, name := range []string{
		"tool_calls", "function_call", "parts", "sections", "toolsAdded", "toolCallId", "refusal", "name",
	} {
		if rawjson.Field(raw, name) != nil {
			return nil
		}
	}
	return identified(raw)
}

// identified is bare, without an id that the API does not take.
func identified(raw []byte) []byte {
	id, begin := rawjson.Field(raw, "id"), itemIDs[rawjson.Text(rawjson.Field(raw, "type"))]
	if id != nil && string(id) != "null" {
		if text := rawjson.Text(id); !strings.HasPrefix(text, begin) || !fits(text, 64) {
			raw = rawjson.WithField(raw, "id", nil)
		}
	}
	return bare(raw)
}

func (r responses) own(c *converter, t *turn, b *block) bool {
	ok := r.ownBlock(c, t, b)
	isPart := b.kind == text || b.kind == image || b.kind == other && !hosted(b.typ, b.raw)
	if !isPart && rawjson.Field(t.raw, "role") != nil {
		t.touch() // an item is not a part of a message
	}
	return ok
}

func (responses) ownBlock(c *converter, t *turn, b *block) bool {
	switch b.kind {
	case text:
		if b.raw == nil || b.blank() {
			return b.raw == nil && !b.blank() && b.field == "" && b.typ != "refusal"
		}
		if t.who != model {
			return b.typ == "input_text"
		}
		return b.typ == "output_text" || b.typ == "refusal"
	case thinking:
		return isReasoning(b.raw) && c.native(t)
	case call:
		if !fits(b.call.id, c.rules.maxID) || first(b.raw, "call_id") == nil || t.who != model {
			return false
		}
		switch b.typ {
		case "function_call":
			return fits(b.call.name, c.rules.maxName) && rawjson.IsString(rawjson.Field(b.raw, "arguments")) &&
				braced(b.call.args)
		case "custom_tool_call":
			return fits(b.call.name, c.rules.maxName) && rawjson.IsString(rawjson.Field(b.raw, "input"))
		}
		return hosted(b.typ, b.raw)
	case result:
		return strings.HasSuffix(b.typ, "_call_output") && fits(b.result.id, c.rules.maxID) && responsesOutput(c, t, b)
	case image:
		return t.who == user && b.typ == "input_image" && first(b.raw, "image_url") != nil
	case other:
	}
	if b.typ == "input_file" || b.typ == "input_audio" {
		return t.who == user
	}
	return t.who == model && hosted(b.typ, b.raw)
}

// hosted reports an item of a tool of OpenAI's, or another that is no message and no call of the caller's tools.
func hosted(typ string, item []byte) bool {
	switch typ {
	case "item_reference", "compaction", "mcp_list_tools", "mcp_approval_request", "tool_search_output",
		"web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "computer_call", "local_shell_call",
		"shell_call", "apply_patch_call", "tool_search_call":
		return true
	}
	made := rawjson.Field(item, "result")
	return typ == "image_generation_call" && (string(made) == "null" || message.IsBase64(rawjson.Text(made)))
}

// responsesOutput reports an output that is a text or a list of what OpenAI takes in one; that of a tool of its own is
// as the tool has it.
func responsesOutput(c *converter, t *turn, b *block) bool {
	out := rawjson.Field(b.raw, "output")
	if b.typ != "function_call_output" && b.typ != "custom_tool_call_output" {
		return out != nil
	}
	if rawjson.IsString(out) {
		return true
	}
	return len(out) > 2 && out[0] == '[' &&
		!slices.ContainsFunc(b.result.content, func(in *block) bool { return in.raw == nil || !c.api.own(c, t, in) })
}

// takes reports thinking whose signature is the item that OpenAI returned, as pi has it: with its content, because
// programs have OpenAI keep none.
func (responses) takes(c *converter, t *turn, b *block) bool {
	item := []byte(rawjson.Text(b.thought.Signature))
	end, err := rawjson.ValueEnd(item, 0, rawjson.MaxDepth/2)
	if err != nil || end != len(item) || !isReasoning(item) || first(item, "encrypted_content") == nil ||
		t.who != model || !c.signed(t) {
		return false
	}
	b.raw, b.asIs, b.thought.Item = rawjson.AppendCompact(nil, item), true, true
	return true
}

// isReasoning reports whether an item is one that OpenAI takes back as what its model thought.
func isReasoning(item []byte) bool {
	sealed := rawjson.OrNull(rawjson.Field(item, "encrypted_content"))
	return string(rawjson.Field(item, "type")) == `"reasoning"` && listed(rawjson.Field(item, "summary")) &&
		(string(sealed) == "null" || message.IsSignature(sealed))
}

// itemIDs are the beginnings of the ids of items, by type.
var itemIDs = map[string]string{
	"": "msg", "message": "msg", "function_call": "fc", "custom_tool_call": "ctc", "reasoning": "rs",
}

func (responses) instructions([]*block) json.RawMessage { return nil }

func (r responses) write(c *converter, turns []*turn) (out []json.RawMessage) {
	thought := slices.ContainsFunc(turns, func(t *turn) bool {
		return slices.ContainsFunc(t.blocks, func(b *block) bool { return b.kind == thinking })
	})
	for _, t := range turns {
		switch {
		case t.raw != nil && t.who == model && c.unpaired && !thought && rawjson.Field(t.raw, "id") != nil:
			out = append(out, rawjson.WithField(t.raw, "id", nil)) // it names what was thought, which is not sent
		case t.raw != nil:
			out = append(out, t.raw)
		case t.who == model:
			out = append(out, r.answer(c, t, thought)...)
		default:
			out = append(out, r.userItems(c, t)...)
		}
	}
	return out
}

// answer returns the items of an answer. thought: what was thought is among them, and the others keep their ids.
func (r responses) answer(c *converter, t *turn, thought bool) (out []json.RawMessage) {
	for _, b := range t.blocks {
		switch {
		case b.kind == thinking, b.kind == other && b.asIs, b.kind == call && b.asIs:
			out = append(out, identified(b.raw))
		case b.kind == call:
			out = append(out, r.call(c, t, b, thought))
		case !b.blank():
			id := textID(b.mark)
			part := textOf("output_text", c.worded(t, b))
			if id == "" || !thought {
				out = append(out, rawjson.Object("role", []byte(`"assistant"`),
					"content", rawjson.List([][]byte{part})))
				continue
			}
			out = append(out, rawjson.Object("type", []byte(`"message"`), "id", str(id),
				"role", []byte(`"assistant"`), "status", []byte(`"completed"`),
				"content", rawjson.List([][]byte{rawjson.WithField(part, "annotations", []byte("[]"))})))
		}
	}
	return out
}

// textID returns the id of the message that a text was of: pi keeps it as its signature, alone or in an object.
func textID(mark []byte) string {
	id := rawjson.Text(mark)
	if strings.HasPrefix(id, "{") {
		if end, err := rawjson.ValueEnd([]byte(id), 0, rawjson.MaxDepth); err != nil || end != len(id) {
			return ""
		}
		id = rawjson.Text(rawjson.Field([]byte(id), "id"))
	}
	if !strings.HasPrefix(id, "msg_") || !fits(id, 64) {
		return ""
	}
	return id
}

func (responses) call(c *converter, t *turn, b *block, thought bool) json.RawMessage {
	item := b.call.item
	if _, second, ok := strings.Cut(b.call.id, "|"); ok {
		item = second
	}
	var id []byte
	if thought && c.signed(t) && strings.HasPrefix(item, "fc_") && fits(item, 64) {
		id = str(item)
	}
	return rawjson.Object("type", []byte(`"function_call"`), "id", id,
		"call_id", str(b.call.sentID), "name", str(c.toolName(b.call)),
		"arguments", str(c.arguments(b.call)))
}

// userItems returns the items that are not the model's.
func (r responses) userItems(c *converter, t *turn) (out []json.RawMessage) {
	var list [][]byte
	flush := func() {
		role := []byte(`"user"`)
		if t.who == system {
			role = []byte(`"system"`)
		}
		if list != nil {
			out = append(out, rawjson.Object("role", role, "content", rawjson.List(list)))
		}
		list = nil
	}
	for _, b := range t.blocks {
		switch {
		case b.kind == result:
			flush()
			out = append(out, r.result(c, t, b))
		case !b.blank():
			list = append(list, r.part(c, t, b))
		}
	}
	flush()
	return out
}

func (responses) part(c *converter, t *turn, b *block) []byte {
	switch {
	case b.asIs && b.raw != nil:
		return b.raw
	case b.kind == image && t.who == user:
		return rawjson.Object("type", []byte(`"input_image"`), "detail", []byte(`"auto"`),
			"image_url", str(b.image.address()))
	}
	return textOf("input_text", c.worded(t, b))
}

func (r responses) result(c *converter, t *turn, b *block) json.RawMessage {
	all, images := c.apart(t, b, r.part)
	if all == "" && images == nil {
		all = noOutput(nil)
	}
	output := str(all)
	if images != nil {
		if all != "" {
			images = append([][]byte{textOf("input_text", textBlock(all))}, images...)
		}
		output = rawjson.List(images)
	}
	c.flag(t, b)
	typ := `"function_call_output"`
	if k := b.result.call.block; k.asIs && k.typ == "custom_tool_call" {
		typ = `"custom_tool_call_output"`
	}
	return rawjson.Object("type", []byte(typ), "call_id", str(b.result.call.sentID), "output", output)
}
