package rawjson

import "encoding/json"

// AppendString appends s as a JSON string.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			p, err := json.Marshal(s) // of a string: cannot fail
			if err != nil {
				return append(dst, `""`...)
			}
			return append(dst, p...)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

// Object makes a JSON object of names and values in turn; a nil value is left out.
func Object(pairs ...any) []byte {
	out := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		val, _ := pairs[i+1].([]byte)
		if val == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(AppendString(out, name), ':'), val...)
	}
	return append(out, '}')
}

// WithField gives the object with one field set in its place, or at the end if it has none of that name;
// val nil takes it away. Everything else stays byte for byte, white space between members aside.
func WithField(obj []byte, name string, val []byte) []byte {
	out := make([]byte, 1, len(obj)+len(val)+len(name)+4)
	out[0] = '{'
	put := func(key, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(AppendString(out, string(key)), ':'), v...)
	}
	done := false
	m := Walk(obj)
	for m.Closing == '}' && m.Next() {
		if string(m.Key) != name {
			put(m.Key, m.Val)
		} else if !done && val != nil {
			put(m.Key, val)
			done = true
		}
	}
	if !done && val != nil {
		put([]byte(name), val)
	}
	return append(out, '}')
}

// OrNull gives null for an absent value.
func OrNull(val []byte) []byte {
	if val == nil {
		return []byte("null")
	}
	return val
}
