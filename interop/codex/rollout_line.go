package codex

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// lineForm is the syntax of a line.
type lineForm uint8

// The forms.
const (
	formUnknown  lineForm = iota
	formEnvelope          // {timestamp, type, payload}
	formHead              // without an envelope: the session's ID and time
	formBare              // without an envelope: an item
	formState             // without an envelope: an empty record
)

// rolloutLine is one line of a rollout. The values are slices of the line.
type rolloutLine struct {
	Form                          lineForm
	Type, Stamp, Payload, Ordinal []byte        // the payload of a bare item is the line
	Kind                          string        // type of the payload
	Fields                        payloadFields // of the payload
}

// payloadFields are the fields of a payload that the reader uses, found in one pass.
type payloadFields struct {
	CallID, Model, Effort, Turns                  []byte
	id, role, content, message, text, info        []byte
	name, arguments, input, action, output, tools []byte
	summary                                       []byte
}

// isEnvelopeType reports whether typ is the type of an envelope.
func isEnvelopeType(typ []byte) bool {
	switch string(typ) {
	case `"session_meta"`, `"response_item"`, `"event_msg"`, `"turn_context"`, `"compacted"`, `"world_state"`,
		`"token_usage_record"`,
		`"inter_agent_communication"`, `"inter_agent_communication_metadata"`, `"retained_context"`,
		`"security_risk_score"`, `"realtime_item"`:
		return true
	}
	return false
}

// isBareItem reports whether kind is the type of an item without an envelope.
func isBareItem(kind string) bool {
	switch kind {
	case "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
		"custom_tool_call_output",
		"local_shell_call", "local_shell_call_output", "web_search_call":
		return true
	}
	return false
}

// readRolloutLine classifies an object. Of a truncated line it classifies the beginning.
func readRolloutLine(object []byte) rolloutLine {
	l := rolloutLine{}
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
	typ := nameOf(l.Type)
	switch {
	case bytes.HasPrefix(l.Payload, []byte("{")) && typ != "":
		if l.Kind = l.Fields.read(l.Payload); isEnvelopeType(l.Type) {
			l.Form = formEnvelope
		}
	case record != nil:
		l.Form = formState
	case typ == "" && rawjson.IsString(id) && rawjson.IsString(l.Stamp) && (instructions != nil || git != nil):
		l.Form, l.Payload = formHead, object
	case isBareItem(typ) && message == nil && (typ != "message" || rawjson.IsString(role) && content != nil):
		l.Form, l.Payload, l.Type = formBare, object, []byte(`"response_item"`)
		l.Kind = l.Fields.read(object)
	}
	return l
}

// read finds the fields of a payload and returns its type.
func (f *payloadFields) read(payload []byte) (kind string) {
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
	return nameOf(typ)
}

func (f *payloadFields) place(key []byte) *[]byte {
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

// commonNames maps the names that most lines have to strings, which avoids an allocation for each.
var commonNames = func() map[string]string {
	m := map[string]string{}
	for _, name := range []string{
		"session_meta", "response_item", "event_msg", "turn_context", "compacted",
		"message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
		"custom_tool_call_output",
		"user_message", "agent_message", "agent_reasoning", "item_completed", "token_count", "task_started",
		"task_complete",
		"user", "assistant", "developer",
	} {
		m[`"`+name+`"`] = name
	}
	return m
}()

func nameOf(val []byte) string {
	if s, ok := commonNames[string(val)]; ok {
		return s
	}
	return rawjson.Text(val)
}
