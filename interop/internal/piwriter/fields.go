package piwriter

import (
	"slices"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/transcript"
)

// fieldRule is what pi expects of one field of an entry, so that its reader does not reject the file.
type fieldRule struct {
	name string
	// kind is the expected type of the value: '"' string, '0' number, 't' boolean, '[' list, '{' object, 'n' object or
	// null, 'k' string or null, 's' string or list.
	kind byte
	// def replaces a value that is missing or of another type, as JSON. "" = such an entry is invalid. "?" = the field
	// is optional: a value of another type is removed.
	def string
}

// fieldRules are the rules for the fields of an entry, by its type.
var fieldRules = map[string][]fieldRule{
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

// headerFields are the optional fields of headers that only some programs have.
var headerFields = []fieldRule{
	{"title", '"', "?"},
	{"titleSource", '"', "?"},
	{"additionalDirectories", '[', "?"},
	{"previousSessionFiles", '[', "?"},
	{"providerPromptCacheKey", '"', "?"},
	{"internal", 't', "?"},
	{"workflow", '{', "?"},
}

// LostHeader is the kind of loss for header fields that the target program does not have.
const LostHeader = "fields of the header that the format does not have: left out"

// RemoveForeignFields returns a header without the headerFields that are not in own, the fields of the target program:
// with them the file would be detected as one of another program. lost is the number of removed fields, without titles,
// which the target stores in entries.
func RemoveForeignFields(header []byte, own ...string) (raw []byte, lost int) {
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

// AddHeaderLoss adds lost, the number of removed header fields, to the losses of a written file.
func AddHeaderLoss(losses interop.Losses, err error, lost int) (interop.Losses, error) {
	if err == nil && lost > 0 {
		losses[LostHeader] += lost
	}
	return losses, err
}

// holds reports whether a value, as JSON, has the type of the rule; false if it is missing.
func (f fieldRule) holds(val []byte) bool {
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

// fitFields returns an entry with its fields corrected by the rules want. It returns false if a field without a default
// is missing or of another type.
func fitFields(raw []byte, want []fieldRule) ([]byte, bool) {
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

// retyped returns an entry with the id, parent and timestamp of l, another type, and the fields of the object body.
func retyped(l transcript.Line, typ string, body []byte) []byte {
	out := rawjson.Object("type", rawjson.AppendString(nil, typ), "id", rawjson.Field(l.Raw, "id"),
		"parentId", rawjson.OrNull(rawjson.Field(l.Raw, "parentId")), "timestamp", rawjson.Field(l.Raw, "timestamp"))
	if len(body) > len("{}") {
		out = append(append(out[:len(out)-1], ','), body[1:]...)
	}
	return out
}

// wrapped returns an entry of type custom whose data contains all of l, for a program that does not have the type of l.
// restored is its inverse. If the result would be nested too deeply it has no data.
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
	if _, err := transcript.ParseLine(out); err != nil { // data is one level deeper than l was
		out = rawjson.WithField(out, "data", nil)
	}
	return out
}

// restored returns the entry in an entry that wrapped made, if program m has its type. Else it returns l.
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

// foreignModel reports whether program m cannot express the model that the entry l sets.
func (m Program) foreignModel(l transcript.Line) bool {
	lost := false
	m.model(l, func(string) { lost = true })
	return lost
}
