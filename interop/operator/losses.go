package operator

import (
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Kinds of losses of what pi's lines have beside what operator has.
const (
	LostField = "entries, messages and blocks with fields that operator does not have: those fields are left out"
	LostStop  = "answers whose end was still to come: operator has no word for that"
)

// knownFields are the fields of pi's that operator has too, by the type of the entry, by the role of
// the message after "role ", and by the type of the block after "block ". What follows from others
// counts as said: the API from the provider, the sum of tokens, the tool of a result from its call.
var knownFields = map[string][]string{
	"message":               {"message", "meta"},
	"thinking_level_change": {"thinkingLevel"},
	"model_change":          {"provider", "modelId", "role"},
	"compaction":            {"summary", "firstKeptEntryId", "tokensBefore", "details", "fromHook"},
	"branch_summary":        {"fromId", "summary", "details", "fromHook"},
	"label":                 {"label", "targetId"},
	"leaf":                  {"targetId", "fromId"},
	"session_info":          {"name"},
	"custom_message":        {"customType", "content", "display", "details"},
	"custom":                {"customType", "data"},
	"role user":             {"content"},
	"role system":           {"content"},
	"role assistant": {
		"content", "usage", "stopReason", "rawStopReason", "errorMessage", "api", "provider",
		"model",
	},
	"role toolResult": {
		"content", "toolCallId", "toolName", "isError", "details", "terminate",
		"terminateMessage",
	},
	"role custom":     {"content", "customType", "details", "display"},
	"block text":      {"text"},
	"block thinking":  {"thinking", "thinkingSignature"},
	"block toolCall":  {"name", "arguments", "kind", "metadata"},
	"block image":     {"data", "mimeType"},
	"block image_url": {"image_url"},
	"block audio":     {"audio"},
	"usage":           {"input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost"},
}

// commonFields are the fields of any object that are said, or counted elsewhere.
var commonFields = []string{"type", "role", "id", "parentId", "timestamp", "stub", "partOf"}

// loseFields counts an object that says more than operator has fields for; kind is none of those above
// where the whole of it is kept as something else.
func loseFields(object []byte, kind string, lose func(kind string)) {
	fields, ok := knownFields[kind]
	if !ok {
		return
	}
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		if !isEmptyValue(m.Val) && !slices.Contains(fields, string(m.Key)) &&
			!slices.Contains(commonFields, string(m.Key)) {
			lose(LostField)
			return
		}
	}
}

// isEmptyValue reports whether a value says no more than its absence.
func isEmptyValue(val []byte) bool {
	switch string(val) {
	case "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	return false
}

// loseMessageFields counts what of a message of pi's, of its blocks and of its account operator has no fields for.
func loseMessageFields(raw []byte, lose func(kind string)) {
	role := rawjson.Text(rawjson.Field(raw, "role"))
	loseFields(raw, "role "+role, lose)
	if role == "custom" && string(rawjson.Field(raw, "display")) == "false" {
		lose(LostField)
	}
	if role == "assistant" {
		loseFields(rawjson.Field(raw, "usage"), "usage", lose)
		if stop := rawjson.Text(rawjson.Field(raw, "stopReason")); stop == "pending" || stop == "deferred" {
			lose(LostStop)
		}
	}
	loseBlockFields(rawjson.Field(raw, "content"), lose)
}

func loseBlockFields(list []byte, lose func(kind string)) {
	for m := rawjson.Walk(list); m.Closing == ']' && m.Next(); {
		loseFields(m.Val, "block "+rawjson.Text(rawjson.Field(m.Val, "type")), lose)
	}
}

// loseEntryFields counts what of a line that pi loads operator has no fields for.
func loseEntryFields(raw []byte, typ string, lose func(kind string)) {
	loseFields(raw, typ, lose)
	switch typ {
	case "message":
		loseMessageFields(rawjson.Field(raw, "message"), lose)
	case "custom_message":
		loseBlockFields(rawjson.Field(raw, "content"), lose)
	}
}

// lostHeaderFields counts the fields of a session's header that operator does not have.
func lostHeaderFields(raw []byte) (lost int) {
	l, err := transcript.ParseLine(raw)
	if err != nil {
		return 0
	}
	for m := rawjson.Walk(l.Raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type", "version", "id", "timestamp", "cwd", "parentSession", "branchedFrom", "title", "titleSource":
		default:
			if !isEmptyValue(m.Val) {
				lost++
			}
		}
	}
	return lost
}
