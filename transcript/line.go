package transcript

import (
	"errors"
	"fmt"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// ErrLine is wrapped by every error about a line that cannot be an entry: no JSON object, nested too
// deeply, or without what an entry needs.
var ErrLine = errors.New("transcript: not an entry")

// nameMax bounds a type and an id, in bytes (I15): a skeleton keeps them in memory.
const nameMax = 64 << 10

// Line is the head of one JSONL line: what the tree is made of. Everything else of the line stays in Raw.
// A field that is absent or of another JSON type is "" (zero).
type Line struct {
	Type, ID, ParentID string
	HasParent          bool      // the field parentId is there and a string
	Time               time.Time // of an ISO-8601 string, or a number of Unix seconds or milliseconds; zero = neither
	Raw                []byte    // the line without its newline; not copied
}

// Entry returns the entry that the line is, at an ordinal.
func (l Line) Entry(ordinal uint64) Entry {
	return Entry{Ordinal: ordinal, ID: l.ID, ParentID: l.ParentID, Type: l.Type, Time: l.Time, Raw: l.Raw}
}

// ParseLine reads the head of a line. The line must be one JSON object, nested to at most 512 levels;
// where a name occurs twice the last one counts. Names are case sensitive. It reads every byte once,
// allocates the ids only, and agrees with encoding/json about what is JSON. Errors wrap ErrLine.
func ParseLine(raw []byte) (Line, error) {
	l := Line{Raw: raw}
	m := rawjson.Walk(raw)
	m.Strict = true
	if m.Closing != '}' {
		return Line{}, fmt.Errorf("%w: no JSON object", ErrLine)
	}
	for m.Next() {
		switch string(m.Key) {
		case "type":
			l.Type = typeName(m.Val)
		case "id":
			l.ID = rawjson.Text(m.Val)
		case "parentId":
			l.HasParent = m.Val[0] == '"'
			l.ParentID = rawjson.Text(m.Val)
		case "timestamp":
			l.Time = rawjson.Time(m.Val)
		}
	}
	if m.Err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrLine, m.Err)
	}
	if i := rawjson.Space(raw, m.Pos); i < len(raw) {
		return Line{}, fmt.Errorf("%w: more than one JSON value: %w", ErrLine, rawjson.SyntaxError(raw, i))
	}
	return l, nil
}

// typeName spares an allocation a line for the types that make up nearly all lines.
func typeName(val []byte) string {
	switch string(val) {
	case `"message"`:
		return "message"
	case `"custom"`:
		return "custom"
	case `"custom_message"`:
		return "custom_message"
	case `"model_change"`:
		return "model_change"
	case `"thinking_level_change"`:
		return "thinking_level_change"
	case `"label"`:
		return "label"
	}
	return rawjson.Text(val)
}
