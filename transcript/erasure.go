package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// EraseKind is the customType of the entry that records an erasure, and ErasedKind that of a stub without a shape
// of its own. ErasedText is in the place of texts.
const (
	EraseKind  = "coppice.erase"
	ErasedKind = "coppice.erased"
	ErasedText = "[erased]"
)

// ErrNotErasable is the error of an entry that has no content of a user: settings, moves of the head, and entries
// of coppice's own, but for amendments.
var ErrNotErasable = errors.New("transcript: the entry cannot be erased")

// Erasure records that entries were erased, or parts of documents. It has nothing of their content.
type Erasure struct {
	Entries []string `json:"entries"`
	States  []string `json:"states,omitempty"` // JSON pointers into the states of all commits before
	Docs    []string `json:"docs,omitempty"`   // names of small documents
	Reason  string   `json:"reason,omitempty"`
	// Names of the segments that were written again, each with that of the one in its place.
	Segments [][2]string `json:"segments,omitempty"`
	Time     time.Time   `json:"-"` // of the entry that records it
}

var (
	eraseMark  = []byte(`"` + EraseKind + `"`)
	erasedMark = []byte(`"erased":{`)
)

// Erasure returns what the entry records as erased. false: it records no erasure.
func (e Entry) Erasure() (r Erasure, ok bool) {
	if e.Type != "custom" || !bytes.Contains(e.Raw, eraseMark) ||
		!bytes.Equal(rawjson.Field(e.Raw, "customType"), eraseMark) {
		return r, false
	}
	r.Time = e.Time
	return r, json.Unmarshal(rawjson.Field(e.Raw, "data"), &r) == nil && len(r.Entries)+len(r.States)+len(r.Docs) > 0
}

// Draft returns the entry that records the erasure.
func (r Erasure) Draft() (Draft, error) {
	data, err := json.Marshal(r)
	body := rawjson.Object("customType", eraseMark, "data", data)
	return Draft{Type: "custom", Body: body}, err
}

// Stub is what is left of an erased entry, with its place in the tree.
type Stub struct {
	Type   string    `json:"type"` // of the entry that was erased
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time"`
}

// Erased returns the stub that an erased entry is. false: the entry was not erased.
func (e Entry) Erased() (s Stub, ok bool) {
	if !bytes.Contains(e.Raw, erasedMark) {
		return s, false
	}
	val := rawjson.Field(e.Raw, "erased")
	return s, len(val) > 0 && val[0] == '{' && json.Unmarshal(val, &s) == nil && s.Type != ""
}

// Erase returns the line of the stub that takes the place of e: its id, parent and time, the time and the reason
// of the erasure, and a message of the same role that readers can show and providers accept. Ids and names of
// tools that it calls or answers stay, so that calls and results fit; arguments, texts, images and all else go. An
// amendment becomes a stub that amends nothing. e is as it is stored. A stub comes back as it is.
func (e Entry) Erase(reason string, at time.Time) ([]byte, error) {
	if _, ok := e.Erased(); ok {
		return e.Raw, nil
	}
	typ, body, ok := e.erasedBody()
	if !ok {
		return nil, fmt.Errorf("entry %s of type %s: %w", e.ID, e.Type, ErrNotErasable)
	}
	mark, err := json.Marshal(Stub{e.Type, reason, at.UTC().Truncate(time.Millisecond)})
	if err != nil {
		return nil, err
	}
	head := headLine(e.Raw, quote(typ))
	line, err := appendBody(head[:len(head)-1], rawjson.WithField(body, "erased", mark))
	if e.Type == "compaction" && !sameBounds(e, Entry{ID: e.ID, Type: typ, Raw: line}) {
		return nil, fmt.Errorf("entry %s: the compaction would keep other entries: %w", e.ID, ErrNotErasable)
	}
	return line, err
}

