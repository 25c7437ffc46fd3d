// Package canon reads and writes JSON of one canonical form: fields in a fixed order, no white space, optional fields
// absent rather than empty. The Append functions return exactly the bytes that a Cursor accepts; no input makes any of
// them panic, recurse, or allocate by declared lengths (I15).
//
// Commit lines, preludes and documents have this form. The JSON of users within them is only scanned, by
// internal/rawjson; strings have a separate AppendString here, since the form is part of the format on disk.
package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/coppice-go/coppice/codec"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// Limits of nesting. A line of a log is read up to MaxDepth levels. A document or patch is inside the line and its
// data: it is written up to BodyDepth. Earlier releases wrote deeper ones, which are read up to EnvelopeDepth, with
// JSON of callers of up to MaxDepth.
const (
	MaxDepth      = rawjson.MaxDepth
	BodyDepth     = MaxDepth - 2
	EnvelopeDepth = MaxDepth + 8
)

// MaxState is the longest JSON value of a user in a document, in bytes.
const MaxState = 4 << 20

// AtMost returns a *codec.LimitError if value is above limit.
func AtMost(what string, value, limit int) error {
	if value <= limit {
		return nil
	}
	return &codec.LimitError{What: what, Limit: int64(limit), Value: int64(value)}
}

// Malformed returns the error of input that cannot be decoded; it wraps codec.ErrFormat.
func Malformed(format string, args ...any) error {
	return fmt.Errorf("checkpoint: %s: %w", fmt.Sprintf(format, args...), codec.ErrFormat)
}

// Comma appends a comma unless dst ends with the start of an object or array.
func Comma(dst []byte) []byte {
	if c := dst[len(dst)-1]; c == '{' || c == '[' {
		return dst
	}
	return append(dst, ',')
}

// Field is an optional member that holds a text: its name with quotes and colon, and its value.
type Field struct {
	Name  string
	Value *string
}

// scan finds the end of the JSON value that starts at p[i], after optional white space. compact reports whether there
// was no white space in or before it. If the depth exceeds limit the error is a *codec.LimitError.
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

// AppendJSON appends raw without its white space, after checking that it is JSON of at most MaxState bytes and depth
// levels; what is its name in errors.
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

// Nested checks that raw, JSON or empty, has at most depth levels.
func Nested(raw []byte, what string, depth int) error {
	if len(raw) == 0 {
		return nil
	}
	if _, _, err := scan(raw, 0, depth); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Whole checks that raw is exactly one compact JSON value of at most depth levels.
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
