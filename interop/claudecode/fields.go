package claudecode

import (
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxTitle bounds the name of a session, in bytes.
const maxTitle = 1 << 10

// titleText is the name that a session is given by the value of a field.
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

// titleOf returns the name of the session in a line, as a string literal.
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