// erasedBody returns type and body of the stub of an entry.
func (e Entry) erasedBody() (typ string, body []byte, ok bool) {
	word := quote(ErasedText)
	field := func(name string) []byte { return rawjson.Field(e.Raw, name) }
	switch e.Type {
	case "message":
		m, known := erasedMessage(rawjson.Field(e.Raw, "message"))
		if !known {
			return "custom", erasedCustom(), true
		}
		return e.Type, rawjson.Object("message", m), true
	case "custom_message":
		return e.Type, rawjson.Object("customType", field("customType"), "content", word,
			"display", scalar(field("display"))), true
	case "branch_summary":
		return e.Type, rawjson.Object("fromId", field("fromId"), "summary", word), true
	case "compaction":
		return e.Type, rawjson.Object("summary", word, "firstKeptEntryId", field("firstKeptEntryId"),
			"tokensBefore", scalar(field("tokensBefore"))), true
	case "session_info":
		return e.Type, rawjson.Object("name", word), true
	case "title_change":
		return e.Type, rawjson.Object("title", word), true
	case "label":
		return e.Type, rawjson.Object("targetId", field("targetId"), "label", word), true
	case "custom":
		_, amends := e.Amendment()
		return e.Type, erasedCustom(), amends || !ours(e.Type, e.Raw)
	}
	return "", nil, false
}

func erasedCustom() []byte { return rawjson.Object("customType", quote(ErasedKind)) }

// scalar returns a value that is a number, true or false; nil for any other.
func scalar(val []byte) []byte {
	if len(val) == 0 || bytes.ContainsAny(val[:1], `"{[n`) {
		return nil
	}
	return val
}

// figures returns a value of which all leaves are numbers; nil for any other.
func figures(val []byte) []byte {
	var v map[string]any
	if json.Unmarshal(val, &v) != nil {
		return nil
	}
	for _, of := range v {
		inner, nested := of.(map[string]any)
		if _, number := of.(float64); !number && !nested {
			return nil
		}
		for _, leaf := range inner {
			if _, number := leaf.(float64); !number {
				return nil
			}
		}
	}
	return val
}

// nameOnly returns a short string, such as the name of a model; nil for any other value.
func nameOnly(val []byte) []byte {
	const most = 128
	if !rawjson.IsString(val) || len(val) > most {
		return nil
	}
	return val
}

// erasedMessage returns the message of a stub; false: of such a role there is none.
func erasedMessage(raw []byte) ([]byte, bool) {
	s := Inspect(raw)
	text := rawjson.Object("type", []byte(`"text"`), "text", quote(ErasedText))
	at := scalar(rawjson.Field(raw, "timestamp"))
	switch {
	case len(s.Results) == 1:
		name := nameOnly(rawjson.Field(raw, "toolName"))
		if name == nil {
			name = []byte(`""`)
		}
		return rawjson.Object("role", []byte(`"toolResult"`), "toolCallId", quote(s.Results[0]), "toolName", name,
			"content", rawjson.List([][]byte{text}), "isError", []byte("false"), "timestamp", at), true
	case len(s.Results) > 1:
		var list [][]byte
		for _, id := range s.Results {
			list = append(list, rawjson.Object("type", []byte(`"tool_result"`), "tool_use_id", quote(id),
				"content", quote(ErasedText)))
		}
		return rawjson.Object("role", []byte(`"user"`), "content", rawjson.List(list), "timestamp", at), true
	case s.Role == "assistant", s.Role == "model":
		list := [][]byte{text}
		for _, c := range s.Calls {
			list = append(list, rawjson.Object("type", []byte(`"toolCall"`), "id", quote(c.ID), "name", quote(c.Name),
				"arguments", []byte("{}")))
		}
		field := func(name string) []byte { return nameOnly(rawjson.Field(raw, name)) }
		return rawjson.Object("role", []byte(`"assistant"`), "content", rawjson.List(list), "api", field("api"),
			"provider", field("provider"), "model", field("model"), "usage", figures(rawjson.Field(raw, "usage")),
			"stopReason", field("stopReason"), "timestamp", at), true
	case slices.Contains([]string{"user", "system", "developer"}, s.Role):
		return rawjson.Object("role", quote(s.Role), "content", quote(ErasedText), "timestamp", at), true
	}
	return nil, false
}
