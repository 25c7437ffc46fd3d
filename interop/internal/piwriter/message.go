package piwriter

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Losses of messages.
const (
	LostBlock  = "blocks that the format has no form for: kept as text"
	LostRole   = "messages of roles that the format does not have: kept as custom messages"
	LostShape  = "messages that lack what the format needs, or are in another provider's shape: rewritten"
	LostNobody = "messages that are no objects: kept as custom entries"
)

// Part is a message of pi, or the body of an entry of another type.
type Part struct {
	Type    string // "message", or the type of the entry
	Message []byte // of type "message"
	Body    []byte // else: an object of the entry's fields
}

// Dialect lists the roles and blocks that a target has in addition to pi's. They are written unchanged.
type Dialect struct {
	Roles  []string
	Blocks []string // in messages of the model
}

// Messages returns the parts of a message, at least one. at is the entry's time. If a call has no ID, the call and its
// result get the name of the tool as ID. A caller with the whole session should use CallIDs first, which makes better
// ones.
func Messages(raw []byte, at time.Time, d Dialect, lose func(kind string)) []Part {
	if len(raw) == 0 || raw[0] != '{' {
		lose(LostNobody)
		return []Part{{Type: "custom", Body: rawjson.Object("customType", []byte(`"message"`), "data", raw)}}
	}
	role := rawjson.Text(rawjson.Field(raw, "role"))
	if slices.Contains(d.Roles, role) || d.fine(role, raw) {
		return []Part{{Type: "message", Message: raw}}
	}
	n := normaliser{
		raw: raw, at: millis(at), lose: lose, m: message.Decode(raw),
		said:  slices.Concat([]string{"text", "thinking", "toolCall"}, d.Blocks),
		shown: slices.Concat([]string{"text", "image"}, d.Blocks),
	}
	if parts := n.known(role); parts != nil {
		lose(LostShape)
		return parts
	}
	if role == "branchSummary" {
		return []Part{{Type: "branch_summary", Body: rawjson.Object("fromId",
			stringOr(rawjson.Field(raw, "fromId"), "root"), "summary", stringOr(rawjson.Field(raw, "summary"), ""))}}
	}
	return n.other(role)
}

// known returns the parts of a message that has an equivalent in pi, or nil.
func (n *normaliser) known(role string) []Part {
	if message.ByModel(role, n.raw) {
		return n.assistant()
	}
	switch role {
	case "user", "human":
		return n.user("user")
	case "bashExecution":
		out, _ := fitFields(n.keep(role), messageFields[role])
		return []Part{{Type: "message", Message: out}}
	case "system":
		return n.user(role)
	case "custom", "hookMessage":
		return n.custom()
	case "":
		if n.m.Type != "function_call_output" && n.m.Type != "custom_tool_call_output" {
			return nil // an item of one of OpenAI's own tools
		}
	}
	if n.m.Speaker == message.Tool || role == "function" {
		return n.results()
	}
	return nil
}

// Content returns the content of a custom message in pi's form: text, or blocks of text and images.
func Content(val []byte, lose func(kind string)) []byte {
	if rawjson.IsString(val) || blocksFine(val, "text", "image") {
		return val
	}
	n := normaliser{raw: []byte("{}"), lose: lose, shown: []string{"text", "image"}}
	var list [][]byte
	for c := message.Content(val); c.Next(); {
		in := &c.Block
		if in.Kind != message.Result {
			list = append(list, n.block(in, n.shown))
			continue
		}
		for out := in.Content(); out.Next(); {
			list = append(list, n.block(&out.Block, n.shown))
		}
	}
	return rawjson.List(list)
}

// messageFields are the fields that a target requires in a message of each role, except its content.
var messageFields = map[string][]fieldRule{
	"user":       {{"timestamp", '0', ""}},
	"system":     {{"timestamp", '0', ""}},
	"assistant":  {{"timestamp", '0', ""}, {"api", '"', ""}, {"provider", '"', ""}, {"model", '"', ""}},
	"toolResult": {{"timestamp", '0', ""}, {"toolCallId", '"', ""}, {"toolName", '"', ""}, {"isError", 't', ""}},
	"bashExecution": {
		{"timestamp", '0', ""},
		{"command", '"', `""`},
		{"output", '"', `""`},
		{"cancelled", 't', "false"},
		{"truncated", 't', "false"},
	},
	"custom": {{"timestamp", '0', ""}, {"customType", '"', ""}, {"display", 't', ""}},
}

