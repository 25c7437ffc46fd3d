package operator

import (
	"errors"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

const (
	maxCalled = 4096 // calls whose tool is remembered
	maxName   = 128  // bytes of a tool's name; like maxID, a longer one leaves results without a name
)

// errSpread: the messages of an entry, each with its own place and head, exceed the limit.
var errSpread = errors.New("operator: an entry of too many messages")

// roleOf returns pi's name of a role, as JSON; nil = none.
func roleOf(val []byte) []byte {
	role, plain := stringBytes(val)
	switch string(role) {
	case "":
		return nil
	case "human":
		return []byte(`"user"`)
	case "ai":
		return []byte(`"assistant"`)
	case "tool":
		return []byte(`"toolResult"`)
	case "branch_summary":
		return []byte(`"branchSummary"`)
	case "compaction_summary":
		return []byte(`"compactionSummary"`)
	}
	if plain {
		return val
	}
	return rawjson.AppendString(nil, string(role))
}

// size returns an upper bound for the lines of a message, in bytes.
func size(m *decodedMessage, p place) int {
	const names = 256 // names of fields, and times
	each := len(p.typ) + 3*len(p.id) + names
	n := len(m.Text) + len(m.Notes)*maxName + len(m.Raw) + len(m.ID) + len(p.parent)
	for _, part := range m.Parts {
		if n += each; part.Kind != partResult {
			n += len(m.Role) + len(m.Head) + len(m.Contents)
		}
	}
	return n
}

// spread writes the messages of a split entry, each below the one before. The first has the entry's ID, by which other
// entries name it; its children become children of the last.
func (r *Reader) spread(p place, m *decodedMessage, body []byte) ([][]byte, error) {
	if size(m, p) > maxSpread {
		return nil, errSpread
	}
	if m.Raw != nil {
		return r.line(p, append(appendMember(nil, "message", m.Raw), body...)), nil
	}
	out, ends := emptied(r.out), emptied(r.ends)
	first, role := p.id, roleOf(m.Role)
	notes := m.Notes
	for i, part := range m.Parts {
		if i > 0 {
			p.parent = rawjson.AppendString(nil, p.id)
			p.id = partID(first, i)
			body = rawjson.AppendString(append(body[:0:0], `,"`+partOf+`":`...), first)
		}
		out = append(p.open(out), `,"message":`...)
		from := len(out)
		if part.Kind == partResult {
			out = append(out, `,"role":"toolResult"`...)
			out, notes = r.named(out, m.Text[:part.To], part.From, notes, role)
		} else {
			out = appendSaid(m, out, part, role)
		}
		if m.At != nil {
			out = appendMillis(append(out, `,"timestamp":`...), m.At)
		}
		if i == 0 && m.ID != nil {
			out = appendMember(out, "id", m.ID)
		}
		out = append(append(closeObject(out, from), body...), '}')
		ends = append(ends, len(out))
	}
	r.named(nil, nil, 0, notes, role)
	if len(m.Parts) > 1 {
		r.tails[first] = p.id
	}
	r.out, r.ends = out, ends
	return r.cut(), nil
}

// partOf is the field of a further message that names the entry: the file has only that one.
const partOf = "partOf"

// partID returns the ID of a further message of an entry.
func partID(id string, i int) string { return id + "." + strconv.Itoa(i) }

// appendSaid appends the fields of a message that is not a tool result.
func appendSaid(m *decodedMessage, out []byte, p decodedPart, role []byte) []byte {
	if role != nil {
		out = appendMember(out, "role", role)
	}
	switch out = append(out, m.Head...); {
	case p.Kind == partList:
		out = append(append(out, `,"content":[`...), m.Text[p.From:p.To]...)
		out = append(out, ']')
	case m.Contents != nil:
		out = appendMember(out, "content", m.Contents)
	}
	return out
}

// named appends text from an offset on, with the names of tools inserted. It records the calls in it, because their
// results may follow in the same message. rest are the later notes.
func (r *Reader) named(out, text []byte, from int, notes []callNote, role []byte) (named []byte, rest []callNote) {
	for len(notes) > 0 && notes[0].At <= len(text) {
		n := notes[0]
		notes = notes[1:]
		if n.At == noteIsCall {
			if string(role) == `"assistant"` {
				r.noteCall(n)
			}
			continue
		}
		out = append(append(out, text[from:n.At]...), `,"toolName":`...)
		out, from = rawjson.AppendString(out, r.toolOf(n.ID)), n.At
	}
	return append(out, text[from:]...), notes
}

// noteCall records the name of a called tool, which results do not contain.
func (r *Reader) noteCall(n callNote) {
	if len(r.called) >= maxCalled {
		clear(r.called)
	}
	id, _ := stringBytes(n.ID)
	name, _ := stringBytes(n.Name)
	switch {
	case len(id) == 0:
	case len(id) <= maxID && len(name) <= maxName:
		r.called[string(id)] = string(name)
	default:
		delete(r.called, string(id))
	}
}

func (r *Reader) toolOf(call []byte) string {
	id, _ := stringBytes(call)
	return r.called[string(id)]
}

// cut returns the lines in r.out, which end at r.ends, as copies.
func (r *Reader) cut() [][]byte {
	r.lines = emptied(r.lines)
	all, from := append(make([]byte, 0, len(r.out)), r.out...), 0
	for _, to := range r.ends {
		r.lines = append(r.lines, all[from:to:to])
		from = to
	}
	return r.lines
}

// line returns one line.
func (r *Reader) line(p place, body []byte) [][]byte {
	r.out = append(append(p.open(emptied(r.out)), body...), '}')
	r.ends = append(emptied(r.ends), len(r.out))
	return r.cut()
}
