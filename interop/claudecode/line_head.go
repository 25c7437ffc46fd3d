package claudecode

import (
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Bounds in bytes.
const (
	maxFieldName     = 256     // of a type, or of a field's name
	maxEnvelopeValue = 1 << 10 // of a field of an envelope
)

// lineHead holds the fields of a line that the index needs, as slices of the line.
type lineHead struct {
	Type, UUID, Parent, Logical, Session, Stamp, Side, Meta, Compact []byte
	Agent, Message, Subtype, Cwd, Leaf, Title, Data, Used, Compacted []byte
	Attachment, Explicit, Forked, Content                            []byte
}

// readLineHead reads the head of an object.
func readLineHead(object []byte) lineHead {
	var h lineHead
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		h.Take(m.Key, m.Val)
	}
	return h
}

// Take receives one member after the other; a nil key starts a new object.
func (h *lineHead) Take(key, val []byte) {
	if key == nil {
		*h = lineHead{}
		return
	}
	switch string(key) {
	case "type":
		if h.Type = val; len(stringBytes(val)) == 0 || len(val) > maxFieldName {
			h.Type = nil
		}
	case "uuid":
		h.UUID = val
	case "parentUuid":
		h.Parent = val
	case "logicalParentUuid":
		h.Logical = val
	case "sessionId":
		h.Session = val
	case "timestamp":
		h.Stamp = val
	case "isSidechain":
		h.Side = val
	case "isMeta":
		h.Meta = val
	case "isCompactSummary":
		h.Compact = val
	case "agentId":
		h.Agent = val
	case "message":
		h.Message = val
	case "subtype":
		h.Subtype = val
	case "cwd":
		h.Cwd = val
	case "leafUuid":
		h.Leaf = val
	case "summary", "customTitle", "aiTitle", "agentName":
		h.Title = val
	case "compactMetadata":
		h.Compacted = val
	case "attachment":
		h.Attachment = val
	case "explicit":
		h.Explicit = val
	case "parentLastUuid":
		h.Forked = val
	case "data":
		h.Data = val
	case "content":
		h.Content = val
	case "toolUseResult":
		h.Used = val
	}
}

// Known reports whether a line is Claude Code's, by more than its type.
func (h *lineHead) Known() bool {
	switch string(h.Type) {
	case `"user"`, `"assistant"`, `"system"`, `"progress"`, `"attachment"`:
		return rawjson.IsString(h.UUID) && (h.Parent != nil || h.Logical != nil || h.Session != nil)
	case `"summary"`:
		return h.Leaf != nil && h.Title != nil
	case `"file-history-snapshot"`:
		return true
	case `"queue-operation"`, `"custom-title"`, `"ai-title"`, `"agent-name"`, `"agent-setting"`, `"permission-mode"`,
		`"mode"`, `"pr-link"`, `"last-prompt"`, `"bridge-session"`, `"worktree-state"`:
		return h.Session != nil
	}
	return false
}

// stringBytes returns the content of a JSON string, without a copy if possible; nil = not a string.
func stringBytes(val []byte) []byte {
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