// fine reports whether the target can load the message unchanged.
func (d Dialect) fine(role string, raw []byte) bool {
	want := messageFields[role]
	if want == nil || !holdsAll(raw, want) {
		return false
	}
	content := rawjson.Field(raw, "content")
	switch role {
	case "user", "system":
		return rawjson.IsString(content) || d.blocks(content, "text", "image")
	case "assistant":
		return usageFine(rawjson.Field(raw, "usage")) && message.IsStop(rawjson.Field(raw, "stopReason")) &&
			d.blocks(content, "text", "thinking", "toolCall")
	case "toolResult":
		return blocksFine(content, "text", "image")
	case "custom":
		return rawjson.IsString(content) || blocksFine(content, "text", "image")
	}
	return true
}

// blocks reports whether list is a list of blocks of these types or the target's own.
func (d Dialect) blocks(list []byte, types ...string) bool {
	return blocksFine(list, slices.Concat(types, d.Blocks)...)
}

// usageFields are the fields that a target requires in a usage; the cost must have a total.
var usageFields = []fieldRule{
	{"input", '0', ""}, {"output", '0', ""}, {"cacheRead", '0', ""}, {"cacheWrite", '0', ""}, {"cost", '{', ""},
}

func usageFine(val []byte) bool {
	return holdsAll(val, usageFields) && rawjson.IsNumber(rawjson.Field(rawjson.Field(val, "cost"), "total"))
}

func isBool(val []byte) bool { return string(val) == "true" || string(val) == "false" }

// normaliser rewrites one message.
type normaliser struct {
	raw, at []byte
	m       message.Message
	lose    func(kind string)
	said    []string // blocks allowed in a message of the model
	shown   []string // blocks allowed in a message of the user
}

// keep returns the message without the given fields, with its new role and its time first.
func (n *normaliser) keep(role string, without ...string) []byte {
	out := rawjson.Object("role", rawjson.AppendString(nil, role))
	for m := rawjson.Walk(n.raw); m.Closing == '}' && m.Next(); {
		if key := string(m.Key); key != "role" && key != "timestamp" && !slices.Contains(without, key) {
			out = AddField(out, key, m.Val)
		}
	}
	return AddField(out, "timestamp", n.time())
}

// time returns the time of the message, or that of its entry.
func (n *normaliser) time() []byte {
	if at := rawjson.Field(n.raw, "timestamp"); rawjson.IsNumber(at) {
		return at
	}
	return n.at
}

func (n *normaliser) custom() []Part {
	out := n.keep("custom", "content", "customType", "display")
	display := rawjson.Field(n.raw, "display")
	if !isBool(display) {
		display = []byte("true")
	}
	out = AddField(out, "customType", stringOr(rawjson.Field(n.raw, "customType"), "message"))
	out = AddField(out, "display", display)
	return []Part{{Type: "message", Message: AddField(out, "content", Content(n.content(), n.lose))}}
}

// other keeps a message of another role as a custom message, which models see as a user message.
func (n *normaliser) other(role string) []Part {
	n.lose(LostRole)
	role = message.KeptAs(role)
	text := transcript.Inspect(n.raw).Text
	if s := rawjson.Text(rawjson.Field(n.raw, "summary")); text == "" {
		text = s
	}
	if files := message.Files(n.raw); text == "" && files != nil {
		text = strings.Join(files, "\n") + "\n"
	}
	if text == "" {
		text = "[" + role + "]"
	}
	var details []byte
	if _, err := rawjson.ValueEnd(n.raw, 0, rawjson.MaxDepth-4); err == nil {
		details = rawjson.Object("message", n.raw)
	}
	return []Part{{Type: "custom_message", Body: rawjson.Object("customType", rawjson.AppendString(nil, role),
		"content", rawjson.AppendString(nil, text), "display", []byte("true"), "details", details)}}
}

func stringOr(val []byte, def string) []byte {
	if rawjson.IsString(val) {
		return val
	}
	return rawjson.AppendString(nil, def)
}

// OrNull returns a string as JSON; "" is null.
func OrNull(s string) []byte {
	if s == "" {
		return []byte("null")
	}
	return rawjson.AppendString(nil, s)
}

// AddField appends a field to an object; nil = no field.
func AddField(object []byte, name string, val []byte) []byte {
	if val == nil {
		return object
	}
	object = object[:len(object)-1]
	if len(object) > 1 {
		object = append(object, ',')
	}
	return append(append(append(rawjson.AppendString(object, name), ':'), val...), '}')
}

// millis returns the Unix time in milliseconds, 0 for the zero time.
func millis(t time.Time) []byte {
	if t.IsZero() {
		return []byte("0")
	}
	return strconv.AppendInt(nil, t.UnixMilli(), 10)
}
