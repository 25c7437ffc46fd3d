package claudecode

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// envelope holds the fields that every line of a session repeats: folder, version, branch. They are stored once; an
// entry stores only differences.
type envelope []member

// member is a field and its value.
type member struct {
	Key, Val []byte
}

// isLineField reports whether a field differs from line to line.
func isLineField(name string) bool {
	switch name {
	case "type", "uuid", "parentUuid", "message", "timestamp", "requestId", "toolUseResult", "isSidechain", "isMeta",
		"isCompactSummary",
		"logicalParentUuid", "compactMetadata", "attachment", "content", "subtype", "level",
		"sourceToolAssistantUUID", "todos":
		return true
	}
	return false
}

// envelopeOf returns the envelope of a line.
func envelopeOf(line []byte) envelope {
	env := envelope{}
	const fields = 16
	for m := rawjson.Walk(line); m.Closing == '}' && m.Next() && len(env) < fields; {
		if name := string(m.Key); !isLineField(name) && len(m.Val) <= maxEnvelopeValue && len(name) <= maxFieldName {
			env = append(env, member{[]byte(name), bytes.Clone(m.Val)})
		}
	}
	return env
}

// Object returns the envelope as JSON.
func (e envelope) Object() []byte {
	out := []byte{'{'}
	for _, m := range e {
		out = appendMember(out, string(m.Key), m.Val)
	}
	return append(out, '}')
}

func (e envelope) has(name, val []byte) bool {
	for i := range e {
		if bytes.Equal(e[i].Key, name) {
			return bytes.Equal(e[i].Val, val)
		}
	}
	return false
}

// splitMembers appends the members of an object to list. Later lookups need no further pass over the object.
func splitMembers(list []member, object []byte) []member {
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		list = append(list, member{m.Key, m.Val})
	}
	return list
}

// AppendRest appends the field claudeCode with the members of a line that the entry does not have otherwise. more is
// added to it as the field message.
func (e envelope) AppendRest(dst []byte, line []member, used bool, more []byte) []byte {
	mark := len(dst)
	dst = append(dst, `,"claudeCode":{`...)
	empty := len(dst)
	for _, m := range line {
		switch string(m.Key) {
		case "type", "uuid", "parentUuid", "message", "timestamp", "isMeta", "isCompactSummary":
			continue
		case "isSidechain":
			if !rawjson.IsTrue(m.Val) {
				continue
			}
		case "toolUseResult":
			if used {
				continue
			}
		}
		if !e.has(m.Key, m.Val) {
			dst = appendMember(dst, string(m.Key), m.Val)
		}
	}
	if len(more) > 0 {
		dst = appendMember(dst, "message", more)
	}
	if len(dst) == empty {
		return dst[:mark]
	}
	return append(dst, '}')
}

// appendMember appends a member to an open object.
func appendMember(dst []byte, name string, val []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(rawjson.AppendString(dst, name), ':')
	return append(dst, val...)
}
