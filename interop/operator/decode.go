package operator

import (
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// camel is member under pi's name; most are the same.
func (c *cursor) camel(dst, key []byte) []byte {
	to := ""
	switch string(key) {
	case "thinking_level":
		to = "thinkingLevel"
	case "model_id":
		to = "modelId"
	case "provider_id":
		to = "provider"
	case "first_kept_entry_id":
		to = "firstKeptEntryId"
	case "tokens_before":
		to = "tokensBefore"
	case "from_hook":
		to = "fromHook"
	case "from_id":
		to = "fromId"
	case "target_id":
		to = "targetId"
	case "custom_type":
		to = "customType"
	default:
		return c.member(dst, key, c.value())
	}
	return appendMember(dst, to, c.value())
}

// isKnownType reports a type that pi has too.
func isKnownType(typ string) bool {
	switch typ {
	case "message", "thinking_level_change", "model_change", "compaction", "branch_summary", "label", "leaf",
		"custom", "custom_message", "session_info":
		return true
	}
	return false
}

// decodedEntry is one of operator's entries, its fields and the blocks of its message under pi's names and in pi's
// shapes: pieces from which lines are put together. It knows one entry at a time: ids, parents and the names of tools
// need those before.
//
// Each byte of an entry is passed once, and copied once. Its values are not decoded: what is not renamed is what the
// file has. Its buffers are used again for the next entry.
type decodedEntry struct {
	Parent, At []byte // JSON; nil = not said
	Body       []byte // the fields of its own, a comma in front of each
	Spoken     bool   // there is a message
	Message    decodedMessage
}

// Read takes an entry apart.
func (s *decodedEntry) Read(o jsonl.Entry) {
	s.Parent, s.At, s.Body, s.Spoken = nil, nil, emptied(s.Body), false
	s.Message.Over = false
	known := isKnownType(o.Type)
	c := cursor{p: o.Raw}
	for c.enter('{'); c.more(); {
		key := c.key()
		switch name := string(key); {
		case name == "type", name == "id":
			c.value()
		case name == "parent_id", name == "parentId":
			if val := c.value(); rawjson.IsString(val) && (s.Parent == nil || name == "parent_id") {
				s.Parent = val
			}
		case name == "timestamp":
			s.At = c.value()
		case !known:
			s.Body = c.member(s.Body, key, c.value())
		case name == "message" && o.Type == "message":
			s.Message.read(&c)
			s.Spoken = true
		case name == "content" && o.Type == "custom_message" && c.enter('['):
			s.Body = append(s.Body, `,"content":[`...)
			s.Body = append(s.Message.inner(s.Body, &c), ']')
		default:
			s.Body = c.camel(s.Body, key)
		}
	}
}
