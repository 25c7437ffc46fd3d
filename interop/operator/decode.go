package operator

import (
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// camel appends a member under pi's name; most names are the same.
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

// isKnownType reports whether pi has this type too.
func isKnownType(typ string) bool {
	switch typ {
	case "message", "thinking_level_change", "model_change", "compaction", "branch_summary", "label", "leaf",
		"custom", "custom_message", "session_info":
		return true
	}
	return false
}

// decodedEntry is an entry of operator with fields and blocks under pi's names and in pi's shapes: pieces from which
// lines are assembled. It depends on one entry alone; IDs, parents and names of tools need the entries before.
//
// Each byte of an entry is read once and copied once. Values are not decoded: everything that is not renamed is the
// file's bytes. The buffers are reused for the next entry.
type decodedEntry struct {
	Parent, At []byte // JSON; nil = missing
	Body       []byte // its other fields, each with a leading comma
	Spoken     bool   // it has a message
	Message    decodedMessage
}

// Read parses an entry.
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
