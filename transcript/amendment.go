package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// AmendKind is the customType of an amendment: an entry that replaces the body of another entry, or hides it.
const AmendKind = "coppice.amend"

// ErrNotAmendable is the error of an entry that cannot be amended, or not in that way: settings, labels, titles and
// all other structure; what a compaction keeps; a compaction cannot be hidden.
var ErrNotAmendable = errors.New("transcript: the entry cannot be amended so")

// Amendment is the content of an amendment. It applies to the entry with the id Target that came before it; of several
// that speak of one entry the last counts.
type Amendment struct {
	ID     string          // of the amendment's own entry
	Target string          // id of the entry that it speaks of
	Type   string          // of that entry
	First  bool            // the session's summary shows the entry as the first that the user asked
	Body   json.RawMessage // the body of the entry from now on, as in Draft.Body; nil = it is hidden
}

// amendMark is in every line of an amendment of ours.
var amendMark = []byte(`"` + AmendKind + `"`)

// Amendment returns how the entry amends another one. false: it is no amendment, or none that can apply.
func (e Entry) Amendment() (a Amendment, ok bool) {
	if e.Type != "custom" || !bytes.Contains(e.Raw, amendMark) {
		return a, false
	}
	var data []byte
	kind := false
	m := rawjson.Walk(e.Raw)
	for m.Closing == '}' && m.Next() {
		switch string(m.Key) {
		case "customType":
			kind = bytes.Equal(m.Val, amendMark)
		case "targetId":
			a.Target = rawjson.Text(m.Val)
		case "data":
			data = m.Val
		}
	}
	a.ID, a.Type = e.ID, rawjson.Text(rawjson.Field(data, "type"))
	if !kind || a.Target == "" || len(a.Target) > nameMax || !amendable(a.Type) {
		return Amendment{}, false
	}
	a.First = rawjson.IsTrue(rawjson.Field(data, "first"))
	if rawjson.IsTrue(rawjson.Field(data, "hidden")) {
		return a, a.Type != "compaction"
	}
	a.Body = rawjson.Field(data, "body")
	_, err := appendBody(nil, a.Body)
	return a, err == nil && len(a.Body) > 0 && !ours(a.Type, a.Body)
}

// amendable reports whether entries of a type can be amended: messages, and those that keep an extension's data.
func amendable(typ string) bool {
	switch typ {
	case "message", "custom_message", "branch_summary", "compaction", "custom":
		return true
	}
	return false
}

// ours reports whether the line or body of an entry is bookkeeping of this library.
func ours(typ string, raw []byte) bool {
	return typ == "custom" && strings.HasPrefix(rawjson.Text(rawjson.Field(raw, "customType")), "coppice.")
}

// Amend returns the draft of an amendment of e that replaces its body, or hides it if body is nil. It changes neither
// id, parent, time nor type of e, and what a compaction keeps stays as it is: else ErrNotAmendable. e is the entry as
// it was appended; first reports that the session's summary shows it as the first that the user asked (Tree.Asked).
func (e Entry) Amend(body json.RawMessage, first bool) (Draft, error) {
	switch {
	case !amendable(e.Type) || ours(e.Type, e.Raw):
		return Draft{}, fmt.Errorf("entry %s of type %s: %w", e.ID, e.Type, ErrNotAmendable)
	case body == nil && e.Type == "compaction":
		return Draft{}, fmt.Errorf("entry %s: hiding a compaction would bring back what it replaced: %w", e.ID,
			ErrNotAmendable)
	}
	data := rawjson.Object("type", quote(e.Type), "first", markTrue(first), "hidden", []byte("true"))
	if body != nil {
		line, err := appendBody([]byte("{}"), body)
		if err != nil {
			return Draft{}, err
		}
		if ours(e.Type, body) {
			return Draft{}, fmt.Errorf("entry %s: customType of coppice's own: %w", e.ID, ErrNotAmendable)
		}
		if line = line[2:]; len(line) == 1 {
			line = []byte("{}")
		} else {
			line[0] = '{'
		}
		now := Entry{ID: e.ID, Type: e.Type, Raw: line}
		if !sameBounds(e, now) {
			return Draft{}, fmt.Errorf("entry %s: the body changes what is kept: %w", e.ID, ErrNotAmendable)
		}
		data = rawjson.Object("type", quote(e.Type), "first", markTrue(first), "body", line)
	}
	own := rawjson.Object("customType", amendMark, "targetId", quote(e.ID), "data", data)
	return Draft{Type: "custom", Body: own}, nil
}

