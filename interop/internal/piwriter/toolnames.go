package piwriter

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// maxTurns bounds the search for the name of a call.
const maxTurns = 4096

// toolNames has, by entry, the last turn with calls above it; entries without one are missing.
type toolNames map[string]*callTurn

// callTurn is an entry with tool calls.
type callTurn struct {
	calls []namedCall
	up    *callTurn
}

type namedCall struct{ id, name string }

// pass records the calls in the lines of an entry, and adds missing tool names to the results in them.
func (n toolNames) pass(l transcript.Line, lines [][]byte) {
	at := n[l.ParentID]
	for i, raw := range lines {
		if l.Type != "message" {
			continue
		}
		// Most lines have neither; this check is fast.
		if bytes.Contains(raw, []byte(`"toolCall"`)) {
			if calls := callsOf(rawjson.Field(raw, "message")); calls != nil {
				at = &callTurn{calls, at}
				continue
			}
		}
		if bytes.Contains(raw, []byte(`"toolName":"unknown"`)) || bytes.Contains(raw, []byte(`"toolName":""`)) {
			lines[i] = at.named(raw)
		}
	}
	if at != nil {
		n[l.ID] = at
	} else {
		delete(n, l.ID)
	}
}

// named returns the line of a result with the name of its tool, if it is known.
func (t *callTurn) named(raw []byte) []byte {
	message := rawjson.Field(raw, "message")
	if name := rawjson.Text(rawjson.Field(message, "toolName")); name != "" && name != "unknown" {
		return raw
	}
	name := t.find(rawjson.Text(rawjson.Field(message, "toolCallId")))
	if name == "" || string(rawjson.Field(message, "role")) != `"toolResult"` {
		return raw
	}
	return rawjson.WithField(raw, "message", rawjson.WithField(message, "toolName", rawjson.AppendString(nil, name)))
}

// callsOf returns the calls in a message in pi's shape.
func callsOf(message []byte) (calls []namedCall) {
	if string(rawjson.Field(message, "role")) != `"assistant"` {
		return nil
	}
	for m := rawjson.Walk(rawjson.Field(message, "content")); m.Closing == ']' && m.Next(); {
		if string(rawjson.Field(m.Val, "type")) != `"toolCall"` {
			continue
		}
		c := namedCall{rawjson.Text(rawjson.Field(m.Val, "id")), rawjson.Text(rawjson.Field(m.Val, "name"))}
		if c.id != "" && c.name != "" {
			calls = append(calls, c)
		}
	}
	return calls
}

// find returns the name of the newest call with an ID; "" = none.
func (t *callTurn) find(id string) string {
	for range maxTurns {
		if t == nil {
			break
		}
		for _, c := range t.calls {
			if c.id == id {
				return c.name
			}
		}
		t = t.up
	}
	return ""
}
