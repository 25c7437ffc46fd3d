package rawjson

// Object builds a JSON object from alternating names and values; a nil value is left out.
func Object(pairs ...any) []byte {
	size := 2
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		val, _ := pairs[i+1].([]byte)
		size += len(name) + len(val) + len(`"":,`)
	}
	out := append(make([]byte, 0, size), '{')
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		val, _ := pairs[i+1].([]byte)
		if val == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(AppendKey(out, name), val...)
	}
	return append(out, '}')
}

// WithField returns the object with one field set in its place, or at the end if it has no such field; val nil removes
// it. Everything else stays byte for byte, except white space between members.
func WithField(obj []byte, name string, val []byte) []byte {
	out := make([]byte, 1, len(obj)+len(val)+len(name)+4)
	out[0] = '{'
	put := func(key, v []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(AppendKey(out, key), v...)
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

// AppendCompact appends valid JSON without the white space between its parts, as json.Compact does.
func AppendCompact(dst, val []byte) []byte {
	start := 0 // start of the part that is kept and not yet appended
	for i := 0; i < len(val); {
		switch val[i] {
		case '"':
			end, _, err := StringEnd(val, i)
			if err != nil {
				return append(dst, val[start:]...) // not valid: unchanged
			}
			i = end
		case ' ', '\n', '\r', '\t':
			dst = append(dst, val[start:i]...)
			i = Space(val, i)
			start = i
		default:
			i++
		}
	}
	return append(dst, val[start:]...)
}

// OrNull returns null for an absent value.
func OrNull(val []byte) []byte {
	if val == nil {
		return []byte("null")
	}
	return val
}

// List returns an array of JSON values.
func List(items [][]byte) []byte {
	out := []byte{'['}
	for _, v := range items {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}
