package piwriter

import (
	"slices"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Kinds of losses.
const (
	LostBlock  = "blocks that the format has no form for: kept as text"
	LostRole   = "messages of roles that the format does not have: kept as custom messages"
	LostShape  = "messages that lack what the format needs, or are in another provider's shape: rewritten"
	LostNobody = "messages that are no objects: kept as custom entries"
)

// Part is one message that a message becomes: one of pi's, or the body of an entry of another type.
type Part struct {
	Type    string // "message", or the type of the entry
	Message []byte // of type "message"
	Body    []byte // else: an object of the entry's fields
}

// Dialect is what a target has beside pi's roles and blocks. Both go out as they are.
type Dialect struct {
	Roles  []string
	Blocks []string // in messages of the model
}

// Messages returns the parts of a message: never none. at is the entry's time. A call without an id is
// called by the name of its tool, and so is its result: a caller that has the whole session asks
// CallIDs for better ones first.
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
		raw: raw, at: millis(at), lose: lose,
		said:  append([]string{"text", "thinking", "toolCall"}, d.Blocks...),
		shown: append([]string{"text", "image"}, d.Blocks...),
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

// known returns the parts of a message that has a counterpart among pi's; nil = it has none.
func (n *normaliser) known(role string) []Part {
	if message.ByModel(role, n.raw) {
		return n.assistant()
	}
	switch role {
	case "user", "human":
		return n.user("user")
	case "toolResult", "tool", "function":
		return n.results()
	case "bashExecution":
		return n.rebuilt(role, "command", `""`, "output", `""`, "cancelled", "false", "truncated", "false")
	case "system":
		return n.user(role)
	case "custom", "hookMessage":
		return n.custom()
	case "":
		switch rawjson.Text(rawjson.Field(n.raw, "type")) {
		case "function_call_output", "custom_tool_call_output":
			return n.results()
		}
	}
	return nil
}

// Content returns the content of a custom message as pi has it: text, or blocks of text and images.
func Content(val []byte, lose func(kind string)) []byte {
	if rawjson.IsString(val) || blocksFine(val, "text", "image") {
		return val
	}
	n := normaliser{raw: []byte("{}"), lose: lose, shown: []string{"text", "image"}}
	out := []byte("[]")
	for _, r := range n.runs(val) {
		if r.result != nil {
			r.content = r.result.content
		}
		out = joined(out, n.only(r.content, "text", "image"))
	}
	return out
}

// messageHead are the fields of a message that say whether a target can load it.
type messageHead struct {
	content, usage, stop                        []byte
	timed, api, provider, model, call, tool     bool
	command, output, custom                     bool
	isError, cancelled, truncated, displayKnown bool
}

func readMessageHead(raw []byte) (l messageHead) {
	for m := rawjson.Walk(raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "timestamp":
			l.timed = rawjson.IsNumber(m.Val)
		case "content":
			l.content = m.Val
		case "usage":
			l.usage = m.Val
		case "stopReason":
			l.stop = m.Val
		case "api":
			l.api = rawjson.IsString(m.Val)
		case "provider":
			l.provider = rawjson.IsString(m.Val)
		case "model":
			l.model = rawjson.IsString(m.Val)
		case "toolCallId":
			l.call = rawjson.IsString(m.Val)
		case "toolName":
			l.tool = rawjson.IsString(m.Val)
		case "isError":
			l.isError = isBool(m.Val)
		case "command":
			l.command = rawjson.IsString(m.Val)
		case "output":
			l.output = rawjson.IsString(m.Val)
		case "cancelled":
			l.cancelled = isBool(m.Val)
		case "truncated":
			l.truncated = isBool(m.Val)
		case "customType":
			l.custom = rawjson.IsString(m.Val)
		case "display":
			l.displayKnown = isBool(m.Val)
		}
	}
	return l
}

