package piwriter

import (
	"slices"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// Losses of entries.
const (
	LostType       = "entries of types that the format does not have: kept as custom entries"
	lostFields     = "entries without a field that the format needs: kept as custom entries"
	LostModel      = "changes of the model of another role than the default one: kept as custom entries"
	lostRemote     = "compactions whose history only the provider can read: their summary counts"
	lostCompaction = "compactions that atomic does not apply: the whole conversation is its context"
	LostEdit       = "edits of the context: kept as custom entries, the context shows what was edited"
	lostLeaf       = "moves of the head: kept as custom entries, the file ends at the head"
)

// Program is a program of the family.
type Program struct {
	Types    []string // types of entries in addition to pi 0.73's
	Shape    Dialect  // of messages
	Models   bool     // the model is one string, "provider/id"; else two
	Titles   bool     // title_change names a session; else session_info
	NoSystem bool     // it has no messages of role system
	Verbatim bool     // only compactions of strategy "verbatim-lines" count
}

// Target returns the Target that writes files of the program.
func (m Program) Target() Target {
	t := Target{Convert: m.Convert, Count: m.Count, Head: headEntry, Parent: "parentId"}
	if !m.Titles {
		t.Title = func(id, title, parent string, at time.Time) []byte {
			return newEntry("session_info", id, parent, at, "name", rawjson.AppendString(nil, title))
		}
	}
	return t
}

// headEntry makes an entry without content, below the one at which the file must open.
func headEntry(id, head, _ string, at time.Time) []byte {
	return newEntry("custom", id, head, at, "customType", []byte(`"coppice.head"`))
}

func newEntry(typ, id, parent string, at time.Time, name string, val []byte) []byte {
	return rawjson.Object("type", rawjson.AppendString(nil, typ), "id", rawjson.AppendString(nil, id),
		"parentId", OrNull(parent),
		"timestamp", isoTime(at), name, val)
}

// isoTime returns a time in pi's form; the zero time becomes 1970.
func isoTime(at time.Time) []byte {
	if y := at.Year(); at.IsZero() || y < 1970 || y > 9999 {
		at = time.Unix(0, 0)
	}
	return []byte(at.UTC().Format(`"2006-01-02T15:04:05.000Z"`))
}

// Header returns a header that the family loads: version 3, with an ID, a time and a directory. Other fields stay,
// unless a program could not read their type.
func Header(h interop.Header) []byte {
	raw := h.Raw
	if l, err := transcript.ParseLine(raw); err != nil || l.Type != "session" {
		raw = []byte(`{"type":"session"}`)
	}
	need := func(name string, ok bool, val []byte) {
		if !ok {
			raw = rawjson.WithField(raw, name, val)
		}
	}
	text := func(name string) string { return rawjson.Text(rawjson.Field(raw, name)) }
	v := rawjson.Field(raw, "version")
	need("version", rawjson.IsNumber(v) && string(v) == "3", []byte("3"))
	need("id", text("id") != "", rawjson.AppendString(nil, orElse(h.ID, "session")))
	need("timestamp", rawjson.IsString(rawjson.Field(raw, "timestamp")) &&
		!rawjson.Time(rawjson.Field(raw, "timestamp")).IsZero(), isoTime(h.Created))
	need("cwd", rawjson.IsString(rawjson.Field(raw, "cwd")), rawjson.AppendString(nil, h.Cwd))
	need("parentSession", rawjson.Field(raw, "parentSession") == nil || text("parentSession") != "", nil)
	if h.Parent != "" {
		need("parentSession", text("parentSession") != "", rawjson.AppendString(nil, h.Parent))
	}
	raw, _ = fitFields(raw, headerFields)
	return raw
}

func orElse(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// Convert returns the lines of an entry in the program's form.
func (m Program) Convert(l transcript.Line, lose func(kind string)) [][]byte {
	at, body := timeAndMessage(l.Raw)
	if !rawjson.IsString(at) || l.Time.IsZero() {
		l.Raw = rawjson.WithField(l.Raw, "timestamp", isoTime(l.Time))
	}
	if l.Type == "custom" {
		l = m.restored(l)
	}
	switch l.Type {
	case "message":
		return m.message(l, body, lose)
	case "model_change":
		return [][]byte{m.model(l, lose)}
	case "session_info", "title_change":
		return [][]byte{m.title(l, lose)}
	case "custom_message":
		content := rawjson.Field(l.Raw, "content")
		if fit := Content(content, lose); len(fit) != len(content) || string(fit) != string(content) {
			l.Raw = rawjson.WithField(l.Raw, "content", fit)
		}
	case "compaction":
		m.compaction(l, lose)
	}
	if !m.has(l.Type) {
		switch l.Type {
		case "context_edit":
			lose(LostEdit)
		case "leaf":
			lose(lostLeaf)
		default:
			lose(LostType)
		}
		return [][]byte{wrapped(l)}
	}
	needed := fieldRules[l.Type]
	if m.Models && l.Type == "thinking_level_change" &&
		string(rawjson.OrNull(rawjson.Field(l.Raw, "thinkingLevel"))) == "null" {
		needed = needed[1:] // optional there
	}
	raw, ok := fitFields(l.Raw, needed)
	if !ok {
		lose(lostFields)
		return [][]byte{wrapped(l)}
	}
	return [][]byte{raw}
}

// Count returns the number of lines that Convert returns: only messages with tool results become several.
func (m Program) Count(l transcript.Line) int {
	if l.Type != "message" {
		return 1
	}
	raw := rawjson.Field(l.Raw, "message")
	if message.ByModel(rawjson.Text(rawjson.Field(raw, "role")), raw) {
		return 1
	}
	return len(Messages(raw, l.Time, m.Shape, func(string) {}))
}

// timeAndMessage returns an entry's time stamp and its message.
func timeAndMessage(line []byte) (at, message []byte) {
	for m := rawjson.Walk(line); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "timestamp":
			at = m.Val
		case "message":
			message = m.Val
		}
	}
	return at, message
}

