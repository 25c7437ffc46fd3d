package jsonl

import (
	"bytes"
	"fmt"
	"hash/maphash"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Remains is the readable part of a damaged line's place in the tree, as JSON; nil = unreadable.
type Remains struct{ ID, Parent, Time []byte }

// maxShown bounds an id in a damaged line, in bytes.
const maxShown = 256

// RemainsOf finds the place of a damaged line in its members before the damage, then in the bytes after it: the first
// parent, and the ID next to it or, if tail is set, the last one.
func RemainsOf(piece []byte, id, parent string, tail bool) (r Remains) {
	for m := rawjson.Walk(piece); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case id:
			r.ID = m.Val
		case parent:
			r.Parent = m.Val
		case "timestamp":
			r.Time = m.Val
		}
	}
	at := bytes.Index(piece, []byte(`"`+parent+`"`))
	if r.Parent == nil && at >= 0 {
		r.Parent, _ = valueOf(piece[at:])
	}
	name := []byte(`"` + id + `"`)
	if from := bytes.LastIndex(piece[:max(at, 0)], name); r.ID == nil && from >= 0 {
		val, end := valueOf(piece[from:])
		if string(bytes.Trim(piece[min(from+end, at):at], " \t,")) == "" {
			r.ID = val
		}
	}
	if from := bytes.LastIndex(piece, name); r.ID == nil && tail && from >= 0 {
		r.ID, _ = valueOf(piece[from:])
	}
	if !rawjson.IsString(r.ID) || len(r.ID) == 2 || len(r.ID) > maxShown {
		r.ID = nil
	}
	if len(r.Parent) > maxShown || !rawjson.IsString(r.Parent) && string(r.Parent) != "null" {
		r.Parent = nil
	}
	return r
}

// valueOf returns the value of the member at the start of a piece, and its end; nil = it is incomplete.
func valueOf(piece []byte) (val []byte, end int) {
	_, rest, ok := bytes.Cut(piece, []byte(":"))
	if !ok {
		return nil, len(piece)
	}
	from := rawjson.Space(piece, len(piece)-len(rest))
	if end, err := rawjson.ValueEnd(piece, from, 1); err == nil {
		return piece[from:end], end
	}
	return nil, len(piece)
}

// maxLost bounds the recorded damaged lines.
const maxLost = 10_000

// mender makes an entry in place of each damaged line that later entries name as their parent, so that the lines before
// it stay in the conversation. If the damaged line has no readable ID, the next entry's parent is its ID, if no entry
// has that ID.
type mender struct {
	seed  maphash.Seed
	known map[uint64]struct{} // ids of entries so far, as hashes
	lost  map[string]lostLine // by ID: damaged lines without children so far
	open  *lostLine           // the damaged line before the next entry; nil = none, or its ID is known
	last  string              // ID of the line before
}

type lostLine struct {
	number int
	size   int64
	parent string
	at     []byte
}

// lose records a damaged line.
func (m *mender) lose(number int, piece []byte, parent string) {
	r := RemainsOf(piece, "id", parent, false)
	l := lostLine{number: number, size: int64(len(piece)), parent: m.last, at: bytes.Clone(r.Time)}
	if r.Parent != nil {
		l.parent = rawjson.Text(r.Parent)
	}
	if r.ID == nil {
		m.open = &l
		return
	}
	m.open = nil
	if m.last = rawjson.Text(r.ID); len(m.lost) < maxLost {
		if m.lost == nil {
			m.lost = map[string]lostLine{}
		}
		m.lost[m.last] = l
	}
}

// before returns the entries to insert before another one, in order: those of the damaged lines above it.
func (m *mender) before(id, up, parent string) (list []Entry) {
	for steps := 0; up != "" && !m.knows(up) && steps <= maxLost; steps++ {
		l, ok := m.lost[up]
		if !ok && m.open != nil && steps == 0 {
			l, ok = *m.open, true
		}
		if !ok {
			break
		}
		delete(m.lost, up)
		m.know(up)
		list = append([]Entry{l.entry(up, parent)}, list...)
		up = l.parent
	}
	m.open, m.last = nil, id
	m.know(id)
	return list
}

func (m *mender) knows(id string) bool {
	_, ok := m.known[maphash.String(m.seed, id)]
	return ok
}

func (m *mender) know(id string) { m.known[maphash.String(m.seed, id)] = struct{}{} }

// entry makes the entry in place of a damaged line.
func (l *lostLine) entry(id, parent string) Entry {
	var up []byte
	if l.parent != "" {
		up = rawjson.AppendString(nil, l.parent)
	}
	at := l.at
	if !rawjson.IsString(at) && !rawjson.IsNumber(at) {
		at = nil
	}
	raw := rawjson.Object("type", []byte(`"custom"`), "id", rawjson.AppendString(nil, id), parent, rawjson.OrNull(up),
		"timestamp", at, "customType", []byte(`"damaged-line"`),
		"data", fmt.Appendf(nil, `{"line":%d,"bytes":%d}`, l.number, l.size))
	e := Entry{Number: l.number, Size: l.size}
	e.Line, _ = transcript.ParseLine(raw)
	return e
}
