package transcript

import "strings"

// parts are the parts of a message that mean something to us, still as JSON where they may be long.
type parts struct {
	role        string
	texts       [][]byte // string literals
	calls       []callPart
	results     []string
	resultTexts [][]byte // string literals inside results
	failed      bool     // stopped by an error, aborted, or a result that is an error
	errorText   []byte   // a string literal
}

type callPart struct {
	id, name string
	args     []byte // an object, or a string literal that holds one
}

// speech is what a person would read: the texts; of a message of nothing but results, theirs.
func (p *parts) speech() [][]byte {
	if len(p.texts) == 0 && len(p.calls) == 0 {
		return p.resultTexts
	}
	return p.texts
}

// onlyResults: the message says nothing itself, as when Anthropic's user hands in results of tools.
func (p *parts) onlyResults() bool {
	return len(p.results) > 0 && len(p.texts) == 0 && len(p.calls) == 0
}

func isString(val []byte) bool { return len(val) >= 2 && val[0] == '"' }
func isTrue(val []byte) bool   { return len(val) == 4 && val[0] == 't' }

func addText(dst [][]byte, val []byte) [][]byte {
	if len(val) > 2 && val[0] == '"' {
		return append(dst, val)
	}
	return dst
}

// fields are the fields of a message that are judged once all of them have been seen: their order means
// nothing.
type fields struct {
	typ, content, plain, toolCalls, legacyCall, stop, summary []byte
	command, output, resultID, callID, name, args             []byte
}

// inspect reads a message of any known shape.
func inspect(message []byte) parts {
	p, f := readFields(message)
	p.content(f.content)
	if f.content == nil {
		p.texts = addText(p.texts, f.plain)
	}
	p.toolCalls(f.toolCalls)
	if f.legacyCall != nil {
		p.block(f.legacyCall, "function_call", false)
	}
	if s := text(f.stop); s == "error" || s == "aborted" {
		p.failed = true
	}
	if id := text(f.resultID); id != "" {
		p.results = append(p.results, id)
	}
	p.special(&f)
	return p
}

func readFields(message []byte) (p parts, f fields) {
	m := walk(message)
	for m.closing == '}' && m.next() {
		switch string(m.key) {
		case "role":
			p.role = text(m.val)
		case "type":
			f.typ = m.val
		case "content", "parts":
			if f.content == nil || m.val[0] != 'n' {
				f.content = m.val
			}
		case "text":
			f.plain = m.val
		case "refusal":
			p.texts = addText(p.texts, m.val)
		case "summary":
			f.summary = m.val
		case "tool_calls":
			f.toolCalls = m.val
		case "function_call":
			f.legacyCall = m.val
		case "toolCallId", "tool_call_id":
			f.resultID = m.val
		case "call_id":
			f.callID = m.val
		case "name":
			f.name = m.val
		case "arguments", "input":
			f.args = m.val
		case "isError":
			p.failed = p.failed || isTrue(m.val)
		case "stopReason", "stop_reason":
			f.stop = m.val
		case "errorMessage":
			p.errorText = m.val
		case "command", "code":
			f.command = m.val
		case "output":
			f.output = m.val
		}
	}
	return p, f
}

// special reads what is told by the role or the type: pi's commands and summaries, OpenAI's response items.
func (p *parts) special(f *fields) {
	switch p.role {
	case "bashExecution", "pythonExecution":
		p.texts = addText(addText(p.texts, f.command), f.output)
	case "branchSummary", "compactionSummary":
		p.texts = addText(p.texts, f.summary)
	case "":
		switch text(f.typ) {
		case "function_call", "custom_tool_call":
			p.role = "assistant"
			p.call(text(f.callID), text(f.name), f.args)
		case "function_call_output", "custom_tool_call_output":
			p.role = "tool"
			p.result(text(f.callID), f.output)
		}
	}
}

func (p *parts) toolCalls(list []byte) {
	m := walk(list)
	for m.closing == ']' && m.next() {
		p.block(m.val, "function", false)
	}
}

