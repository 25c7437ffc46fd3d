package piwriter

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxOpen bounds the calls of one round whose results are expected; results of further calls get no ID.
const maxOpen = 256

// CallIDs assigns IDs to tool calls without one, as in the formats of Gemini, Ollama and older OpenAI, and to their
// results: a result belongs to the oldest call of its tool that has none yet. A call waits until the next user message,
// or until the model makes further calls after a result. A CallIDs serves one session. Its entries must be passed in
// order, in any number of passes: an ID is derived from the entry's, so it is always the same.
//
// Bounds (I15): about 100 bytes for each entry after a call without a result, and at most maxOpen calls per entry.
type CallIDs map[string]*openCalls

// openCalls are the calls that one entry adds to those waiting for results. Branches share their ancestors'.
type openCalls struct {
	up    *openCalls
	calls []called
	done  []string // ids of calls
	open  int      // calls without a result, including those above
	said  int      // calls, including those above
}

type called struct{ id, name string }

// Message returns the message of an entry with IDs added to calls and results, or nil if it has none. If no ID was
// missing it returns the same slice.
func (ids CallIDs) Message(id, parent string, message []byte) []byte {
	at := ids[parent]
	if at == nil && !mayCall(message) {
		delete(ids, id)
		return message
	}
	w := idWriter{entry: id, at: at}
	message = w.message(message)
	switch {
	case w.now.calls != nil || w.now.done != nil:
		now := w.now
		at = &now
	case string(rawjson.Field(message, "role")) == `"user"`:
		at = nil
	}
	if at != nil && at.open > 0 {
		ids[id] = at
	} else {
		delete(ids, id)
	}
	return message
}

// mayCall reports whether a message must be parsed: those of most providers always have IDs.
func mayCall(message []byte) bool {
	return bytes.Contains(message, []byte(`"functionCall"`)) || bytes.Contains(message, []byte(`"function_call"`)) ||
		bytes.Contains(message, []byte(`"tool_calls"`))
}

// idWriter processes one message.
type idWriter struct {
	entry   string
	at      *openCalls // before it
	now     openCalls
	made    int
	asked   bool     // waiting is set
	waiting []called // before the message, oldest first
}

func (w *idWriter) message(message []byte) []byte {
	for _, name := range []string{"content", "parts", "contents", "tool_calls"} {
		was := rawjson.Field(message, name)
		if is := w.list(was); !same(is, was) {
			message = rawjson.WithField(message, name, is)
		}
	}
	if call := innerOf(message, "function_call"); call != nil {
		if is := w.call(call); !same(is, call) {
			message = rawjson.WithField(message, "function_call", is)
		}
	}
	switch rawjson.Text(rawjson.Field(message, "role")) {
	case "function", "tool":
		own := rawjson.Text(first(message, "tool_call_id", "toolCallId", "call_id"))
		if id := w.answered(own, rawjson.Text(first(message, "name", "tool_name", "toolName"))); own == "" &&
			id != "" {
			message = rawjson.WithField(message, "tool_call_id", rawjson.AppendString(nil, id))
		}
	}
	return message
}

// same reports whether two slices are identical, without comparing the bytes.
func same(is, was []byte) bool {
	return len(is) == len(was) && (len(is) == 0 || &is[0] == &was[0])
}

// list returns a list of blocks with IDs added to calls and results.
func (w *idWriter) list(list []byte) []byte {
	return replaceEach(list, w.block)
}

// replaceEach returns an array with its elements replaced. Elements that replace returns unchanged keep their bytes and
// the space around them; a value without changes, or of another type, is returned itself.
func replaceEach(list []byte, replace func(element []byte) []byte) []byte {
	if len(list) == 0 || list[0] != '[' {
		return list
	}
	out, done := []byte(nil), 0
	for m := rawjson.Walk(list); m.Next(); {
		is := replace(m.Val)
		if same(is, m.Val) {
			continue
		}
		out = append(append(out, list[done:m.Pos-len(m.Val)]...), is...) // m.Pos is after the value
		done = m.Pos
	}
	if done == 0 {
		return list
	}
	return append(out, list[done:]...)
}

func (w *idWriter) block(b []byte) []byte {
	for _, name := range []string{"functionCall", "function_call", "function"} {
		call := innerOf(b, name)
		if call == nil {
			continue
		}
		if own := rawjson.Text(first(b, "id", "call_id")); own != "" {
			w.called(own, call)
		} else if is := w.call(call); !same(is, call) {
			return rawjson.WithField(b, name, is)
		}
		return b
	}
	for _, name := range []string{"functionResponse", "function_response"} {
		if said := innerOf(b, name); said != nil {
			own := rawjson.Text(rawjson.Field(said, "id"))
			if id := w.answered(own, rawjson.Text(rawjson.Field(said, "name"))); own == "" && id != "" {
				return rawjson.WithField(b, name, rawjson.WithField(said, "id", rawjson.AppendString(nil, id)))
			}
			return b
		}
	}
	return b
}

// call returns a call with an ID.
func (w *idWriter) call(call []byte) []byte {
	id := rawjson.Text(rawjson.Field(call, "id"))
	if id == "" {
		sum := sha256.Sum256([]byte(w.entry + "\x00" + strconv.Itoa(w.made)))
		w.made++
		id = "call_" + hex.EncodeToString(sum[:12])
		call = rawjson.WithField(call, "id", rawjson.AppendString(nil, id))
	}
	w.called(id, call)
	return call
}

// called records a call. The first one of a message begins a round, unless no call of the last round has a result.
func (w *idWriter) called(id string, call []byte) {
	if w.now.calls == nil && w.now.done == nil && w.at != nil && w.at.open == w.at.said {
		w.now.up, w.now.open, w.now.said = w.at, w.at.open, w.at.said
	}
	if w.now.said < maxOpen {
		w.now.calls = append(w.now.calls, called{id, rawjson.Text(rawjson.Field(call, "name"))})
		w.now.open++
		w.now.said++
	}
}

// answered returns the ID of the call that a result belongs to, by the result's ID or the name of its tool; "" = no
// such call is waiting.
func (w *idWriter) answered(own, name string) (id string) {
	if w.at == nil || w.now.calls != nil {
		return ""
	}
	if !w.asked {
		w.asked, w.waiting = true, w.at.waiting()
		w.now.open, w.now.said, w.now.up = w.at.open, w.at.said, w.at
	}
	for i, c := range w.waiting {
		if own != "" && own == c.id || own == "" && name == c.name {
			w.waiting = slices.Delete(w.waiting, i, i+1)
			w.now.done = append(w.now.done, c.id)
			w.now.open--
			return c.id
		}
	}
	return ""
}

// waiting returns the calls without a result.
func (r *openCalls) waiting() (list []called) {
	done := map[string]bool{}
	var way []*openCalls
	for at := r; at != nil; at = at.up { // at most one step for each call and each result of a round
		way = append(way, at)
		for _, id := range at.done {
			done[id] = true
		}
	}
	for _, at := range slices.Backward(way) {
		for _, c := range at.calls {
			if !done[c.id] {
				list = append(list, c)
			}
		}
	}
	return list
}
