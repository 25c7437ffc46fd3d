package transcript

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Entry is one line of the transcript: a node of the tree, or an annotation. It never changes.
type Entry struct {
	Ordinal      uint64 // its number in the session, in append order, from 0
	ID, ParentID string // ParentID "" = a root
	Type         string
	Time         time.Time
	Raw          json.RawMessage // the whole line without its newline, blobs put back
}

// Message gives the message that the entry holds. false: the entry is no message.
func (e Entry) Message() (Message, bool) {
	if e.Type != "message" {
		return Message{}, false
	}
	raw := rawjson.Field(e.Raw, "message")
	if len(raw) == 0 || raw[0] != '{' {
		return Message{}, false
	}
	return Message{Entry: e.ID, Role: rawjson.Text(rawjson.Field(raw, "role")), Raw: raw}, true
}

// Decode unmarshals the whole line into v, as encoding/json does it.
func (e Entry) Decode(v any) error {
	if err := json.Unmarshal(e.Raw, v); err != nil {
		return fmt.Errorf("decode entry %s: %w", e.ID, err)
	}
	return nil
}
