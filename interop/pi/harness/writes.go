package harness

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// body returns the type and fields of the harness's entry for a line; nil = there is no such entry.
func (a *appender) body(l transcript.Line) []byte {
	fields := func(typ string, pairs ...any) []byte {
		return rawjson.Object(append([]any{"type", rawjson.AppendString(nil, typ)}, pairs...)...)
	}
	get := func(name string) []byte { return rawjson.Field(l.Raw, name) }
	hook := []byte("false")
	if rawjson.IsTrue(get("fromHook")) {
		hook = []byte("true")
	}
	switch l.Type {
	case "message", "custom_message":
		return fields("message", "message", messageOf(l))
	case "custom":
		return fields("custom", "customType", get("customType"), "data", get("data"))
	case "branch_summary":
		from, ok := a.known(get("fromId"))
		if !ok || string(from) == `"root"` {
			from = []byte("null")
		}
		return fields("branch_summary", "fromId", from, "summary", get("summary"), "details", get("details"), "usage",
			get("usage"), "fromHook", hook)
	case "compaction":
		tail := []byte{'['}
		for _, id := range a.tails[l.ID] {
			for _, m := range a.kept[id] {
				if len(tail) > 1 {
					tail = append(tail, ',')
				}
				tail = append(tail, m...)
			}
		}
		return fields("compaction", "summary", get("summary"), "retainedTail", append(tail, ']'), "tokensBefore",
			get("tokensBefore"), "details", get("details"), "usage", get("usage"), "fromHook", hook)
	case "model_change":
		if a.Old {
			return fields(l.Type, "provider", get("provider"), "modelId", get("modelId"))
		}
	case "thinking_level_change":
		if a.Old {
			return fields(l.Type, "thinkingLevel", get("thinkingLevel"))
		}
	case "active_tools_change":
		if a.Old {
			return fields(l.Type, "activeToolNames", get("activeToolNames"))
		}
	case "context_edit":
		a.losses[lostHarness]++
		return fields("custom", "customType", rawjson.AppendString(nil, message.KeptKind),
			"data", rawjson.Object("type", []byte(`"context_edit"`), "targetId", get("targetId"),
				"replacement", get("replacement")))
	}
	return nil
}

// number returns the next sequence number.
func (a *appender) number() []byte {
	a.Seq++
	return strconv.AppendInt(nil, a.Seq, 10)
}

// entry writes an entry on the main lane, after a move of the lane to the parent if necessary.
func (a *appender) entry(l transcript.Line, parent string, at, body []byte) {
	id := piwriter.OrNull(l.ID)
	if a.Old {
		if parent != a.Tip {
			a.writes(rawjson.Object("kind", []byte(`"lane"`), "seq", a.number(), "lane", []byte(`"main"`),
				"leafId", piwriter.OrNull(parent)))
		}
		head := rawjson.Object("kind", []byte(`"entry"`), "lane", []byte(`"main"`), "id", id)
		a.writes(joined(head, body, rawjson.Object("parentId", piwriter.OrNull(parent), "seq", a.number(),
			"timestamp", at)))
	} else {
		head := rawjson.Object("kind", []byte(`"entry"`), "id", id, "parentId", piwriter.OrNull(parent))
		a.writes(joined(head, body, rawjson.Object("seq", a.number(), "timestamp", at)),
			a.set(nsTip, []byte(`"main"`), id))
	}
	a.Tip = l.ID
}

// joined returns one object with the members of several.
func joined(objects ...[]byte) []byte {
	out := []byte{'{'}
	for _, o := range objects {
		out = append(append(out, o[1:len(o)-1]...), ',')
	}
	out[len(out)-1] = '}'
	return out
}

func (a *appender) set(namespace string, key, val []byte) []byte {
	op := []byte(`"set"`)
	if val == nil {
		op = []byte(`"delete"`)
	}
	return rawjson.Object("kind", []byte(`"value"`), "op", op, "seq", a.number(), "namespace", []byte(namespace),
		"key", key, "value", val)
}

// writes writes one transaction.
func (a *appender) writes(writes ...[]byte) {
	out := writes[0]
	if len(writes) > 1 {
		out = append(append([]byte{'['}, bytes.Join(writes, []byte{','})...), ']')
	}
	if _, err := a.w.Write(append(out, '\n')); err != nil {
		a.err = fmt.Errorf("write: %w", err)
	}
}

