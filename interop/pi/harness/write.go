package harness

import (
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// write is one write of a transaction. Values are slices of the line; nil = absent.
type write struct {
	raw                               []byte
	kind, id, typ, parent, stamp, seq []byte
	lane, op, namespace, key, value   []byte
	fact, name, label, target, leaf   []byte
	tail, from                        []byte
	usage, entry, adjustment, details []byte
	v, version                        []byte

	message said
	rest    [4]member // type-specific fields of an entry, in order
	n       int       // number of these fields; if they do not fit, they must be searched in the line
}

// member is a member of an object, with its name in quotes.
type member struct{ name, val []byte }

// Fields of a message that the reader needs.
type said struct {
	role, stop, provider, model []byte
	usage                       bool
}

func (s *said) set(key, val []byte) {
	switch string(key) {
	case "role":
		s.role = val
	case "stopReason":
		s.stop = val
	case "provider":
		s.provider = val
	case "model":
		s.model = val
	case "usage":
		s.usage = len(val) > 0 && val[0] == '{'
	}
}

// readWrite parses a write that may be truncated.
func readWrite(p []byte) *write {
	w := &write{raw: p}
	for m := rawjson.Walk(p); m.Closing == '}' && m.Next(); {
		if to := w.field(m.Key); to != nil {
			*to = m.Val
		}
	}
	return w
}

// check validates and parses the write at the start of p in one pass, and returns its end.
func (w *write) check(p []byte) (end int, err error) {
	*w = write{}
	end, err = jsonl.Members(p, func(name, key []byte, at int) (int, error) {
		end, err := w.valueEnd(p, key, at)
		if err != nil {
			return 0, err
		}
		w.set(name, key, p[at:end])
		return end, nil
	})
	w.raw = p[:end]
	return end, err
}

func (w *write) valueEnd(p, key []byte, at int) (end int, err error) {
	if p[at] != '{' || string(key) != "message" {
		return rawjson.ValueEnd(p, at, maxDepth-2)
	}
	end, err = w.message.check(p[at:])
	return at + end, err
}

func (s *said) check(p []byte) (end int, err error) {
	return jsonl.Members(p, func(_, key []byte, at int) (int, error) {
		end, err := rawjson.ValueEnd(p, at, maxDepth-3)
		if err != nil {
			return 0, err
		}
		s.set(key, p[at:end])
		return end, nil
	})
}

// set records a member.
func (w *write) set(name, key, val []byte) {
	if to := w.field(key); to != nil {
		*to = val
	}
	if isPlaceName(key) {
		return
	}
	if w.n < len(w.rest) {
		w.rest[w.n] = member{name, val}
	}
	w.n++
}

// isPlaceName reports whether a field is not type-specific: it is part of the entry's place, or of the file's form.
func isPlaceName(key []byte) bool {
	switch string(key) {
	case "kind", "id", "type", "parentId", "timestamp", "seq", "lane", "retainedTail", "firstKeptEntryId":
		return true
	}
	return false
}

func (w *write) field(name []byte) *[]byte {
	switch string(name) {
	case "kind":
		return &w.kind
	case "id":
		return &w.id
	case "type":
		return &w.typ
	case "parentId":
		return &w.parent
	case "timestamp":
		return &w.stamp
	case "seq":
		return &w.seq
	case "lane":
		return &w.lane
	case "op":
		return &w.op
	case "namespace":
		return &w.namespace
	case "key":
		return &w.key
	case "value":
		return &w.value
	case "retainedTail":
		return &w.tail
	case "usage":
		return &w.usage
	case "entryId":
		return &w.entry
	case "adjustment":
		return &w.adjustment
	case "details":
		return &w.details
	case "fromId":
		return &w.from
	case "v":
		return &w.v
	case "version":
		return &w.version
	}
	return w.older(name)
}

// older returns the fields that only 0.84 has.
func (w *write) older(name []byte) *[]byte {
	switch string(name) {
	case "fact":
		return &w.fact
	case "name":
		return &w.name
	case "label":
		return &w.label
	case "targetId":
		return &w.target
	case "leafId":
		return &w.leaf
	}
	return nil
}
