package operator

import (
	"bytes"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/transcript"
)

const maxLooked = 100

// Detect reports whether the beginning of a file is operator's: a header with a time in seconds, entries with a
// parent_id, or the metadata line of the older form.
func Detect(head []byte) bool {
	for range maxLooked {
		line, rest, more := bytes.Cut(head, []byte("\n"))
		l, err := transcript.ParseLine(bytes.TrimPrefix(line, []byte("\xef\xbb\xbf")))
		if err == nil && l.Type != "" {
			switch {
			case l.Type == "session_header", l.Type == "metadata" && rawjson.Field(l.Raw, "created_at") != nil:
				return true
			case l.Type == "session":
				if rawjson.IsNumber(rawjson.Field(l.Raw, "timestamp")) ||
					rawjson.Field(l.Raw, "parent_session") != nil {
					return true
				}
			case l.ID != "" && rawjson.Field(l.Raw, "parent_id") != nil && rawjson.Field(l.Raw, "parentId") == nil:
				return true
			}
		}
		if !more {
			break
		}
		head = rest
	}
	return false
}
