package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// Member returns the value of a member of a JSON object by its dotted path, such as data.source; nil = none.
func Member(object []byte, path string) []byte {
	for path != "" && object != nil {
		var name string
		name, path, _ = strings.Cut(path, ".")
		object = Field(object, name)
	}
	return object
}

// Matches reports whether an object has, at each dotted path of want, a value that is equal to the wanted JSON.
func Matches[T ~[]byte](object []byte, want map[string]T) bool {
	for path, val := range want {
		if have := Member(object, path); have == nil || !Same(have, val) {
			return false
		}
	}
	return true
}

// Same reports whether two JSON values are equal: members in any order, numbers as written.
func Same(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	v, ok := decoded(a)
	w, both := decoded(b)
	return ok && both && reflect.DeepEqual(v, w)
}

// decoded returns a JSON value with its numbers as text; false = it is not JSON.
func decoded(p []byte) (v any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(p))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err == nil
}
