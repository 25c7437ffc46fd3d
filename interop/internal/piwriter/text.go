package piwriter

import (
	"slices"
	"strconv"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// content returns the content of the message, or nil.
func (n *normaliser) content() []byte {
	for _, name := range message.Contents() {
		if c := rawjson.Field(n.raw, name); len(c) > 0 && c[0] != 'n' {
			return c
		}
	}
	return nil
}

// user returns a user message, and one message for each result in it.
func (n *normaliser) user(role string) []Part {
	without := message.Contents()
	put := func(parts []Part, content []byte) []Part {
		return append(parts, Part{Type: "message", Message: AddField(n.keep(role, without...), "content", content)})
	}
	if content := n.content(); rawjson.IsString(content) {
		return put(nil, content)
	}
	var parts []Part
	var run [][]byte
	for i := range n.m.Blocks {
		b := &n.m.Blocks[i]
		if b.Kind != message.Result {
			run = append(run, n.block(b, n.shown))
			continue
		}
		if run != nil {
			parts = put(parts, rawjson.List(run))
			without = slices.Concat(without, message.Bearers()) // the usage counts once
		}
		run = nil
		parts = append(parts, n.result(b))
	}
	if run != nil || parts == nil {
		parts = put(parts, rawjson.List(run))
	}
	return parts
}

func (n *normaliser) assistant() []Part {
	var content [][]byte
	without := slices.Concat([]string{
		"tool_calls", "function_call", "stop_reason", "finish_reason", "finishReason", "stopReason", "api", "provider",
	}, message.Contents(), message.Models(), message.Bearers())
	for i := range n.m.Blocks {
		b := &n.m.Blocks[i]
		switch {
		case b.Kind == message.Result: // a tool that the provider ran itself
			n.lose(LostBlock)
			content = append(content, textBlock(rawjson.AppendString(nil, blockText(n.output(b, nil)))))
			continue
		case b.Kind == message.Thinking && rawjson.IsString(b.Raw):
			without = slices.Concat(without, message.Asides())
		}
		content = append(content, n.block(b, n.said))
	}
	if message.IsItem(n.raw) {
		without = append(without, "type", "call_id", "name", "arguments", "input", "summary", "encrypted_content")
	}
	out := AddField(n.keep("assistant", without...), "content", rawjson.List(content))
	out = AddField(out, "api", stringOr(rawjson.Field(n.raw, "api"), "unknown"))
	out = AddField(out, "provider", stringOr(rawjson.Field(n.raw, "provider"), message.Unknown))
	out = AddField(out, "model", stringOr(message.Model(n.raw), message.Unknown))
	word, raw, _ := message.Stop(n.raw, n.m.Calls())
	out = AddField(AddField(out, "usage", Usage(n.raw)), "stopReason", rawjson.AppendString(nil, word))
	if raw != "" && rawjson.Field(out, "rawStopReason") == nil {
		out = AddField(out, "rawStopReason", rawjson.AppendString(nil, raw))
	}
	return []Part{{Type: "message", Message: out}}
}

// results returns the messages of one or more tool results.
func (n *normaliser) results() (parts []Part) {
	for i := range n.m.Blocks {
		if b := &n.m.Blocks[i]; b.Kind == message.Result {
			parts = append(parts, n.result(b))
		}
	}
	return parts
}

// result returns the message of a tool result. If the result is the message as a whole, the other fields stay.
func (n *normaliser) result(b *message.Block) Part {
	out := rawjson.Object("role", []byte(`"toolResult"`), "timestamp", n.time())
	if &b.Raw[0] == &n.raw[0] {
		out = n.keep("toolResult", slices.Concat(message.Contents(), []string{
			"tool_call_id", "call_id", "toolCallId", "toolName", "tool_name", "name", "isError", "output", "type",
		})...)
	}
	out = AddField(out, "toolCallId", stringOr(b.Key(), "unknown"))
	out = AddField(out, "toolName", stringOr(b.Name, "unknown"))
	out = AddField(out, "content", n.output(b, []string{"text", "image"}))
	return Part{Type: "message", Message: AddField(out, "isError", strconv.AppendBool(nil, b.Failed))}
}

// output returns the content of a result as a list of pi's blocks of these types; nil = any type.
func (n *normaliser) output(b *message.Block, types []string) []byte {
	var list [][]byte
	for c := b.Content(); c.Next(); {
		if c.Block.Kind != message.Result {
			list = append(list, n.block(&c.Block, types))
		}
	}
	return rawjson.List(list)
}

// listOf returns a list of one block.
func listOf(block []byte) []byte { return rawjson.List([][]byte{block}) }

func innerOf(object []byte, names ...string) []byte { return message.Object(object, names...) }

func first(object []byte, names ...string) []byte { return message.First(object, names...) }
