package operator

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// foreignPrefix begins the types of entries that pi does not have.
const foreignPrefix = "operator."

// convert returns the lines of an entry.
func (r *Reader) convert(o jsonl.Entry) ([][]byte, error) {
	id := r.id(o)
	s := &r.sheet
	if s.Read(o); s.Message.Over {
		return nil, errSpread
	}
	p := place{typ: o.Type, id: id, parent: r.tail(s.Parent), at: s.At}
	switch {
	case s.Spoken:
		return r.spread(p, &s.Message, s.Body)
	case o.Type == "leaf":
		r.moved(&p, s)
	case !isKnownType(o.Type):
		return r.foreign(o, p, s.Body), nil
	}
	return r.line(p, s.Body), nil
}

// foreign returns the line of an entry whose type pi does not have.
func (r *Reader) foreign(o jsonl.Entry, p place, body []byte) [][]byte {
	p.typ = "custom"
	name := append(rawjson.AppendString([]byte(`,"customType":`), foreignPrefix+o.Type), `,"data":`...)
	from := len(name)
	lines := r.line(p, closeObject(append(name, body...), from))
	if _, err := transcript.ParseLine(lines[0]); err != nil { // one level deeper than before
		r.in.Note(o, transcript.DiagOversize,
			"nested too deeply for an entry: its data is left out, the bytes are in the "+
				"original file")
		lines = r.line(p, name[:from-len(`,"data":`)])
	}
	return lines
}

// moved sets the parent of a move of the head to its target, so that the path to it is the path that the session
// continues. The abandoned entry is kept in a field.
func (r *Reader) moved(p *place, s *decodedEntry) {
	from := p.parent
	p.parent = nil
	body := closeObject(bytes.Clone(s.Body), 0)
	s.Body = s.Body[:0]
	for m := rawjson.Walk(body); m.Closing == '}' && m.Next(); {
		if string(m.Key) == "targetId" {
			if p.parent = nil; rawjson.IsString(m.Val) {
				m.Val = r.tail(m.Val)
				p.parent = m.Val
			}
		}
		s.Body = append(append(rawjson.AppendString(append(s.Body, ','), string(m.Key)), ':'), m.Val...)
	}
	if from != nil {
		s.Body = appendMember(s.Body, "fromId", from)
	}
}

// place is the type, ID, parent and time of an entry.
type place struct {
	typ, id    string
	parent, at []byte
}

// open appends the beginning of a line with a place.
func (p place) open(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"type":`...), p.typ)
	dst = rawjson.AppendString(append(dst, `,"id":`...), p.id)
	dst = append(append(dst, `,"parentId":`...), rawjson.OrNull(p.parent)...)
	if p.at != nil {
		dst = appendISOTime(append(dst, `,"timestamp":`...), p.at)
	}
	return dst
}

// oldMessage returns the lines of a message of the older form. The parent of each is the one before.
func (r *Reader) oldMessage(o jsonl.Entry) ([][]byte, error) {
	o.ID = ""
	id := r.id(o)
	at := rawjson.Field(o.Raw, "timestamp")
	if at == nil {
		at = isoOf(r.stamp(o))
	}
	m := &r.sheet.Message
	if m.Read(o.Raw); m.Over {
		return nil, errSpread
	}
	lines, err := r.spread(place{typ: "message", id: id, parent: nonEmpty(r.last), at: at}, m, nil)
	if err != nil {
		return nil, err
	}
	if r.last = id; len(lines) > 1 {
		r.last = r.tails[id]
		delete(r.tails, id)
	}
	return lines, nil
}