// markTrue returns nil for false: the field is absent then.
func markTrue(set bool) []byte {
	if set {
		return []byte("true")
	}
	return nil
}

func quote(s string) []byte { return rawjson.AppendString(nil, s) }

// sameBounds reports whether two versions of an entry end and keep the same of what came before, by every profile.
func sameBounds(was, is Entry) bool {
	for _, p := range [...]Profile{Coppice, Pi, OMP, Atomic, Operator} {
		r := rulesOf(p)
		if r.boundary(was) != r.boundary(is) {
			return false
		}
		from, after, wanted := r.keeps(was)
		if f, a, w := r.keeps(is); f != from || a != after || w != wanted {
			return false
		}
	}
	return true
}

// Amended returns the entry with an amendment applied: its line has the head of e and the body of a. An entry that is
// hidden keeps the head alone. What does not fit e changes nothing.
func (e Entry) Amended(a Amendment) Entry {
	if e.ID != a.Target || e.Type != a.Type && !e.Hidden {
		return e
	}
	line := headLine(e.Raw, quote(a.Type))
	if a.Body != nil {
		line, _ = appendBody(line[:len(line)-1], a.Body)
		if now := (Entry{ID: e.ID, Type: a.Type, Raw: line}); !e.Hidden && !sameBounds(e, now) {
			return e
		}
	}
	e.Type, e.Raw, e.AmendedBy, e.Hidden = a.Type, line, a.ID, a.Body == nil
	return e
}

// Body returns the fields of the entry's line after type, id, parentId and timestamp: what Draft.Body holds.
func (e Entry) Body() json.RawMessage {
	body := []byte{'{'}
	m := rawjson.Walk(e.Raw)
	for m.Closing == '}' && m.Next() {
		switch string(m.Key) {
		case "type", "id", "parentId", "timestamp":
			continue
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(rawjson.AppendKey(body, m.Key), m.Val...)
	}
	return append(body, '}')
}

// headLine returns a line of the four head fields of raw, as they are there but for the type.
func headLine(raw, typ []byte) []byte {
	var id, parent, at []byte
	for m := rawjson.Walk(raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "id":
			id = m.Val
		case "parentId":
			parent = m.Val
		case "timestamp":
			at = m.Val
		}
	}
	return rawjson.Object("type", typ, "id", id, "parentId", parent, "timestamp", at)
}

// silentType is the type by which a window holds a hidden entry: no context reads such an entry, whatever the profile.
const silentType = "custom"

// Amend applies an amendment to the entry of the window that it speaks of, if the window holds it. ok false: the window
// has to be made of the whole path again. It lacks entries of the path: the amended one may be among them, and set the
// model, and what the bound cut off may fit now.
func (w *WorkingContext) Amend(a Amendment) (changed, ok bool) {
	at := -1
	list := w.Entries()
	for i := range list {
		if list[i].ID == a.Target {
			at = i
		}
	}
	if at < 0 {
		return false, !w.cut()
	}
	was := list[at]
	is := headOnly(w.rules, was.Amended(a))
	if is.AmendedBy == was.AmendedBy {
		return false, true
	}
	w.merge()
	w.entries = append(make([]Entry, 0, len(list)+1), list...) // clones share what was there
	w.entries[at] = is
	w.bytes += len(is.Raw) - len(was.Raw)
	w.front = front{}
	if w.omitted > 0 {
		return true, false
	}
	w.trim()
	return true, true
}
