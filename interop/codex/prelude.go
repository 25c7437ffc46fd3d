package codex

import (
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// contextual reports whether Codex, and not the user, wrote a content of role user. Versions of 2026 name the kinds of
// the parts; in older files the text of any part decides. named reports whether the kinds prove that a person typed it.
func contextual(content, kinds []byte) (inserted, named bool) {
	known, parts := 0, 0
	for m := rawjson.Walk(kinds); m.Closing == ']' && m.Next(); known++ {
		switch kind, _, _ := strings.Cut(rawjson.Text(m.Val), "."); kind {
		case "user":
			return false, true
		case "", "unknown", "images", "audio": // the latter may include media of the user
			known = -1 << 30
		}
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		parts++
	}
	return known > 0 && known == parts || message.Inserted("codex", "user", content), false
}

// isPrelude reports whether a content is the developer message that Codex writes before a turn, and again after a
// rollback.
func isPrelude(content []byte) bool { return message.Inserted("codex", "developer", content) }
