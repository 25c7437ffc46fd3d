package searchindex

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/fold"
	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/transcript"
)

// MaxText bounds the indexed text of one entry, in bytes.
const MaxText = 256 << 10

// EntryText returns the searchable text of an entry and the role of its author: the text of a message with names and
// arguments of its calls, or the text of a summary, label or title. Thinking is not included. Control characters and
// invalid UTF-8 are removed. Of an entry without text both are "".
func EntryText(e transcript.Entry) (text, role string) {
	text, role, _ = said(e)
	return text, role
}

// said returns the searchable text of an entry and the role of its author. results reports whether the message also has
// tool results; then only its tree can determine whether the text belongs to them.
func said(e transcript.Entry) (text, role string, results bool) {
	if m, ok := e.Message(); ok {
		shape := transcript.Inspect(m.Raw)
		text, role = shape.Text, shape.Role
		if len(shape.Calls) > 0 {
			text += arguments(m.Raw)
		} else if role == "user" {
			text, role = typed(m.Raw, text)
		}
		return clean(text), role, len(shape.Results) > 0
	}
	if name, ok := e.Title(); ok {
		return clean(name), "", false
	}
	var f struct {
		Summary json.RawMessage `json:"summary"`
		Label   json.RawMessage `json:"label"`
		Content json.RawMessage `json:"content"`
	}
	switch e.Type {
	case "compaction", "branch_summary", "session_summary", "label", "custom_message":
	default:
		return "", "", false
	}
	if json.Unmarshal(e.Raw, &f) != nil {
		return "", "", false
	}
	switch e.Type {
	case "label":
		return clean(textOf(f.Label)), "", false
	case "custom_message":
		if typed := message.UserSent(e.Raw); typed != nil {
			return clean(message.ContentText(typed)), "user", false
		}
		return clean(message.ContentText(f.Content)), "", false
	}
	return clean(textOf(f.Summary)), "", false
}

// typed returns the part of a user message that a person wrote, and the role. If only programs wrote it, the role is
// custom.
func typed(raw json.RawMessage, text string) (own, role string) {
	m := message.Decode(raw)
	if m.Speaker == message.Program {
		return text, "custom"
	}
	if own = m.TypedText(); own == "" {
		own = text
	}
	return own, "user"
}

func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// arguments returns a line for each call in a message: the tool's name, and every string and number in its arguments.
func arguments(raw json.RawMessage) string {
	var b strings.Builder
	for _, block := range message.Decode(raw).Blocks {
		name := block.Called()
		if name == "" || b.Len() >= MaxText {
			continue
		}
		b.WriteString("\n" + name)
		var v any
		dec := json.NewDecoder(bytes.NewReader(block.Body))
		dec.UseNumber()
		if dec.Decode(&v) == nil {
			leaves(&b, v)
		}
	}
	return b.String()
}

// leaves writes every string and number of a value, including those within strings that are JSON.
func leaves(b *strings.Builder, v any) {
	if b.Len() > MaxText {
		return
	}
	switch v := v.(type) {
	case string:
		var inner any
		if strings.HasPrefix(v, "{") && json.Unmarshal([]byte(v), &inner) == nil {
			leaves(b, inner)
			return
		}
		b.WriteString(" " + v)
	case json.Number:
		b.WriteString(" " + v.String())
	case []any:
		for _, item := range v {
			leaves(b, item)
		}
	case map[string]any:
		for _, key := range sorted(v) {
			leaves(b, v[key])
		}
	}
}

func sorted(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// clean removes characters that are not readable text or that could deceive a terminal.
func clean(text string) string {
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\ufffd")
	}
	text = strings.TrimSpace(text)
	if !strings.ContainsFunc(text, unreadable) {
		return text
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unreadable(r) {
			return -1
		}
		return r
	}, text))
}

func unreadable(r rune) bool {
	return r != '\n' && r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// cut shortens a text at a rune boundary.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// oneLine replaces all white space by single spaces.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// folded returns the form of a text for comparisons: without regard to case, Unicode normal form and white space.
func folded(text string) string { return fold.Text(oneLine(text)) }
