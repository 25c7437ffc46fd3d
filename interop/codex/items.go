package codex

import (
	"bytes"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// said adds a text block for each part of an assistant message.
func (w *pieceMaker) said(content, id []byte) {
	put := func(text []byte) {
		w.comma()
		w.room = append(append(w.room, `{"type":"text","text":`...), text...)
		if rawjson.IsString(id) && len(id) > 2 {
			w.room = append(append(w.room, `,"textSignature":`...), id...)
		}
		w.room = append(w.room, '}')
	}
	if rawjson.IsString(content) {
		put(content)
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		text := rawjson.Field(m.Val, "text")
		if !rawjson.IsString(text) {
			text = rawjson.Field(m.Val, "refusal")
		}
		switch {
		case rawjson.IsString(text):
			put(text)
		case m.Val[0] == '{':
			w.comma()
			w.room = append(w.room, m.Val...)
		}
	}
}

func (w *pieceMaker) comma() {
	if len(w.room) > w.begun {
		w.room = append(w.room, ',')
	}
}

// reasoning makes a thinking block. The whole item is the block's signature, as in pi's files for this provider, so
// that it can be sent again.
func (w *pieceMaker) reasoning(p *rolloutPiece) {
	thoughts := 0
	w.spare = w.spare[:0]
	for i, parts := range [][]byte{p.Fields.summary, p.Fields.content} {
		for m := rawjson.Walk(parts); m.Closing == ']' && m.Next(); {
			text := rawjson.Field(m.Val, "text")
			w.hash(text)
			if i > 0 && thoughts > 0 {
				continue
			}
			if thoughts++; thoughts > 1 {
				w.spare = append(w.spare, "\n\n"...)
			}
			w.spare = rawjson.AppendText(w.spare, text)
		}
	}
	w.room = rawjson.AppendString(append(w.room, `{"type":"thinking","thinking":`...), w.spare)
	w.room = append(rawjson.AppendString(append(w.room, `,"thinkingSignature":`...), p.Payload), '}')
	w.end(p, actAnswer)
}

// call makes a block of a tool call. An item without an ID or a name is no call.
func (w *pieceMaker) call(p *rolloutPiece) {
	f := &p.Fields
	if p.CallID = rawjson.Text(f.CallID); p.CallID == "" {
		p.CallID = rawjson.Text(f.id)
	}
	args := f.arguments
	p.Name = nameOf(f.name)
	switch p.Kind {
	case "custom_tool_call":
		args = rawjson.Object("input", f.input)
	case "local_shell_call":
		p.Name, args = "local_shell", f.action
	case "tool_search_call":
		p.Name = "tool_search"
	}
	if p.CallID == "" || p.Name == "" {
		return
	}
	p.Called = true
	w.room = rawjson.AppendString(append(w.room, `{"type":"toolCall","id":`...), p.CallID)
	w.room = rawjson.AppendString(append(w.room, `,"name":`...), p.Name)
	w.room = append(w.arguments(append(w.room, `,"arguments":`...), args), '}')
	w.end(p, actAnswer)
}

// arguments appends the arguments of a tool call as an object; Codex stores them as a string.
func (w *pieceMaker) arguments(dst, val []byte) []byte {
	if len(val) == 0 || string(val) == "null" {
		return append(dst, "{}"...)
	}
	if val[0] == '{' {
		return append(dst, val...)
	}
	w.spare = rawjson.AppendText(w.spare[:0], val)
	inner := bytes.TrimSpace(w.spare)
	const depth = rawjson.MaxDepth / 2
	if end, err := rawjson.ValueEnd(inner, 0, depth); err == nil && end == len(inner) && inner[0] == '{' &&
		bytes.IndexByte(inner, '\n') < 0 {
		return append(dst, inner...)
	}
	return append(append(append(dst, `{"input":`...), val...), '}')
}

// output makes the content of a tool result and records whether the call failed.
func (w *pieceMaker) output(p *rolloutPiece) {
	p.CallID = rawjson.Text(p.Fields.CallID)
	val := p.Fields.output
	if len(val) > 0 && val[0] == '{' {
		p.Failed = string(rawjson.Field(val, "success")) == "false"
		if c := rawjson.Field(val, "content"); c != nil {
			val = c
		}
	}
	switch {
	case len(val) > 0 && val[0] == '[':
		if m := rawjson.Walk(val); m.Next() {
			p.Failed = p.Failed || reportsFailure(rawjson.Field(m.Val, "text"))
		}
		w.room = appendContent(w.room, val)
	case rawjson.IsString(val):
		p.Failed = p.Failed || reportsFailure(val) || w.exitedBadly(val)
		w.room = append(append(append(w.room, `[{"type":"text","text":`...), val...), "}]"...)
	case p.Kind == "tool_search_output":
		w.room = append(rawjson.AppendString(append(w.room, `[{"type":"text","text":`...),
			rawjson.OrNull(p.Fields.tools)), "}]"...)
	default:
		w.room = append(w.room, "[]"...)
	}
	w.end(p, actOutput)
}

// exitedBadly reads the exit code that older versions stored in the output.
func (w *pieceMaker) exitedBadly(val []byte) bool {
	if !bytes.HasPrefix(val, []byte(`"{\"output\"`)) {
		return false
	}
	w.spare = rawjson.AppendText(w.spare[:0], val)
	code := rawjson.Field(rawjson.Field(w.spare, "metadata"), "exit_code")
	return code != nil && string(code) != "0" && rawjson.IsNumber(code)
}

// maxReport bounds the head of an output that reports the end of a call, in bytes.
const maxReport = 512

// failures are the prefixes of outputs of calls that did not complete.
var failures = []string{
	"Script failed", "apply_patch verification failed", "exec_command failed", "write_stdin failed",
	"exec command rejected by user", "patch rejected by user", "aborted by user", "failed to parse function arguments",
	"unsupported call: ", "tool call error: ", "execution error: ", "failed in sandbox",
}

// reportsFailure reads the head of a command's output, up to the line "Output:". text is a JSON string.
func reportsFailure(text []byte) bool {
	if len(text) < 2 || text[0] != '"' {
		return false
	}
	head := string(text[1:min(len(text)-1, maxReport)])
	if slices.ContainsFunc(failures, func(begin string) bool { return strings.HasPrefix(head, begin) }) {
		return true
	}
	if !strings.HasPrefix(head, "Exit code: ") && !strings.HasPrefix(head, "Chunk ID: ") &&
		!strings.HasPrefix(head, "Wall time: ") {
		return false
	}
	for line := range strings.SplitSeq(head, `\n`) {
		for _, name := range [...]string{"Exit code: ", "Process exited with code "} {
			if code, ok := strings.CutPrefix(line, name); ok {
				return code != "0"
			}
		}
		switch line {
		case "aborted by user":
			return true
		case "Output:":
			return false
		}
	}
	return false
}
