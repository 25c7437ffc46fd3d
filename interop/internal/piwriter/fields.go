package piwriter

import (
	"slices"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// requiredField is a field that an entry needs, or whose type matters if it exists.
type requiredField struct {
	name string
	// kind is the type of its value: '"' string, '0' number, 't' boolean, '[' list, '{' object, 'n' object or null, 'k'
	// string or null, 's' string or list
	kind byte
	def  string // value if it is missing or of another type; "" = the entry is invalid; "?" = the field is removed
}

var requiredFields = map[string][]requiredField{
	"thinking_level_change": {{"thinkingLevel", '"', `"off"`}, {"configured", 'k', "?"}},
	"compaction": {
		{"summary", '"', `""`},
		{"tokensBefore", '0', "0"},
		{"firstKeptEntryId", 'k', "?"},
		{"fromHook", 't', "?"},
		{"shortSummary", '"', "?"},
		{"preserveData", '{', "?"},
		{"fromExtension", 't', "?"},
	},
	"branch_summary": {{"fromId", '"', `"root"`}, {"summary", '"', `""`}, {"fromHook", 't', "?"}},
	"custom":         {{"customType", '"', `"custom"`}},
	"custom_message": {{"customType", '"', `"message"`}, {"display", 't', "true"}},
	"label":          {{"targetId", '"', ""}, {"label", '"', "?"}},
	"session_info":   {{"name", '"', "?"}},
	"usage": {
		{"kind", '"', ""},
		{"provider", '"', ""},
		{"model", '"', ""},
		{"usage", '{', ""},
		{"note", '"', "?"},
	},
	"context_edit":        {{"targetId", '"', ""}, {"replacement", 'n', ""}},
	"active_tools_change": {{"activeToolNames", '[', ""}},
	"service_tier_change": {{"serviceTier", 'n', "null"}},
	"mode_change":         {{"mode", '"', ""}, {"data", '{', "?"}},
	"ttsr_injection":      {{"injectedRules", '[', ""}},
	"session_init":        {{"systemPrompt", 's', ""}, {"task", '"', ""}, {"tools", '[', ""}},
	"model_usage": {
		{"purpose", '"', ""},
		{"api", '"', ""},
		{"provider", '"', ""},
		{"model", '"', ""},
		{"usage", '{', ""},
		{"stopReason", '"', ""},
	},
	"title_change":       {{"title", '"', `""`}, {"source", '"', `"user"`}},
	"credential_pin":     {{"provider", '"', ""}, {"hash", '"', ""}},
	"context_compaction": {{"deletedTargets", '[', ""}, {"protectedEntryIds", '[', ""}},
	"session_summary":    {{"summary", '"', ""}, {"summarizedThroughId", '"', ""}},
}

// headerFields are optional fields in the headers of some programs.
var headerFields = []requiredField{
	{"title", '"', "?"},
	{"titleSource", '"', "?"},
	{"additionalDirectories", '[', "?"},
	{"previousSessionFiles", '[', "?"},
	{"providerPromptCacheKey", '"', "?"},
	{"internal", 't', "?"},
	{"workflow", '{', "?"},
}

// LostHeader is the loss of header fields that only other programs have.
const LostHeader = "fields of the header that the format does not have: left out"

// KeepFields removes other programs' fields from a header, because the file would be taken for theirs. It counts the
// removed fields. Titles do not count: the target stores them elsewhere. own are the target's fields.
func KeepFields(header []byte, own ...string) (raw []byte, lost int) {
	for _, f := range headerFields {
		if slices.Contains(own, f.name) || rawjson.Field(header, f.name) == nil {
			continue
		}
		header = rawjson.WithField(header, f.name, nil)
		if f.name != "title" && f.name != "titleSource" {
			lost++
		}
	}
	return header, lost
}

// AddHeaderLoss adds removed header fields to the losses of a file.
func AddHeaderLoss(losses interop.Losses, err error, lost int) (interop.Losses, error) {
	if err == nil && lost > 0 {
		losses[LostHeader] += lost
	}
	return losses, err
}

func (f requiredField) holds(val []byte) bool {
	if len(val) == 0 {
		return false
	}
	switch f.kind {
	case '0':
		return rawjson.IsNumber(val)
	case 't':
		return val[0] == 't' || val[0] == 'f'
	case 'n':
		return val[0] == 'n' || val[0] == '{'
	case 'k':
		return val[0] == '"' || val[0] == 'n'
	case 's':
		return val[0] == '"' || val[0] == '['
	}
	return val[0] == f.kind
}

// fitFields returns a line with its fields corrected, or false if one without a default is missing.
func fitFields(raw []byte, want []requiredField) ([]byte, bool) {
	for _, f := range want {
		val := rawjson.Field(raw, f.name)
		switch {
		case f.holds(val), val == nil && f.def == "?":
		case f.def == "":
			return nil, false
		case f.def == "?":
			raw = rawjson.WithField(raw, f.name, nil)
		default:
			raw = rawjson.WithField(raw, f.name, []byte(f.def))
		}
	}
	return raw, true
}

// retyped returns a line of another type in place of an entry.
func retyped(l transcript.Line, typ string, body []byte) []byte {
	out := rawjson.Object("type", rawjson.AppendString(nil, typ), "id", rawjson.Field(l.Raw, "id"),
		"parentId", rawjson.OrNull(rawjson.Field(l.Raw, "parentId")), "timestamp", rawjson.Field(l.Raw, "timestamp"))
	if len(body) > len("{}") {
		out = append(append(out[:len(out)-1], ','), body[1:]...)
	}
	return out
}

// wrapped keeps an entry whole within one of type custom.
func wrapped(l transcript.Line) []byte {
	data := []byte(`{"type":`)
	data = append(rawjson.AppendString(data, l.Type), '}')
	for m := rawjson.Walk(l.Raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type", "id", "parentId", "timestamp":
			continue
		}
		data = append(rawjson.AppendString(append(data[:len(data)-1], ','), string(m.Key)), ':')
		data = append(append(data, m.Val...), '}')
	}
	out := retyped(l, "custom", rawjson.Object("customType", rawjson.AppendString(nil, message.KeptKind),
		"data", data))
	if _, err := transcript.ParseLine(out); err != nil { // one level deeper than before
		out = rawjson.WithField(out, "data", nil)
	}
	return out
}

// restored returns the original of an entry that another program could not express and this one can.
func (m Program) restored(l transcript.Line) transcript.Line {
	if rawjson.Text(rawjson.Field(l.Raw, "customType")) != message.KeptKind {
		return l
	}
	data := rawjson.Field(l.Raw, "data")
	typ := rawjson.Text(rawjson.Field(data, "type"))
	known := m.has(typ) || typ == "model_change" || typ == "session_info" || typ == "title_change"
	if !known || typ == "custom" || len(data) == 0 || data[0] != '{' {
		return l
	}
	for _, name := range []string{"type", "id", "parentId", "timestamp"} {
		data = rawjson.WithField(data, name, nil)
	}
	was := l
	was.Type, was.Raw = typ, retyped(l, typ, data)
	if typ == "model_change" && m.foreignModel(was) {
		return l
	}
	return was
}

func (m Program) foreignModel(l transcript.Line) bool {
	lost := false
	m.model(l, func(string) { lost = true })
	return lost
}
