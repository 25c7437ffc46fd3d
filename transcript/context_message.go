package transcript

import (
	"strconv"
	"time"
)

// entry adds the message of one entry, if it has one.
func (b *builder) entry(e Entry) {
	var m Message
	switch e.Type {
	case "message":
		var ok bool
		if m, ok = e.Message(); !ok {
			b.diag.add(e, DiagNoMessage, "a message entry without a message: left out")
			return
		}
	case "custom_message":
		raw, ok := b.rules.custom(e)
		if !ok {
			b.diag.add(e, DiagNoMessage, "a custom message whose content is neither text nor blocks: left out")
			return
		}
		m = Message{Entry: e.ID, Role: "custom", Raw: raw}
	case "branch_summary":
		summary := field(e.Raw, "summary")
		if !isString(summary) || string(summary) == `""` {
			if !b.rules.emptyBranch {
				return
			}
			summary = []byte(`""`)
		}
		m = Message{Role: "branchSummary", Raw: object("role", []byte(`"branchSummary"`), "summary", summary,
			"fromId", orNull(b.rules.value(e.Raw, "fromId", "from_id")), "timestamp", millis(e.Time))}
	default:
		return
	}
	if b.edit(e.ID, &m) {
		b.add(e, m)
	}
}

func (b *builder) add(e Entry, m Message) {
	b.messages = append(b.messages, m)
	b.links = append(b.links, linkOf(m, e.Ordinal))
}

// boundary adds what a compaction itself says: a system message that it carries, and its summary. A reset
// says nothing.
func (b *builder) boundary(e Entry, kept []Entry) {
	if e.Type != "compaction" {
		return
	}
	if sys := field(e.Raw, "systemMessage"); b.rules.edits && len(sys) > 0 && sys[0] == '{' {
		b.add(e, Message{Role: text(field(sys, "role")), Raw: sys})
	}
	if b.rules.verbatimOnly {
		b.add(e, flattened(e, kept))
		return
	}
	summary := field(e.Raw, "summary")
	if !isString(summary) {
		summary = []byte(`""`)
	}
	tokens := b.rules.value(e.Raw, "tokensBefore", "tokens_before")
	if !isNumber(tokens) {
		tokens = []byte("0")
	}
	raw := object("role", []byte(`"compactionSummary"`), "summary", summary, "tokensBefore", tokens, "timestamp", millis(e.Time))
	if b.rules.resets {
		if items := remoteHistory(e); items != nil {
			provider := field(field(field(e.Raw, "preserveData"), "openaiRemoteCompaction"), "provider")
			raw = withField(raw, "providerPayload", object("type", []byte(`"openaiResponsesHistory"`), "provider", provider, "items", items))
		}
	}
	m := Message{Role: "compactionSummary", Raw: raw}
	if b.edit(e.ID, &m) {
		b.add(e, m)
	}
}

// custom gives the message of a custom_message entry in pi's shape.
func (r rules) custom(e Entry) ([]byte, bool) {
	content := field(e.Raw, "content")
	switch {
	case len(content) > 0 && (content[0] == '"' || content[0] == '['):
	case !r.healthy && (content == nil || content[0] == 'n'):
		content = []byte("[]")
	default:
		return nil, false
	}
	display := field(e.Raw, "display")
	if !isTrue(display) {
		display = []byte("false")
	}
	customType := r.value(e.Raw, "customType", "custom_type")
	if !isString(customType) {
		customType = []byte(`""`)
	}
	raw := object("role", []byte(`"custom"`), "customType", customType, "content", content, "display", display,
		"details", field(e.Raw, "details"), "timestamp", millis(e.Time))
	if r.verbatimOnly && isTrue(field(e.Raw, "excludeFromContext")) {
		raw = withField(raw, "excludeFromContext", []byte("true"))
	}
	return raw, true
}

// findEdits notes the context_edit entries among those that reach the context; the latest counts.
func (b *builder) findEdits(entries []Entry) {
	for _, e := range entries {
		if e.Type != "context_edit" {
			continue
		}
		if b.edits == nil {
			b.edits = map[string][]byte{}
		}
		if r := field(e.Raw, "replacement"); len(r) > 0 && (r[0] == 'n' || r[0] == '{') {
			b.edits[text(field(e.Raw, "targetId"))] = r
		}
	}
}

// edit applies the edit of an entry, if there is one. false: the entry is hidden.
func (b *builder) edit(id string, m *Message) bool {
	r, ok := b.edits[id]
	if !ok {
		return true
	}
	if r[0] == 'n' {
		return false
	}
	content := field(r, "content")
	switch m.Role {
	case "assistant", "toolResult":
		if isString(content) {
			content = append(append([]byte(`[{"type":"text","text":`), content...), "}]"...)
		}
	case "user", "custom":
	default:
		return true
	}
	if content != nil {
		m.Raw = withField(m.Raw, "content", content)
	}
	return true
}

// object makes a JSON object of names and values in turn; a nil value is left out.
func object(pairs ...any) []byte {
	out := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		val, _ := pairs[i+1].([]byte)
		if val == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(quoted(out, name), ':'), val...)
	}
	return append(out, '}')
}

// withField gives the object with one field set in its place, or at the end if it has none of that name;
// val nil takes it away. Everything else stays byte for byte, white space between members aside.
func withField(obj []byte, name string, val []byte) []byte {
	out := make([]byte, 1, len(obj)+len(val)+len(name)+4)
	out[0] = '{'
	put := func(key, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(quoted(out, string(key)), ':'), v...)
	}
	done := false
	m := walk(obj)
	for m.closing == '}' && m.next() {
		if string(m.key) != name {
			put(m.key, m.val)
		} else if !done && val != nil {
			put(m.key, val)
			done = true
		}
	}
	if !done && val != nil {
		put([]byte(name), val)
	}
	return append(out, '}')
}

func orNull(val []byte) []byte {
	if val == nil {
		return []byte("null")
	}
	return val
}

func isNumber(val []byte) bool {
	return len(val) > 0 && (val[0] == '-' || '0' <= val[0] && val[0] <= '9')
}

// millis is the Unix time in milliseconds as JSON, 0 for no time.
func millis(t time.Time) []byte {
	if t.IsZero() {
		return []byte("0")
	}
	return strconv.AppendInt(nil, t.UnixMilli(), 10)
}
