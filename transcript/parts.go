package transcript

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// messageParts are the parts of a message that mean something to us, still as JSON where they may be long.
type messageParts struct {
	Role        string
	Texts       [][]byte // string literals
	Calls       []callParts
	Results     []string
	ResultTexts [][]byte // string literals inside results
	Failed      bool     // stopped by an error, aborted, or a result that is an error
	ErrorText   []byte   // a string literal
}

// callParts is one call of a tool.
type callParts struct {
	ID, Name string
	Args     []byte // an object, or a string literal that holds one
}

// Speech is what a person would read: the texts; of a message of nothing but results, theirs.
func (p *messageParts) Speech() [][]byte {
	if len(p.Texts) == 0 && len(p.Calls) == 0 {
		return p.ResultTexts
	}
	return p.Texts
}

// OnlyResults reports that the message says nothing itself, as when Anthropic's user hands in results of tools.
func (p *messageParts) OnlyResults() bool {
	return len(p.Results) > 0 && len(p.Texts) == 0 && len(p.Calls) == 0
}

func addText(dst [][]byte, val []byte) [][]byte {
	if len(val) > 2 && val[0] == '"' {
		return append(dst, val)
	}
	return dst
}

// roleOf reads the role of a message; it spares an allocation for those that make up nearly all of them.
func roleOf(val []byte) string {
	switch string(val) {
	case `"user"`:
		return "user"
	case `"assistant"`:
		return "assistant"
	case `"toolResult"`:
		return "toolResult"
	case `"tool"`:
		return "tool"
	case `"system"`:
		return "system"
	}
	return rawjson.Text(val)
}

// blockType is roleOf for the type of a block.
func blockType(val []byte) string {
	switch string(val) {
	case `"text"`:
		return "text"
	case `"thinking"`:
		return "thinking"
	case `"toolCall"`:
		return "toolCall"
	case `"tool_use"`:
		return "tool_use"
	case `"tool_result"`:
		return "tool_result"
	}
	return rawjson.Text(val)
}

// fields are the fields of a message that are judged once all of them have been seen: their order means
// nothing.
type fields struct {
	typ, content, plain, toolCalls, legacyCall, stop, summary []byte
	command, output, resultID, callID, name, args             []byte
}

// readParts reads a message of any known shape.
func readParts(message []byte) messageParts {
	p, f := readFields(message)
	p.AddContent(f.content)
	if f.content == nil {
		p.Texts = addText(p.Texts, f.plain)
	}
	p.toolCalls(f.toolCalls)
	if f.legacyCall != nil {
		p.block(f.legacyCall, "function_call", false)
	}
	if s := rawjson.Text(f.stop); s == "error" || s == "aborted" {
		p.Failed = true
	}
	if id := rawjson.Text(f.resultID); id != "" {
		p.Results = append(p.Results, id)
	}
	p.special(&f)
	return p
}

func readFields(message []byte) (p messageParts, f fields) {
	m := rawjson.Walk(message)
	for m.Closing == '}' && m.Next() {
		switch string(m.Key) {
		case "role":
			p.Role = roleOf(m.Val)
		case "type":
			f.typ = m.Val
		case "content", "parts":
			if f.content == nil || m.Val[0] != 'n' {
				f.content = m.Val
			}
		case "text":
			f.plain = m.Val
		case "refusal":
			p.Texts = addText(p.Texts, m.Val)
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
			p.Failed = p.Failed || rawjson.IsTrue(m.Val)
		case "stopReason", "stop_reason":
			f.stop = m.Val
		case "errorMessage":
			p.ErrorText = m.Val
		case "command", "code":
			f.command = m.Val
		case "output":
			f.output = m.Val
		}
	}
	return p, f
}

