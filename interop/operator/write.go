package operator

import (
	"io"
	"iter"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// Losses in addition to those of the pi family.
const (
	LostLevel  = "thinking levels that operator does not have: kept as custom entries"
	LostImage  = "images in results of tools: operator's results are text"
	LostHidden = "commands that models were not to see: kept as custom entries"
)

var target = piwriter.Target{
	Convert: convertOut, Count: program.Count, Head: leaf, Title: named, Parent: "parent_id",
	Leaves: true,
}

var preparer = piwriter.Preparer{Audio: true}

// program converts the entries of a session to lines of pi, which are then converted to snake case.
var program = piwriter.Program{Shape: piwriter.Dialect{Blocks: []string{"image_url", "audio"}}}

// Write writes a session as a file that operator loads and opens at head, "" = before the first entry. Every line has
// all fields that operator requires: its loader would skip another one and lose its children. entries are pi v3 lines
// in the session's order; they are iterated twice, and both passes must yield the same lines. The losses count what
// operator's format cannot express, by kind.
func Write(
	w io.Writer, h interop.Header, entries iter.Seq2[transcript.Draft, error], head string,
) (interop.Losses, error) {
	losses, err := piwriter.WriteFile(w, headerOut(h), h.Title, entries, head, preparer.Target(target))
	return piwriter.AddHeaderLoss(losses, err, lostHeaderFields(h.Raw))
}

func headerOut(h interop.Header) []byte {
	raw := piwriter.Header(h)
	out := rawjson.Object("type", []byte(`"session"`), "version", []byte("3"), "id", rawjson.Field(raw, "id"),
		"timestamp", seconds(rawjson.Field(raw, "timestamp")), "cwd", rawjson.Field(raw, "cwd"))
	if parent := rawjson.Field(raw, "parentSession"); rawjson.IsString(parent) {
		out = piwriter.AddField(out, "parent_session", parent)
	}
	return out
}

// seconds returns an ISO-8601 string as seconds; other values as 0.
func seconds(val []byte) []byte {
	if s := secondsOf(val); s != nil {
		return s
	}
	return []byte("0.0")
}

func leaf(id, head, last string, at time.Time) []byte {
	return outLine("leaf", rawjson.AppendString(nil, id), piwriter.OrNull(last), seconds(isoOf(at)),
		rawjson.Object("target_id", piwriter.OrNull(head)))
}

func named(id, title, parent string, at time.Time) []byte {
	return outLine("session_info", rawjson.AppendString(nil, id), piwriter.OrNull(parent), seconds(isoOf(at)),
		rawjson.Object("name", rawjson.AppendString(nil, title)))
}

func outLine(typ string, id, parent, at, body []byte) []byte {
	out := rawjson.Object("type", rawjson.AppendString(nil, typ), "id", id, "parent_id", rawjson.OrNull(parent),
		"timestamp", at)
	if len(body) > len("{}") {
		out = append(append(out[:len(out)-1], ','), body[1:]...)
	}
	return out
}

// convertOut returns operator's lines for an entry.
func convertOut(l transcript.Line, lose func(kind string)) [][]byte {
	if l.Type == "leaf" {
		loseFields(l.Raw, l.Type, lose)
		target := rawjson.Field(l.Raw, "targetId")
		if !rawjson.IsString(target) {
			target = []byte("null")
		}
		return [][]byte{outLine("leaf", rawjson.Field(l.Raw, "id"), rawjson.Field(l.Raw, "parentId"),
			seconds(rawjson.Field(l.Raw, "timestamp")), rawjson.Object("target_id", target))}
	}
	if line := channel(l); line != nil {
		return [][]byte{line}
	}
	lines := program.Convert(l, lose)
	for i, raw := range lines {
		lines[i] = snake(raw, lose)
	}
	return lines
}

// channel returns the original of an entry of type channel, which the reader keeps as a custom entry.
func channel(l transcript.Line) []byte {
	if l.Type != "custom" || string(rawjson.Field(l.Raw, "customType")) != `"`+foreignPrefix+`channel"` {
		return nil
	}
	data := rawjson.Field(l.Raw, "data")
	if !rawjson.IsString(rawjson.Field(data, "name")) {
		return nil
	}
	for _, name := range []string{"chat_id", "user_id"} {
		if v := rawjson.Field(data, name); v != nil && !rawjson.IsString(v) && v[0] != 'n' {
			return nil
		}
	}
	return outLine("channel", rawjson.Field(l.Raw, "id"), rawjson.Field(l.Raw, "parentId"),
		seconds(rawjson.Field(l.Raw, "timestamp")), data)
}

var levels = map[string]bool{
	"off": true, "minimal": true, "low": true, "medium": true, "high": true, "xhigh": true,
	"max": true,
}

// snake returns operator's line for a line that pi loads.
func snake(raw []byte, lose func(kind string)) []byte {
	field := func(name string) []byte { return rawjson.Field(raw, name) }
	typ := rawjson.Text(field("type"))
	loseEntryFields(raw, typ, lose)
	if meta := rawjson.Field(raw, "meta"); typ == "message" && meta != nil && meta[0] != 'n' && metaOut(meta) == nil {
		lose(LostField)
	}
	line := func(typ string, body []byte) []byte {
		return outLine(typ, field("id"), field("parentId"), seconds(field("timestamp")), body)
	}
	switch typ {
	case "message":
		typ, body := messageOut(field("message"), lose)
		if meta := metaOut(field("meta")); typ == "message" && meta != nil {
			body = piwriter.AddField(body, "meta", meta)
		}
		return line(typ, body)
	case "thinking_level_change":
		if level := rawjson.Text(field("thinkingLevel")); !levels[level] {
			lose(LostLevel)
			return line("custom", rawjson.Object("custom_type", rawjson.AppendString(nil, message.KeptKind),
				"data", rawjson.Object("type", field("type"), "thinkingLevel", field("thinkingLevel"))))
		}
		return line(typ, rawjson.Object("thinking_level", field("thinkingLevel")))
	case "model_change":
		return line(typ, rawjson.Object("model_id", field("modelId"), "provider_id", field("provider")))
	case "compaction":
		kept := field("firstKeptEntryId")
		if !rawjson.IsString(kept) {
			kept = field("id") // its own ID: nothing is kept
		}
		return line(typ, rawjson.Object("summary", field("summary"), "first_kept_entry_id", kept,
			"tokens_before", whole(field("tokensBefore")),
			"details", field("details"), "from_hook", orFalse(field("fromHook"))))
	case "branch_summary":
		return line(typ, rawjson.Object("from_id", field("fromId"), "summary", field("summary"),
			"details", field("details"), "from_hook", orFalse(field("fromHook"))))
	case "label":
		return line(typ, rawjson.Object("label", field("label"), "target_id", field("targetId")))
	case "session_info":
		return line(typ, rawjson.Object("name", field("name")))
	case "custom_message":
		return line(typ, rawjson.Object("custom_type", field("customType"), "content", blocksOut(field("content")),
			"display", field("display"), "details", field("details")))
	}
	return line("custom", rawjson.Object("custom_type", field("customType"), "data", field("data")))
}

func orFalse(val []byte) []byte {
	if rawjson.IsTrue(val) {
		return val
	}
	return []byte("false")
}

// whole returns a number without its fraction, for fields that must be whole; negative numbers as 0.
func whole(val []byte) []byte {
	s, _, _ := strings.Cut(string(val), ".")
	if s == "" || s[0] == '-' || strings.ContainsAny(s, "eE") || len(s) > len("9007199254740993") {
		return []byte("0")
	}
	return []byte(s)
}

// metaOut returns operator's metadata of a message; nil = its loader would not accept it.
func metaOut(meta []byte) []byte {
	if len(meta) == 0 || meta[0] != '{' {
		return nil
	}
	for m := rawjson.Walk(meta); m.Closing == '}' && m.Next(); {
		fine := m.Val[0] == 'n'
		switch string(m.Key) {
		case "reply_to", "channel_message_id":
			fine = fine || m.Val[0] == '"'
		case "attachments":
			fine = fine || rawjson.Every(m.Val, func(v []byte) bool {
				mime := rawjson.OrNull(rawjson.Field(v, "mime_type"))
				return rawjson.IsString(rawjson.Field(v, "path")) && (mime[0] == 'n' || mime[0] == '"')
			})
		case "reactions":
			fine = fine || rawjson.Every(m.Val, rawjson.IsString)
		default:
			fine = true
		}
		if !fine {
			return nil
		}
	}
	return meta
}