// fine reports whether the target can load the message as it is.
func (d Dialect) fine(role string, raw []byte) bool {
	l := readMessageHead(raw)
	if !l.timed {
		return false
	}
	switch role {
	case "user", "system":
		return rawjson.IsString(l.content) || d.blocks(l.content, "text", "image")
	case "assistant":
		return l.api && l.provider && l.model && usageFine(l.usage) && message.IsStop(l.stop) &&
			d.blocks(l.content, "text", "thinking", "toolCall")
	case "toolResult":
		return l.call && l.tool && l.isError && blocksFine(l.content, "text", "image")
	case "bashExecution":
		return l.command && l.output && l.cancelled && l.truncated
	case "custom":
		return l.custom && l.displayKnown && (rawjson.IsString(l.content) || blocksFine(l.content, "text", "image"))
	}
	return false
}

// blocks reports a list of blocks of these types or the target's own.
func (d Dialect) blocks(list []byte, types ...string) bool {
	if len(d.Blocks) > 0 {
		types = append(types[:len(types):len(types)], d.Blocks...)
	}
	return blocksFine(list, types...)
}

func usageFine(val []byte) bool {
	n, total := 0, false
	for m := rawjson.Walk(val); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "input", "output", "cacheRead", "cacheWrite":
			if rawjson.IsNumber(m.Val) {
				n++
			}
		case "cost":
			total = rawjson.IsNumber(rawjson.Field(m.Val, "total"))
		}
	}
	return n == 4 && total
}

func isBool(val []byte) bool { return string(val) == "true" || string(val) == "false" }

// normaliser rewrites one message.
type normaliser struct {
	raw, at []byte
	lose    func(kind string)
	said    []string // blocks that a message of the model may have
	shown   []string // those that one of the user may have
}

// keep returns the message without the fields that are written anew, its role and its time in front.
func (n *normaliser) keep(role string, without ...string) []byte {
	out := rawjson.Object("role", rawjson.AppendString(nil, role))
	at := rawjson.Field(n.raw, "timestamp")
	if !rawjson.IsNumber(at) {
		at = n.at
	}
next:
	for m := rawjson.Walk(n.raw); m.Closing == '}' && m.Next(); {
		if string(m.Key) == "role" || string(m.Key) == "timestamp" {
			continue
		}
		for _, name := range without {
			if string(m.Key) == name {
				continue next
			}
		}
		out = AddField(out, string(m.Key), m.Val)
	}
	return AddField(out, "timestamp", at)
}

// rebuilt returns a message that has these fields, with a default where one is not of its default's type.
func (n *normaliser) rebuilt(role string, fields ...string) []Part {
	out := n.keep(role)
	for i := 0; i+1 < len(fields); i += 2 {
		val := rawjson.Field(n.raw, fields[i])
		if len(val) == 0 || (fields[i+1][0] == '"') != rawjson.IsString(val) ||
			fields[i+1][0] != '"' && !isBool(val) {
			out = rawjson.WithField(out, fields[i], []byte(fields[i+1]))
		}
	}
	return []Part{{Type: "message", Message: out}}
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

// other keeps a message of another role as a custom message, which models see as the user's.
func (n *normaliser) other(role string) []Part {
	n.lose(LostRole)
	role = message.KeptAs(role)
	text := transcript.Inspect(n.raw).Text
	if s := rawjson.Text(rawjson.Field(n.raw, "summary")); text == "" {
		text = s
	}
	if files := rawjson.Field(n.raw, "files"); text == "" && files != nil {
		text = filesText(files)
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

// filesText returns the text of omp's mentions of files.
func filesText(files []byte) string {
	var text []byte
	for m := rawjson.Walk(files); m.Closing == ']' && m.Next(); {
		text = append(append(append(text, rawjson.Text(rawjson.Field(m.Val, "path"))...), '\n'),
			rawjson.Text(rawjson.Field(m.Val, "content"))...)
		text = append(text, '\n')
	}
	return string(text)
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

// AddField appends a field to an object; nil adds none.
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

// joined returns one list of two.
func joined(a, b []byte) []byte {
	switch {
	case len(b) <= 2:
		return a
	case len(a) <= 2:
		return b
	}
	return append(append(append([]byte{}, a[:len(a)-1]...), ','), b[1:]...)
}

// millis is the Unix time in milliseconds, 0 for no time.
func millis(t time.Time) []byte {
	if t.IsZero() {
		return []byte("0")
	}
	return strconv.AppendInt(nil, t.UnixMilli(), 10)
}
