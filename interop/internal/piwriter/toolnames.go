package piwriter

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// maxTurns bounds how far up the name of a call is looked for.
const maxTurns = 4096

// toolNames has the last turn with calls on the way to each entry; entries without one are not in it.
type toolNames map[string]*callTurn

// callTurn is an entry that calls tools.
type callTurn struct {
	calls []namedCall
	up    *callTurn
}

type namedCall struct{ id, name string }

// pass notes the calls in the lines that an entry became, and names the tools of results in them that have no name.
func (n toolNames) pass(l transcript.Line, lines [][]byte) {
	at := n[l.ParentID]
	for i, raw := range lines {
		if l.Type != "message" {
			continue
		}
		// Most lines are neither, which is soon seen.
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

// named returns the line of a result with the name of its tool, if that is known.
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

// callsOf returns the calls in a message of pi's shape.
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

// find returns the name of the newest call of an id; "" = there is none.
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
