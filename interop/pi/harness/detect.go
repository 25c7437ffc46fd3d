package harness

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// form is the kind of a line.
type form uint8

const (
	aStranger form = iota
	aHeader
	aWrite
)

// Detect reports whether a file is of the harness's version 4, by its first bytes: a header, or writes if the header is
// lost. The last line may be incomplete.
func Detect(head []byte) bool {
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	for range maxRefused {
		line, rest, _ := bytes.Cut(head, []byte{'\n'})
		line = jsonl.Trim(line)
		if kindOf(line) != aStranger {
			return true
		}
		if typ := rawjson.Field(line, "type"); string(typ) == `"session"` || string(typ) == `"title"` ||
			string(typ) == `"session_meta"` {
			return false
		}
		if head = rest; len(head) == 0 {
			break
		}
	}
	return false
}

// kindOf returns the kind of a line, by its fields.
func kindOf(line []byte) form {
	if len(line) == 0 {
		return aStranger
	}
	if line[0] == '[' {
		m := rawjson.Walk(line)
		if m.Next(); kindOfObject(m.Val) == aWrite {
			return aWrite
		}
		return aStranger
	}
	return kindOfObject(line)
}

func kindOfObject(object []byte) form {
	if len(object) == 0 || object[0] != '{' {
		return aStranger
	}
	w := readWrite(object)
	switch string(w.kind) {
	case `"header"`:
		if rawjson.IsNumber(w.v) || rawjson.IsNumber(w.version) {
			return aHeader
		}
	case `"entry"`:
		if rawjson.IsString(w.id) && (w.seq != nil || w.typ != nil) {
			return aWrite
		}
	case `"usage"`, `"record"`:
		if rawjson.IsString(w.id) && rawjson.IsNumber(w.seq) {
			return aWrite
		}
	case `"value"`, `"list"`:
		if rawjson.IsString(w.op) && rawjson.IsString(w.namespace) && rawjson.IsNumber(w.seq) {
			return aWrite
		}
	case `"lane"`, `"fact"`:
		if rawjson.IsNumber(w.seq) && (w.lane != nil || w.fact != nil) {
			return aWrite
		}
	}
	return aStranger
}
