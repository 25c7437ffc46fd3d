package transcript

import (
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// entry adds the message of one entry, if it has one.
func (b *contextBuilder) entry(e Entry) {
	if e.Hidden {
		return
	}
	var m Message
	switch e.Type {
	case "message":
		var ok bool
		if m, ok = e.Message(); !ok {
			b.diag.Add(e.ID, e.Ordinal, DiagNoMessage, "a message entry without a message: left out")
			return
		}
	case "custom_message":
		raw, ok := b.rules.custom(e)
		if !ok {
			b.diag.Add(e.ID, e.Ordinal, DiagNoMessage,
				"a custom message whose content is neither text nor blocks: left out")
			return
		}
		m = Message{Entry: e.ID, Role: "custom", Raw: raw}
	case "branch_summary":
		summary := rawjson.Field(e.Raw, "summary")
		if !rawjson.IsString(summary) || string(summary) == `""` {
			if !b.rules.emptyBranch {
				return
			}
			summary = []byte(`""`)
		}
		m = Message{
			Role: "branchSummary",
			Raw: rawjson.Object("role", []byte(`"branchSummary"`), "summary", summary,
				"fromId", rawjson.OrNull(b.rules.value(e.Raw, "fromId", "from_id")), "timestamp", millis(e.Time)),
		}
	default:
		return
	}
	if b.edit(e.ID, &m) {
		b.add(e, m)
	}
}

func (b *contextBuilder) add(e Entry, m Message) {
	b.messages = append(b.messages, m)
	b.links = append(b.links, linkOf(m, e.Ordinal))
}

// boundary adds the messages of a compaction itself: a system message that it carries, and its summary. A reset
// has none.
func (b *contextBuilder) boundary(e Entry, kept []Entry) {
	if e.Type != "compaction" {
		return
	}
	if sys := rawjson.Field(e.Raw, "systemMessage"); b.rules.edits && len(sys) > 0 && sys[0] == '{' {
		b.add(e, Message{Role: rawjson.Text(rawjson.Field(sys, "role")), Raw: sys})
	}
	if b.rules.verbatimOnly {
		b.add(e, flattened(e, kept))
		return
	}
	summary := rawjson.Field(e.Raw, "summary")
	if !rawjson.IsString(summary) {
		summary = []byte(`""`)
	}
	tokens := b.rules.value(e.Raw, "tokensBefore", "tokens_before")
	if !rawjson.IsNumber(tokens) {
		tokens = []byte("0")
	}
	raw := rawjson.Object("role", []byte(`"compactionSummary"`), "summary", summary, "tokensBefore", tokens,
		"timestamp", millis(e.Time))
	if b.rules.resets {
		if items := remoteHistory(e); items != nil {
			provider := rawjson.Field(rawjson.Field(rawjson.Field(e.Raw, "preserveData"), "openaiRemoteCompaction"),
				"provider")
			raw = rawjson.WithField(raw, "providerPayload",
				rawjson.Object("type", []byte(`"openaiResponsesHistory"`), "provider", provider, "items", items))
		}
	}
	m := Message{Role: "compactionSummary", Raw: raw}
	if b.edit(e.ID, &m) {
		b.add(e, m)
	}
}

// custom returns the message of a custom_message entry in pi's shape.
func (r rules) custom(e Entry) ([]byte, bool) {
	content := rawjson.Field(e.Raw, "content")
	switch {
	case len(content) > 0 && (content[0] == '"' || content[0] == '['):
	case !r.healthy && (content == nil || content[0] == 'n'):
		content = []byte("[]")
	default:
		return nil, false
	}
	display := rawjson.Field(e.Raw, "display")
	if !rawjson.IsTrue(display) {
		display = []byte("false")
	}
	customType := r.value(e.Raw, "customType", "custom_type")
	if !rawjson.IsString(customType) {
		customType = []byte(`""`)
	}
	raw := rawjson.Object("role", []byte(`"custom"`), "customType", customType, "content", content, "display", display,
		"details", rawjson.Field(e.Raw, "details"), "timestamp", millis(e.Time))
	if r.verbatimOnly && rawjson.IsTrue(rawjson.Field(e.Raw, "excludeFromContext")) {
		raw = rawjson.WithField(raw, "excludeFromContext", []byte("true"))
	}
	return raw, true
}

// findEdits notes the context_edit entries among those that reach the context; the latest counts.
func (b *contextBuilder) findEdits(entries []Entry) {
	for _, e := range entries {
		if e.Type != "context_edit" {
			continue
		}
		if b.edits == nil {
			b.edits = map[string][]byte{}
		}
		if r := rawjson.Field(e.Raw, "replacement"); len(r) > 0 && (r[0] == 'n' || r[0] == '{') {
			b.edits[rawjson.Text(rawjson.Field(e.Raw, "targetId"))] = r
		}
	}
}

// edit applies the edit of an entry, if there is one. false: the entry is hidden.
func (b *contextBuilder) edit(id string, m *Message) bool {
	r, ok := b.edits[id]
	if !ok {
		return true
	}
	if r[0] == 'n' {
		return false
	}
	content := rawjson.Field(r, "content")
	switch m.Role {
	case "assistant", "toolResult":
		if rawjson.IsString(content) {
			content = append(append([]byte(`[{"type":"text","text":`), content...), "}]"...)
		}
	case "user", "custom":
	default:
		return true
	}
	if content != nil {
		m.Raw = rawjson.WithField(m.Raw, "content", content)
	}
	return true
}

// millis is the Unix time in milliseconds as JSON, 0 for no time.
func millis(t time.Time) []byte {
	if t.IsZero() {
		return []byte("0")
	}
	return strconv.AppendInt(nil, t.UnixMilli(), 10)
}
