package codex

import (
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// back writes a line that the reader kept unchanged in a custom entry.
func (w *writer) back(data []byte) {
	payload := rawjson.Field(data, "payload")
	if len(payload) == 0 || payload[0] != '{' || !rawjson.IsString(rawjson.Field(data, "timestamp")) {
		w.lose(lostLine)
		return
	}
	switch rawjson.Text(rawjson.Field(data, "type")) {
	case "session_meta": // the file has its own
	case "turn_context":
		w.turnContext(payload)
	case "event_msg":
		w.happened(rawjson.Text(rawjson.Field(payload, "type")), payload)
	case "response_item":
		w.kept(rawjson.Text(rawjson.Field(payload, "type")), payload)
	default:
		w.lose(lostLine)
	}
}

// turnContext writes the settings of a turn unchanged.
func (w *writer) turnContext(payload []byte) {
	if rawjson.Field(payload, "summary") == nil {
		payload = rawjson.WithField(payload, "summary", []byte(`"auto"`))
	}
	policy := rawjson.OrNull(rawjson.Field(payload, "approval_policy"))
	if !hasTexts(payload, "cwd", "model", "summary") || policy[0] != '"' && policy[0] != '{' ||
		!isObject(rawjson.Field(payload, "sandbox_policy")) ||
		!mayHaveTexts(payload, "turn_id", "effort") || w.fold != nil {
		w.lose(lostLine)
		return
	}
	w.now = turnSettings{
		rawjson.Text(rawjson.Field(payload, "model")),
		rawjson.Text(rawjson.Field(payload, "effort")),
	}
	w.was, w.base = w.now, slices.Clone(payload)
	w.line("turn_context", payload)
	w.said.open = false
}

// happened writes an event unchanged.
func (w *writer) happened(kind string, payload []byte) {
	fits := kind != ""
	switch kind {
	case "thread_rolled_back": // the removed turns are not in the file
		return
	case "user_message", "agent_message":
		fits = hasTexts(payload, "message")
	case "agent_reasoning", "agent_reasoning_raw_content":
		fits = hasTexts(payload, "text")
	case "task_started", "turn_started", "task_complete", "turn_complete":
		fits = hasTexts(payload, "turn_id")
	case "turn_aborted":
		fits = hasTexts(payload, "reason")
		w.said = lastSaid{}
	case "token_count":
		info := rawjson.Field(payload, "info")
		if w.retold() { // the file has the count already
			w.count(writtenUsage{})
			return
		}
		last, total := rawjson.Field(info, "last_token_usage"), rawjson.Field(info, "total_token_usage")
		if last != nil {
			if isLoadableUsage(total) {
				w.total = readWrittenUsage(total)
			}
			w.said.open = false
		}
		if fits = !isObject(info) || isLoadableUsage(last) && isLoadableUsage(total); !fits && isObject(last) {
			w.count(readWrittenUsage(last))
			return
		}
	}
	if !fits {
		w.lose(lostLine)
		return
	}
	if w.fold == nil {
		w.line("event_msg", payload)
	}
}

// kept writes an item unchanged that belongs to no entry.
func (w *writer) kept(kind string, payload []byte) {
	fits := false
	switch kind {
	case "web_search_call":
		action := rawjson.Field(payload, "action")
		fits = (action == nil || isObject(action) && hasTexts(action, "type")) &&
			mayHaveTexts(payload, "id", "status")
	case "image_generation_call":
		fits = hasTexts(payload, "id", "status", "result")
	}
	if !fits {
		w.lose(lostLine)
		return
	}
	w.say(conversationItem{payload: slices.Clone(payload)})
}
