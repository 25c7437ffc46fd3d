package codex

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// sealedSummary replaces an encrypted summary of a compaction, as JSON.
const sealedSummary = `"Codex kept the summary of what was said before encrypted: nobody but its provider can read it."`

// compactionSummary returns the summary of a compaction as JSON, and the index of the history's item that contains it,
// -1 = none.
func compactionSummary(payload []byte) (summary []byte, at int) {
	summary = rawjson.Field(payload, "message")
	history := rawjson.Field(payload, "replacement_history")
	at, first := -1, false // the summary may be the first item, before the kept ones
	n, text := 0, []byte(nil)
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); n++ {
		if string(rawjson.Field(m.Val, "role")) == `"user"` && !first {
			at, text = n, rawjson.AppendString(nil, plainText(rawjson.Field(m.Val, "content")))
			first = n == 0 && endsWith(text, summary)
		}
	}
	if !rawjson.IsString(summary) || len(summary) == 2 {
		if summary = text; hasSealedSummary(history) {
			summary, at = []byte(sealedSummary), -1
		}
	} else if !endsWith(text, summary) {
		at = -1
	}
	if summary == nil {
		summary = []byte(`""`)
	}
	return summary, at
}

// endsWith reports whether a text, as JSON, ends with another non-empty text.
func endsWith(text, end []byte) bool {
	said := rawjson.Text(end)
	return said != "" && strings.HasSuffix(rawjson.Text(text), said)
}

// hasSealedItem reports whether an item of a history is encrypted.
func hasSealedItem(history []byte) bool {
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); {
		if isSealedItem(m.Val) {
			return true
		}
	}
	return false
}

// hasSealedSummary reports whether the summary of a history is encrypted. The user's messages in such a history are no
// summary.
func hasSealedSummary(history []byte) bool {
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); {
		if isSealedItem(m.Val) && len(rawjson.Field(m.Val, "encrypted_content")) > len(`""`) &&
			rawjson.IsString(rawjson.Field(m.Val, "encrypted_content")) {
			return true
		}
	}
	return false
}

func isSealedItem(item []byte) bool {
	switch string(rawjson.Field(item, "type")) {
	case `"compaction"`, `"compaction_summary"`, `"context_compaction"`:
		return true
	}
	return false
}

// survivesRollback reports whether the newest versions of Codex keep a compaction whatever is rolled back: they load
// the file from that compaction on. paged = the session is paginated.
func survivesRollback(payload []byte, paged bool) bool {
	return rawjson.IsNumber(rawjson.Field(payload, "window_number")) &&
		(paged || rawjson.Field(payload, "resume_metadata") != nil &&
			string(rawjson.Field(payload, "resume_metadata")) != "null")
}
