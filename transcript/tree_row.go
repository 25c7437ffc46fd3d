package transcript

import (
	"math"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// RowOf returns the skeleton row of a line: what a tree shows and decides without the line itself. parent is
// the ordinal of the entry's parent, codec.NoParent for a root; the caller that commits the line has resolved it.
// FlagCommit, FlagOrphan and FlagDiagnosed are the caller's to set: a line does not know them.
//
// Role is the message's own, except that a user's message of nothing but results of tools has the role "toolResult",
// and one of nothing but texts that a program inserted has the role "custom". A custom message that carries out what
// the user typed has the role "user", and that as its preview. Preview is without such texts where a
// person wrote the rest, and is one line of at most 80 bytes, cut at a rune with "…". The target of a root that names a
// parent is that parent, unless it is a label: so that it can be told why the parent is not above it.
//
// The row of an amendment has FlagAmend, the amended entry as its target, and role, preview and flags of what that
// entry shows now, with FlagVisible unless it is hidden.
func RowOf(l Line, parent int64) codec.Row {
	r := codec.Row{ID: l.ID, Parent: parent, Type: l.Type, Size: uint32(min(len(l.Raw), math.MaxUint32))}
	if !l.Time.IsZero() {
		r.Time = l.Time.UnixMilli()
	}
	if classOf(l.Type, "")&classHidden == 0 {
		r.Flags |= codec.FlagVisible
	}
	var v preview
	a, amends := Entry{ID: l.ID, Type: l.Type, Raw: l.Raw}.Amendment()
	switch {
	case amends:
		amendmentRow(&r, &v, a)
	case l.Type == "message":
		messageRow(&r, &v, rawjson.Field(l.Raw, "message"))
	default:
		r.Target = entryRow(&v, l)
		r.Role = sender(l)
	}
	if parent == codec.NoParent && l.ParentID != "" && l.Type != "label" && !amends {
		r.Target = l.ParentID
	}
	if len(r.Role) > nameMax {
		r.Role = ""
	}
	if len(r.Target) > nameMax {
		r.Target = ""
	}
	r.Preview = v.String()
	return r
}

// amendmentRow describes the amended entry as its own row would, if it had the new body.
func amendmentRow(r *codec.Row, v *preview, a Amendment) {
	r.Flags |= codec.FlagAmend
	if a.Body != nil {
		r.Flags |= codec.FlagVisible
		if a.Type == "message" {
			messageRow(r, v, rawjson.Field(a.Body, "message"))
		} else {
			l := Line{Type: a.Type, Raw: a.Body}
			entryRow(v, l)
			r.Role = sender(l)
		}
	}
	r.Target = a.Target
}

// sender returns "user" of a custom message that carries out what the user typed, else "".
func sender(l Line) string {
	if l.Type == "custom_message" && message.UserSent(l.Raw) != nil {
		return "user"
	}
	return ""
}

func messageRow(r *codec.Row, v *preview, raw []byte) {
	p := readParts(raw)
	r.Role = p.Role
	switch {
	case p.Role != "user" || p.Typed:
	case len(p.Results) > 0:
		r.Role = "toolResult"
	case len(p.Texts) > 0 && !p.Attached:
		r.Role = "custom"
	}
	if len(p.Texts) > 0 {
		r.Flags |= codec.FlagText
	}
	if len(p.Calls) > 0 {
		r.Flags |= codec.FlagCalls
	}
	if p.Failed {
		r.Flags |= codec.FlagFailed
	}
	firstLine := len(p.Results) > 0
	for _, lit := range p.Speech() {
		if firstLine && !v.Empty() {
			break
		}
		v.Rune(' ')
		switch {
		case p.Typed:
			v.Literal(message.Typed(lit), firstLine)
		case r.Role != "assistant" && r.Role != "user":
			v.Generated(lit, firstLine)
		default:
			v.Literal(lit, firstLine)
		}
	}
	if v.Empty() {
		for _, c := range p.Calls {
			v.Call(c)
		}
	}
	if v.Empty() {
		v.Literal(p.ErrorText, false)
	}
}

// telling names the field of an entry type that a preview shows.
func telling(typ string) string {
	switch typ {
	case "label":
		return "label"
	case "compaction", "branch_summary", "session_summary":
		return "summary"
	case "model_change":
		return "modelId"
	case "thinking_level_change":
		return "thinkingLevel"
	case "session_info", "channel":
		return "name"
	case "title_change":
		return "title"
	case "mode_change":
		return "mode"
	case "service_tier_change":
		return "serviceTier"
	case "session_init":
		return "task"
	case "custom_message":
		return "content"
	case "usage":
		return "kind"
	case "model_usage":
		return "purpose"
	}
	return "customType"
}

// entryRow writes the preview of an entry that is no message, and returns the id of the entry it speaks of.
func entryRow(v *preview, l Line) (target string) {
	var main, provider, model, custom []byte
	name := telling(l.Type)
	m := rawjson.Walk(l.Raw)
	for m.Next() {
		switch key := string(m.Key); key {
		case name:
			main = m.Val
		case "targetId", "firstKeptEntryId", "fromId":
			target = rawjson.Text(m.Val)
		case "provider":
			provider = m.Val
		case "model":
			model = m.Val
		case "customType":
			custom = m.Val
		}
	}
	switch {
	case l.Type == "model_change" && rawjson.IsString(main):
		v.Literal(provider, false)
		v.Add("/")
		v.Literal(main, false)
	case l.Type == "model_change": // omp: provider and id in one
		v.Literal(model, false)
	case l.Type == "custom_message":
		say := v.Generated
		if typed := message.UserSent(l.Raw); typed != nil {
			main, say = typed, v.Literal
		}
		var p messageParts
		p.addContent(main)
		for _, lit := range p.Texts {
			v.Rune(' ')
			say(lit, false)
		}
		if v.Empty() {
			v.Literal(custom, false)
		}
	default:
		v.Literal(main, false)
	}
	return target
}
