package codex

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// sealedSummary is the summary of a compaction that says nothing in clear, as JSON.
const sealedSummary = `"Codex kept the summary of what was said before encrypted: nobody but its provider can read it."`

// compactionSummary returns the summary of a compaction as JSON, and which item of its history it is,
// -1 = none of them.
func compactionSummary(payload []byte) (summary []byte, at int) {
	summary = rawjson.Field(payload, "message")
	history := rawjson.Field(payload, "replacement_history")
	at, first := -1, false // it may be the first one, with what is kept after it
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

// endsWith reports whether a text, as JSON, ends with another one that is not empty.
func endsWith(text, end []byte) bool {
	said := rawjson.Text(end)
	return said != "" && strings.HasSuffix(rawjson.Text(text), said)
}

// hasSealedItem reports whether a part of a history can be read by the provider only.
func hasSealedItem(history []byte) bool {
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); {
		if isSealedItem(m.Val) {
			return true
		}
	}
	return false
}

// hasSealedSummary reports whether the summary of a history is encrypted: what the user said in it is no summary.
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

// survivesRollback reports whether Codex's newest versions keep a compaction, whatever is taken back:
// from it on they load what the file says. paged: the session is one of pages.
func survivesRollback(payload []byte, paged bool) bool {
	return rawjson.IsNumber(rawjson.Field(payload, "window_number")) &&
		(paged || rawjson.Field(payload, "resume_metadata") != nil &&
			string(rawjson.Field(payload, "resume_metadata")) != "null")
}
