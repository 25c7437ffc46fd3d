package patch

import (
	"bytes"
	"slices"
	"strings"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// A change in a wide document is mostly a few members of large objects. Such patches are made and applied in one pass
// over the bytes: the libraries parse the whole document several times, for seconds if it has a hundred thousand
// members.

// wideFrom is the minimum length of such a document.
const wideFrom = 64 << 10

// fewNames is the number of names of an object that need not be ascending: they are compared with each other.
const fewNames = 32

// makeWide makes a patch by walking the members of both documents in parallel. It is verified like every patch, and
// dropped if it is not short.
func makeWide(from, to []byte) (patch []byte, sorted, ok bool) {
	w := &walker{patch: []byte{'['}, limit: len(to) / 16}
	if !w.walk(from, to, "") {
		return nil, false, false
	}
	w.patch = append(w.patch, ']')
	if canon.Nested(w.patch, "patch", canon.BodyDepth) != nil {
		return nil, false, false // an operation has more levels around a value than a document
	}
	for _, sorted := range [...]bool{false, true} {
		if out, ok := applyWide(from, w.patch, sorted); ok && bytes.Equal(out, to) {
			return w.patch, sorted, true
		}
	}
	return nil, false, false
}

type walker struct {
	patch []byte
	limit int
}

// walk writes the operations that turn one value into another; false: the patch is too long.
func (w *walker) walk(from, to []byte, path string) bool {
	if bytes.Equal(from, to) {
		return true
	}
	if from[0] != '{' || to[0] != '{' {
		return w.write("replace", path, to)
	}
	a, b := rawjson.Walk(from), rawjson.Walk(to)
	more, less := b.Next(), a.Next()
	for more || less {
		order := -1 // a removed member precedes
		if more && less {
			order = bytes.Compare(a.Key, b.Key)
		} else if more {
			order = 1
		}
		ok := true
		switch {
		case order < 0:
			ok = w.write("remove", path+"/"+escapePointer.Replace(string(a.Key)), nil)
		case order > 0:
			ok = w.write("add", path+"/"+escapePointer.Replace(string(b.Key)), b.Val)
		case !bytes.Equal(a.Val, b.Val):
			ok = w.walk(a.Val, b.Val, path+"/"+escapePointer.Replace(string(a.Key)))
		}
		if !ok {
			return false
		}
		if order <= 0 {
			less = a.Next()
		}
		if order >= 0 {
			more = b.Next()
		}
	}
	return a.Err == nil && b.Err == nil
}

func (w *walker) write(op, path string, value []byte) bool {
	w.patch = append(append(append(canon.Comma(w.patch), `{"op":"`...), op...), `","path":`...)
	w.patch = canon.AppendString(w.patch, path)
	if value != nil {
		w.patch = append(append(w.patch, `,"value":`...), value...)
	}
	w.patch = append(w.patch, '}')
	return len(w.patch) <= w.limit
}

// edit is an operation of a patch on a member of an object.
type edit struct {
	op    string
	path  []string // the rest of the path
	value []byte
}

// applyWide applies a patch whose operations replace, add or remove different members of objects, as Apply does. ok is
// false if the libraries might have another result. The result is as valid as document and patch are.
func applyWide(from, patch []byte, sorted bool) (out []byte, ok bool) {
	edits, ok := parseEdits(patch)
	if !ok || len(from) == 0 || from[0] != '{' || len(edits) > maxPatchWork/len(from) {
		return nil, false
	}
	return splice(make([]byte, 0, len(from)+len(patch)), from, edits, sorted)
}

func parseEdits(patch []byte) (edits []edit, ok bool) {
	ops := rawjson.Walk(patch)
	for ops.Closing == ']' && ops.Next() {
		var e edit
		path := ""
		op := rawjson.Walk(ops.Val)
		for op.Closing == '}' && op.Next() {
			switch string(op.Key) {
			case "op":
				e.op = rawjson.Text(op.Val)
			case "path":
				path = rawjson.Text(op.Val)
			case "value":
				e.value = op.Val
			default:
				return nil, false
			}
		}
		known := e.op == "remove" && e.value == nil || (e.op == "replace" || e.op == "add") && e.value != nil
		if op.Err != nil || !known || !strings.HasPrefix(path, "/") || strings.Contains(path, "~") {
			return nil, false
		}
		if e.path = strings.Split(path[1:], "/"); slices.Contains(e.path, "") {
			return nil, false
		}
		edits = append(edits, e)
	}
	return edits, ops.Err == nil && len(edits) > 0
}

// splice appends an object with edits to dst.
func splice(dst, object []byte, edits []edit, sorted bool) (out []byte, ok bool) {
	of := map[string][]edit{} // by the changed member
	for _, e := range edits {
		of[e.path[0]] = append(of[e.path[0]], edit{e.op, e.path[1:], e.value})
	}
	var added []string // in the order of the patch
	for _, e := range edits {
		if e.op == "add" && len(e.path) == 1 {
			added = append(added, e.path[0])
		}
	}
	s := splicing{dst: append(dst, '{'), of: of, added: added, sorted: sorted, ascend: sorted && len(added) > 0}
	if sorted {
		slices.Sort(s.added)
	}
	m := rawjson.Walk(object)
	for start := 1; m.Closing == '}' && m.Next(); start = m.Pos + 1 {
		if start > len(object) || !s.member(object[start:m.Pos], string(m.Key), m.Val) {
			return nil, false
		}
	}
	if m.Err != nil || m.Closing != 0 || m.Pos != len(object) {
		return nil, false
	}
	for _, name := range s.added {
		s.add(name)
	}
	return append(s.dst, '}'), len(of) == s.used
}

type splicing struct {
	dst    []byte
	of     map[string][]edit
	added  []string // not added yet
	sorted bool
	ascend bool // members are added in order

	used  int      // groups of edits that were applied
	names []string // the first ones
	last  string
	loose bool // the names do not ascend
}

// member copies a member: its bytes, with its name and its value.
func (s *splicing) member(raw []byte, name string, value []byte) bool {
	if !s.follows(raw, name) {
		return false
	}
	for s.ascend && len(s.added) > 0 && s.added[0] < name {
		s.add(s.added[0])
		s.added = s.added[1:]
	}
	edits := s.of[name]
	if len(edits) == 0 {
		s.dst = append(canon.Comma(s.dst), raw...)
		return true
	}
	s.used++
	ends := slices.ContainsFunc(edits, func(e edit) bool { return len(e.path) == 0 })
	switch {
	case !ends:
		if value[0] != '{' {
			return false
		}
		s.dst = append(canon.Comma(s.dst), raw[:len(raw)-len(value)]...)
		var ok bool
		s.dst, ok = splice(s.dst, value, edits, s.sorted)
		return ok
	case len(edits) > 1 || edits[0].op == "add":
		return false
	case edits[0].op == "replace":
		if v := edits[0].value; s.sorted && (v[0] == '{' || v[0] == '[') {
			return false // its own members may have to be sorted
		}
		s.dst = append(append(canon.Comma(s.dst), raw[:len(raw)-len(value)]...), edits[0].value...)
	}
	return true
}

// follows reports whether a member can be copied unchanged: its name has its only spelling, and is unique. If members
// are added in order the names ascend.
func (s *splicing) follows(raw []byte, name string) bool {
	if len(raw) < len(name)+3 || string(raw[1:1+len(name)]) != name || raw[len(name)+2] != ':' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	s.loose = s.loose || len(s.names) > 0 && name <= s.last
	if s.loose && (s.ascend || slices.Contains(s.names, name) || len(s.names) == fewNames) {
		return false
	}
	if s.last = name; len(s.names) < fewNames {
		s.names = append(s.names, name)
	}
	return true
}

// add writes a new member.
func (s *splicing) add(name string) {
	edits := s.of[name]
	if len(edits) != 1 || len(edits[0].path) > 0 {
		return // another operation on it is left: not all are used
	}
	s.used++
	s.dst = append(canon.AppendString(canon.Comma(s.dst), name), ':')
	s.dst = append(s.dst, edits[0].value...)
}
