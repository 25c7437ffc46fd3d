package codex

import (
	"bytes"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// assistant writes a message of the model.
func (w *writer) assistant(message []byte) {
	w.abortUnanswered()
	if w.said.open && !w.fromCodex() {
		w.count(writtenUsage{}) // else a reader joins the two answers
	}
	model := rawjson.Text(rawjson.Field(message, "model"))
	w.model(model, "")
	w.context()
	if p := rawjson.Text(rawjson.Field(message, "provider")); p != "" && p != "unknown" && p != w.own && !w.mute {
		w.lose(lostProvider)
	}
	before, left := w.said, w.isBroken(message)
	w.said = lastSaid{}
	if left {
		w.picture(nil)
	} else {
		w.blocks(rawjson.Field(message, "content"))
	}
	if !w.said.answer {
		w.said = before
	}
	switch {
	case left:
		w.lose(lostBroken)
	case !w.said.answer:
		w.lose(lostEmpty)
	}
	w.stopped(message)
}

// isBroken reports whether an answer failed after some text without a tool call that ran. An answer from a rollout has
// lines of its own for that.
func (w *writer) isBroken(raw []byte) bool {
	if w.fromCodex() || !message.Decode(raw).Failed {
		return false
	}
	s := transcript.Inspect(raw)
	for _, c := range s.Calls {
		if w.calls.left[callHash(c.ID)] > 0 {
			return false
		}
	}
	return len(s.Calls) > 0 || s.Text != ""
}

// blocks writes the blocks of an answer. Texts with one ID become one message.
func (w *writer) blocks(content []byte) {
	w.picture(nil)
	var texts [][]byte
	var id, drawn []byte // drawn is a call whose image follows
	flush := func() {
		if len(texts) > 0 {
			w.text(id, texts)
		}
		texts, id = nil, nil
	}
	if rawjson.IsString(content) {
		texts = contentParts(content, "output_text")
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		switch string(rawjson.Field(m.Val, "type")) {
		case `"text"`:
			text, mark := rawjson.Field(m.Val, "text"), rawjson.Field(m.Val, "textSignature")
			if !rawjson.IsString(text) || len(text) == 2 {
				continue
			}
			if len(texts) > 0 && (id == nil || !bytes.Equal(id, mark)) {
				flush()
			}
			texts, id = append(texts, textPart("output_text", text)), mark
		case `"toolCall"`:
			flush()
			w.said.answer, w.said.open = true, true
			w.call(m.Val)
		case `"web_search_call"`, `"image_generation_call"`:
			flush()
			drawn = m.Val
			if rawjson.Field(drawn, "result") == nil &&
				string(rawjson.Field(drawn, "type")) == `"image_generation_call"` {
				continue // the image is a block of its own
			}
			w.hosted(drawn)
			drawn = nil
		case `"image"`:
			flush()
			if data := rawjson.Field(m.Val, "data"); drawn != nil && data != nil {
				drawn = rawjson.WithField(drawn, "result", data)
			}
			w.hosted(drawn)
			drawn = nil
		default:
			flush()
			w.thought(m.Val)
		}
	}
	flush()
	w.drawn = slices.Clone(drawn)
}

// picture writes the held image call, if the image that follows the answer is that call's.
func (w *writer) picture(list [][]byte) bool {
	drawn := w.drawn
	if w.drawn = nil; drawn == nil {
		return false
	}
	if len(list) == 1 && w.fromCodex() {
		url := rawjson.Field(list[0], "image_url")
		if _, data, ok := bytes.Cut(url, []byte(";base64,")); ok && bytes.HasSuffix(data, []byte{'"'}) {
			w.hosted(rawjson.WithField(drawn, "result", append([]byte{'"'}, data...)))
			return true
		}
	}
	w.lose(lostLine)
	return false
}

// text writes a message of the model.
func (w *writer) text(id []byte, list [][]byte) {
	w.said.answer, w.said.open = true, true
	if !w.fromCodex() || !rawjson.IsString(id) || len(id) == 2 {
		id = nil
	}
	all := rawjson.List(list)
	w.say(conversationItem{payload: rawjson.Object("type", []byte(`"message"`), "id", id,
		"role", []byte(`"assistant"`), "content", all)})
	w.event("agent_message", "message", spokenText(list, all))
}

// hosted writes a call that the provider answered itself.
func (w *writer) hosted(item []byte) {
	if item == nil {
		w.lose(piwriter.LostBlock)
		w.text(nil, [][]byte{textPart("output_text", []byte(`"[image]"`))})
		return
	}
	w.said.answer, w.said.open = true, true
	w.kept(rawjson.Text(rawjson.Field(item, "type")), item)
}

// thought writes a reasoning item that came from Codex: the provider accepts no other.
func (w *writer) thought(block []byte) {
	item := []byte(rawjson.Text(rawjson.Field(block, "thinkingSignature")))
	if !w.fromCodex() || !isReasoning(item) {
		w.lose(lostThinking)
		return
	}
	w.said.answer, w.said.open = true, true
	for m := rawjson.Walk(rawjson.Field(item, "summary")); m.Closing == ']' && m.Next(); {
		w.event("agent_reasoning", "text", rawjson.Field(m.Val, "text"))
	}
	w.say(conversationItem{payload: item})
}

// stopped writes the token count, and an event if the answer was interrupted. An answer from a rollout has lines of its
// own for both.
func (w *writer) stopped(raw []byte) {
	if w.fromCodex() {
		return
	}
	u := piwriter.Usage(raw)
	if total := rawjson.Field(rawjson.Field(u, "cost"), "total"); strings.Trim(string(total), "0.") != "" {
		w.lose(lostCost)
	}
	if n := usageOfMessage(u); n != (writtenUsage{}) {
		w.count(n)
	}
	word, _, _ := message.Stop(raw, len(w.calls.open) > 0)
	switch word {
	case "stop", "toolUse":
	case "aborted":
		w.broken()
	default:
		w.lose(lostStop)
	}
	if fault := rawjson.Field(raw, "errorMessage"); rawjson.IsString(fault) && len(fault) > 2 {
		w.lose(lostError)
	}
}
