// Package canon reads and writes JSON of one canonical form: fields in a fixed order, no white space, optional fields
// absent rather than empty. A Cursor accepts exactly the bytes that the Append functions write. On any input they do
// not panic or recurse, and they allocate no more memory than the input has bytes (I15).
//
// Commit lines, preludes and documents have this form. JSON values of users inside them are scanned by internal/rawjson
// and not decoded. AppendString is separate from that of rawjson, because its escapes are part of the format on disk.
package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Limits of nesting, in levels of JSON.
const (
	MaxDepth      = rawjson.MaxDepth // of a log line, and of a JSON value of a user
	BodyDepth     = MaxDepth - 2     // of a document or patch that is written: two levels of its log line are around it
	EnvelopeDepth = MaxDepth + 8     // of a document or patch that is read: earlier releases wrote deeper ones
)

// MaxState is the longest JSON value of a user in a document, in bytes.
const MaxState = 4 << 20

// AtMost returns a *codec.LimitError if value is above limit, else nil. what names the value in the error.
func AtMost(what string, value, limit int) error {
	if value <= limit {
		return nil
	}
	return &codec.LimitError{What: what, Limit: int64(limit), Value: int64(value)}
}

// Malformed returns an error for input that cannot be decoded. It wraps codec.ErrFormat.
func Malformed(format string, args ...any) error {
	return fmt.Errorf("checkpoint: %s: %w", fmt.Sprintf(format, args...), codec.ErrFormat)
}

// Comma appends a comma to dst, unless dst ends with '{' or '['. dst must not be empty.
func Comma(dst []byte) []byte {
	if c := dst[len(dst)-1]; c == '{' || c == '[' {
		return dst
	}
	return append(dst, ',')
}

// Field is an optional member of an object whose value is a string. Name includes the quotes and the colon.
type Field struct {
	Name  string
	Value *string
}

// scan returns the end of the JSON value that starts at p[i] or after white space there. compact reports whether the
// value has no white space in it or before it. The error is a *codec.LimitError if the value has more than limit
// levels, else it wraps codec.ErrFormat.
func scan(p []byte, i, limit int) (end int, compact bool, err error) {
	end, compact, err = rawjson.Scan(p, i, limit)
	switch {
	case errors.Is(err, rawjson.ErrDepth):
		return 0, false, &codec.LimitError{What: "nesting of JSON", Limit: int64(limit), Value: int64(limit) + 1}
	case err != nil:
		return 0, false, Malformed("JSON value at byte %d: %v", i, err)
	}
	return end, compact, nil
}

// AppendJSON appends the JSON value raw to dst, without white space. It returns an error if raw is not exactly one
// valid value of at most MaxState bytes and depth levels. what names raw in the error.
func AppendJSON(dst, raw []byte, what string, depth int) ([]byte, error) {
	if err := AtMost(what, len(raw), MaxState); err != nil {
		return nil, err
	}
	end, compact, err := scan(raw, 0, depth)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(bytes.TrimLeft(raw[end:], " \t\r\n")) > 0 {
		return nil, Malformed("%s: bytes after the JSON value at %d", what, end)
	}
	if compact {
		return append(dst, raw[:end]...), nil
	}
	buf := bytes.NewBuffer(dst)
	if err := json.Compact(buf, raw); err != nil {
		return nil, Malformed("%s: %v", what, err)
	}
	return buf.Bytes(), nil
}

// Nested returns an error if raw has more than depth levels or does not start with a JSON value. An empty raw is valid.
func Nested(raw []byte, what string, depth int) error {
	if len(raw) == 0 {
		return nil
	}
	if _, _, err := scan(raw, 0, depth); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Whole returns an error unless raw is exactly one JSON value of at most depth levels without white space.
func Whole(raw []byte, what string, depth int) error {
	end, compact, err := scan(raw, 0, depth)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if end != len(raw) || !compact {
		return Malformed("%s: white space, or bytes after the JSON value", what)
	}
	return nil
}
