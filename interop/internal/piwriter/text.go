package piwriter

import (
	"slices"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// toolRun is a run of blocks, or a result of a tool between two.
type toolRun struct {
	content []byte
	result  *toolResult
}

// runs returns content as pi's blocks, cut at results of tools; never none.
func (n *normaliser) runs(content []byte) []toolRun {
	var out []toolRun
	blocks := []byte("[")
	end := func() {
		if len(blocks) > 1 {
			out = append(out, toolRun{content: append(blocks, ']')})
			blocks = []byte("[")
		}
	}
	put := func(b []byte) {
		if len(blocks) > 1 {
			blocks = append(blocks, ',')
		}
		blocks = append(blocks, b...)
	}
	if rawjson.IsString(content) && len(content) > 2 {
		put(textBlock(content))
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		b, res := n.block(m.Val)
		if res != nil {
			end()
			out = append(out, toolRun{result: res})
			continue
		}
		put(b)
	}
	end()
	if len(out) == 0 {
		out = []toolRun{{content: []byte("[]")}}
	}
	return out
}

func (n *normaliser) content() []byte {
	for _, name := range []string{"content", "parts", "contents"} {
		if c := rawjson.Field(n.raw, name); len(c) > 0 && c[0] != 'n' {
			return c
		}
	}
	return nil
}

// user returns a user's message, and one for each result in it.
func (n *normaliser) user(role string) []Part {
	content := n.content()
	if rawjson.IsString(content) {
		return []Part{{Type: "message", Message: AddField(n.keep(role, "content", "parts", "contents"), "content",
			content)}}
	}
	var parts []Part
	without := []string{"content", "parts", "contents"}
	for _, r := range n.runs(content) {
		if r.result != nil {
			parts = append(parts, Part{Type: "message", Message: n.resultMessage(r.result)})
			continue
		}
		r.content = n.only(r.content, n.shown...)
		parts = append(parts, Part{Type: "message", Message: AddField(n.keep(role, without...), "content", r.content)})
		without = append(without, message.Bearers()...) // what was counted, was once
	}
	return parts
}

// only turns blocks of other types than these into text.
func (n *normaliser) only(blocks []byte, types ...string) []byte {
	if blocksFine(blocks, types...) {
		return blocks
	}
	out := []byte("[")
	for m := rawjson.Walk(blocks); m.Closing == ']' && m.Next(); {
		if len(out) > 1 {
			out = append(out, ',')
		}
		b := m.Val
		if !blockFine(b, types...) {
			n.lose(LostBlock)
			b = textBlock(rawjson.AppendString(nil, blockText(b)))
		}
		out = append(out, b...)
	}
	return append(out, ']')
}

func (n *normaliser) assistant() []Part {
	var content []byte
	calls := false
	take := func(blocks []byte) {
		for _, r := range n.runs(blocks) {
			if r.result != nil { // of a tool that the provider ran itself
				n.lose(LostBlock)
				r.content = append(append([]byte("["),
					textBlock(rawjson.AppendString(nil, blockText(r.result.content)))...), ']')
			}
			if content == nil {
				content = r.content
			} else {
				content = joined(content, r.content)
			}
		}
	}
	without := []string{
		"content", "parts", "contents", "tool_calls", "function_call", "stop_reason", "finish_reason", "finishReason",
		"stopReason", "api", "provider",
	}
	without = slices.Concat(without, message.Models(), message.Bearers())
	if b := beside(n.raw); b != nil {
		take(listOf(b))
		without = append(without, message.Asides()...)
	}
	take(n.content())
	if list := rawjson.Field(n.raw, "tool_calls"); list != nil {
		take(list)
	}
	if call := innerOf(n.raw, "function_call"); call != nil {
		take(listOf(rawjson.WithField(call, "type", []byte(`"function_call"`))))
	}
	if message.IsItem(n.raw) {
		take(listOf(n.raw))
		without = append(without, "type", "call_id", "name", "arguments", "input", "summary", "encrypted_content")
	}
	content = n.only(content, n.said...)
	for m := rawjson.Walk(content); m.Next(); {
		calls = calls || string(rawjson.Field(m.Val, "type")) == `"toolCall"`
	}
	out := AddField(n.keep("assistant", without...), "content", content)
	out = AddField(out, "api", stringOr(rawjson.Field(n.raw, "api"), "unknown"))
	out = AddField(out, "provider", stringOr(rawjson.Field(n.raw, "provider"), message.Unknown))
	out = AddField(out, "model", stringOr(message.Model(n.raw), message.Unknown))
	word, raw, _ := message.Stop(n.raw, calls)
	out = AddField(AddField(out, "usage", Usage(n.raw)), "stopReason", rawjson.AppendString(nil, word))
	if raw != "" && rawjson.Field(out, "rawStopReason") == nil {
		out = AddField(out, "rawStopReason", rawjson.AppendString(nil, raw))
	}
	return []Part{{Type: "message", Message: out}}
}

func listOf(block []byte) []byte { return append(append([]byte("["), block...), ']') }

// results returns the messages of a result of a tool, or of several.
func (n *normaliser) results() []Part {
	var parts []Part
	plain := &toolResult{
		id:   first(n.raw, "toolCallId", "tool_call_id", "call_id"),
		name: first(n.raw, "toolName", "tool_name", "name"), content: []byte("[]"),
		isError: rawjson.Field(n.raw, "isError"),
	}
	if plain.id == nil {
		plain.id = plain.name
	}
	content := n.content()
	if content == nil {
		content = rawjson.Field(n.raw, "output")
	}
	for _, r := range n.runs(content) {
		if r.result != nil {
			parts = append(parts, Part{Type: "message", Message: n.resultMessage(r.result)})
		} else {
			plain.content = joined(plain.content, r.content)
		}
	}
	if len(parts) == 0 || len(plain.content) > 2 {
		keep := n.keep("toolResult", "content", "parts", "contents", "tool_call_id", "call_id", "toolCallId",
			"toolName", "tool_name", "name", "isError", "output", "type")
		parts = append([]Part{{Type: "message", Message: n.resultFields(keep, plain)}}, parts...)
	}
	return parts
}

func first(object []byte, names ...string) []byte {
	for _, name := range names {
		if v := rawjson.Field(object, name); rawjson.IsString(v) {
			return v
		}
	}
	return nil
}

func (n *normaliser) resultMessage(r *toolResult) []byte {
	at := rawjson.Field(n.raw, "timestamp")
	if !rawjson.IsNumber(at) {
		at = n.at
	}
	return n.resultFields(rawjson.Object("role", []byte(`"toolResult"`), "timestamp", at), r)
}

func (n *normaliser) resultFields(out []byte, r *toolResult) []byte {
	isError := []byte("false")
	if rawjson.IsTrue(r.isError) {
		isError = r.isError
	}
	content := r.content
	if len(content) == 0 || content[0] != '[' {
		content = n.runs(content)[0].content
	}
	if content == nil {
		content = []byte("[]")
	}
	out = AddField(out, "toolCallId", stringOr(r.id, "unknown"))
	out = AddField(out, "toolName", stringOr(r.name, "unknown"))
	out = AddField(out, "content", n.only(content, "text", "image"))
	return AddField(out, "isError", isError)
}
