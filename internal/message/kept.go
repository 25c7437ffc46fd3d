package message

import "github.com/coppice-go/coppice/internal/rawjson"

// KeptMessage returns the message that an entry of type custom_message was made of, because a format has no messages of
// its role; nil = it was made of none. Such an entry has the role as its kind, and the message in its details.
func KeptMessage(entry []byte) []byte {
	message := rawjson.Field(rawjson.Field(entry, "details"), "message")
	if len(message) == 0 || message[0] != '{' ||
		rawjson.Text(rawjson.Field(entry, "customType")) != KeptAs(rawjson.Text(rawjson.Field(message, "role"))) {
		return nil
	}
	return message
}

// UserSent returns what the user typed of an entry of type custom_message that carries it out, as omp's skills: a
// string or a content. nil: a program or an extension wrote the entry.
func UserSent(entry []byte) (typed []byte) {
	if rawjson.Text(rawjson.Field(entry, "attribution")) != "user" {
		return nil
	}
	if typed = rawjson.Field(rawjson.Field(entry, "details"), "prompt"); rawjson.IsString(typed) && len(typed) > 2 {
		return typed
	}
	return rawjson.Field(entry, "content")
}

// KeptAs returns the kind of the custom message that a message of a role becomes.
func KeptAs(role string) string {
	if role == "" {
		return "message"
	}
	return role
}

// KeptKind is the kind of custom entry that exports make of an entry of a type that a format does not have.
const KeptKind = "coppice.entry"

// KeptEntry returns the type and the fields of the entry that one of type custom was made of; nil = it was made of
// none.
func KeptEntry(entry []byte) (typ string, data []byte) {
	if rawjson.Text(First(entry, "customType", "custom_type")) != KeptKind {
		return "", nil
	}
	data = rawjson.Field(entry, "data")
	return rawjson.Text(rawjson.Field(data, "type")), data
}
