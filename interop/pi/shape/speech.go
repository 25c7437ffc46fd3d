package shape

import (
	"github.com/coppice-go/coppice/internal/rawjson"
)

// noUsage is what pi's programs read of every message of the model: nothing was counted.
const noUsage = `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

// run is a run of blocks, or a result of a tool between two.
type run struct {
	content []byte
	result  *result
}

// runs gives content as pi's blocks, cut at results of tools; never none.
func (n *normal) runs(content []byte) []run {
	var out []run
	blocks := []byte("[")
	end := func() {
		if len(blocks) > 1 {
			out = append(out, run{content: append(blocks, ']')})
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
			out = append(out, run{result: res})
			continue
		}
		put(b)
	}
	end()
	if len(out) == 0 {
		out = []run{{content: []byte("[]")}}
	}
	return out
}

func (n *normal) content() []byte {
	for _, name := range []string{"content", "parts", "contents"} {
		if c := rawjson.Field(n.raw, name); len(c) > 0 && c[0] != 'n' {
			return c
		}
	}
	return nil
}

// user gives a user's message, and one for each result that stands in it.
func (n *normal) user(role string) []Part {
	content := n.content()
	if rawjson.IsString(content) {
		return []Part{{Type: "message", Message: add(n.keep(role, "content", "parts", "contents"), "content", content)}}
	}
	var parts []Part
	for _, r := range n.runs(content) {
		if r.result != nil {
			parts = append(parts, Part{Type: "message", Message: n.resultMessage(r.result)})
			continue
		}
		r.content = n.only(r.content, n.shown...)
		parts = append(parts, Part{Type: "message", Message: add(n.keep(role, "content", "parts", "contents"), "content", r.content)})
	}
	return parts
}

// only turns blocks of other types than these into text.
func (n *normal) only(blocks []byte, types ...string) []byte {
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

func (n *normal) assistant() []Part {
	var content []byte
	calls := false
	take := func(blocks []byte) {
		for _, r := range n.runs(blocks) {
			if r.result != nil { // of a tool that the provider ran itself
				n.lose(LostBlock)
				r.content = append(append([]byte("["), textBlock(rawjson.AppendString(nil, blockText(r.result.content)))...), ']')
			}
			if content == nil {
				content = r.content
			} else {
				content = joined(content, r.content)
			}
		}
	}
	take(n.content())
	if list := rawjson.Field(n.raw, "tool_calls"); list != nil {
		take(list)
	}
	if call := rawjson.Field(n.raw, "function_call"); len(call) > 0 && call[0] == '{' {
		take(append(append([]byte("["), rawjson.WithField(call, "type", []byte(`"function_call"`))...), ']'))
	}
	if typ := rawjson.Text(rawjson.Field(n.raw, "type")); typ == "function_call" || typ == "custom_tool_call" {
		take(append(append([]byte("["), n.raw...), ']'))
	}
	content = n.only(content, n.said...)
	for m := rawjson.Walk(content); m.Next(); {
		calls = calls || string(rawjson.Field(m.Val, "type")) == `"toolCall"`
	}
	out := n.keep("assistant", "content", "parts", "contents", "tool_calls", "function_call", "stop_reason", "finish_reason", "stopReason", "usage", "api", "provider", "model")
	out = add(out, "content", content)
	for _, name := range []string{"api", "provider", "model"} {
		out = add(out, name, stringOr(rawjson.Field(n.raw, name), "unknown"))
	}
	out = add(out, "usage", usageOf(rawjson.Field(n.raw, "usage")))
	return []Part{{Type: "message", Message: add(out, "stopReason", n.stop(calls))}}
}

// stop gives pi's word for why the model stopped.
func (n *normal) stop(calls bool) []byte {
	for _, name := range []string{"stopReason", "stop_reason", "finish_reason", "finishReason"} {
		val := rawjson.Field(n.raw, name)
		if stopFine(val) {
			return val
		}
		switch rawjson.Text(val) {
		case "max_tokens", "MAX_TOKENS":
			return []byte(`"length"`)
		case "tool_use", "tool_calls", "function_call":
			return []byte(`"toolUse"`)
		case "content_filter", "refusal", "SAFETY":
			return []byte(`"error"`)
		}
	}
	if calls {
		return []byte(`"toolUse"`)
	}
	return []byte(`"stop"`)
}

// usageOf gives counts of tokens under pi's names; what is not there is 0.
func usageOf(val []byte) []byte {
	if usageFine(val) {
		return val
	}
	first := func(object []byte, names ...string) []byte {
		for _, name := range names {
			if v := rawjson.Field(object, name); rawjson.IsNumber(v) {
				return v
			}
		}
		return []byte("0")
	}
	if len(val) == 0 || val[0] != '{' {
		return []byte(noUsage)
	}
	cost := rawjson.Field(val, "cost")
	costs := rawjson.Object("input", first(cost, "input"), "output", first(cost, "output"), "cacheRead", first(cost, "cacheRead"), "cacheWrite", first(cost, "cacheWrite"), "total", first(cost, "total"))
	return rawjson.Object("input", first(val, "input", "input_tokens", "prompt_tokens"), "output", first(val, "output", "output_tokens", "completion_tokens"),
		"cacheRead", first(val, "cacheRead", "cache_read_input_tokens"), "cacheWrite", first(val, "cacheWrite", "cache_creation_input_tokens"),
		"totalTokens", first(val, "totalTokens", "total_tokens"), "cost", costs)
}

// results gives the messages of a result of a tool, or of several.
func (n *normal) results() []Part {
	var parts []Part
	plain := &result{id: first(n.raw, "toolCallId", "tool_call_id", "call_id"), name: first(n.raw, "toolName", "name"), content: []byte("[]"), isError: rawjson.Field(n.raw, "isError")}
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
		keep := n.keep("toolResult", "content", "parts", "contents", "tool_call_id", "call_id", "toolCallId", "toolName", "name", "isError", "output", "type")
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

func (n *normal) resultMessage(r *result) []byte {
	at := rawjson.Field(n.raw, "timestamp")
	if !rawjson.IsNumber(at) {
		at = n.at
	}
	return n.resultFields(rawjson.Object("role", []byte(`"toolResult"`), "timestamp", at), r)
}

func (n *normal) resultFields(out []byte, r *result) []byte {
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
	return add(add(add(add(out, "toolCallId", stringOr(r.id, "unknown")), "toolName", stringOr(r.name, "unknown")), "content", n.only(content, "text", "image")), "isError", isError)
}