// special reads what differs by the role or the type: pi's commands and summaries, OpenAI's response items.
func (p *messageParts) special(f *fields) {
	switch p.Role {
	case "bashExecution", "pythonExecution":
		p.Texts = addText(addText(p.Texts, f.command), f.output)
	case "branchSummary", "compactionSummary":
		p.Texts = addText(p.Texts, f.summary)
	case "":
		switch rawjson.Text(f.typ) {
		case "function_call", "custom_tool_call":
			p.Role = "assistant"
			p.call(rawjson.Text(f.callID), rawjson.Text(f.name), f.args)
		case "function_call_output", "custom_tool_call_output":
			p.Role = "tool"
			p.result(rawjson.Text(f.callID), f.output)
		}
	}
}

func (p *messageParts) toolCalls(list []byte) {
	m := rawjson.Walk(list)
	for m.Closing == ']' && m.Next() {
		p.block(m.Val, "function", false)
	}
}

// AddContent reads a message's content: a string, or a list of blocks and strings.
func (p *messageParts) AddContent(val []byte) {
	p.Texts = addText(p.Texts, val)
	m := rawjson.Walk(val)
	for m.Closing == ']' && m.Next() {
		if rawjson.IsString(m.Val) {
			p.Texts = addText(p.Texts, m.Val)
		} else {
			p.block(m.Val, "", false)
		}
	}
}

func (p *messageParts) call(id, name string, args []byte) {
	if id == "" {
		id = name
	}
	if id != "" {
		p.Calls = append(p.Calls, callParts{ID: id, Name: name, Args: args})
	}
}

// result notes one result and the text in it: a string, or blocks of text.
func (p *messageParts) result(id string, content []byte) {
	if id != "" {
		p.Results = append(p.Results, id)
	}
	p.ResultTexts = addText(p.ResultTexts, content)
	m := rawjson.Walk(content)
	for m.Closing == ']' && m.Next() {
		p.ResultTexts = addText(p.ResultTexts, rawjson.Field(m.Val, "text"))
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
			f.typ = blockType(m.Val)
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
// is inside an inner object is read one level deep and no deeper, so the work stays linear (I15).
func (p *messageParts) block(block []byte, typ string, isInner bool) {
	f := readBlock(block, typ)
	typ = f.typ
	switch {
	case f.inner != nil && !isInner:
		p.inner(f.inner, typ, rawjson.Text(f.id))
	case typ == "text" && f.text == nil:
		p.Texts = addText(p.Texts, f.content)
	case typ == "text", typ == "input_text", typ == "output_text", typ == "refusal", typ == "" && !f.thought:
		p.Texts = addText(p.Texts, f.text)
	case typ == "toolCall", typ == "tool_call", typ == "function_call", typ == "function",
		strings.HasSuffix(typ, "tool_use"):
		p.call(rawjson.Text(f.id), rawjson.Text(f.name), f.args)
	case strings.HasSuffix(typ, "tool_result"):
		if f.useID == nil {
			f.useID = f.id
		}
		p.Failed = p.Failed || f.failed
		p.result(rawjson.Text(f.useID), f.content)
	}
}

// inner reads a call or a result that is one level deeper: OpenAI's function, Gemini's functionCall,
// Bedrock's toolUse. The id may stand on either level.
func (p *messageParts) inner(inner []byte, typ, id string) {
	var q messageParts
	if typ == "custom" {
		typ = "function"
	}
	q.block(inner, typ, true)
	switch {
	case len(q.Calls) == 1:
		c := q.Calls[0]
		if id != "" {
			c.ID = id
		}
		p.Calls = append(p.Calls, c)
	case len(q.Results) == 1:
		p.Results = append(p.Results, q.Results[0])
	case typ == "tool_result": // Gemini names the function only
		if name := rawjson.Text(rawjson.Field(inner, "name")); name != "" {
			p.Results = append(p.Results, name)
		}
	}
	p.ResultTexts = append(p.ResultTexts, q.ResultTexts...)
	p.Failed = p.Failed || q.Failed
}
