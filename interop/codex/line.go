package codex

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// form is how a line is written.
type form uint8

const (
	formUnknown  form = iota
	formEnvelope      // {timestamp, type, payload}
	formHeader        // before there were envelopes: the session's id and time
	formBare          // before there were envelopes: an item
	formState         // likewise: a note that says nothing
)

// line is one line of a rollout, each value where it lies.
type line struct {
	form                form
	typ, stamp, payload []byte // of a bare item the payload is the line
	kind                string // type of the payload
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

func readLine(object []byte) line {
	l := line{payload: nil}
	var id, role, content, message, record, instructions, git []byte
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
			l.typ = m.Val
		case "timestamp":
			l.stamp = m.Val
		case "payload":
			l.payload = m.Val
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
	typ := rawjson.Text(l.typ)
	switch {
	case bytes.HasPrefix(l.payload, []byte("{")) && typ != "":
		if l.kind = rawjson.Text(rawjson.Field(l.payload, "type")); isType(l.typ) {
			l.form = formEnvelope
		}
	case record != nil:
		l.form = formState
	case typ == "" && rawjson.IsString(id) && rawjson.IsString(l.stamp) && (instructions != nil || git != nil):
		l.form, l.payload = formHeader, object
	case isItem(typ) && message == nil && (typ != "message" || rawjson.IsString(role) && content != nil):
		l.form, l.payload, l.kind, l.typ = formBare, object, typ, []byte(`"response_item"`)
	}
	return l
}
