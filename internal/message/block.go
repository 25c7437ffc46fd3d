package message

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Kind is the kind of a block.
type Kind uint8

// The kinds.
const (
	Unread   Kind = iota // a block that is not in the table
	Text                 // text
	Thinking             // a model's thinking: Block.Thought
	Call                 // a tool call
	Result               // the result of a call
	Attached             // an image or a document: Block.Media
	Command              // a command of the user, with its output
)

// Block is a part of a message. All byte slices but Type are JSON, and nil where there is no such value.
type Block struct {
	Kind   Kind
	Raw    []byte // as in the message: an object, or a string
	Type   string // as written; "" = none. Of thinking in a field of the message: the field's name
	Text   []byte // of Text and Command: a string, of Bedrock's JSON made from it; of Unread: its field text
	Inner  []byte // of Call and Result: the object that has the fields, Raw or a member of it
	ID     []byte // of Call: a string; of Result: that of the call
	Name   []byte // the tool's, a string; of Unread: its name
	Body   []byte // of Call: the arguments; of Result and Command: the output; of Unread: the field most like arguments
	Parts  []byte // of Result: more output, a list
	Failed bool   // of Result and Command
	Hosted bool   // of Call and Result: the provider ran the tool
}

// Word is rawjson.Text, without an allocation for the usual roles and types.
func Word(val []byte) string {
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

// kindOf returns the kind of a block type. The kind of a block without a type depends on its fields.
func kindOf(typ string) Kind {
	switch typ {
	case "text", "input_text", "output_text", "refusal":
		return Text
	case "thinking", "reasoning", "redactedThinking", "redacted_thinking":
		return Thinking
	case "toolCall", "tool_call", "function":
		return Call
	case "image", "image_url", "input_image", "document", "file", "input_file":
		return Attached
	}
	switch {
	case strings.HasSuffix(typ, "tool_use"), strings.HasSuffix(typ, "_call"):
		return Call
	case strings.HasSuffix(typ, "tool_result"), strings.HasSuffix(typ, "_output"), strings.HasSuffix(typ, "_response"):
		return Result
	}
	return Unread
}

// Cursor iterates over blocks:
//
//	for c.Next() { use c.Block }
type Cursor struct {
	Block Block
	ready bool // Block is already the first one
	list  rawjson.Members
	queue [4]source
	n, at int
}

// source is a text, a list of blocks and texts, or a block.
type source struct {
	val []byte
	typ string // of a text or block without a type
}

// Content returns a cursor over content: a text, or a list of blocks and texts.
func Content(val []byte) (c Cursor) {
	c.add(blocks(val), "")
	return c
}

// ContentText returns the texts of content, one below the other.
func ContentText(val []byte) string {
	var texts []string
	for c := Content(val); c.Next(); {
		if c.Block.Kind == Text && len(c.Block.Text) > 2 {
			texts = append(texts, rawjson.Text(c.Block.Text))
		}
	}
	return strings.Join(texts, "\n")
}

func (c *Cursor) add(val []byte, typ string) {
	if val != nil {
		c.queue[c.n] = source{val, typ}
		c.n++
	}
}

func (c *Cursor) begin(b Block) { c.Block, c.ready = b, true }

// Next moves to the next block; false: there is none.
func (c *Cursor) Next() bool {
	if c.ready {
		c.ready = false
		return true
	}
	for {
		if c.list.Closing == ']' && c.list.Next() {
			c.Block.read(c.list.Val, "")
			return true
		}
		if c.at == c.n {
			return false
		}
		s := &c.queue[c.at]
		c.at++
		if s.val[0] == '[' {
			c.list = rawjson.Walk(s.val)
		} else if len(s.val) > 2 {
			c.Block.read(s.val, s.typ)
			return true
		}
	}
}

// blockFields are the fields of a block, or of the object within it that holds a call or a result.
type blockFields struct {
	typ, text, content, json, id, callID, useID, name, args, output, parts []byte
	inner                                                                  []byte // a call or a result
	innerKind                                                              Kind
	thought, failed, media                                                 bool
}

// read reads a block. typ is its type if it has none itself.
func (b *Block) read(raw []byte, typ string) {
	*b = Block{Raw: raw, Type: typ}
	if raw[0] == '"' {
		b.Kind, b.Text = Text, raw
		return
	}
	var f blockFields
	f.read(raw)
	if f.typ != nil {
		b.Type = Word(f.typ)
	}
	switch kind := kindOf(b.Type); {
	case kind == Thinking:
		b.Kind = Thinking
	case f.innerKind == Thinking:
		b.Kind = Thinking
	case f.inner != nil: // one level deep at most (I15)
		b.Kind, b.Inner = f.innerKind, f.inner
		var in blockFields
		in.read(f.inner)
		b.tool(&f, &in)
	case b.Type == "" && f.thought:
		b.Kind = Thinking
	case (kind == Text || b.Type == "") && f.text != nil:
		b.Kind, b.Text = Text, f.text
	case (kind == Text || b.Type == "") && str(f.content) != nil:
		b.Kind, b.Text = Text, f.content
	case b.Type == "" && f.json != nil: // in results of Bedrock
		b.Kind, b.Text = Text, rawjson.AppendString(nil, f.json)
	case kind == Call, kind == Result:
		b.Kind, b.Inner = kind, raw
		b.tool(&f, &f)
	case kind == Attached, f.media:
		b.Kind = Attached
	default:
		b.Text, b.Name, b.Body = f.text, f.name, f.args
	}
}

func (f *blockFields) read(raw []byte) {
	for m := rawjson.Walk(raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
			f.typ = m.Val
		case "text", "refusal":
			choose(&f.text, m.Val)
		case "content":
			f.content = m.Val
		case "json":
			f.json = m.Val
		case "id", "toolUseId":
			choose(&f.id, m.Val)
		case "call_id":
			choose(&f.callID, m.Val)
		case "tool_use_id", "toolCallId", "tool_call_id":
			choose(&f.useID, m.Val)
		case "name", "toolName":
			choose(&f.name, m.Val)
		case "arguments", "input", "args", "action", "operation":
			if f.args == nil || m.Val[0] != 'n' {
				f.args = m.Val
			}
		case "output", "response":
			f.output = m.Val
		case "parts":
			f.parts = list(m.Val)
		case "thought":
			f.thought = rawjson.IsTrue(m.Val)
		case "is_error", "isError":
			f.failed = f.failed || rawjson.IsTrue(m.Val)
		case "status":
			f.failed = f.failed || string(m.Val) == `"error"`
		case "function", "custom", "functionCall", "function_call", "toolUse":
			f.within(Call, m.Val)
		case "functionResponse", "function_response", "toolResult":
			f.within(Result, m.Val)
		case "reasoningContent":
			f.within(Thinking, m.Val)
		case "inlineData", "inline_data", "fileData", "document", "image", "image_url":
			f.media = true
		}
	}
}

