// Package api holds the documents of docs/cli-json.md: the JSON of a session, a commit, a tree, an error and so on as
// Go types with constructors from the engine's types, the reading of entries that a caller sends, and the table of
// errors with exit codes and HTTP statuses. The command line and the HTTP service write these documents.
//
// Guarantees:
//
//   - Lists are never null. A pointer that is nil is null, or absent where the field has omitempty.
//   - Messages, entries and states are the bytes that were stored.
//   - Names of types are unique among themselves and describe one document each, so that a schema can be made of them.
//     The tag doc describes a field whose name does not.
//
// The package does not print, and counts no requests: fields IO are left to the caller.
package api

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coppice-go/coppice/transcript"
)

// null returns nil, which is null in JSON, for the empty string.
func null(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// nullJSON returns null for an empty value.
func nullJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// list returns an empty list for nil, which would be null in JSON.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

// Marshal returns v as JSON without HTML escapes: raw JSON keeps its bytes.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the output: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Lines returns the lines of entries, not nil.
func Lines(entries []transcript.Entry) []json.RawMessage {
	return convert(entries, func(e transcript.Entry) json.RawMessage { return e.Raw })
}

// convert returns a list of the converted elements, not nil.
func convert[A, B any](in []A, f func(A) B) []B {
	out := make([]B, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}
