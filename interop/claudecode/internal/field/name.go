package field

import (
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// maxTitle bounds the name of a session, in bytes.
const maxTitle = 1 << 10

// Name is the name that a session is given by the value of a field.
func Name(val []byte) string {
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

// Named is the name that a line gives the session, as a string literal.
func Named(raw []byte) []byte {
	name := ""
	for m := rawjson.Walk(raw); m.Next(); {
		switch string(m.Key) {
		case "summary", "customTitle", "aiTitle", "agentName":
			name = Name(m.Val)
		}
	}
	return rawjson.AppendString(nil, name)
}
