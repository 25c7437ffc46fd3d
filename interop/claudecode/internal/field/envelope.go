package field

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Envelope is what every line of a session says again: folder, version, branch. It is kept once, and of a
// line only where it differs.
type Envelope []Member

// Member is a field and its value.
type Member struct {
	Key, Val []byte
}

// ofLine tells the fields that belong to one line alone.
func ofLine(name string) bool {
	switch name {
	case "type", "uuid", "parentUuid", "message", "timestamp", "requestId", "toolUseResult", "isSidechain", "isMeta", "isCompactSummary",
		"logicalParentUuid", "compactMetadata", "attachment", "content", "subtype", "level", "sourceToolAssistantUUID", "todos":
		return true
	}
	return false
}

// EnvelopeOf takes the envelope from a line.
func EnvelopeOf(line []byte) Envelope {
	env := Envelope{}
	const fields = 16
	for m := rawjson.Walk(line); m.Closing == '}' && m.Next() && len(env) < fields; {
		if name := string(m.Key); !ofLine(name) && len(m.Val) <= maxValue && len(name) <= maxName {
			env = append(env, Member{[]byte(name), bytes.Clone(m.Val)})
		}
	}
	return env
}

// Object gives the envelope as JSON.
func (e Envelope) Object() []byte {
	out := []byte{'{'}
	for _, m := range e {
		out = Add(out, string(m.Key), m.Val)
	}
	return append(out, '}')
}

func (e Envelope) has(name, val []byte) bool {
	for i := range e {
		if bytes.Equal(e[i].Key, name) {
			return bytes.Equal(e[i].Val, val)
		}
	}
	return false
}

// Split appends the members of an object to list. It is one pass over the object, however many are asked for.
func Split(list []Member, object []byte) []Member {
	for m := rawjson.Walk(object); m.Closing == '}' && m.Next(); {
		list = append(list, Member{m.Key, m.Val})
	}
	return list
}

// AppendRest appends what of a line's members stands nowhere else in its entry, as field claudeCode. more goes
// inside as message.
func (e Envelope) AppendRest(dst []byte, line []Member, used bool, more []byte) []byte {
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
			dst = Add(dst, string(m.Key), m.Val)
		}
	}
	if len(more) > 0 {
		dst = Add(dst, "message", more)
	}
	if len(dst) == empty {
		return dst[:mark]
	}
	return append(dst, '}')
}

// Add appends a member to an open object.
func Add(dst []byte, name string, val []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(rawjson.AppendString(dst, name), ':')
	return append(dst, val...)
}