func (m Program) has(typ string) bool {
	switch typ {
	case "thinking_level_change", "compaction", "branch_summary", "custom", "custom_message", "label":
		return true
	}
	return slices.Contains(m.Types, typ)
}

func (m Program) compaction(l transcript.Line, lose func(kind string)) {
	strategy := string(rawjson.Field(rawjson.Field(l.Raw, "details"), "strategy"))
	switch {
	case m.Verbatim && strategy != `"verbatim-lines"`:
		lose(lostCompaction)
	case !m.Titles && rawjson.Field(rawjson.Field(l.Raw, "preserveData"), "openaiRemoteCompaction") != nil:
		lose(lostRemote)
	}
}

// message returns a message's lines: more than one if it has tool results.
func (m Program) message(l transcript.Line, raw []byte, lose func(kind string)) [][]byte {
	parts := Messages(raw, l.Time, m.Shape, lose)
	lines := make([][]byte, 0, len(parts))
	for _, p := range parts {
		switch {
		case p.Type != "message":
			lines = append(lines, retyped(l, p.Type, p.Body))
			continue
		case m.NoSystem && string(rawjson.Field(p.Message, "role")) == `"system"`:
			lose(LostRole)
			lines = append(lines, retyped(l, "custom_message",
				rawjson.Object("customType", []byte(`"system"`), "content", rawjson.Field(p.Message, "content"),
					"display", []byte("true"))))
			continue
		}
		if len(parts) == 1 && len(p.Message) == len(raw) && &p.Message[0] == &raw[0] {
			return [][]byte{l.Raw}
		}
		lines = append(lines, rawjson.WithField(l.Raw, "message", p.Message))
	}
	return lines
}

// model returns a model change in the program's form.
func (m Program) model(l transcript.Line, lose func(kind string)) []byte {
	provider, id := rawjson.Text(rawjson.Field(l.Raw, "provider")), rawjson.Text(rawjson.Field(l.Raw, "modelId"))
	model := rawjson.Text(rawjson.Field(l.Raw, "model"))
	role := rawjson.Text(rawjson.Field(l.Raw, "role"))
	switch {
	case m.Models && model != "", !m.Models && provider != "" && id != "" && (role == "" || role == "default"):
		return l.Raw
	case m.Models && id != "":
		if model = id; provider != "" {
			model = provider + "/" + id
		}
		raw := rawjson.WithField(rawjson.WithField(l.Raw, "provider", nil), "modelId", nil)
		return rawjson.WithField(raw, "model", rawjson.AppendString(nil, model))
	case !m.Models && role != "" && role != "default":
		lose(LostModel)
		return wrapped(l)
	}
	provider, id, ok := strings.Cut(model, "/")
	if m.Models || !ok || provider == "" || id == "" {
		lose(lostFields)
		return wrapped(l)
	}
	raw := rawjson.WithField(l.Raw, "model", nil)
	return rawjson.WithField(rawjson.WithField(raw, "provider", rawjson.AppendString(nil, provider)), "modelId",
		rawjson.AppendString(nil, id))
}

// title returns a session title in the program's form.
func (m Program) title(l transcript.Line, lose func(kind string)) []byte {
	e := transcript.Entry{Type: l.Type, Raw: l.Raw}
	name, _ := e.Title()
	switch {
	case m.Titles && l.Type == "session_info":
		return retyped(l, "title_change", rawjson.Object("title", rawjson.AppendString(nil, name),
			"source", []byte(`"user"`)))
	case !m.Titles && l.Type == "title_change":
		lose(lostTitle)
		return retyped(l, "session_info", rawjson.Object("name", rawjson.AppendString(nil, name)))
	}
	raw, ok := fitFields(l.Raw, fieldRules[l.Type])
	if !ok {
		lose(lostFields)
		return wrapped(l)
	}
	return raw
}

// lostTitle is the loss of a title's origin.
const lostTitle = "titles: who gave them, and what they were before"
