package codex

import (
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// contextual reports whether Codex, and not the user, says a content of role user: by the kinds of its parts, which
// versions of 2026 name, else by the marks of any part. named: the kinds report that a person typed it.
func contextual(content, kinds []byte) (inserted, named bool) {
	known, parts := 0, 0
	for m := rawjson.Walk(kinds); m.Closing == ']' && m.Next(); known++ {
		switch kind, _, _ := strings.Cut(rawjson.Text(m.Val), "."); kind {
		case "user":
			return false, true
		case "", "unknown", "images", "audio": // media that were the user's may be among the latter
			known = -1 << 30
		}
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		parts++
	}
	return known > 0 && known == parts || message.Inserted("codex", "user", content), false
}

// isPrelude reports whether a content is what Codex writes as the developer before a turn, and again where it went
// back.
func isPrelude(content []byte) bool { return message.Inserted("codex", "developer", content) }
