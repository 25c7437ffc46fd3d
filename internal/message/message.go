// Package message reads messages of models in the formats of pi, Anthropic, OpenAI (chat completions and responses),
// Gemini and Bedrock.
//
// All knowledge of these formats is here. Scan reads a message without allocating its blocks; Decode returns all of
// them. Usage, stop reasons, models and thinking have functions of their own. The viewer has the same table in
// web/model/message.ts; testdata/vectors.json, which "go test -run Vectors -update" writes, keeps the two equal.
//
// The package is pure, has a bound on depth (I15), and never fails: a field of another type than expected counts as
// absent.
package message

import (
	"bytes"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Speaker is the author of a message, whatever its provider calls the role.
type Speaker uint8

// The speakers.
const (
	Other     Speaker = iota // a role that is not in the table
	User                     // a person, or anything else that a provider stores under that role
	Assistant                // a model
	Tool                     // the whole message is the result of a call
	System                   // instructions
	Program                  // a message that an extension or a hook wrote
	Summary                  // of a compaction, or of a branch
)

// Message is a message of any provider. Values are bytes of Raw.
type Message struct {
	Raw     []byte
	Role    string // as written; "" = none, as in OpenAI's items
	Type    string // as written; "" = none
	Speaker Speaker
	Failed  bool    // the answer failed: an error, a refusal, or it was aborted; of a tool, the call failed
	Error   []byte  // a string that explains the failure; nil = none
	aside   bool    // written by omp in the user's name
	Blocks  []Block // not set by Scan
	stop    []byte
}

// Decode returns a message with its blocks. Results within the content of a tool message become blocks of the message.
func Decode(raw []byte) Message {
	var c Cursor
	m := Scan(raw, &c)
	for c.Next() {
		m.Blocks = append(m.Blocks, c.Block)
	}
	if m.Speaker == User && m.Inserted(m.Blocks) {
		m.Speaker = Program
	}
	if m.Speaker != Tool || len(m.Blocks) != 1 {
		return m
	}
	own := &m.Blocks[0]
	var results []Block
	var rest [][]byte
	named := own.ID == nil
	for c := own.Content(); c.Next(); {
		if c.Block.Kind != Result {
			rest = append(rest, c.Block.Raw)
			continue
		}
		results = append(results, c.Block)
		named = named || bytes.Equal(c.Block.ID, own.ID)
	}
	switch {
	case results == nil:
	case rest == nil && named:
		m.Blocks = results
	default:
		own.Body = rawjson.List(rest)
		m.Blocks = append(m.Blocks, results...)
	}
	return m
}

// Inserted reports whether a program wrote a whole user message. blocks are those of the message.
func (m *Message) Inserted(blocks []Block) bool {
	inserted := false
	for i := range blocks {
		switch b := &blocks[i]; {
		case b.Inserted():
			inserted = true
		case b.Kind != Text || len(b.Text) > 2:
			return m.aside
		}
	}
	return inserted || m.aside
}

// fields are the fields of a message that determine its blocks.
type fields struct {
	role, typ, text, refusal, summary, calls, call []byte
	id, name, output, command, exit                []byte
	content                                        [len(contents)][]byte
	asides                                         [len(asides)][]byte
}

// contents are the fields that hold the blocks of a message. The first that is not null counts.
var contents = [...]string{"content", "parts", "contents"}

// Contents returns the names of the fields that hold the blocks of a message.
func Contents() []string { return contents[:] }

// Scan returns a message without its blocks, and sets a new cursor to them.
func Scan(raw []byte, c *Cursor) (m Message) {
	m.Raw = raw
	var f fields
	f.read(&m)
	m.Role, m.Type = Word(f.role), Word(f.typ)
	content := f.text
	for i := len(f.content) - 1; i >= 0; i-- {
		if val := f.content[i]; val != nil {
			content = val
		}
	}
	item := isItem(m.Role, m.Type, content)
	if m.Speaker = speakerOf(m.Role, f.content[1] != nil); item {
		m.Speaker = itemSpeaker(m.Type)
	}
	m.Failed = m.Failed || m.Speaker == Assistant && failedStop(m.stop)
	switch {
	case item:
		c.add(raw, "")
		return m
	case m.Speaker == Tool:
		if content == nil {
			content = f.output
		}
		c.begin(Block{Kind: Result, Raw: raw, Inner: raw, ID: f.id, Name: f.name, Body: content, Failed: m.Failed})
		return m
	case m.Role == "bashExecution", m.Role == "pythonExecution":
		failed := rawjson.IsNumber(f.exit) && string(f.exit) != "0"
		c.begin(Block{Kind: Command, Raw: raw, Text: f.command, Body: str(f.output), Failed: failed})
		return m
	case m.Speaker == Assistant:
		if text, field := f.aside(); text != nil {
			c.begin(Block{Kind: Thinking, Raw: text, Type: field, Text: text})
		}
	}
	c.add(content, "")
	if m.Speaker == Summary {
		c.add(f.summary, "")
	}
	c.add(f.refusal, "refusal")
	c.add(f.calls, "")
	c.add(f.call, "function_call")
	return m
}

// read reads the fields of a message.
func (f *fields) read(m *Message) {
	for w := rawjson.Walk(m.Raw); w.Closing == '}' && w.Next(); {
		switch string(w.Key) {
		case "role":
			f.role = w.Val
		case "type":
			f.typ = w.Val
		case "content":
			f.content[0] = blocks(w.Val)
		case "parts":
			f.content[1] = blocks(w.Val)
		case "contents":
			f.content[2] = blocks(w.Val)
		case "text":
			f.text = str(w.Val)
		case "refusal":
			f.refusal = str(w.Val)
		case "summary":
			f.summary = str(w.Val)
		case "tool_calls":
			f.calls = list(w.Val)
		case "function_call":
			f.call = object(w.Val)
		case "toolCallId", "tool_call_id", "call_id":
			choose(&f.id, w.Val)
		case "toolName", "tool_name", "name":
			choose(&f.name, w.Val)
		case "command", "code":
			choose(&f.command, w.Val)
		case "output":
			f.output = w.Val
		case "exitCode":
			f.exit = w.Val
		case "reasoning_content":
			f.asides[0] = w.Val
		case "reasoning":
			f.asides[1] = w.Val
		case "reasoning_text":
			f.asides[2] = w.Val
		case "isError", "is_error":
			m.Failed = rawjson.IsTrue(w.Val)
		case "stopReason", "stop_reason", "finish_reason", "finishReason":
			if !IsStop(m.stop) || IsStop(w.Val) {
				choose(&m.stop, w.Val)
			}
		case "errorMessage":
			m.Error = str(w.Val)
		case "synthetic":
			m.aside = rawjson.IsTrue(w.Val)
		}
	}
}

// speakerOf returns the author of a message by its role. parts: it has Gemini's parts, where the role "function" is a
// user's.
func speakerOf(role string, parts bool) Speaker {
	switch role {
	case "user", "human", "bashExecution", "pythonExecution":
		return User
	case "assistant", "model", "ai":
		return Assistant
	case "function":
		if parts {
			return User
		}
		return Tool
	case "toolResult", "tool":
		return Tool
	case "system", "developer":
		return System
	case "custom", "hookMessage":
		return Program
	case "compactionSummary", "branchSummary":
		return Summary
	}
	return Other
}

// isItem reports whether a message is an OpenAI item that is one block. Such items have a type instead of a role.
func isItem(role, typ string, content []byte) bool {
	return role == "" && typ != "" && typ != "message" && (content == nil || kindOf(typ) != Unread)
}

// itemSpeaker returns the author of an item.
func itemSpeaker(typ string) Speaker {
	switch kind := kindOf(typ); {
	case kind == Result:
		return Tool
	case kind == Text && typ != "output_text" && typ != "refusal", kind == Attached:
		return User
	}
	return Assistant // a tool that OpenAI runs has a type of its own
}

// Stopped returns the error of a failed answer, or its stop reason, a JSON string; nil = it did not fail.
func (m *Message) Stopped() []byte {
	switch {
	case !m.Failed || m.Speaker != Assistant:
		return nil
	case len(m.Error) > 2:
		return m.Error
	case failedStop(m.stop):
		return m.stop
	}
	return []byte(`"error"`)
}

// Calls reports whether a message calls tools.
func (m *Message) Calls() bool {
	return slices.ContainsFunc(m.Blocks, func(b Block) bool { return b.Kind == Call })
}

// Files returns the texts of the files that a user message of omp mentions, each with its path above it.
func Files(message []byte) (texts []string) {
	for w := rawjson.Walk(rawjson.Field(message, "files")); w.Closing == ']' && w.Next(); {
		path, content := rawjson.Field(w.Val, "path"), rawjson.Field(w.Val, "content")
		texts = append(texts, rawjson.Text(path)+"\n"+rawjson.Text(content))
	}
	return texts
}

// choose sets a field with several names to the last of its values that is a non-empty string.
func choose(field *[]byte, val []byte) {
	if rawjson.IsString(val) && (len(val) > 2 || *field == nil) {
		*field = val
	}
}

// typed returns a value that begins with one of two bytes; nil = it is of another type.
func typed(val []byte, a, b byte) []byte {
	if len(val) > 0 && (val[0] == a || val[0] == b) {
		return val
	}
	return nil
}

func str(val []byte) []byte    { return typed(val, '"', '"') }
func list(val []byte) []byte   { return typed(val, '[', '[') }
func object(val []byte) []byte { return typed(val, '{', '{') }
func blocks(val []byte) []byte { return typed(val, '[', '"') } // values that can hold blocks

// First returns the first of these fields of an object that is a string; nil = none is.
func First(object []byte, names ...string) []byte {
	for _, name := range names {
		if v := rawjson.Field(object, name); rawjson.IsString(v) {
			return v
		}
	}
	return nil
}

// Object returns the first of these fields of an object that is an object; nil = none is.
func Object(raw []byte, names ...string) []byte {
	for _, name := range names {
		if v := object(rawjson.Field(raw, name)); v != nil {
			return v
		}
	}
	return nil
}
