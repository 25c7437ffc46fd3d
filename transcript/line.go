package transcript

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// ErrLine is wrapped by every error about a line that cannot be an entry: no JSON object, nested too
// deeply, or without what an entry needs.
var ErrLine = errors.New("transcript: not an entry")

// Line is the head of one JSONL line: what the tree is made of. Everything else of the line stays in Raw.
// A field that is absent or of another JSON type is "" (zero).
type Line struct {
	Type, ID, ParentID string
	HasParent          bool      // the field parentId is there and a string
	Time               time.Time // of an ISO-8601 string, or a number of Unix seconds or milliseconds; zero = neither
	Raw                []byte    // the line without its newline; not copied
}

// ParseLine reads the head of a line. The line must be one JSON object, nested to at most 512 levels;
// where a name occurs twice the last one counts. Names are case sensitive. It reads every byte once,
// allocates the ids only, and agrees with encoding/json about what is JSON. Errors wrap ErrLine.
func ParseLine(raw []byte) (Line, error) {
	l := Line{Raw: raw}
	m := walk(raw)
	m.strict = true
	if m.closing != '}' {
		return Line{}, fmt.Errorf("%w: no JSON object", ErrLine)
	}
	for m.next() {
		switch string(m.key) {
		case "type":
			l.Type = typeName(m.val)
		case "id":
			l.ID = text(m.val)
		case "parentId":
			l.HasParent = m.val[0] == '"'
			l.ParentID = text(m.val)
		case "timestamp":
			l.Time = parseTime(m.val)
		}
	}
	if m.err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrLine, m.err)
	}
	if i := space(raw, m.i); i < len(raw) {
		return Line{}, fmt.Errorf("%w: more than one JSON value: %w", ErrLine, syntax(raw, i))
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
	return text(val)
}

// isoLen is the length of the time stamps that pi and we write: 2006-01-02T15:04:05.000Z.
const isoLen = len("2006-01-02T15:04:05.000Z")

func parseTime(val []byte) time.Time {
	if len(val) == 0 {
		return time.Time{}
	}
	if val[0] != '"' {
		return numberTime(val)
	}
	if len(val) == isoLen+2 {
		if t, ok := parseISO(val[1 : len(val)-1]); ok {
			return t
		}
	}
	t, err := time.Parse(time.RFC3339Nano, text(val))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// parseISO reads the usual form without allocation. Days 29 to 31 are left to package time, which knows the months.
func parseISO(s []byte) (time.Time, bool) {
	const form = "0000-00-00T00:00:00.000Z"
	var v [7]int
	f := 0
	for i := range form {
		switch c := s[i]; {
		case form[i] == '0' && '0' <= c && c <= '9':
			v[f] = v[f]*10 + int(c-'0')
		case form[i] != '0' && form[i] == c:
			f++
		default:
			return time.Time{}, false
		}
	}
	if v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > 28 || v[3] > 23 || v[4] > 59 || v[5] > 59 {
		return time.Time{}, false
	}
	return time.Date(v[0], time.Month(v[1]), v[2], v[3], v[4], v[5], v[6]*int(time.Millisecond), time.UTC), true
}

// numberTime reads Unix time: milliseconds from 1e11 on (which as seconds would be the year 5138), else
// seconds, as some peers write them with a fraction.
func numberTime(val []byte) time.Time {
	n, err := strconv.ParseFloat(string(val), 64)
	switch {
	case err != nil || n < 0 || n > 1e15:
		return time.Time{}
	case n >= 1e11:
		return time.UnixMilli(int64(n)).UTC()
	}
	return time.UnixMilli(int64(n * 1000)).UTC()
}
