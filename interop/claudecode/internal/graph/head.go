package graph

import (
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
		if h.typ = val; len(text(val)) == 0 || len(val) > maxName {
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

// text gives what a string value says, without a copy if it can be; nil = it is none.
func text(val []byte) []byte {
	if len(val) < 2 || val[0] != '"' {
		return nil
	}
	inner := val[1 : len(val)-1]
	for _, c := range inner {
		if c == '\\' || c >= 0x80 {
			return []byte(rawjson.Text(val))
		}
	}
	return inner
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
