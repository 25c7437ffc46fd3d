package pi

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
	"github.com/coppice-go/coppice/transcript/blob"
)

const currentVersion = 3

// convert makes a version 3 line of an object of the file. nil = it gives no entry.
func (f *Reader) convert(l fileLine) ([]byte, error) {
	if l.Type == "session" {
		f.note("", l, diag.BadLine, "another session header: skipped")
		f.index("")
		return nil, nil
	}
	raw := l.Raw
	if l.part {
		raw = f.stub(l, nil)
	} else if len(raw) > maxEntryBytes {
		if stored, _ := blob.Externalise(raw); len(stored) > maxEntryBytes {
			raw = f.stub(l, shrink(raw))
		}
	}
	id := l.ID
	if id == "" {
		made, err := transcript.NewID(f.stamp(l), f.rand)
		if err != nil {
			return nil, err
		}
		id = made
	}
	switch {
	case f.header.Version < oldestWithTree:
		raw = f.chain(raw, l, id)
	case l.ID == "":
		raw = placed(raw, id, rawjson.Field(raw, "parentId"))
		f.note("", l, diag.Converted, "an entry without an id: one was made")
	}
	f.index(id)
	if f.header.Version < currentVersion && l.Type == "message" {
		if m := rawjson.Field(raw, "message"); string(rawjson.Field(m, "role")) == `"hookMessage"` {
			raw = rawjson.WithField(raw, "message", rawjson.WithField(m, "role", []byte(`"custom"`)))
		}
	}
	return bytes.Clone(raw), nil
}

// index notes the id of an object of a version 1 file under its place in it.
func (f *Reader) index(id string) {
	if f.header.Version < oldestWithTree {
		f.ids = append(f.ids, id)
	}
}

// chain gives a version 1 entry its place: behind the one before it in the file, unless it names a parent
// itself; and it translates the index from which a compaction keeps into an id.
func (f *Reader) chain(raw []byte, l fileLine, id string) []byte {
	f.changed = true
	parent := rawjson.Field(raw, "parentId")
	if l.ID == "" || parent == nil {
		if parent = nil; f.last != "" {
			parent = rawjson.AppendString(nil, f.last)
		}
		raw = placed(raw, id, parent)
	}
	f.last = id
	index := rawjson.Field(raw, "firstKeptEntryIndex")
	if l.Type != "compaction" || !rawjson.IsNumber(index) {
		return raw
	}
	raw = rawjson.WithField(raw, "firstKeptEntryIndex", nil)
	n, err := strconv.ParseFloat(string(index), 64)
	at := int64(min(max(n, -1), 1<<40))
	switch {
	case err == nil && float64(at) == n && at == int64(len(f.ids)):
		return rawjson.WithField(raw, "firstKeptEntryId", rawjson.AppendString(nil, id)) // the compaction itself
	case err == nil && float64(at) == n && at >= 0 && at < int64(len(f.ids)) && f.ids[at] != "":
		return rawjson.WithField(raw, "firstKeptEntryId", rawjson.AppendString(nil, f.ids[at]))
	}
	f.note("", l, diag.KeptMissing, fmt.Sprintf("keeps from line object %.20s, which is no earlier entry: nothing is kept", index))
	return raw
}

// placed sets id and parent (nil = null) in our order: type, id, parentId, and the rest as it was.
func placed(raw []byte, id string, parent []byte) []byte {
	typ := rawjson.Field(raw, "type")
	rest := rawjson.WithField(rawjson.WithField(rawjson.WithField(raw, "type", nil), "id", nil), "parentId", nil)
	out := rawjson.Object("type", typ, "id", rawjson.AppendString(nil, id), "parentId", rawjson.OrNull(parent))
	if len(rest) > len("{}") {
		out = append(append(out[:len(out)-1], ','), rest[1:]...)
	}
	return out
}

// stub reports a line over a limit, and gives what stands in its place: its head, what is left of the rest,
// and its size.
func (f *Reader) stub(l fileLine, rest []byte) []byte {
	limit := maxEntryBytes
	if l.part {
		limit = maxLineBytes
	}
	f.note("", l, diag.Oversize, fmt.Sprintf("%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file", l.size, limit))
	out := rawjson.Object("type", rawjson.AppendString(nil, l.Type), "id", stringOrNil(l.ID), "parentId", rawjson.OrNull(rawjson.Field(l.Raw, "parentId")), "timestamp", rawjson.Field(l.Raw, "timestamp"))
	for m := rawjson.Walk(rest); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type", "id", "parentId", "timestamp":
		default:
			out = append(rawjson.AppendString(append(out[:len(out)-1], ','), string(m.Key)), ':')
			out = append(append(out, m.Val...), '}')
		}
	}
	return rawjson.WithField(out, "stub", fmt.Appendf(nil, `{"bytes":%d,"limit":%d}`, l.size, limit))
}

// What a stub keeps of its entry: values up to shrinkValue bytes, shrinkTotal together, shrinkDepth levels.
const (
	shrinkValue = 16 << 10
	shrinkTotal = 1 << 20
	shrinkDepth = 8
)

// shrink gives a JSON value with its long strings replaced by a notice; the structure stays, so that roles,
// ids of calls and the like are still there.
func shrink(raw []byte) []byte {
	budget := shrinkTotal
	return shrinkTo(raw, &budget, shrinkDepth)
}

func shrinkTo(val []byte, budget *int, depth int) []byte {
	switch {
	case len(val) == 0 || depth == 0 || *budget <= 0:
		return []byte("null")
	case len(val) <= shrinkValue:
		*budget -= len(val)
		return val
	case val[0] == '"':
		*budget -= 80
		return fmt.Appendf(nil, `"[%d bytes left out, over the limit of %d for an entry]"`, len(val), maxEntryBytes)
	}
	m := rawjson.Walk(val)
	out := []byte{val[0]}
	for m.Closing != 0 && *budget > 0 && m.Next() {
		if len(m.Key) > shrinkValue {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		if m.Key != nil {
			*budget -= len(m.Key)
			out = append(rawjson.AppendString(out, string(m.Key)), ':')
		}
		out = append(out, shrinkTo(m.Val, budget, depth-1)...)
	}
	switch val[0] {
	case '{':
		return append(out, '}')
	case '[':
		return append(out, ']')
	}
	return []byte("null") // a number of that length
}

func stringOrNil(s string) []byte {
	if s == "" {
		return nil
	}
	return rawjson.AppendString(nil, s)
}