func (f *blockFields) within(kind Kind, val []byte) {
	if object(val) != nil {
		f.inner, f.innerKind = val, kind
	}
}

// tool reads a call or a result. The id may be in the block, or in the object within it.
func (b *Block) tool(outer, inner *blockFields) {
	b.Name = inner.name
	b.Hosted = strings.HasSuffix(b.Type, "_tool_use") || strings.HasSuffix(b.Type, "_tool_result")
	if b.Kind == Call {
		b.ID = nonEmpty(outer.callID, outer.id, inner.callID, inner.id)
		if b.Body = inner.args; strings.HasSuffix(b.Type, "_call") && outer.callID == nil && !callTypes[b.Type] {
			b.Kind = Unread // it contains its result, or the provider keeps it
		} else if b.Name == nil && strings.HasSuffix(b.Type, "_call") && !callTypes[b.Type] {
			b.Name = rawjson.AppendString(nil, strings.TrimSuffix(b.Type, "_call")) // a built-in tool of OpenAI
		}
		return
	}
	b.ID, b.Parts, b.Failed = nonEmpty(inner.useID, inner.callID, inner.id), inner.parts, inner.failed
	if b.Body = inner.content; b.Body == nil {
		b.Body = inner.output
	}
	if name, _ := onlyField(b.Body); string(name) == "error" {
		b.Failed = true
	}
}

// callTypes are the types of calls that may have no call_id. Other types that end in _call and have none are not calls
// that wait for a result.
var callTypes = map[string]bool{"tool_call": true, "function_call": true, "custom_tool_call": true}

// nonEmpty returns the first non-empty string; nil = none.
func nonEmpty(vals ...[]byte) []byte {
	for _, v := range vals {
		if len(v) > 2 {
			return v
		}
	}
	return nil
}

// Called returns the tool that a block names; "" = none. Some blocks of tools that the provider runs are Unread.
func (b *Block) Called() (name string) {
	if b.Kind == Call || b.Kind == Unread && b.Body != nil {
		name = rawjson.Text(b.Name)
	}
	return name
}

// ArgumentText returns the arguments of a call as text: the content of a string, else the JSON.
func (b *Block) ArgumentText() string {
	if rawjson.IsString(b.Body) {
		return rawjson.Text(b.Body)
	}
	return string(b.Body)
}

// Key returns the string by which a result names its call: the id, or else the tool's name; nil = neither exists.
func (b *Block) Key() []byte { return nonEmpty(b.ID, b.Name) }

// Content returns a cursor over the output of a result. An object counts as one text.
func (b *Block) Content() Cursor {
	body := b.Body
	if object(body) != nil {
		body = responseText(body)
	}
	c := Content(body)
	c.add(b.Parts, "")
	return c
}

// onlyField returns the field of an object that has exactly one; nil = val is no such object.
func onlyField(val []byte) (name, inner []byte) {
	n := 0
	for m := rawjson.Walk(val); m.Closing == '}' && n < 2 && m.Next(); n++ {
		name, inner = m.Key, m.Val
	}
	if n != 1 {
		return nil, nil
	}
	return name, inner
}

// responseText returns the response of a Gemini function, or another output object, as a string: the text of its only
// field output, result or error, else the whole object.
func responseText(val []byte) []byte {
	switch name, inner := onlyField(val); string(name) {
	case "output", "result", "error":
		val = inner
	}
	if rawjson.IsString(val) {
		return val
	}
	return rawjson.AppendString(nil, val)
}

// Arguments returns arguments as JSON: if a string contains one JSON value it returns that value.
func Arguments(val []byte) []byte {
	if !rawjson.IsString(val) {
		return val
	}
	inner := rawjson.AppendText(nil, val)
	const depth = rawjson.MaxDepth - 8 // it may be put into a message
	if end, err := rawjson.ValueEnd(inner, 0, depth); err != nil || rawjson.Space(inner, end) < len(inner) {
		return val
	}
	return inner
}
