package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/entry"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// ErrEntry is wrapped by the errors of Draft and Drafts: the caller sent what is no entry. Nothing was stored.
var ErrEntry = errors.New("not a JSON object")

// LineError is the error of one line of Drafts.
type LineError struct {
	Line int // from 1
	Err  error
}

// Error returns the number of the line, and what is wrong with it.
func (e *LineError) Error() string {
	return fmt.Sprintf("line %d: %v; nothing was stored", e.Line, e.Err)
}

// Unwrap returns what is wrong with the line.
func (e *LineError) Unwrap() error { return e.Err }

var bom = []byte("\xef\xbb\xbf")

// TrimBOM returns text without the byte order mark that some programs put before it.
func TrimBOM(text []byte) []byte { return bytes.TrimPrefix(text, bom) }

// Drafts returns the entries of JSONL. Empty lines count, and are skipped. One bad line rejects all: the error is a
// *LineError, which wraps ErrEntry.
func Drafts(jsonl []byte) ([]transcript.Draft, error) {
	var drafts []transcript.Draft
	n := 0
	for line := range bytes.Lines(TrimBOM(jsonl)) {
		n++
		text := bytes.TrimSpace(line)
		if len(text) == 0 {
			continue
		}
		if err := rawjson.CheckText("text", line); err != nil {
			return nil, &LineError{n, err}
		}
		d, err := Draft(text)
		if err != nil {
			if !bytes.HasSuffix(line, []byte("\n")) {
				err = fmt.Errorf("%w; this last line has no newline: is the input truncated?", err)
			}
			return nil, &LineError{n, err}
		}
		drafts = append(drafts, d)
	}
	return drafts, nil
}

// maxDraftDepth is that of encoding/json. What a line of the log cannot hold is refused by its own limit.
const maxDraftDepth = 10_000

// Draft returns the entry of a JSON object: a whole entry with type, id and parentId, whose bytes are kept; an
// entry of a known type without id or parentId, which is appended below its parentId, or at the head if that is absent
// or null; a message with its original, or an entry with its rule for a known id, as Envelope has them; or else a
// message in the format of any provider. Of what is no JSON object, and of an entry with a member of its place that is
// ambiguous, it returns ErrEntry. The bytes are copied.
func Draft(line json.RawMessage) (transcript.Draft, error) {
	d, known, err := Envelope(line)
	if known != nil {
		d.OnKnownID = *known
	}
	return d, err
}

// draft is Draft of what is no envelope.
func draft(line json.RawMessage) (transcript.Draft, error) {
	line = bytes.TrimSpace(line)
	end, err := rawjson.ValueEnd(line, 0, maxDraftDepth)
	if err != nil || end < len(line) || line[0] != '{' {
		return transcript.Draft{}, ErrEntry
	}
	fields := map[string]json.RawMessage{}
	for m := rawjson.Walk(line); m.Next(); {
		fields[string(m.Key)] = m.Val
	}
	if _, speaks := fields["role"]; speaks {
		return entry.Message(line), nil
	}
	if err := checkMembers(line, fields); err != nil {
		return transcript.Draft{}, err
	}
	_, placed := fields["parentId"]
	var typ, id, parent string
	if json.Unmarshal(fields["type"], &typ) != nil || typ == "" {
		return entry.Message(line), nil
	}
	if json.Unmarshal(fields["id"], &id) == nil && id != "" && placed {
		return entry.Line(line), nil
	}
	if needs, known := needed(typ); !known || needs != "" && fields[needs] == nil {
		return entry.Message(line), nil
	}
	if placed {
		parent = rawjson.Text(fields["parentId"])
	}
	body, err := without(line, "type", "id", "parentId", "timestamp")
	if err != nil {
		return transcript.Draft{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	return transcript.Draft{Type: typ, ID: id, Parent: parent, Body: body}, nil
}

// memberError is an ErrEntry about one member of an entry.
type memberError struct{ text string }

func (e memberError) Error() string        { return e.text }
func (e memberError) Is(target error) bool { return target == ErrEntry }

// ownMembers are the members of an entry that have a meaning here. All others are the caller's.
var ownMembers = [...]string{"type", "id", "parentId", "timestamp", "message"}

// checkMembers returns an error if an object is an entry, and one of ownMembers occurs twice, in another case, or as a
// place that is no text: what the caller gave would be ignored. An object is an entry if it is one with any of the
// values that its members have, whatever their case. A message of a provider may have any members.
func checkMembers(object []byte, fields map[string]json.RawMessage) error {
	var seen [len(ownMembers)]bool
	var types []string
	var odd error
	named, placed := false, false
	for m := rawjson.Walk(object); m.Next(); {
		i := slices.IndexFunc(ownMembers[:], func(name string) bool { return strings.EqualFold(name, string(m.Key)) })
		if i < 0 {
			continue
		}
		name, text := ownMembers[i], rawjson.IsString(m.Val)
		switch {
		case odd != nil:
		case string(m.Key) != name:
			odd = memberError{fmt.Sprintf("the member %.80q of the entry: want %q", m.Key, name)}
		case seen[i]:
			odd = memberError{fmt.Sprintf("the member %q of the entry occurs twice", name)}
		case (name == "id" || name == "parentId") && !text && string(m.Val) != "null":
			odd = memberError{fmt.Sprintf("the member %q of the entry is neither a string nor null", name)}
		}
		seen[i] = true
		switch {
		case name == "type" && text:
			types = append(types, rawjson.Text(m.Val))
		case name == "id":
			named = named || text && len(m.Val) > len(`""`)
		case name == "parentId":
			placed = true
		}
	}
	if odd != nil && slices.ContainsFunc(types, func(t string) bool { return isEntry(t, named && placed, fields) }) {
		return odd
	}
	return nil
}

// isEntry reports whether an object with a type is an entry, if the case of its members does not count.
func isEntry(typ string, whole bool, fields map[string]json.RawMessage) bool {
	if whole {
		return typ != ""
	}
	needs, known := needed(typ)
	if !known || needs == "" {
		return known
	}
	for name := range fields {
		if strings.EqualFold(name, needs) {
			return true
		}
	}
	return false
}

// needed returns the field that an entry without id and parentId must have by its type; "" = none. false: such an entry
// has to have both.
func needed(typ string) (field string, known bool) {
	switch typ {
	case "message":
		return "message", true
	case "custom", "custom_message":
		return "customType", true
	case "label":
		return "targetId", true
	case "model_change":
		return "modelId", true
	case "thinking_level_change":
		return "thinkingLevel", true
	case "session_info":
		return "", true
	case "compaction", "branch_summary":
		return "summary", true
	}
	return "", false
}

// without returns an object without some of its fields. The others keep their order and their bytes.
func without(object []byte, names ...string) (json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	out := []byte{'{'}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if slices.Contains(names, name) {
			continue
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), value...)
	}
	return append(out, '}'), nil
}
