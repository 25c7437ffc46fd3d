package piwriter

import (
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// blocksFine reports whether list is a list of pi's blocks of these types.
func blocksFine(list []byte, types ...string) bool {
	return rawjson.Every(list, func(block []byte) bool { return blockFine(block, types...) })
}

// ownBlocks are the fields that pi requires in its blocks.
var ownBlocks = map[string][]fieldRule{
	"text":     {{"text", '"', ""}},
	"thinking": {{"thinking", '"', ""}},
	"image":    {{"data", '"', ""}, {"mimeType", '"', ""}},
	"toolCall": {{"id", '"', ""}, {"name", '"', ""}, {"arguments", '{', ""}},
}

// blockFine reports whether a block has one of these types, which may be the target's own, and all required fields.
func blockFine(block []byte, types ...string) bool {
	typ := rawjson.Field(block, "type")
	if !rawjson.IsString(typ) || !slices.Contains(types, string(typ[1:len(typ)-1])) {
		return false
	}
	return holdsAll(block, ownBlocks[string(typ[1:len(typ)-1])])
}

// holdsAll reports whether an object has these fields, each of its kind.
func holdsAll(object []byte, want []fieldRule) bool {
	found := 0
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		for i, f := range want {
			if string(m.Key) != f.name {
				continue
			}
			if found &^= 1 << i; f.holds(m.Val) {
				found |= 1 << i
			}
		}
	}
	return found == 1<<len(want)-1
}

func textBlock(literal []byte) []byte {
	return append(append([]byte(`{"type":"text","text":`), literal...), '}')
}

// block returns a block in pi's form with one of these types; nil = any type. A block without such a form becomes text.
func (n *normaliser) block(b *message.Block, types []string) []byte {
	out := n.own(b)
	if out == nil || types != nil && !blockFine(out, types...) {
		n.lose(LostBlock)
		if out == nil {
			out = b.Raw
		}
		return textBlock(rawjson.AppendString(nil, blockText(out)))
	}
	return out
}

// own returns pi's block for a block of any provider, or nil.
func (n *normaliser) own(b *message.Block) []byte {
	signature := message.GeminiSignature(b.Raw)
	switch {
	case rawjson.IsString(b.Raw) && b.Kind == message.Text:
		return textBlock(b.Raw)
	case (blockFine(b.Raw, n.shown...) || blockFine(b.Raw, n.said...) || blockFine(b.Raw, "image")) &&
		!anthropicThinking(b.Raw):
		return b.Raw
	case b.Kind == message.Call:
		return callBlock(b)
	case b.Kind == message.Thinking:
		return thinking(b)
	case b.Kind == message.Text, b.Type == "" && signature != nil:
		return rawjson.Object("type", []byte(`"text"`), "text", stringOr(b.Text, ""), "textSignature", signature)
	case b.Kind == message.Attached:
		if m := b.Media(); m.Image() {
			return rawjson.Object("type", []byte(`"image"`), "data", rawjson.AppendString(nil, m.Data),
				"mimeType", rawjson.AppendString(nil, m.Mime))
		}
	}
	return nil
}

// anthropicThinking reports whether a thinking block is Anthropic's and not pi's, whose signature has another name.
func anthropicThinking(b []byte) bool {
	return string(rawjson.Field(b, "type")) == `"thinking"` && rawjson.IsString(rawjson.Field(b, "signature")) &&
		rawjson.Field(b, "thinkingSignature") == nil
}

// Thinking returns pi's block for a thinking block of any provider; nil = it is of another type.
func Thinking(raw []byte) []byte {
	c := message.Content(listOf(raw))
	if !c.Next() || c.Block.Kind != message.Thinking {
		return nil
	}
	return thinking(&c.Block)
}

// thinking returns pi's thinking block. pi sends its signature back to the provider: it is the whole item for OpenAI's
// items, and the name of the field for thinking in a field next to the content.
func thinking(b *message.Block) []byte {
	t := b.Thought()
	switch {
	case t.Item:
		t.Signature = rawjson.AppendString(nil, b.Raw)
	case rawjson.IsString(b.Raw):
		t.Signature = rawjson.AppendString(nil, b.Type)
	}
	var redacted []byte
	if t.Redacted {
		redacted = []byte("true")
	}
	return rawjson.Object("type", []byte(`"thinking"`), "thinking", rawjson.AppendString(nil, t.Text),
		"thinkingSignature", t.Signature, "redacted", redacted)
}

// lineFeeds removes line feeds from JSON, which must be one line.
var lineFeeds = strings.NewReplacer("\n", " ", "\r", " ")

// callBlock returns pi's block of a call.
func callBlock(b *message.Block) []byte {
	args := b.Body
	if rawjson.IsString(args) {
		if inner := message.Arguments(args); inner[0] == '{' {
			args = []byte(lineFeeds.Replace(string(inner)))
		} else if len(args) > 2 {
			args = rawjson.Object("input", args)
		}
	}
	if len(args) == 0 || args[0] != '{' {
		args = []byte("{}")
	}
	return rawjson.Object("type", []byte(`"toolCall"`), "id", stringOr(b.Key(), "unknown"),
		"name", stringOr(b.Name, "unknown"), "arguments", args, "thoughtSignature", message.GeminiSignature(b.Raw))
}

// maxShown bounds the text that replaces a block.
const maxShown = 16 << 10

// blockText returns a text in place of a block.
func blockText(b []byte) string {
	if t := message.ContentText(listOf(b)); t != "" {
		return t
	}
	typ := rawjson.Text(rawjson.Field(b, "type"))
	if typ == "" {
		typ = "block"
	}
	if inner := message.Object(b, "image_url"); inner != nil {
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
