package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Draft is an entry that is still to be appended. Package entry makes drafts; the session returns them
// their place.
type Draft struct {
	Type   string          // "message", "custom", ... as in pi's format
	ID     string          // "" = a new UUIDv7
	Parent string          // "" = the head; else an existing entry: a reply to an old message, in one call
	Time   time.Time       // zero = now
	Body   json.RawMessage // an object: the fields after type, id, parentId and timestamp. Hooks edit this
	Raw    []byte          // a whole line, kept byte for byte; then all else is ignored
	Err    error           // what went wrong while the draft was made; Append returns it

	// OnKnownID is the rule for a draft of a turn's Entries with an id of its own (ID, Raw) that the session has, on
	// any branch, or that was appended. It is decided for the very commit that is made, also where others commit
	// meanwhile. An id of a commit is fs.ErrExist in any case.
	OnKnownID KnownID
}

// Drafts returns whole lines, or drafts, as imports and writers of session files take them.
func Drafts[T string | []byte | Draft](list ...T) iter.Seq2[Draft, error] {
	return func(yield func(Draft, error) bool) {
		for _, v := range list {
			var d Draft
			switch v := any(v).(type) {
			case string:
				d.Raw = []byte(v)
			case []byte:
				d.Raw = v
			case Draft:
				d = v
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// KnownID is the rule for a draft with an id of its own that the session has.
type KnownID uint8

// The values of Draft.OnKnownID. All but KnownError are for the entries of a turn.
const (
	// KnownError: the turn is fs.ErrExist, and nothing of it is applied.
	KnownError KnownID = iota

	// KnownIgnore: the draft is not stored again, and the receipt's IDs name it. The next draft grows from the entry
	// that is known, unless it names another parent. So a batch may be sent again, from whichever host. A turn of which
	// all entries are known, that has no key and leaves head and document as they are, commits nothing, whatever it
	// was made on. Its receipt is Repeated, and names the newest commit of the handle.
	KnownIgnore

	// KnownAmend: an amendment of the entry is stored in the draft's place, as Session.Amend does it; where the entry
	// has that content already, nothing is stored. Else as KnownIgnore. An entry that cannot be amended is
	// ErrNotAmendable, and an id that is in the buffer of the handle fs.ErrExist: nothing of the turn is applied.
	KnownAmend
)

// Line returns the entry's line, without a newline. A draft with Raw is checked (one line, one object, a
// type and an id) and comes back as it is. Any other becomes our canonical line:
//
//	{"type":"..","id":"..","parentId":".."|null,"timestamp":"2006-01-02T15:04:05.000Z",BODY}
//
// with the body's fields as they were given, white space aside: numbers keep every digit. id "" is
// for d.ID, parentID "" for null, a zero d.Time for now. The body may not set the four fields again
// (the last one would win). Errors wrap ErrLine, and *codec.TextError where a part is not valid UTF-8; a draft's own
// Err comes back unwrapped.
func (d Draft) Line(id, parentID string, now time.Time) ([]byte, error) {
	l, err := d.Parsed(id, parentID, now)
	return l.Raw, err
}

// Parsed returns the line with its head, which making the line reads anyhow.
func (d Draft) Parsed(id, parentID string, now time.Time) (Line, error) {
	if d.Err != nil {
		return Line{}, d.Err
	}
	if d.Raw != nil {
		return d.rawLine()
	}
	if id == "" {
		id = d.ID
	}
	if id == "" || d.Type == "" {
		return Line{}, fmt.Errorf("%w: type %q and id %q must be set", ErrLine, d.Type, id)
	}
	if err := d.checkText(id, parentID); err != nil {
		return Line{}, err
	}
	at := d.Time
	if at.IsZero() {
		at = now
	}
	at = at.UTC()
	if y := at.Year(); y < 0 || y > 9999 {
		return Line{}, fmt.Errorf("%w: year %d does not fit a time stamp", ErrLine, y)
	}
	line := make([]byte, 0, len(d.Body)+len(d.Type)+len(id)+len(parentID)+100)
	line = rawjson.AppendString(append(line, `{"type":`...), d.Type)
	line = rawjson.AppendString(append(line, `,"id":`...), id)
	line = append(line, `,"parentId":`...)
	if parentID == "" {
		line = append(line, "null"...)
	} else {
		line = rawjson.AppendString(line, parentID)
	}
	line = at.AppendFormat(append(line, `,"timestamp":"`...), "2006-01-02T15:04:05.000Z\"")
	line, err := appendBody(line, d.Body)
	if err != nil {
		return Line{}, err
	}
	return checkLine(line, d.Type, id, parentID)
}

// checkText refuses parts that are not valid UTF-8: what is appended here is read back as text by every reader.
func (d Draft) checkText(id, parentID string) error {
	for _, part := range [...]struct{ what, text string }{{"type", d.Type}, {"id", id}, {"parent", parentID}} {
		if err := rawjson.CheckText(part.what, part.text); err != nil {
			return fmt.Errorf("%w: %w", ErrLine, err)
		}
	}
	if err := rawjson.CheckText("body", []byte(d.Body)); err != nil {
		return fmt.Errorf("%w: %w", ErrLine, err)
	}
	return nil
}

func (d Draft) rawLine() (Line, error) {
	raw := bytes.TrimSuffix(d.Raw, []byte("\n"))
	if err := rawjson.CheckText("line", raw); err != nil {
		return Line{}, fmt.Errorf("%w: %w", ErrLine, err)
	}
	if bytes.IndexByte(raw, '\n') >= 0 {
		return Line{}, fmt.Errorf("%w: more than one line", ErrLine)
	}
	l, err := ParseLine(raw)
	if err != nil {
		return Line{}, err
	}
	if l.Type == "" || l.ID == "" {
		return Line{}, fmt.Errorf("%w: a line without a type or an id", ErrLine)
	}
	if err := checkNames(l); err != nil {
		return Line{}, err
	}
	return l, nil
}

// appendBody appends the fields of the body and the line's closing brace.
func appendBody(line []byte, body json.RawMessage) ([]byte, error) {
	if len(body) > 0 {
		m := rawjson.Walk(body)
		m.Strict = true
		if m.Closing != '}' {
			return nil, fmt.Errorf("%w: the body is no JSON object", ErrLine)
		}
		for m.Next() {
			switch string(m.Key) {
			case "type", "id", "parentId", "timestamp":
				return nil, fmt.Errorf("%w: the body sets %q", ErrLine, m.Key)
			}
		}
		if m.Err != nil {
			return nil, fmt.Errorf("%w: body: %w", ErrLine, m.Err)
		}
		if i := rawjson.Space(body, m.Pos); i < len(body) {
			return nil, fmt.Errorf("%w: body: %w", ErrLine, rawjson.SyntaxError(body, i))
		}
		start := len(line)
		if line = rawjson.AppendCompact(line, body); len(line)-start > len("{}") {
			line[start] = ','
			return line, nil
		}
		line = line[:start]
	}
	return append(line, '}'), nil
}

// checkLine holds what was built against what a reader will read.
func checkLine(line []byte, typ, id, parentID string) (Line, error) {
	l, err := ParseLine(line)
	if err != nil {
		return Line{}, err
	}
	if err := checkNames(l); err != nil {
		return Line{}, err
	}
	if l.Type != typ || l.ID != id || l.ParentID != parentID {
		return Line{}, fmt.Errorf("%w: type %q, id %q or parent %q cannot be read back", ErrLine, typ, id, parentID)
	}
	return l, nil
}

func checkNames(l Line) error {
	if n := max(len(l.Type), len(l.ID), len(l.ParentID)); n > nameMax {
		return fmt.Errorf("%w: a type or an id of %d bytes, at most %d are allowed", ErrLine, n, nameMax)
	}
	return nil
}