// setting writes a setting that the harness keeps outside of its entries, or returns false if it has none for the line.
func (a *appender) setting(l transcript.Line, at []byte) bool {
	get := func(name string) []byte { return rawjson.Field(l.Raw, name) }
	switch l.Type {
	case "label":
		target, ok := a.known(get("targetId"))
		if !ok {
			return false
		}
		a.label(target, filled(get("label")))
	case "session_info":
		a.name(filled(get("name")))
	case "leaf":
		if to := a.at(rawjson.Text(get("targetId"))); to != a.Tip {
			a.move(to)
		}
	case "usage":
		details := rawjson.Object("kind", get("kind"), "provider", get("provider"), "model", get("model"),
			"note", get("note"))
		if a.Old {
			a.writes(rawjson.Object("kind", []byte(`"record"`), "id", piwriter.OrNull(l.ID), "lane", []byte(`"main"`),
				"type", []byte(`"usage"`), "usage", get("usage"), "cause", []byte(`"adjustment"`), "details", details,
				"seq", a.number(), "timestamp", at))
		} else {
			a.writes(rawjson.Object("kind", []byte(`"usage"`), "id", piwriter.OrNull(l.ID), "usage", get("usage"),
				"adjustment", []byte("true"), "details", details, "seq", a.number()))
		}
	case "model_change", "thinking_level_change", "active_tools_change":
		return a.configure(l.Type, get)
	default:
		return false
	}
	return true
}

func filled(val []byte) []byte {
	if rawjson.Text(val) == "" {
		return nil
	}
	return val
}

func (a *appender) label(target, label []byte) {
	if a.Old {
		a.writes(rawjson.Object("kind", []byte(`"fact"`), "seq", a.number(), "fact", []byte(`"label"`),
			"targetId", target, "label", label))
		return
	}
	a.writes(a.set(nsLabel, target, label))
}

func (a *appender) name(name []byte) {
	if a.Old {
		a.writes(rawjson.Object("kind", []byte(`"fact"`), "seq", a.number(), "fact", []byte(`"name"`), "name", name))
		return
	}
	a.writes(a.set(nsName, []byte(`""`), name))
}

func (a *appender) move(to string) {
	a.Tip = to
	if a.Old {
		a.writes(rawjson.Object("kind", []byte(`"lane"`), "seq", a.number(), "lane", []byte(`"main"`),
			"leafId", piwriter.OrNull(to)))
		return
	}
	a.writes(a.set(nsTip, []byte(`"main"`), piwriter.OrNull(to)))
}

// configure changes the main lane's configuration, which is one value; a file without it gets none.
func (a *appender) configure(typ string, get func(string) []byte) bool {
	if a.Model == "" || a.Thinking == "" || a.Tools == "" {
		return false
	}
	switch typ {
	case "model_change":
		a.Provider, a.Model = rawjson.Text(get("provider")), rawjson.Text(get("modelId"))
	case "thinking_level_change":
		a.Thinking = rawjson.Text(get("thinkingLevel"))
	case "active_tools_change":
		a.Tools = string(get("activeToolNames"))
	}
	model := rawjson.Object("provider", piwriter.OrNull(a.Provider), "modelId", piwriter.OrNull(a.Model))
	a.writes(a.set(nsConfig, []byte(`"main"`), rawjson.Object("model", model,
		"thinkingLevel", piwriter.OrNull(a.Thinking),
		"activeToolNames", []byte(a.Tools))))
	return true
}

// messageOf returns the message to the model in an entry; nil = none.
func messageOf(l transcript.Line) []byte {
	at := strconv.AppendInt(nil, l.Time.UnixMilli(), 10)
	switch l.Type {
	case "message":
		return bytes.Clone(rawjson.Field(l.Raw, "message"))
	case "custom_message":
		role := []byte(`"custom"`)
		if kind := rawjson.Field(l.Raw, "customType"); string(kind) == `"pi-harness.retained"` {
			return rawjson.Object("role", []byte(`"user"`), "content", rawjson.Field(l.Raw, "content"),
				"timestamp", at)
		}
		return rawjson.Object("role", role, "customType", rawjson.Field(l.Raw, "customType"),
			"content", rawjson.Field(l.Raw, "content"),
			"display", rawjson.Field(l.Raw, "display"), "details", rawjson.Field(l.Raw, "details"), "timestamp", at)
	case "branch_summary":
		return rawjson.Object("role", []byte(`"branchSummary"`), "summary", rawjson.Field(l.Raw, "summary"),
			"fromId", rawjson.Field(l.Raw, "fromId"), "timestamp", at)
	}
	return nil
}
