// Package rollout reads the lines of a rollout and takes each apart, with no regard to what stands before it, on
// several goroutines at once: the pieces come in the order of the file.
//
// What is under way is bounded: at most 7 batches, each of up to 1,024 objects in 512 KiB and one more of that
// size, and one of them all holds a line that is longer (at most 64 MiB). What is made of a line is some
// bytes larger than the line, and at most six times as large (a thought of which each byte has to be escaped).
package rollout

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Form is how a line is written.
type Form uint8

// The forms.
const (
	Unknown  Form = iota
	Envelope      // {timestamp, type, payload}
	Head          // before there were envelopes: the session's id and time
	Bare          // before there were envelopes: an item
	State         // likewise: a note that says nothing
)

// Line is one line of a rollout, each value where it lies.
type Line struct {
	Form                          Form
	Type, Stamp, Payload, Ordinal []byte // of a bare item the payload is the line
	Kind                          string // type of the payload
	Fields                        Fields // of the payload
}

// Fields are the values of a payload that somebody asks for, found in one walk.
type Fields struct {
	CallID, Model, Effort, Turns                  []byte
	id, role, content, message, text, info        []byte
	name, arguments, input, action, output, tools []byte
	summary                                       []byte
}

// isType tells the types of envelopes.
func isType(typ []byte) bool {
	switch string(typ) {
	case `"session_meta"`, `"response_item"`, `"event_msg"`, `"turn_context"`, `"compacted"`, `"world_state"`, `"token_usage_record"`,
		`"inter_agent_communication"`, `"inter_agent_communication_metadata"`, `"retained_context"`, `"security_risk_score"`, `"realtime_item"`:
		return true
	}
	return false
}

// isItem tells the types of items that stood without an envelope.
func isItem(kind string) bool {
	switch kind {
	case "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
		"local_shell_call", "local_shell_call_output", "web_search_call":
		return true
	}
	return false
}

// ReadLine tells what an object of a file is, as far as its beginning tells that is cut off.
func ReadLine(object []byte) Line {
	l := Line{}
	var id, role, content, message, record, instructions, git []byte
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
			l.Type = m.Val
		case "timestamp":
			l.Stamp = m.Val
		case "payload":
			l.Payload = m.Val
		case "ordinal":
			l.Ordinal = m.Val
		case "id":
			id = m.Val
		case "role":
			role = m.Val
		case "content":
			content = m.Val
		case "message":
			message = m.Val
		case "record_type":
			record = m.Val
		case "instructions":
			instructions = m.Val
		case "git":
			git = m.Val
		}
	}
	typ := textOf(l.Type)
	switch {
	case bytes.HasPrefix(l.Payload, []byte("{")) && typ != "":
		if l.Kind = l.Fields.read(l.Payload); isType(l.Type) {
			l.Form = Envelope
		}
	case record != nil:
		l.Form = State
	case typ == "" && rawjson.IsString(id) && rawjson.IsString(l.Stamp) && (instructions != nil || git != nil):
		l.Form, l.Payload = Head, object
	case isItem(typ) && message == nil && (typ != "message" || rawjson.IsString(role) && content != nil):
		l.Form, l.Payload, l.Type = Bare, object, []byte(`"response_item"`)
		l.Kind = l.Fields.read(object)
	}
	return l
}

// read takes a payload apart and gives its type.
func (f *Fields) read(payload []byte) (kind string) {
	var typ []byte
	for m := rawjson.Walk(payload); m.Closing == '}' && m.Next(); {
		to := f.place(m.Key)
		switch {
		case to != nil:
			*to = m.Val
		case string(m.Key) == "type":
			typ = m.Val
		}
	}
	return textOf(typ)
}

func (f *Fields) place(key []byte) *[]byte {
	switch string(key) {
	case "id":
		return &f.id
	case "role":
		return &f.role
	case "content":
		return &f.content
	case "message":
		return &f.message
	case "text":
		return &f.text
	case "info":
		return &f.info
	case "call_id":
		return &f.CallID
	case "name":
		return &f.name
	case "arguments":
		return &f.arguments
	case "input":
		return &f.input
	case "action":
		return &f.action
	case "output":
		return &f.output
	case "tools":
		return &f.tools
	case "summary":
		return &f.summary
	case "model":
		return &f.Model
	case "effort":
		return &f.Effort
	case "num_turns":
		return &f.Turns
	}
	return nil
}

// common are the names that most lines have: found without making a text of each.
var common = func() map[string]string {
	m := map[string]string{}
	for _, name := range []string{
		"session_meta", "response_item", "event_msg", "turn_context", "compacted",
		"message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output",
		"user_message", "agent_message", "agent_reasoning", "token_count", "task_started", "task_complete",
		"user", "assistant", "developer",
	} {
		m[`"`+name+`"`] = name
	}
	return m
}()

func textOf(val []byte) string {
	if s, ok := common[string(val)]; ok {
		return s
	}
	return rawjson.Text(val)
}
