package claudecode

import (
	"hash/maphash"
	"math"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// lineFacts is what the index reads from one object, without regard to other lines. Its slices are parts of the line.
type lineFacts struct {
	row          lineRow
	typed, known bool
	damaged      bool   // only its place is known
	named        bool   // it has an ID
	uuid, parent []byte // IDs that are not UUIDs
	sent         bool   // it is a piece of the provider's message msg
	msg          lineKey
	model        []byte
	calls        []toolUse // its calls and answers
	answers      []lineKey
	mention      []byte // ID of an agent that it names
	run          []byte // ID of a workflow run that it names
	rank         int    // of a title; 0 = none
	title        []byte
	leaf         lineKey
	prompted     bool   // leaf is the current position of the session
	outright     bool   // leaf was set because the user went back there
	compacted    []byte // metadata of a compaction's boundary
	forked       []byte // ID of the row of another file after which this one begins

	stamp, cwd, session, agent []byte // of a line in the file's tree
	side                       bool
}

// toolUse is a tool call.
type toolUse struct {
	id   lineKey
	tool []byte
}

// factOf reads an object with the given head.
func (rd *reading) factOf(o *jsonl.Object, h *lineHead) (f lineFacts) {
	f.typed, f.known, f.side = h.Type != nil, h.Known(), rawjson.IsTrue(h.Side)
	f.stamp, f.cwd, f.session, f.agent = h.Stamp, h.Cwd, h.Session, h.Agent
	r := &f.row
	*r = lineRow{
		Offset: o.Offset, Line: int32(o.Number), At: int32(o.At), Size: int32(len(o.Raw)), parent: noRow,
		call: noRow, link: noRow, Up: noRow, end: noRow, tail: noRow,
	}
	if o.Part {
		r.Flags |= flagPart
		r.Size = int32(min(o.Size, math.MaxInt32))
	}
	if f.side {
		r.Flags |= flagSide
	}
	if t, ok := jsonl.Stamp(h.Stamp); ok {
		r.Time = t.UnixMilli()
		r.Flags |= flagTimed
	}
	parent := h.Parent
	if !rawjson.IsString(parent) {
		parent = h.Logical
	}
	if id := stringBytes(parent); len(id) > 0 {
		r.Flags |= flagNamed
		if k, isUUID := makeKey(id); isUUID {
			r.names = k
		} else {
			r.names, f.parent = k, id
		}
	}
	if id := stringBytes(h.UUID); len(id) > 0 {
		f.named = true
		if k, isUUID := makeKey(id); isUUID {
			r.Key = k
		} else {
			r.Key, f.uuid = k, id
		}
		r.sum = rd.sum(o, h)
	}
	if rawjson.IsString(h.UUID) && len(h.UUID) > 2 {
		r.Kind = kindOther
	}
	if !o.Part {
		rd.sort(&f, h)
	}
	return f
}

// sum returns a checksum that distinguishes lines with one ID. A compaction may write the history again: each line with
// its ID, parent, time and message, and with the session's current fields. Such a line is no change.
func (rd *reading) sum(o *jsonl.Object, h *lineHead) (sum uint64) {
	if o.Part || h.Stamp == nil || h.Message == nil && h.Attachment == nil && h.Compacted == nil {
		return maphash.Bytes(rd.seed, o.Raw)
	}
	const prime = 1_099_511_628_211
	for _, val := range [][]byte{
		h.Type, h.Parent, h.Logical, h.Stamp, h.Side, h.Meta, h.Compact, h.Message, h.Used,
		h.Attachment, h.Compacted,
	} {
		sum = sum*prime + maphash.Bytes(rd.seed, val)
	}
	return sum
}

// sort determines the kind of a line and records its calls and answers.
func (rd *reading) sort(f *lineFacts, h *lineHead) {
	switch string(h.Type) {
	case `"user"`:
		rd.user(f, h)
	case `"assistant"`:
		rd.assistant(f, h)
	case `"system"`:
		f.row.Flags |= flagSystem
		switch string(h.Subtype) {
		case `"compact_boundary"`:
			f.row.Kind, f.compacted = kindBoundary, h.Compacted
		case `"local_command"`:
			f.row.Kind = kindPlace
		case `"informational"`:
			if string(h.Content) == `"`+wentBack+`"` {
				f.row.Kind = kindPlace
			}
		}
	case `"attachment"`:
		f.queued(h.Attachment)
	case `"progress"`:
		f.mention = rawjson.Field(h.Data, "agentId")
	case `"last-prompt"`:
		f.leaf, f.outright = keyOf(h.Leaf), rawjson.IsTrue(h.Explicit)
		f.prompted = len(stringBytes(h.Leaf)) > 0
	case `"fork-context-ref"`:
		f.forked = h.Forked
	case `"summary"`:
		f.rank, f.title, f.leaf = 1, h.Title, keyOf(h.Leaf)
	case `"ai-title"`:
		f.rank, f.title = 2, h.Title
	case `"agent-name"`:
		f.rank, f.title = 3, h.Title
	case `"custom-title"`:
		f.rank, f.title = 4, h.Title
	}
}

// queued reads a prompt that was typed while the model worked. Only an attachment records it.
func (f *lineFacts) queued(attachment []byte) {
	prompt := rawjson.Field(attachment, "prompt")
	if string(rawjson.Field(attachment, "type")) != `"queued_command"` || len(prompt) < 3 ||
		prompt[0] != '"' && prompt[0] != '[' {
		return
	}
	f.row.Kind = kindMeta // from the program or another agent: a task has ended
	switch string(rawjson.Field(attachment, "commandMode")) {
	case "", `"prompt"`, `"bash"`:
		if isTyped(rawjson.Field(attachment, "origin")) && !rawjson.IsTrue(rawjson.Field(attachment, "isMeta")) {
			f.row.Kind = kindQueued
		}
	}
}

func (rd *reading) user(f *lineFacts, h *lineHead) {
	content := rawjson.Field(h.Message, "content")
	switch {
	case len(content) == 0 || content[0] != '"' && content[0] != '[':
		return // no content
	case rawjson.IsTrue(h.Compact):
		f.row.Kind = kindSummary
		return
	}
	f.row.Kind = kindUser
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
			f.row.Flags |= flagText
			continue
		}
		f.row.Held++
		rd.answers = append(rd.answers, keyOf(id))
	}
	f.answers = rd.answers[from:]
	if f.row.Held == 0 && rawjson.IsTrue(h.Meta) {
		f.row.Kind = kindMeta
	}
	if f.row.Held == 0 {
		return
	}
	for m := rawjson.Walk(h.Used); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "agentId":
			f.mention = m.Val
		case "runId":
			f.run = m.Val
		}
	}
}

func (rd *reading) assistant(f *lineFacts, h *lineHead) {
	var content, model, id []byte
	for m := rawjson.Walk(h.Message); m.Closing == '}' && m.Next(); {
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
	f.row.Kind = kindAssistant
	if string(model) != synthetic {
		f.model = stringBytes(model)
	}
	if len(stringBytes(id)) > 0 {
		f.sent, f.msg = true, keyOf(id)
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
		if string(typ) == `"tool_use"` && len(stringBytes(call)) > 0 {
			rd.calls = append(rd.calls, toolUse{keyOf(call), stringBytes(tool)})
		}
	}
	f.calls = rd.calls[from:]
}
