package graph

import (
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// head is what the index reads of a line, each value where it lies.
type head struct {
	typ, uuid, parent, logical, session, stamp, side, meta, compact  []byte
	agent, message, subtype, cwd, leaf, title, data, used, compacted []byte
}

func readHead(object []byte) head {
	var h head
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		h.take(m.Key, m.Val)
	}
	return h
}

// take is shown one member after the other; key nil begins.
func (h *head) take(key, val []byte) {
	if key == nil {
		*h = head{}
		return
	}
	switch string(key) {
	case "type":
		if h.typ = val; len(rawjson.Text(val)) == 0 || len(val) > maxName {
			h.typ = nil
		}
	case "uuid":
		h.uuid = val
	case "parentUuid":
		h.parent = val
	case "logicalParentUuid":
		h.logical = val
	case "sessionId":
		h.session = val
	case "timestamp":
		h.stamp = val
	case "isSidechain":
		h.side = val
	case "isMeta":
		h.meta = val
	case "isCompactSummary":
		h.compact = val
	case "agentId":
		h.agent = val
	case "message":
		h.message = val
	case "subtype":
		h.subtype = val
	case "cwd":
		h.cwd = val
	case "leafUuid":
		h.leaf = val
	case "summary", "customTitle", "aiTitle", "agentName":
		h.title = val
	case "compactMetadata":
		h.compacted = val
	case "data":
		h.data = val
	case "toolUseResult":
		h.used = val
	}
}

// known tells a line of Claude Code's from one of another program, by more than its type.
func (h *head) known() bool {
	switch string(h.typ) {
	case `"user"`, `"assistant"`, `"system"`, `"progress"`, `"attachment"`:
		return rawjson.IsString(h.uuid) && (h.parent != nil || h.logical != nil || h.session != nil)
	case `"summary"`:
		return h.leaf != nil && h.title != nil
	case `"file-history-snapshot"`:
		return true
	case `"queue-operation"`, `"custom-title"`, `"ai-title"`, `"agent-name"`, `"agent-setting"`, `"permission-mode"`,
		`"mode"`, `"pr-link"`, `"last-prompt"`, `"bridge-session"`, `"worktree-state"`:
		return h.session != nil
	}
	return false
}

// sort decides what becomes of a line, and notes what it calls and answers.
func (x *Index) sort(r *Row, h *head, i int32) {
	if rawjson.IsString(h.uuid) && len(h.uuid) > 2 {
		r.Kind = KindOther
	}
	if r.Flags&FlagPart != 0 {
		return
	}
	switch string(h.typ) {
	case `"user"`:
		x.user(r, h, i)
	case `"assistant"`:
		x.assistant(r, h, i)
	case `"system"`:
		r.Flags |= FlagSystem
		if string(h.subtype) == `"compact_boundary"` {
			r.Kind = KindBoundary
			kept := rawjson.Field(h.compacted, "preservedSegment")
			if first := rawjson.Text(rawjson.Field(kept, "headUuid")); first != "" {
				k, _ := MakeKey(rawjson.Text(h.uuid))
				var s segment
				s.head, _ = MakeKey(first)
				s.tail, _ = MakeKey(rawjson.Text(rawjson.Field(kept, "tailUuid")))
				x.kept[k] = s
			}
		}
	case `"progress"`:
		x.mention(rawjson.Field(h.data, "agentId"))
	case `"summary"`:
		x.name(h, 1, i)
	case `"ai-title"`:
		x.name(h, 2, i)
	case `"agent-name"`:
		x.name(h, 3, i)
	case `"custom-title"`:
		x.name(h, 4, i)
	}
}

func (x *Index) user(r *Row, h *head, i int32) {
	content := rawjson.Field(h.message, "content")
	switch {
	case len(content) == 0 || content[0] != '"' && content[0] != '[':
		return // nothing that could be said
	case rawjson.IsTrue(h.compact):
		r.Kind = KindSummary
		return
	}
	r.Kind = KindUser
	m := rawjson.Walk(content)
	for m.Closing == ']' && m.Next() {
		if string(rawjson.Field(m.Val, "type")) != `"tool_result"` {
			r.Flags |= FlagText
			continue
		}
		r.Held++
		k, _ := MakeKey(rawjson.Text(rawjson.Field(m.Val, "tool_use_id")))
		if c, ok := x.Calls[k]; ok {
			r.call = max(r.call, c.Row)
			continue
		}
		if x.unmet == nil {
			x.unmet = map[int32][]Key{}
		}
		x.unmet[i] = append(x.unmet[i], k)
	}
	if r.Held == 0 && rawjson.IsTrue(h.meta) {
		r.Kind = KindMeta
	}
	if r.Held > 0 && len(h.used) > 0 && h.used[0] == '{' {
		x.mention(rawjson.Field(h.used, "agentId"))
	}
}

func (x *Index) assistant(r *Row, h *head, i int32) {
	var content, model, id []byte
	m := rawjson.Walk(h.message)
	for m.Closing == '}' && m.Next() {
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
	r.Kind = KindAssistant
	if string(model) != `"<synthetic>"` {
		r.Model = x.Models.of(rawjson.Text(model))
	}
	if s := rawjson.Text(id); s != "" {
		k, _ := MakeKey(s)
		if r.msg = x.msgs[k]; r.msg == 0 {
			r.msg = int32(len(x.msgs)) + 1
			x.msgs[k] = r.msg
		}
	}
	for m = rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		var typ, call, tool []byte
		b := rawjson.Walk(m.Val)
		for b.Closing == '}' && b.Next() {
			switch string(b.Key) {
			case "type":
				typ = b.Val
			case "id":
				call = b.Val
			case "name":
				tool = b.Val
			}
		}
		if s := rawjson.Text(call); string(typ) == `"tool_use"` && s != "" {
			k, _ := MakeKey(s)
			x.Calls[k] = Call{i, x.Tools.of(rawjson.Text(tool))}
		}
	}
}

// name notes a line that may name the session.
func (x *Index) name(h *head, rank int, i int32) {
	text := rawjson.Text(h.title)
	if text == "" {
		return
	}
	for len(text) > maxTitle {
		cut := maxTitle
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	t := title{row: i, rank: rank, text: text}
	if rank == 1 {
		t.leaf, _ = MakeKey(rawjson.Text(h.leaf))
	}
	for k := range x.titles {
		if old := &x.titles[k]; old.rank == rank && (rank > 1 || old.leaf == t.leaf) {
			*old = t // the later one counts
			return
		}
	}
	if len(x.titles) < maxTitles {
		x.titles = append(x.titles, t)
	}
}

// mention notes a subagent whose transcript may lie beside the file.
func (x *Index) mention(id []byte) {
	name := AgentName(rawjson.Text(id))
	if name == "" || len(x.Agents) >= maxAgents {
		return
	}
	if !x.agent[name] {
		x.agent[name] = true
		x.Agents = append(x.Agents, name)
	}
}

// AgentName gives the name of an agent if it can be part of a file's name; else "".
func AgentName(s string) string {
	if len(s) > 128 {
		return ""
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return ""
		}
	}
	return s
}
