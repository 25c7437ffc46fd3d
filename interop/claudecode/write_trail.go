package claudecode

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxPathSteps bounds how far up the call of a result is looked for, in entries that call, answer or
// change the model.
const maxPathSteps = 4096

// pathStep is what an entry adds to the way that leads to it: calls or an answer to one, and the model in force. The
// entries of one way share their steps with those above, so that branches do not see each other's calls.
type pathStep struct {
	up     *pathStep
	calls  []writtenCall
	answer string // the id of a call, as written
	model  []byte // a string literal; nil = none is known
}

// writtenCall is a call of a tool: its id in the session, and the one in the file.
type writtenCall struct{ id, written string }

// pass adds a step to the way of the entry at hand, if it adds something.
func (w *writer) pass(s pathStep) {
	before := w.model()
	if s.model == nil || bytes.Equal(s.model, before) {
		if s.calls == nil && s.answer == "" {
			return
		}
		s.model = before
	} else {
		s.model = bytes.Clone(s.model) // of a line, which goes
	}
	s.up = w.way
	w.way = &s
}

// answered finds the newest call of an id on the way, the first of a message that has no result yet; "" = there
// is none. again reports whether it has one, here or on another branch.
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

// model returns the model in force on the way; nil = none is known.
func (w *writer) model() []byte {
	if w.way == nil {
		return nil
	}
	return w.way.model
}

// callNamed returns the id under which a call is written: each is there once, for results name it.
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

// callID returns the id of a call as Anthropic takes it.
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

// note remembers the calls, the answers and the model of a message that is in the original file, under their
// ids there.
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
