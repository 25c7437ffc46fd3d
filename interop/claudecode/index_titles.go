package claudecode

// nameTable numbers repeated strings, from 1; 0 = none, or a string over the bounds.
type nameTable struct {
	list []string
	by   map[string]int32
}

func (n *nameTable) of(text []byte) int32 {
	if len(text) == 0 || len(text) > maxNameSize {
		return 0
	}
	if i, ok := n.by[string(text)]; ok {
		return i
	}
	if len(n.list) >= maxNames {
		return 0
	}
	if n.by == nil {
		n.by = map[string]int32{}
	}
	n.list = append(n.list, string(text))
	n.by[string(text)] = int32(len(n.list))
	return int32(len(n.list))
}

// Text returns the string with a number.
func (n *nameTable) Text(i int32) string {
	if i == 0 {
		return ""
	}
	return n.list[i-1]
}

// agentName returns the name of an agent if it is valid in a file name; else "".
func agentName(s string) string {
	if len(s) > 128 {
		return ""
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return ""
		}
	}
	return s
}
