package message

import (
	"strings"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// Response identifies the provider's response of a message.
type Response struct {
	ID        string // "" = none
	Inherited bool   // a copy: another session received it
}

// ResponseOf returns the response of a message, or of another object with a usage. Its id is the provider's
// (responseId, or id in a provider's own message), else the one that an import made ("origin"). Each of several
// messages with one id reports the usage of the whole response, as far as it was known at that time.
func ResponseOf(message []byte) (r Response) {
	var own, origin string
	for m := rawjson.Walk(message); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "responseId", "response_id":
			r.ID = rawjson.Text(m.Val)
		case "id":
			own = rawjson.Text(m.Val)
		case "origin":
			origin = rawjson.Text(m.Val)
		case "inherited":
			r.Inherited = rawjson.IsTrue(m.Val)
		}
	}
	if r.ID == "" && isResponseID(own) {
		r.ID = own
	}
	if r.ID == "" {
		r.ID = origin
	}
	return r
}

// isResponseID reports whether an id has the form of a provider's. Other ids are made by the program that stored the
// message, and may repeat.
func isResponseID(id string) bool {
	return strings.HasPrefix(id, "msg_") || strings.HasPrefix(id, "resp_") || strings.HasPrefix(id, "chatcmpl-")
}
