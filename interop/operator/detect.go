package operator

import (
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// maxLooked bounds the lines that Detect examines.
const maxLooked = 100

// Detect reports whether a file is operator's, by its beginning: a header with a time in seconds, entries with a
// parent_id, or the metadata line of the older form.
func Detect(head []byte) bool {
	for n, l := range jsonl.HeadLines(head) {
		if n >= maxLooked {
			break
		}
		switch {
		case l.Type == "session_header", l.Type == "metadata" && rawjson.Field(l.Raw, "created_at") != nil:
			return true
		case l.Type == "session":
			if rawjson.IsNumber(rawjson.Field(l.Raw, "timestamp")) || rawjson.Field(l.Raw, "parent_session") != nil {
				return true
			}
		case l.Type != "" && l.ID != "" &&
			rawjson.Field(l.Raw, "parent_id") != nil && rawjson.Field(l.Raw, "parentId") == nil:
			return true
		}
	}
	return false
}
