package message

import "github.com/coppice-go/coppice/internal/rawjson"

// KeptMessage returns the message from which an export made an entry of type custom_message, because the format has no
// messages of its role; nil = none. Such an entry has the role as its kind, and the message in its details.
func KeptMessage(entry []byte) []byte {
	message := rawjson.Field(rawjson.Field(entry, "details"), "message")
	if len(message) == 0 || message[0] != '{' ||
		rawjson.Text(rawjson.Field(entry, "customType")) != KeptAs(rawjson.Text(rawjson.Field(message, "role"))) {
		return nil
	}
	return message
}

// UserSent returns the user's input in an entry of type custom_message that expands it, such as a skill of omp: a
// string or a content; nil: a program or an extension wrote the entry.
func UserSent(entry []byte) (typed []byte) {
	if rawjson.Text(rawjson.Field(entry, "attribution")) != "user" {
		return nil
	}
	if typed = rawjson.Field(rawjson.Field(entry, "details"), "prompt"); rawjson.IsString(typed) && len(typed) > 2 {
		return typed
	}
	return rawjson.Field(entry, "content")
}

// KeptAs returns the kind of the custom message that represents a message of a role.
func KeptAs(role string) string {
	if role == "" {
		return "message"
	}
	return role
}

// KeptKind is the kind of the custom entries in which exports store an entry of a type that the format lacks.
const KeptKind = "coppice.entry"

// KeptEntry returns the type and the fields of the entry stored in one of type custom; nil = it stores none.
func KeptEntry(entry []byte) (typ string, data []byte) {
	if rawjson.Text(First(entry, "customType", "custom_type")) != KeptKind {
		return "", nil
	}
	data = rawjson.Field(entry, "data")
	return rawjson.Text(rawjson.Field(data, "type")), data
}
