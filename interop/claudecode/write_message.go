package claudecode

import (
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
)

// fileLine is one line of the file.
type fileLine struct {
	typ     string
	message []byte
	flags   []any // further fields of the line, names and values in turn
}

// message writes a message of any role and provider. It uses several lines if Claude Code does.
func (w *writer) message(it sourceEntry) {
	var lines []fileLine
	switch role := rawjson.Text(rawjson.Field(it.message, "role")); role {
	case "custom", "hookMessage", "developer", "system":
		w.lose("messages of role " + role + ": written as the program's own")
		lines = w.program(rawjson.Field(it.message, "content"), true)
	case "branchSummary", "compactionSummary":
		w.lose("messages of role " + role + ": written as the program's own")
		lines = w.program(rawjson.Field(it.message, "summary"), true)
	case "bashExecution", "pythonExecution":
		w.lose("commands of the user: written as text")
		text := "$ " + rawjson.Text(rawjson.Field(it.message, "command")) +
			rawjson.Text(rawjson.Field(it.message, "code")) + "\n" +
			rawjson.Text(rawjson.Field(it.message, "output"))
		lines = w.said(rawjson.AppendString(nil, text), false)
	default:
		if len(it.message) == 0 || it.message[0] != '{' {
			w.skip(it, "messages that are no objects")
			return
		}
		if role == "" && string(rawjson.Field(it.message, "type")) == `"reasoning"` {
			w.skip(it, lostThinking)
			return
		}
		for _, p := range w.parts(it) {
			lines = append(lines, w.part(it, p)...)
		}
	}
	w.put(it, lines)
}

// put writes the lines of an entry. The last one has the entry's ID: children of the entry name it.
func (w *writer) put(it sourceEntry, lines []fileLine) {
	if len(lines) == 0 {
		w.skip(it, "messages without content that Claude Code can show")
		return
	}
	parent := w.place(it.ParentID)
	for i, l := range lines {
		id := w.place(it.ID)
		if i < len(lines)-1 {
			id = derivedUUID("part", w.place(it.ID)+"."+strconv.Itoa(i))
		}
		if i == 0 && len(lines) > 1 {
			w.firsts[it.ID] = id
		}
		w.speak(id, w.envelope(it, id, parent, `"`+l.typ+`"`, append([]any{"message", l.message}, l.flags...)...))
		parent = id
	}
}

// part returns the lines of a message in the shape of pi or Anthropic.
func (w *writer) part(it sourceEntry, p piwriter.Part) []fileLine {
	switch {
	case p.Type == "custom_message":
		return w.program(rawjson.Field(p.Body, "content"), true)
	case p.Type != "message":
		return nil
	}
	content := rawjson.Field(p.Message, "content")
	switch rawjson.Text(rawjson.Field(p.Message, "role")) {
	case "assistant":
		return w.assistant(it, p.Message, content)
	case "toolResult", "tool":
		return w.result(p.Message, content)
	}
	return w.user(content)
}

// program returns the line of a program's message to the model. meta = the line gets isMeta.
func (w *writer) program(content []byte, meta bool) []fileLine {
	if !rawjson.IsString(content) && !nativeBlocks("user", content) {
		content = piwriter.Content(content, w.lose)
	}
	return w.said(content, meta)
}

// said returns the line of a message with role user, or no line if it is empty: Anthropic rejects empty text.
func (w *writer) said(content []byte, meta bool) []fileLine {
	if !rawjson.IsString(content) {
		content = w.blocks(content)
	}
	if s := string(content); s == `""` || s == "[]" {
		return nil
	}
	var flags []any
	if meta {
		flags = []any{"isMeta", []byte("true")}
	}
	return []fileLine{{"user", rawjson.Object("role", []byte(`"user"`), "content", content), flags}}
}

// user returns the lines of a user message, which may contain tool results. Results without their call come first, as
// text. Everything else is one line, with the results in front.
func (w *writer) user(content []byte) []fileLine {
	if rawjson.IsString(content) {
		return w.said(content, false)
	}
	var lines []fileLine
	var results, rest [][]byte
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if string(rawjson.Field(m.Val, "type")) != `"tool_result"` {
			if b := w.block(m.Val); b != nil {
				rest = append(rest, b)
			}
			continue
		}
		block, alone := w.resultBlock(rawjson.Text(rawjson.Field(m.Val, "tool_use_id")),
			rawjson.Field(m.Val, "content"), rawjson.Field(m.Val, "is_error"))
		if lines = append(lines, alone...); block != nil {
			results = append(results, block)
		}
	}
	if list := slices.Concat(results, rest); len(list) > 0 {
		lines = append(lines, fileLine{"user", rawjson.Object("role", []byte(`"user"`),
			"content", rawjson.List(list)), nil})
	}
	return lines
}

// resultBlock returns the block of a result. Anthropic rejects a result without its call, so it becomes text on a line
// of its own.
func (w *writer) resultBlock(id string, content, isError []byte) (block []byte, alone []fileLine) {
	if content != nil && !rawjson.IsString(content) {
		content = w.blocks(content)
	}
	written, again := w.answered(id)
	if written == "" {
		w.lose("results whose call is not there: written as text")
		return nil, w.said(content, true)
	}
	if again {
		w.lose("results of calls that have another one, here or on another branch: Claude Code puts them behind " +
			"each other")
	}
	w.results[shortKey(written)] = true
	w.pass(pathStep{answer: written})
	var failed []byte
	if rawjson.IsTrue(isError) {
		failed = isError
	}
	return rawjson.Object("tool_use_id", rawjson.AppendString(nil, written), "type", []byte(`"tool_result"`),
		"content", content, "is_error", failed), nil
}

