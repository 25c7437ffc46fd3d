package jsonl

import (
	"fmt"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// MaxEntry bounds one entry beside its images, in bytes (DESIGN 8).
const MaxEntry = 4 << 20

// Stub reports a line over a limit, and gives what stands in its place: its head, what is left of the rest,
// and its size. parent is its parentId, nil for null.
func (s *Scanner) Stub(o Object, parent, rest []byte) []byte {
	limit := MaxEntry
	if o.Part {
		limit = MaxLine
	}
	s.Note("", o, diag.Oversize, fmt.Sprintf("%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file", o.Size, limit))
	out := rawjson.Object("type", rawjson.AppendString(nil, o.Type), "id", stringOrNil(o.ID), "parentId", rawjson.OrNull(parent), "timestamp", rawjson.Field(o.Raw, "timestamp"))
	for m := rawjson.Walk(rest); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type", "id", "parentId", "timestamp":
		default:
			out = append(rawjson.AppendString(append(out[:len(out)-1], ','), string(m.Key)), ':')
			out = append(append(out, m.Val...), '}')
		}
	}
	return rawjson.WithField(out, "stub", fmt.Appendf(nil, `{"bytes":%d,"limit":%d}`, o.Size, limit))
}

// What a stub keeps of its entry: values up to shrinkValue bytes, shrinkTotal together, shrinkDepth levels.
const (
	shrinkValue = 16 << 10
	shrinkTotal = 1 << 20
	shrinkDepth = 8
)

// Shrink gives a JSON value with its long strings replaced by a notice; the structure stays, so that roles,
// ids of calls and the like are still there.
func Shrink(raw []byte) []byte {
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
		return fmt.Appendf(nil, `"[%d bytes left out, over the limit of %d for an entry]"`, len(val), MaxEntry)
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
