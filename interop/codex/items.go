package codex

import (
	"bytes"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
)

// item takes one item of the conversation.
func (r *Reader) item(a entryAt, l line, raw []byte) {
	p := l.payload
	switch l.kind {
	case "message":
		r.message(a, p, raw)
	case "reasoning":
		r.reasoning(a, p)
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call":
		r.call(a, l.kind, p, raw)
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output":
		r.output(a, l.kind, p)
	default:
		r.aside(a, l.kind, raw)
	}
}

func (r *Reader) message(a entryAt, p, raw []byte) {
	content := rawjson.Field(p, "content")
	role := rawjson.Text(rawjson.Field(p, "role"))
	if len(content) == 0 || content[0] != '[' && content[0] != '"' {
		r.aside(a, "message", raw)
		return
	}
	text := plainText(content)
	switch {
	case role == "assistant":
		r.heard(content)
		r.answer.begin(a, len(raw))
		r.answer.text(content, rawjson.Field(p, "id"))
		return
	case role == "user" && !contextual(text):
		r.flush("")
		r.heard(content)
		r.turns = append(r.turns, r.tip)
		out := append(r.open(a, "message", len(p)), `,"message":{"role":"user","content":`...)
		r.close(a, append(appendContent(out, content), r.millis()...))
		return
	}
	r.flush("")
	r.heard(content)
	kind := "codex.context"
	if role != "user" {
		kind = "codex." + role
	}
	r.unsaid(a, kind, content)
}

// unsaid makes a message that the model sees and nobody said.
func (r *Reader) unsaid(a entryAt, kind string, content []byte) {
	out := rawjson.AppendString(append(r.open(a, "custom_message", len(content)), `,"customType":`...), kind)
	r.put(a, append(appendContent(append(out, `,"content":`...), content), `,"display":false}`...))
}

func (r *Reader) millis() []byte {
	return append(jsonl.AppendMillis([]byte(`,"timestamp":`), r.last), '}')
}

func (r *Reader) close(a entryAt, out []byte) { r.put(a, append(out, '}')) }

// replacement takes one item of a history that stands in the place of another.
func (r *Reader) replacement(a entryAt, item []byte) {
	l := line{kind: rawjson.Text(rawjson.Field(item, "type")), payload: item}
	role := rawjson.Text(rawjson.Field(item, "role"))
	content := rawjson.Field(item, "content")
	switch {
	case len(item) == 0 || item[0] != '{':
	case l.kind == "message" && role != "assistant" && len(content) > 0 && (content[0] == '[' || content[0] == '"'):
		r.flush("")
		if role == "user" && !contextual(plainText(content)) {
			r.turns = append(r.turns, r.tip)
		}
		r.unsaid(a, "codex.replacement", content)
	default:
		r.item(a, l, item)
	}
}

// reasoning adds what the model thought. The whole item is the block's signature, as pi has it for this
// provider: it can be sent again.
func (r *Reader) reasoning(a entryAt, p []byte) {
	var thought []string
	for _, name := range []string{"summary", "content"} {
		for m := rawjson.Walk(rawjson.Field(p, name)); m.Closing == ']' && m.Next(); {
			text := rawjson.Field(m.Val, "text")
			r.hear(text)
			if name == "summary" || len(thought) == 0 {
				thought = append(thought, rawjson.Text(text))
			}
		}
	}
	r.answer.begin(a, len(p))
	block := rawjson.AppendString([]byte(`{"type":"thinking","thinking":`), strings.Join(thought, "\n\n"))
	block = rawjson.AppendString(append(block, `,"thinkingSignature":`...), string(p))
	r.answer.add(append(block, '}'))
}

