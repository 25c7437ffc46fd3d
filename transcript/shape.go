package transcript

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

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
	if s := rawjson.Text(f.stop); s == "error" || s == "aborted" {
		p.failed = true
	}
	if id := rawjson.Text(f.resultID); id != "" {
		p.results = append(p.results, id)
	}
	p.special(&f)
	return p
}

func readFields(message []byte) (p parts, f fields) {
	m := rawjson.Walk(message)
	for m.Closing == '}' && m.Next() {
		switch string(m.Key) {
		case "role":
			p.role = rawjson.Text(m.Val)
		case "type":
			f.typ = m.Val
		case "content", "parts":
			if f.content == nil || m.Val[0] != 'n' {
				f.content = m.Val
			}
		case "text":
			f.plain = m.Val
		case "refusal":
			p.texts = addText(p.texts, m.Val)
		case "summary":
			f.summary = m.Val
		case "tool_calls":
			f.toolCalls = m.Val
		case "function_call":
			f.legacyCall = m.Val
		case "toolCallId", "tool_call_id":
			f.resultID = m.Val
		case "call_id":
			f.callID = m.Val
		case "name":
			f.name = m.Val
		case "arguments", "input":
			f.args = m.Val
		case "isError":
			p.failed = p.failed || rawjson.IsTrue(m.Val)
		case "stopReason", "stop_reason":
			f.stop = m.Val
		case "errorMessage":
			p.errorText = m.Val
		case "command", "code":
			f.command = m.Val
		case "output":
			f.output = m.Val
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
		switch rawjson.Text(f.typ) {
		case "function_call", "custom_tool_call":
			p.role = "assistant"
			p.call(rawjson.Text(f.callID), rawjson.Text(f.name), f.args)
		case "function_call_output", "custom_tool_call_output":
			p.role = "tool"
			p.result(rawjson.Text(f.callID), f.output)
		}
	}
}

func (p *parts) toolCalls(list []byte) {
	m := rawjson.Walk(list)
	for m.Closing == ']' && m.Next() {
		p.block(m.Val, "function", false)
	}
}

// content reads a message's content: a string, or a list of blocks and strings.
func (p *parts) content(val []byte) {
	p.texts = addText(p.texts, val)
	m := rawjson.Walk(val)
	for m.Closing == ']' && m.Next() {
		if rawjson.IsString(m.Val) {
			p.texts = addText(p.texts, m.Val)
		} else {
			p.block(m.Val, "", false)
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
	m := rawjson.Walk(content)
	for m.Closing == ']' && m.Next() {
		p.resultTexts = addText(p.resultTexts, rawjson.Field(m.Val, "text"))
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
	m := rawjson.Walk(block)
	for m.Closing == '}' && m.Next() {
		switch string(m.Key) {
		case "type":
			f.typ = rawjson.Text(m.Val)
		case "text", "refusal":
			f.text = m.Val
		case "content":
			f.content = m.Val
		case "id", "toolUseId":
			f.id = m.Val
		case "name":
			f.name = m.Val
		case "arguments", "input", "args":
			f.args = m.Val
		case "tool_use_id":
			f.useID = m.Val
		case "thought":
			f.thought = rawjson.IsTrue(m.Val)
		case "is_error":
			f.failed = rawjson.IsTrue(m.Val)
		case "status":
			f.failed = f.failed || rawjson.Text(m.Val) == "error"
		case "function", "custom":
			f.inner = m.Val
		case "functionCall", "function_call":
			f.typ, f.inner = "function", m.Val
		case "toolUse":
			f.typ, f.inner = "tool_use", m.Val
		case "functionResponse", "function_response", "toolResult":
			f.typ, f.inner = "tool_result", m.Val
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
		p.inner(f.inner, typ, rawjson.Text(f.id))
	case typ == "text" && f.text == nil:
		p.texts = addText(p.texts, f.content)
	case typ == "text", typ == "input_text", typ == "output_text", typ == "refusal", typ == "" && !f.thought:
		p.texts = addText(p.texts, f.text)
	case typ == "toolCall", typ == "tool_call", typ == "function_call", typ == "function", strings.HasSuffix(typ, "tool_use"):
		p.call(rawjson.Text(f.id), rawjson.Text(f.name), f.args)
	case strings.HasSuffix(typ, "tool_result"):
		if f.useID == nil {
			f.useID = f.id
		}
		p.failed = p.failed || f.failed
		p.result(rawjson.Text(f.useID), f.content)
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
		if name := rawjson.Text(rawjson.Field(inner, "name")); name != "" {
			p.results = append(p.results, name)
		}
	}
	p.resultTexts = append(p.resultTexts, q.resultTexts...)
	p.failed = p.failed || q.failed
}
