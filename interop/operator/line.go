package operator

import (
	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/pi/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// foreign stands before the type of an entry that pi has no type for.
const foreign = "operator."

// camel gives pi's names of an entry's fields; others have the same.
var camel = map[string]string{
	"thinking_level": "thinkingLevel", "model_id": "modelId", "provider_id": "provider",
	"first_kept_entry_id": "firstKeptEntryId", "tokens_before": "tokensBefore", "from_hook": "fromHook",
	"from_id": "fromId", "target_id": "targetId", "custom_type": "customType",
}

func knownType(typ string) bool {
	switch typ {
	case "message", "thinking_level_change", "model_change", "compaction", "branch_summary", "label", "leaf", "custom", "custom_message", "session_info":
		return true
	}
	return false
}

// convert gives the lines of an entry.
func (r *Reader) convert(o jsonl.Object) ([][]byte, error) {
	id, err := r.id(o)
	if err != nil {
		return nil, err
	}
	typ := o.Type
	if !knownType(typ) {
		typ = "custom"
	}
	var parent, at []byte
	var message []byte
	body := []byte("{}")
	for m := rawjson.Walk(o.Raw); m.Closing == '}' && m.Next(); {
		name := string(m.Key)
		switch name {
		case "type", "id":
			continue
		case "parent_id", "parentId":
			if rawjson.IsString(m.Val) && (parent == nil || name == "parent_id") {
				parent = r.tail(m.Val)
			}
			continue
		case "timestamp":
			at = isoTime(m.Val)
			continue
		}
		if typ != o.Type {
			body = add(body, name, m.Val)
			continue
		}
		if to, ok := camel[name]; ok {
			name = to
		}
		switch {
		case name == "message" && typ == "message":
			message = m.Val
		case name == "content" && typ == "custom_message":
			body = add(body, name, blocksOf(m.Val))
		case name == "targetId" && typ == "leaf":
			body = add(body, name, r.tail(m.Val))
		default:
			body = add(body, name, m.Val)
		}
	}
	if typ != o.Type {
		body = rawjson.Object("customType", rawjson.AppendString(nil, foreign+o.Type), "data", body)
	}
	if typ == "leaf" {
		parent, body = moved(parent, body)
	}
	p := place{typ: typ, id: id, parent: parent, at: at}
	if message == nil {
		line := p.line(nil, body)
		if _, err := transcript.ParseLine(line); err != nil { // one level deeper than it was
			r.in.Note("", o, diag.Oversize, "nested too deeply for an entry: its data is left out, the bytes are in the original file")
			line = p.line(nil, rawjson.WithField(body, "data", nil))
		}
		return [][]byte{line}, nil
	}
	return r.spread(p, r.message(message), body), nil
}

// moved gives a move of the head its place: below the entry that the head moved to, so that the way to it is the
// way that the session goes on from. Where it moved from is kept beside.
func moved(parent, body []byte) (to, with []byte) {
	if to = rawjson.Field(body, "targetId"); !rawjson.IsString(to) {
		to = nil
	}
	if parent != nil {
		body = add(body, "fromId", parent)
	}
	return to, body
}

// place is where an entry stands.
type place struct {
	typ, id    string
	parent, at []byte
}

func (p place) line(message, body []byte) []byte {
	out := rawjson.Object("type", rawjson.AppendString(nil, p.typ), "id", rawjson.AppendString(nil, p.id), "parentId", rawjson.OrNull(p.parent), "timestamp", p.at, "message", message)
	if len(body) > len("{}") {
		out = append(append(out[:len(out)-1], ','), body[1:]...)
	}
	return out
}

// spread writes the messages that an entry became one below the other. The first has the entry's id, for
// that is what others name; its children hang on the last.
func (r *Reader) spread(p place, messages [][]byte, body []byte) [][]byte {
	lines := make([][]byte, 0, len(messages))
	first := p.id
	for i, m := range messages {
		if i > 0 {
			p.parent = rawjson.AppendString(nil, p.id)
			p.id, body = partID(first, i), []byte("{}")
		}
		lines = append(lines, p.line(m, body))
	}
	if len(messages) > 1 {
		r.tails[first] = p.id
	}
	return lines
}

// oldMessage gives the lines of a message of the older form: each hangs on the one before.
func (r *Reader) oldMessage(o jsonl.Object) ([][]byte, error) {
	o.ID = ""
	id, err := r.id(o)
	if err != nil {
		return nil, err
	}
	raw := rawjson.Field(o.Raw, "timestamp")
	at := isoTime(raw)
	if at == nil {
		at = isoOf(r.stamp(o))
	}
	p := place{typ: "message", id: id, parent: nonEmpty(r.last), at: at}
	lines := r.spread(p, r.message(o.Raw), []byte("{}"))
	if r.last = id; len(lines) > 1 {
		r.last = r.tails[id]
		delete(r.tails, id)
	}
	return lines, nil
}
