package write

import (
	"crypto/sha256"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// message writes a message of any role.
func (w *writer) message(it item) {
	content := rawjson.Field(it.message, "content")
	switch role := rawjson.Text(rawjson.Field(it.message, "role")); role {
	case "user":
		w.said(it, content, false)
	case "assistant":
		w.assistant(it, content)
	case "toolResult", "tool":
		w.result(it, content)
	case "bashExecution", "pythonExecution":
		w.lose("commands of the user: written as text")
		text := "$ " + rawjson.Text(rawjson.Field(it.message, "command")) + rawjson.Text(rawjson.Field(it.message, "code")) + "\n" +
			rawjson.Text(rawjson.Field(it.message, "output"))
		w.said(it, rawjson.AppendString(nil, text), false)
	case "custom", "hookMessage", "developer", "system", "fileMention":
		w.lose("messages of role " + role + ": written as the program's own")
		w.said(it, content, true)
	case "branchSummary", "compactionSummary":
		w.lose("messages of role " + role + ": written as the program's own")
		w.said(it, rawjson.Field(it.message, "summary"), true)
	default:
		w.skip(it, "messages of role "+printable(role))
	}
}

// said writes what somebody says to the model. A message that is empty cannot be sent.
func (w *writer) said(it item, content []byte, meta bool) {
	if !rawjson.IsString(content) {
		content = w.blocks(content)
	}
	if s := string(content); s == `""` || s == "[]" {
		w.skip(it, "messages without content that Claude Code can show")
		return
	}
	var flag []byte
	if meta {
		flag = []byte("true")
	}
	w.tree(w.place(it.ID), w.envelope(it, w.place(it.ID), w.place(it.ParentID), `"user"`,
		"message", rawjson.Object("role", []byte(`"user"`), "content", content), "isMeta", flag))
}

// blocks gives a list of blocks as Anthropic has them.
func (w *writer) blocks(content []byte) []byte {
	out := []byte{'['}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		b := w.block(m.Val)
		if b == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	return append(out, ']')
}

func (w *writer) block(block []byte) []byte {
	if rawjson.IsString(block) && len(block) > 2 {
		return rawjson.Object("type", []byte(`"text"`), "text", block)
	}
	typ := rawjson.Text(rawjson.Field(block, "type"))
	switch typ {
	case "text":
		if text := rawjson.Field(block, "text"); rawjson.IsString(text) && strings.TrimSpace(rawjson.Text(text)) != "" {
			return rawjson.Object("type", []byte(`"text"`), "text", text)
		}
		return nil // an empty one cannot be sent, and says nothing
	case "image":
		data, mime := rawjson.Field(block, "data"), rawjson.Field(block, "mimeType")
		if rawjson.IsString(data) && rawjson.IsString(mime) && !strings.HasPrefix(string(data), `"blob:`) && !strings.HasPrefix(string(data), `"data:`) {
			source := rawjson.Object("type", []byte(`"base64"`), "media_type", mime, "data", data)
			return rawjson.Object("type", []byte(`"image"`), "source", source)
		}
		if src := rawjson.Field(block, "source"); w.ours && len(src) > 0 && src[0] == '{' {
			return block
		}
	case "document", "tool_reference", "server_tool_use", "search_result":
		return block
	default:
		if strings.HasSuffix(typ, "_tool_result") {
			return block
		}
	}
	w.lose("blocks of type " + printable(typ))
	return nil
}

// assistant writes a message of the model, on one line.
func (w *writer) assistant(it item, content []byte) {
	signed := string(rawjson.Field(it.message, "api")) == `"anthropic-messages"` || string(rawjson.Field(it.message, "provider")) == `"anthropic"`
	out := []byte{'['}
	put := func(b []byte) {
		if b == nil {
			return
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, b...)
	}
	if rawjson.IsString(content) {
		put(w.block(content))
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		switch rawjson.Text(rawjson.Field(m.Val, "type")) {
		case "thinking":
			put(w.thinking(m.Val, signed))
		case "toolCall":
			put(w.call(m.Val))
		default:
			put(w.block(m.Val))
		}
	}
	failed := string(rawjson.Field(it.message, "stopReason")) == `"error"`
	if fault := rawjson.Field(it.message, "errorMessage"); len(out) == 1 && failed {
		put(w.block(fault))
	}
	if len(out) == 1 {
		w.skip(it, "messages without content that Claude Code can show")
		return
	}
	var flag []byte
	if failed && (it.more == nil || rawjson.Field(it.more, "isApiErrorMessage") == nil) {
		flag = []byte("true")
	}
	w.tree(w.place(it.ID), w.envelope(it, w.place(it.ID), w.place(it.ParentID), `"assistant"`, "message", w.provider(it, append(out, ']')), "isApiErrorMessage", flag))
}

// provider makes the provider's message object.
func (w *writer) provider(it item, content []byte) []byte {
	id := rawjson.Field(it.message, "responseId")
	if !rawjson.IsString(id) || len(id) == 2 {
		id = rawjson.AppendString(nil, "msg_"+strings.ReplaceAll(w.place(it.ID), "-", ""))
	}
	model := rawjson.Field(it.message, "responseModel")
	if !rawjson.IsString(model) {
		model = rawjson.Field(it.message, "model")
	}
	if !rawjson.IsString(model) || len(model) == 2 {
		model = []byte(`"unknown"`)
	}
	stop := rawjson.Field(it.message, "rawStopReason")
	if !rawjson.IsString(stop) || !w.ours {
		switch string(rawjson.Field(it.message, "stopReason")) {
		case `"length"`:
			stop = []byte(`"max_tokens"`)
		case `"toolUse"`:
			stop = []byte(`"tool_use"`)
		case `"error"`, `"aborted"`:
			stop = []byte("null")
		default:
			stop = []byte(`"end_turn"`)
		}
	}
	u := rawjson.Field(it.message, "usage")
	count := func(name string) []byte {
		if n := rawjson.Field(u, name); rawjson.IsNumber(n) {
			return n
		}
		return []byte("0")
	}
	usage := rawjson.Object("input_tokens", count("input"), "cache_creation_input_tokens", count("cacheWrite"),
		"cache_read_input_tokens", count("cacheRead"), "output_tokens", count("output"))
	out := rawjson.Object("id", id, "type", []byte(`"message"`), "role", []byte(`"assistant"`), "model", model, "content", content,
		"stop_reason", stop, "stop_sequence", []byte("null"), "usage", usage)
	for m := rawjson.Walk(rawjson.Field(it.more, "message")); m.Closing == '}' && m.Next(); {
		out = rawjson.WithField(out, string(m.Key), m.Val)
	}
	return out
}

// thinking gives a block of thinking if Anthropic signed it: any other would be refused.
func (w *writer) thinking(block []byte, signed bool) []byte {
	signature := rawjson.Field(block, "thinkingSignature")
	if !signed || !rawjson.IsString(signature) || len(signature) == 2 {
		w.lose("thinking that Anthropic did not sign")
		return nil
	}
	if rawjson.IsTrue(rawjson.Field(block, "redacted")) {
		return rawjson.Object("type", []byte(`"redacted_thinking"`), "data", signature)
	}
	text := rawjson.Field(block, "thinking")
	if !rawjson.IsString(text) {
		text = []byte(`""`)
	}
	return rawjson.Object("type", []byte(`"thinking"`), "thinking", text, "signature", signature)
}

func shortKey(id string) (k [8]byte) {
	sum := sha256.Sum256([]byte(id))
	copy(k[:], sum[:])
	return k
}

func (w *writer) call(block []byte) []byte {
	id, name := rawjson.Text(rawjson.Field(block, "id")), rawjson.Field(block, "name")
	if !rawjson.IsString(name) || len(name) == 2 {
		w.lose("calls without a tool's name")
		return nil
	}
	w.calls[shortKey(id)] = true
	args := rawjson.Field(block, "arguments")
	if len(args) == 0 || args[0] != '{' {
		args = []byte("{}")
	}
	return rawjson.Object("type", []byte(`"tool_use"`), "id", rawjson.AppendString(nil, callID(id)), "name", name, "input", args, "caller", rawjson.Field(block, "caller"))
}

// noteCalls remembers the calls of a message that is in the original file.
func (w *writer) noteCalls(message []byte) {
	for m := rawjson.Walk(rawjson.Field(message, "content")); m.Closing == ']' && m.Next(); {
		if string(rawjson.Field(m.Val, "type")) == `"toolCall"` {
			w.calls[shortKey(rawjson.Text(rawjson.Field(m.Val, "id")))] = true
		}
	}
}

// result writes the result of a call; without the call it would be refused, so it becomes text.
func (w *writer) result(it item, content []byte) {
	id := rawjson.Text(rawjson.Field(it.message, "toolCallId"))
	if !rawjson.IsString(content) {
		content = w.blocks(content)
	}
	if !w.calls[shortKey(id)] {
		w.lose("results whose call is not there: written as text")
		w.said(it, content, true)
		return
	}
	var failed, details []byte
	if rawjson.IsTrue(rawjson.Field(it.message, "isError")) {
		failed = []byte("true")
	}
	if w.ours {
		details = rawjson.Field(it.message, "details")
	}
	block := rawjson.Object("tool_use_id", rawjson.AppendString(nil, callID(id)), "type", []byte(`"tool_result"`), "content", content, "is_error", failed)
	w.tree(w.place(it.ID), w.envelope(it, w.place(it.ID), w.place(it.ParentID), `"user"`,
		"message", rawjson.Object("role", []byte(`"user"`), "content", append(append([]byte{'['}, block...), ']')), "toolUseResult", details))
}
