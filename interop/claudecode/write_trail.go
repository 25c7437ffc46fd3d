package claudecode

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxPathSteps bounds the search for the call of a result, in entries that call, answer or change the model.
const maxPathSteps = 4096

// pathStep is the part of a path that one entry adds: its calls or the answer to one, and the model in force. Entries
// share the steps of their ancestors, so that a branch does not see the calls of another.
type pathStep struct {
	up     *pathStep
	calls  []writtenCall
	answer string // ID of a call in the file
	model  []byte // a JSON string; nil = unknown
}

// writtenCall is a tool call: its ID in the session, and that in the file.
type writtenCall struct{ id, written string }

// pass adds a step to the path of the current entry, if there is anything to add.
func (w *writer) pass(s pathStep) {
	before := w.model()
	if s.model == nil || bytes.Equal(s.model, before) {
		if s.calls == nil && s.answer == "" {
			return
		}
		s.model = before
	} else {
		s.model = bytes.Clone(s.model) // the line's buffer is reused
	}
	s.up = w.way
	w.way = &s
}

// answered finds the newest call with an ID on the path, the first of a message that has no result yet; "" = none.
// again reports whether the call has a result, on this branch or another.
func (w *writer) answered(id string) (written string, again bool) {
	var here map[string]bool
	at := w.way
	for range maxPathSteps {
		if at == nil {
			break
		}
		if at.answer != "" {
			if here == nil {
				here = map[string]bool{}
			}
			here[at.answer] = true
		}
		for _, c := range at.calls {
			if c.id == id && (written == "" || !here[c.written]) {
				if written = c.written; !here[written] {
					return written, w.results[shortKey(written)]
				}
			}
		}
		if written != "" {
			return written, true
		}
		at = at.up
	}
	return "", false
}

// model returns the model in force on the path; nil = unknown.
func (w *writer) model() []byte {
	if w.way == nil {
		return nil
	}
	return w.way.model
}

// callNamed returns the ID under which a call is written. It is unique, because results name it.
func (w *writer) callNamed(entry, id string) string {
	written := callID(id)
	for n := 0; w.calls[shortKey(written)]; n++ {
		if n == 0 {
			w.lose("ids of calls that another one has: they got one of their own")
		}
		written = derivedCallID(entry + "\x00" + strconv.Itoa(n) + "\x00" + id)
	}
	w.calls[shortKey(written)] = true
	return written
}

// callID returns a call's ID in a form that Anthropic accepts.
func callID(id string) string {
	const most = 64
	if id != "" && len(id) <= most && agentName(id) != "" {
		return id
	}
	return derivedCallID(id)
}

func derivedCallID(of string) string {
	sum := sha256.Sum256([]byte(of))
	return "toolu_" + hex.EncodeToString(sum[:12])
}

func shortKey(id string) (k [8]byte) {
	sum := sha256.Sum256([]byte(id))
	copy(k[:], sum[:])
	return k
}

// note records the calls, answers and model of a message in the original file, under their IDs there.
func (w *writer) note(message []byte) {
	var s pathStep
	for m := rawjson.Walk(rawjson.Field(message, "content")); m.Closing == ']' && m.Next(); {
		if string(rawjson.Field(m.Val, "type")) == `"toolCall"` {
			id := rawjson.Text(rawjson.Field(m.Val, "id"))
			w.calls[shortKey(id)] = true
			s.calls = append(s.calls, writtenCall{id, id})
		}
	}
	if id := rawjson.Field(message, "toolCallId"); rawjson.IsString(id) {
		s.answer = rawjson.Text(id)
		w.results[shortKey(s.answer)] = true
	}
	if id := rawjson.Field(message, "responseId"); rawjson.IsString(id) {
		w.sent[shortKey(rawjson.Text(id))] = true
	}
	if model := rawjson.Field(message, "model"); rawjson.IsString(model) && len(model) > 2 {
		s.model = model
	}
	w.pass(s)
}
