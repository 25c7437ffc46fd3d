package operator

import (
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Losses of fields and values that operator does not have.
const (
	LostField = "entries, messages and blocks with fields that operator does not have: those fields are left out"
	LostStop  = "answers whose end was still to come: operator has no word for that"
)

// knownFields are pi's fields that operator has too, by the type of the entry, by "role " and the role of the message,
// and by "block " and the type of the block. Fields that operator derives from others are included: the API from the
// provider, the sum of tokens, the tool of a result from its call.
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

// commonFields are the fields of any object that are written, or whose loss is counted elsewhere.
var commonFields = []string{"type", "role", "id", "parentId", "timestamp", "stub", "partOf"}

// loseFields counts an object with fields that operator does not have. A kind that knownFields does not have is
// ignored: such an object is kept whole in another form.
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

// isEmptyValue reports whether a value means the same as a missing field.
func isEmptyValue(val []byte) bool {
	switch string(val) {
	case "null", "false", "0", `""`, "[]", "{}":
		return true
	}
	return false
}

// loseMessageFields counts the losses of a message of pi, its blocks and its usage.
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

// loseEntryFields counts the losses of a line that pi loads.
func loseEntryFields(raw []byte, typ string, lose func(kind string)) {
	loseFields(raw, typ, lose)
	switch typ {
	case "message":
		loseMessageFields(rawjson.Field(raw, "message"), lose)
	case "custom_message":
		loseBlockFields(rawjson.Field(raw, "content"), lose)
	}
}

// lostHeaderFields returns the number of header fields that operator does not have.
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
