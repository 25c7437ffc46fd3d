package rawjson

// Members iterates over the members of an object, or the elements of an array:
//
//	for m := Walk(p); m.Next(); { use m.Key, m.Val }
//
// The input should be valid. If it is not, the walk is safe, but members may be wrong and m.Err may be set; a strict
// walk stops at the first byte that is not JSON.
type Members struct {
	Key, Val []byte // Key unquoted, nil in an array; Val is never empty
	Closing  byte   // '}' or ']'; 0 = neither object nor array, or at its end
	Strict   bool
	Pos      int // end of the part read so far
	Err      error

	p       []byte
	started bool
}

// Walk starts an iteration; over anything but an object or an array it ends at once.
func Walk(p []byte) Members {
	m := Members{p: p, Pos: Space(p, 0)}
	if m.Pos < len(p) && (p[m.Pos] == '{' || p[m.Pos] == '[') {
		m.Closing = p[m.Pos] + 2
		m.Pos++
	}
	return m
}

// Next moves to the next member; false: there is none, or Err is set.
func (m *Members) Next() bool {
	if m.Err != nil || m.Closing == 0 {
		return false
	}
	i := Space(m.p, m.Pos)
	if i < len(m.p) && m.p[i] == m.Closing {
		m.Pos, m.Closing = i+1, 0
		return false
	}
	if m.started {
		if i >= len(m.p) || m.p[i] != ',' {
			m.Err = SyntaxError(m.p, i)
			return false
		}
		i = Space(m.p, i+1)
	}
	m.started = true
	m.Val = nil
	if m.Closing == '}' {
		if i = m.key(i); i < 0 {
			m.Err = errorAt(m.p, i)
			return false
		}
	}
	end := 0
	if m.Strict {
		end, m.Err = ValueEnd(m.p, i, MaxDepth-1)
	} else {
		end, m.Err = SkipEnd(m.p, i)
	}
	if m.Err != nil {
		return false
	}
	m.Val, m.Pos = m.p[i:end], end
	return true
}

// key reads the key at an index, and returns the index of its value.
func (m *Members) key(i int) int {
	if i >= len(m.p) || m.p[i] != '"' {
		return ^i
	}
	end, escaped := stringEnd(m.p, i)
	if end < 0 {
		return end
	}
	if m.Key = m.p[i+1 : end-1]; escaped {
		m.Key = AppendText(nil, m.p[i:end])
	}
	if i = Space(m.p, end); i >= len(m.p) || m.p[i] != ':' {
		return ^i
	}
	return Space(m.p, i+1)
}

// Every reports whether a value is an array whose elements all fit.
func Every(list []byte, fits func(val []byte) bool) bool {
	if len(list) == 0 || list[0] != '[' {
		return false
	}
	for m := Walk(list); m.Next(); {
		if !fits(m.Val) {
			return false
		}
	}
	return true
}

// Field returns the value of an object's field, the last one of that name as in encoding/json; nil = none.
func Field(object []byte, name string) []byte {
	var val []byte
	m := Walk(object)
	for m.Closing == '}' && m.Next() {
		if string(m.Key) == name {
			val = m.Val
		}
	}
	return val
}
