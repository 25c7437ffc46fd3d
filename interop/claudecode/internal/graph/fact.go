package graph

import (
	"hash/maphash"
	"math"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
)

// fact is what the index takes from an object, as far as that alone tells. Its slices lie in the line.
type fact struct {
	row          Row
	typed, known bool
	named        bool   // it has an id
	uuid, parent []byte // ids that are no UUIDs
	sent         bool   // it is a piece of the provider's message msg
	msg          Key
	model        []byte
	calls        []called // what it calls, and answers
	answers      []Key
	mention      []byte // the id of an agent that it speaks of
	rank         int    // of a title; 0 = it is none
	title        []byte
	leaf         Key
	kept         *segment // of a compaction's boundary that keeps something

	stamp, cwd, session, agent []byte // of one that has a place in the file's tree
	side                       bool
}

// called is a call of a tool.
type called struct {
	id   Key
	tool []byte
}

// factOf reads an object by its head.
func (rd *reading) factOf(o *jsonl.Object, h *head) (f fact) {
	f.typed, f.known, f.side = h.typ != nil, h.known(), rawjson.IsTrue(h.side)
	f.stamp, f.cwd, f.session, f.agent = h.stamp, h.cwd, h.session, h.agent
	r := &f.row
	*r = Row{Offset: o.Offset, Line: int32(o.Number), At: int32(o.At), Size: int32(len(o.Raw)), parent: None, call: None, link: None, Up: None, end: None, tail: None}
	if o.Part {
		r.Flags |= FlagPart
		r.Size = int32(min(o.Size, math.MaxInt32))
	}
	if f.side {
		r.Flags |= FlagSide
	}
	if t, ok := jsonl.Stamp(h.stamp); ok {
		r.Time = t.UnixMilli()
		r.Flags |= FlagTimed
	}
	parent := h.parent
	if !rawjson.IsString(parent) {
		parent = h.logical
	}
	if id := text(parent); len(id) > 0 {
		r.Flags |= FlagNamed
		if k, isUUID := makeKey(id); isUUID {
			r.names = k
		} else {
			r.names, f.parent = k, id
		}
	}
	if id := text(h.uuid); len(id) > 0 {
		f.named = true
		if k, isUUID := makeKey(id); isUUID {
			r.Key = k
		} else {
			r.Key, f.uuid = k, id
		}
		r.sum = maphash.Bytes(rd.seed, o.Raw)
	}
	if rawjson.IsString(h.uuid) && len(h.uuid) > 2 {
		r.Kind = KindOther
	}
	if !o.Part {
		rd.sort(&f, h)
	}
	return f
}

// sort decides what becomes of a line, and notes what it calls and answers.
func (rd *reading) sort(f *fact, h *head) {
	switch string(h.typ) {
	case `"user"`:
		rd.user(f, h)
	case `"assistant"`:
		rd.assistant(f, h)
	case `"system"`:
		f.row.Flags |= FlagSystem
		if string(h.subtype) == `"compact_boundary"` {
			f.row.Kind = KindBoundary
			kept := rawjson.Field(h.compacted, "preservedSegment")
			if first := rawjson.Field(kept, "headUuid"); len(text(first)) > 0 {
				f.kept = &segment{KeyOf(first), KeyOf(rawjson.Field(kept, "tailUuid"))}
			}
		}
	case `"progress"`:
		f.mention = rawjson.Field(h.data, "agentId")
	case `"summary"`:
		f.rank, f.title, f.leaf = 1, h.title, KeyOf(h.leaf)
	case `"ai-title"`:
		f.rank, f.title = 2, h.title
	case `"agent-name"`:
		f.rank, f.title = 3, h.title
	case `"custom-title"`:
		f.rank, f.title = 4, h.title
	}
}

func (rd *reading) user(f *fact, h *head) {
	content := rawjson.Field(h.message, "content")
	switch {
	case len(content) == 0 || content[0] != '"' && content[0] != '[':
		return // nothing that could be said
	case rawjson.IsTrue(h.compact):
		f.row.Kind = KindSummary
		return
	}
	f.row.Kind = KindUser
	from := len(rd.answers)
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		var typ, id []byte
		for b := rawjson.Walk(m.Val); b.Closing == '}' && b.Next(); {
			switch string(b.Key) {
			case "type":
				typ = b.Val
			case "tool_use_id":
				id = b.Val
			}
		}
		if string(typ) != `"tool_result"` {
			f.row.Flags |= FlagText
			continue
		}
		f.row.Held++
		rd.answers = append(rd.answers, KeyOf(id))
	}
	f.answers = rd.answers[from:]
	if f.row.Held == 0 && rawjson.IsTrue(h.meta) {
		f.row.Kind = KindMeta
	}
	if f.row.Held > 0 && len(h.used) > 0 && h.used[0] == '{' {
		f.mention = rawjson.Field(h.used, "agentId")
	}
}

func (rd *reading) assistant(f *fact, h *head) {
	var content, model, id []byte
	for m := rawjson.Walk(h.message); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "content":
			content = m.Val
		case "model":
			model = m.Val
		case "id":
			id = m.Val
		}
	}
	if len(content) == 0 || content[0] != '"' && content[0] != '[' {
		return
	}
	f.row.Kind = KindAssistant
	if string(model) != `"<synthetic>"` {
		f.model = text(model)
	}
	if len(text(id)) > 0 {
		f.sent, f.msg = true, KeyOf(id)
	}
	from := len(rd.calls)
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		var typ, call, tool []byte
		for b := rawjson.Walk(m.Val); b.Closing == '}' && b.Next(); {
			switch string(b.Key) {
			case "type":
				typ = b.Val
			case "id":
				call = b.Val
			case "name":
				tool = b.Val
			}
		}
		if string(typ) == `"tool_use"` && len(text(call)) > 0 {
			rd.calls = append(rd.calls, called{KeyOf(call), text(tool)})
		}
	}
	f.calls = rd.calls[from:]
}