// result returns the lines of a message that is a tool result.
func (w *writer) result(message, content []byte) []fileLine {
	block, alone := w.resultBlock(rawjson.Text(rawjson.Field(message, "toolCallId")), content,
		rawjson.Field(message, "isError"))
	if block == nil {
		return alone
	}
	var flags []any
	if details := rawjson.OrNull(rawjson.Field(message, "details")); w.ours && string(details) != "null" {
		flags = []any{"toolUseResult", details}
	} else if !w.ours && string(details) != "null" {
		w.lose("details of results of tools")
	}
	return []fileLine{{
		"user", rawjson.Object("role", []byte(`"user"`), "content", rawjson.List([][]byte{block})),
		flags,
	}}
}

// assistant returns the line of a message of the model.
func (w *writer) assistant(it sourceEntry, raw, content []byte) []fileLine {
	said := writtenAnswer{signed: bySigner(raw)}
	if rawjson.IsString(content) {
		said.put(w.block(content))
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		w.sayBlock(it, &said, m.Val)
	}
	failed := string(rawjson.Field(raw, "stopReason")) == `"error"`
	silent := len(said.list) == 0
	if fault := rawjson.Field(raw, "errorMessage"); rawjson.IsString(fault) && len(fault) > 2 {
		switch {
		case silent:
			said.put(w.block(fault))
		case failed && it.more == nil && !strings.Contains(string(rawjson.List(said.list)),
			string(fault[1:len(fault)-1])):
			w.lose("errors of messages that have content too")
		}
	}
	if len(said.list) == 0 {
		return nil
	}
	made, model := w.provider(it, raw, &said)
	var flags []any
	partial := it.more == nil && !silent && said.calls == nil
	switch aborted := it.more == nil && string(rawjson.Field(raw, "stopReason")) == `"aborted"`; {
	case partial && aborted:
		flags = []any{"isAbortedMidStream", []byte("true")}
	case aborted && !silent:
		w.lose(lostStop)
	case partial && failed && string(rawjson.Field(made, "stop_reason")) == "null":
		w.lose("answers that failed after some words: written as errors, which Claude Code does not send to the model")
		fallthrough
	case silent: // likewise
		failed = failed || string(model) != synthetic
		made, model = rawjson.WithField(made, "model", []byte(synthetic)), nil
	}
	if failed && rawjson.Field(it.more, "isApiErrorMessage") == nil {
		flags = []any{"isApiErrorMessage", []byte("true")}
	}
	w.pass(pathStep{calls: said.calls, model: model})
	return []fileLine{{"assistant", made, flags}}
}

// writtenAnswer collects the content of a message of the model.
type writtenAnswer struct {
	list   [][]byte
	calls  []writtenCall
	signed bool // its thinking is Anthropic's
}

func (a *writtenAnswer) put(block []byte) {
	if block != nil {
		a.list = append(a.list, block)
	}
}

func (w *writer) sayBlock(it sourceEntry, said *writtenAnswer, block []byte) {
	typ := rawjson.Text(rawjson.Field(block, "type"))
	wrapped := typ == wrappedBlockType
	if wrapped {
		block = rawjson.Field(block, "block")
		typ = rawjson.Text(rawjson.Field(block, "type"))
	}
	switch typ {
	case "thinking", "redacted_thinking", "redactedThinking":
		said.put(w.thinking(block, said.signed || wrapped))
	case "toolCall", "tool_use":
		said.put(w.call(it, said, block))
	default:
		said.put(w.block(block))
	}
}

// provider makes the provider's message object, with the model that the message names or the one in force.
func (w *writer) provider(it sourceEntry, message []byte, said *writtenAnswer) (out, model []byte) {
	id := rawjson.Field(message, "responseId")
	if own := rawjson.Field(message, "id"); !rawjson.IsString(id) && rawjson.IsString(own) {
		id = own
	}
	if !rawjson.IsString(id) || len(id) == 2 || w.sent[shortKey(rawjson.Text(id))] {
		id = rawjson.AppendString(nil, "msg_"+strings.ReplaceAll(w.place(it.ID), "-", ""))
	}
	w.sent[shortKey(rawjson.Text(id))] = true
	for _, name := range []string{"responseModel", "model"} {
		if v := rawjson.Field(message, name); model == nil && rawjson.IsString(v) && len(v) > 2 &&
			string(v) != `"unknown"` {
			model = v
		}
	}
	if model == nil {
		model = w.model()
	}
	if model == nil {
		model = []byte(`"unknown"`)
	}
	sequence := rawjson.OrNull(rawjson.Field(message, "stop_sequence"))
	out = rawjson.Object("id", id, "type", []byte(`"message"`), "role", []byte(`"assistant"`), "model", model,
		"content", rawjson.List(said.list),
		"stop_reason", w.stop(it.message, said.signed, said.calls != nil), "stop_sequence", sequence, "usage",
		w.usage(it.message))
	for _, name := range []string{"container", "context_management", "stop_details"} {
		if v := rawjson.OrNull(rawjson.Field(message, name)); string(v) != "null" {
			out = rawjson.WithField(out, name, v)
		}
	}
	for m := rawjson.Walk(rawjson.Field(it.more, "message")); m.Closing == '}' && m.Next(); {
		out = rawjson.WithField(out, string(m.Key), m.Val)
	}
	return out, model
}