// content reads a message's content: a string, or a list of blocks and strings.
func (p *parts) content(val []byte) {
	p.texts = addText(p.texts, val)
	m := walk(val)
	for m.closing == ']' && m.next() {
		if isString(m.val) {
			p.texts = addText(p.texts, m.val)
		} else {
			p.block(m.val, "", false)
		}
	}
}

func (p *parts) call(id, name string, args []byte) {
	if id == "" {
		id = name
	}
	if id != "" {
		p.calls = append(p.calls, callPart{id: id, name: name, args: args})
	}
}

// result notes one result and the text in it: a string, or blocks of text.
func (p *parts) result(id string, content []byte) {
	if id != "" {
		p.results = append(p.results, id)
	}
	p.resultTexts = addText(p.resultTexts, content)
	m := walk(content)
	for m.closing == ']' && m.next() {
		p.resultTexts = addText(p.resultTexts, field(m.val, "text"))
	}
}

// blockFields are the fields of one block.
type blockFields struct {
	typ                                         string
	text, content, id, name, args, useID, inner []byte
	thought, failed                             bool
}

func readBlock(block []byte, typ string) blockFields {
	f := blockFields{typ: typ}
	m := walk(block)
	for m.closing == '}' && m.next() {
		switch string(m.key) {
		case "type":
			f.typ = text(m.val)
		case "text", "refusal":
			f.text = m.val
		case "content":
			f.content = m.val
		case "id", "toolUseId":
			f.id = m.val
		case "name":
			f.name = m.val
		case "arguments", "input", "args":
			f.args = m.val
		case "tool_use_id":
			f.useID = m.val
		case "thought":
			f.thought = isTrue(m.val)
		case "is_error":
			f.failed = isTrue(m.val)
		case "status":
			f.failed = f.failed || text(m.val) == "error"
		case "function", "custom":
			f.inner = m.val
		case "functionCall", "function_call":
			f.typ, f.inner = "function", m.val
		case "toolUse":
			f.typ, f.inner = "tool_use", m.val
		case "functionResponse", "function_response", "toolResult":
			f.typ, f.inner = "tool_result", m.val
		}
	}
	return f
}

// block reads one block of a message's content; typ is what it is if it does not say so itself. What
// stands inside an inner object is read one level deep and no deeper, so the work stays linear (I15).
func (p *parts) block(block []byte, typ string, isInner bool) {
	f := readBlock(block, typ)
	typ = f.typ
	switch {
	case f.inner != nil && !isInner:
		p.inner(f.inner, typ, text(f.id))
	case typ == "text" && f.text == nil:
		p.texts = addText(p.texts, f.content)
	case typ == "text", typ == "input_text", typ == "output_text", typ == "refusal", typ == "" && !f.thought:
		p.texts = addText(p.texts, f.text)
	case typ == "toolCall", typ == "tool_call", typ == "function_call", typ == "function", strings.HasSuffix(typ, "tool_use"):
		p.call(text(f.id), text(f.name), f.args)
	case strings.HasSuffix(typ, "tool_result"):
		if f.useID == nil {
			f.useID = f.id
		}
		p.failed = p.failed || f.failed
		p.result(text(f.useID), f.content)
	}
}

// inner reads a call or a result that stands one level deeper: OpenAI's function, Gemini's functionCall,
// Bedrock's toolUse. The id may stand on either level.
func (p *parts) inner(inner []byte, typ, id string) {
	var q parts
	if typ == "custom" {
		typ = "function"
	}
	q.block(inner, typ, true)
	switch {
	case len(q.calls) == 1:
		c := q.calls[0]
		if id != "" {
			c.id = id
		}
		p.calls = append(p.calls, c)
	case len(q.results) == 1:
		p.results = append(p.results, q.results[0])
	case typ == "tool_result": // Gemini names the function only
		if name := text(field(inner, "name")); name != "" {
			p.results = append(p.results, name)
		}
	}
	p.resultTexts = append(p.resultTexts, q.resultTexts...)
	p.failed = p.failed || q.failed
}