// call adds a call of a tool.
func (r *Reader) call(a entryAt, kind string, p, raw []byte) {
	id := rawjson.Text(rawjson.Field(p, "call_id"))
	if id == "" {
		id = rawjson.Text(rawjson.Field(p, "id"))
	}
	name, args := rawjson.Text(rawjson.Field(p, "name")), rawjson.Field(p, "arguments")
	switch kind {
	case "custom_tool_call":
		args = rawjson.Object("input", rawjson.Field(p, "input"))
	case "local_shell_call":
		name, args = "local_shell", rawjson.Field(p, "action")
	case "tool_search_call":
		name = "tool_search"
	}
	if id == "" || name == "" {
		r.aside(a, kind, raw)
		return
	}
	const most, names = 1 << 16, 256
	if len(r.calls) < most && len(name) <= names && len(id) <= names {
		r.calls[id] = name
	}
	r.answer.begin(a, len(p))
	r.answer.called = true
	block := rawjson.AppendString([]byte(`{"type":"toolCall","id":`), id)
	block = rawjson.AppendString(append(block, `,"name":`...), name)
	block = append(append(block, `,"arguments":`...), arguments(args)...)
	r.answer.add(append(block, '}'))
}

// arguments gives what a tool is called with as an object; Codex has it as text.
func arguments(val []byte) []byte {
	if len(val) == 0 || string(val) == "null" {
		return []byte("{}")
	}
	if val[0] == '{' {
		return val
	}
	inner := bytes.TrimSpace([]byte(rawjson.Text(val)))
	const depth = rawjson.MaxDepth / 2
	if end, err := rawjson.ValueEnd(inner, 0, depth); err == nil && end == len(inner) && inner[0] == '{' && bytes.IndexByte(inner, '\n') < 0 {
		return inner
	}
	return append(append([]byte(`{"input":`), val...), '}')
}

// output makes the result of a call.
func (r *Reader) output(a entryAt, kind string, p []byte) {
	r.flush("")
	id := rawjson.Field(p, "call_id")
	if !rawjson.IsString(id) {
		id = []byte(`""`)
	}
	name := r.calls[rawjson.Text(id)]
	delete(r.calls, rawjson.Text(id))
	out := append(append(r.open(a, "message", len(p)), `,"message":{"role":"toolResult","toolCallId":`...), id...)
	out = append(rawjson.AppendString(append(out, `,"toolName":`...), name), `,"content":`...)
	val, failed := rawjson.Field(p, "output"), false
	if len(val) > 0 && val[0] == '{' {
		failed = string(rawjson.Field(val, "success")) == "false"
		if c := rawjson.Field(val, "content"); c != nil {
			val = c
		}
	}
	switch {
	case len(val) > 0 && val[0] == '[':
		out = appendContent(out, val)
	case rawjson.IsString(val):
		failed = failed || exitedBadly(val)
		out = append(append(append(out, `[{"type":"text","text":`...), val...), "}]"...)
	case kind == "tool_search_output":
		out = append(rawjson.AppendString(append(out, `[{"type":"text","text":`...), string(rawjson.OrNull(rawjson.Field(p, "tools")))), "}]"...)
	default:
		out = append(out, "[]"...)
	}
	out = append(out, `,"isError":`...)
	if failed {
		out = append(out, "true"...)
	} else {
		out = append(out, "false"...)
	}
	r.close(a, append(out, r.millis()...))
}

// exitedBadly reads the exit code that older versions put beside the output.
func exitedBadly(val []byte) bool {
	if !bytes.HasPrefix(val, []byte(`"{\"output\"`)) {
		return false
	}
	code := rawjson.Field(rawjson.Field([]byte(rawjson.Text(val)), "metadata"), "exit_code")
	return code != nil && string(code) != "0" && rawjson.IsNumber(code)
}

// flush hands out the answer that was collected; stop "" = as it looks.
func (r *Reader) flush(stop string) {
	w := &r.answer
	if w.blocks == nil {
		return
	}
	if stop == "" {
		if stop = "stop"; w.called {
			stop = "toolUse"
		}
	}
	out := append(r.open(w.at, "message", len(w.blocks)), `,"message":{"role":"assistant","content":[`...)
	out = append(append(out, w.blocks...), `],"api":"openai-responses","provider":`...)
	out = rawjson.AppendString(append(rawjson.AppendString(out, r.provider), `,"model":`...), r.model)
	out = appendUsage(append(out, `,"usage":`...), w.usage)
	out = append(append(append(out, `,"stopReason":"`...), stop...), '"')
	r.close(w.at, append(out, r.millis()...))
	held := w.held
	r.answer = answer{}
	for _, h := range held {
		r.custom(h.at, h.kind, h.raw)
	}
}
