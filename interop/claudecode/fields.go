package claudecode

import (
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxTitle bounds the name of a session, in bytes.
const maxTitle = 1 << 10

// titleText returns the session name in a field's value.
func titleText(val []byte) string {
	text := rawjson.Text(val)
	for len(text) > maxTitle {
		cut := maxTitle
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut]
	}
	return text
}

// titleOf returns the session name in a line, as a JSON string.
func titleOf(raw []byte) []byte {
	name := ""
	for m := rawjson.Walk(raw); m.Next(); {
		switch string(m.Key) {
		case "summary", "customTitle", "aiTitle", "agentName":
			name = titleText(m.Val)
		}
	}
	return rawjson.AppendString(nil, name)
}
