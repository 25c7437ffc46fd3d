package transcript

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Entry is one line of the transcript: a node of the tree, or an annotation. It never changes: an amendment is an entry
// of its own, and readers put its content into the line that they return. Session.Originals returns lines as they are
// stored.
type Entry struct {
	Ordinal      uint64 // its number in the session, in append order, from 0
	ID, ParentID string // ParentID "" = a root
	Type         string
	Time         time.Time
	Raw          json.RawMessage // the whole line without its newline, blobs put back
	AmendedBy    string          // id of the amendment that Raw shows, or that hides the entry; "" = as it was appended
	Hidden       bool            // by the amendment: Raw has the fields type, id, parentId and timestamp alone
}

// Message returns the message that the entry holds. false: the entry is no message.
func (e Entry) Message() (Message, bool) {
	if e.Type != "message" {
		return Message{}, false
	}
	raw := rawjson.Field(e.Raw, "message")
	if len(raw) == 0 || raw[0] != '{' {
		return Message{}, false
	}
	return Message{Entry: e.ID, Role: message.Word(rawjson.Field(raw, "role")), Raw: raw}, true
}

// Decode unmarshals the whole line into v, as encoding/json does it.
func (e Entry) Decode(v any) error {
	if err := json.Unmarshal(e.Raw, v); err != nil {
		return fmt.Errorf("decode entry %s: %w", e.ID, err)
	}
	return nil
}

// Title returns the name that an entry puts on its session: pi's session_info, where an absent or empty
// name clears it, and omp's title_change. false: the entry has none.
func (e Entry) Title() (name string, ok bool) {
	switch e.Type {
	case "session_info":
		return rawjson.Text(rawjson.Field(e.Raw, "name")), true
	case "title_change":
		return rawjson.Text(rawjson.Field(e.Raw, "title")), true
	}
	return "", false
}

// MoveKind is the customType of an entry that moves its session to another working directory.
const MoveKind = "coppice.move"

// Cwd returns the working directory to which an entry moves its session. false: the entry has none.
func (e Entry) Cwd() (dir string, ok bool) {
	if e.Type != "custom" || rawjson.Text(rawjson.Field(e.Raw, "customType")) != MoveKind {
		return "", false
	}
	cwd := rawjson.Field(rawjson.Field(e.Raw, "data"), "cwd")
	return rawjson.Text(cwd), rawjson.IsString(cwd)
}

// MetaKind is the customType of an entry that changes the metadata of its session.
const MetaKind = "coppice.meta"

// Meta returns the change that an entry makes to the metadata of its session: values by key, nil removes. false: the
// entry has none.
func (e Entry) Meta() (change map[string]*string, ok bool) {
	if e.Type != "custom" || rawjson.Text(rawjson.Field(e.Raw, "customType")) != MetaKind {
		return nil, false
	}
	if err := json.Unmarshal(rawjson.Field(e.Raw, "data"), &change); err != nil {
		return nil, false
	}
	return change, true
}

// Settings are how the model is run at the end of a path: the latest value of each settings entry on it.
// Model is "provider/id", "" when no entry names one; ThinkingLevel is "off" when no entry names one.
type Settings struct {
	Model         string `json:"model,omitempty"`
	ThinkingLevel string `json:"thinkingLevel,omitempty"`
	Mode          string `json:"mode,omitempty"`
}
