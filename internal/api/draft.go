package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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

// Draft returns the entry that a JSON object says: a whole entry with type, id and parentId, whose bytes are kept; an
// entry of a known type without id or parentId, which is appended at the head; or else a message in the format of any
// provider. Of what is no JSON object it returns ErrEntry. The bytes are copied.
func Draft(line json.RawMessage) (transcript.Draft, error) {
	line = bytes.TrimSpace(line)
	var fields map[string]json.RawMessage
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &fields) != nil {
		return transcript.Draft{}, ErrEntry
	}
	_, placed := fields["parentId"]
	_, speaks := fields["role"]
	var typ, id string
	if json.Unmarshal(fields["type"], &typ) != nil || typ == "" || speaks {
		return entry.Message(line), nil
	}
	if json.Unmarshal(fields["id"], &id) == nil && id != "" && placed {
		return entry.Line(line), nil
	}
	if needs, known := needed(typ); !known || needs != "" && fields[needs] == nil {
		return entry.Message(line), nil
	}
	body, err := without(line, "type", "id", "parentId", "timestamp")
	if err != nil {
		return transcript.Draft{}, fmt.Errorf("%w: %w", ErrEntry, err)
	}
	return transcript.Draft{Type: typ, ID: id, Body: body}, nil
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
