package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

// Members of the two kinds of envelope: around a message, and around any entry.
var (
	messageMembers = []string{"message", "original", "id", "parentId", "timestamp", "onKnownId"}
	entryMembers   = []string{"entry", "onKnownId"}
)

// Envelope returns the entry that a JSON object describes, as Draft does, and its own rule for an id that the session
// has; nil = it names none. An object with neither role nor type is an envelope if it has one of
//
//	{"message": M, "original": O}   a message, and what its program has of it: the entry keeps both
//	{"entry": E, "onKnownId": RULE} any entry
//
// The first may have id, parentId, timestamp and onKnownId too.
func Envelope(line json.RawMessage) (d transcript.Draft, known *transcript.KnownID, err error) {
	fields, members := membersOf(line)
	if members == nil {
		d, err = draft(line)
		return d, nil, err
	}
	if rule, named := fields["onKnownId"]; named {
		k, err := KnownRule(rawjson.Text(rule))
		if err != nil || !rawjson.IsString(rule) {
			return d, nil, memberError{`the member "onKnownId" of the entry: want "error", "ignore" or "amend"`}
		}
		known = &k
	}
	if inner, wraps := fields["entry"]; wraps {
		if _, twice := membersOf(inner); twice != nil {
			return d, nil, memberError{`the member "entry" is an envelope itself`}
		}
		d, err = draft(inner)
		return d, known, err
	}
	d, err = enveloped(fields)
	return d, known, err
}

// membersOf returns the members of an envelope, and their names; nil = the object is none.
func membersOf(line []byte) (fields map[string]json.RawMessage, names []string) {
	line = bytes.TrimSpace(line)
	end, err := rawjson.ValueEnd(line, 0, maxDraftDepth)
	if err != nil || end < len(line) || line[0] != '{' {
		return nil, nil
	}
	fields = map[string]json.RawMessage{}
	for m := rawjson.Walk(line); m.Next(); {
		name := string(m.Key)
		if _, twice := fields[name]; twice || name == "role" || name == "type" {
			return nil, nil
		}
		fields[name] = m.Val
		names = append(names, name)
	}
	for _, kind := range [][]string{messageMembers, entryMembers} {
		inner := fields[kind[0]]
		other := slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(kind, name) })
		if len(inner) > 0 && inner[0] == '{' && !other {
			return fields, names
		}
	}
	return nil, nil
}

// enveloped returns the entry of an envelope around a message.
func enveloped(fields map[string]json.RawMessage) (d transcript.Draft, err error) {
	for name, into := range map[string]*string{"id": &d.ID, "parentId": &d.Parent} {
		switch val := fields[name]; {
		case rawjson.IsString(val):
			*into = rawjson.Text(val)
		case len(val) > 0 && string(val) != "null":
			return d, memberError{fmt.Sprintf("the member %q of the entry is neither a string nor null", name)}
		}
	}
	if val, named := fields["timestamp"]; named {
		if d.Time, err = time.Parse(time.RFC3339Nano, rawjson.Text(val)); err != nil {
			return d, memberError{`the member "timestamp" of the entry is no time of RFC 3339`}
		}
	}
	d.Type = "message"
	d.Body = append([]byte(`{"message":`), fields["message"]...)
	if val, named := fields["original"]; named {
		d.Body = append(append(d.Body, `,"original":`...), val...)
	}
	d.Body = append(d.Body, '}')
	return d, nil
}

// KnownRule returns the rule for an entry whose id the session has, by its name; "" = error.
func KnownRule(name string) (transcript.KnownID, error) {
	switch name {
	case "", "error":
		return transcript.KnownError, nil
	case "ignore":
		return transcript.KnownIgnore, nil
	case "amend":
		return transcript.KnownAmend, nil
	}
	return 0, fmt.Errorf("%.40q: want error, ignore or amend", name)
}
