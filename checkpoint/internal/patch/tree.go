package patch

import (
	"encoding/json"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/checkpoint/internal/canon"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// tree is a parsed JSON value whose nodes keep their source bytes.
type tree struct {
	root    *node
	longest int // elements of the longest array
}

type node struct {
	at    int // where raw starts in the whole
	raw   []byte
	names []string // of the members of an object, decoded; nil = no object
	kids  []*node  // values of members, or elements
}

func (n *node) object() bool { return n.raw[0] == '{' }
func (n *node) scalar() bool { return n.raw[0] != '{' && n.raw[0] != '[' }

// parseTree parses compact JSON. An object with a duplicate name is refused: no patch could distinguish its members.
func parseTree(p []byte) (*tree, error) {
	if err := canon.Whole(p, "document", canon.EnvelopeDepth); err != nil {
		return nil, err
	}
	t, end := &tree{}, 0
	if t.root, end = t.parse(p, 0); t.root == nil {
		return nil, canon.Malformed("JSON tree: a name twice in the object that ends at byte %d", end)
	}
	return t, nil
}

// parse builds the node at p[i] and returns the index after it; nil for a duplicate name. The grammar and the depth
// have been checked.
func (t *tree) parse(p []byte, i int) (*node, int) {
	n := &node{at: i}
	if c := p[i]; c != '{' && c != '[' {
		end, _ := rawjson.ScalarEnd(p, i)
		n.raw = p[i:end]
		return n, end
	}
	object := p[i] == '{'
	seen := map[string]bool{}
	for i++; p[i] != '}' && p[i] != ']'; {
		if p[i] == ',' {
			i++
		}
		if object {
			end, _, _ := rawjson.StringEnd(p, i)
			name := unquote(p[i:end])
			if seen[name] {
				return nil, end
			}
			seen[name] = true
			n.names = append(n.names, name)
			i = end + 1
		}
		kid, end := t.parse(p, i)
		if kid == nil {
			return nil, end
		}
		n.kids = append(n.kids, kid)
		i = end
	}
	if !object {
		t.longest = max(t.longest, len(n.kids))
	}
	n.raw = p[n.at : i+1]
	return n, i + 1
}

func unquote(token []byte) string {
	if !slices.Contains(token, '\\') {
		return string(token[1 : len(token)-1])
	}
	var s string
	_ = json.Unmarshal(token, &s) // of a string token: cannot fail
	return s
}

// rawIndex maps the identity of a container to its bytes.
type rawIndex map[uintptr][]byte

// atomicFrom is the length from which the elements of an array are compared whole in the search for the longest common
// subsequence: a change within one then replaces it.
const atomicFrom = 32

// loose returns the value in the types that jsondiff compares. Every scalar is a json.Number that holds its token, so
// that values are equal only if they have the same spelling. With atomic the elements of long arrays are such tokens
// too; like is the node at the same place of the other document, or nil, since both sides must be converted alike.
func (n *node) loose(raws rawIndex, like *node, atomic bool) any {
	if n.scalar() {
		return json.Number(n.raw)
	}
	if like != nil && like.raw[0] != n.raw[0] {
		like = nil
	}
	if n.object() {
		other := like.members()
		m := make(map[string]any, len(n.kids))
		for i, kid := range n.kids {
			m[n.names[i]] = kid.loose(raws, other[n.names[i]], atomic)
		}
		if raws != nil {
			raws[reflect.ValueOf(m).Pointer()] = n.raw
		}
		return m
	}
	long := len(n.kids)
	if like != nil {
		long = max(long, len(like.kids))
	}
	s := make([]any, len(n.kids))
	for i, kid := range n.kids {
		switch {
		case atomic && long >= atomicFrom:
			s[i] = json.Number(kid.raw)
		case like != nil && i < len(like.kids):
			s[i] = kid.loose(raws, like.kids[i], atomic)
		default:
			s[i] = kid.loose(raws, nil, atomic)
		}
	}
	if raws != nil && len(s) > 0 { // all empty slices may share one address
		raws[reflect.ValueOf(s).Pointer()] = n.raw
	}
	return s
}

func (x rawIndex) of(v any) []byte {
	switch v := v.(type) {
	case json.Number:
		return []byte(v)
	case []any:
		if len(v) == 0 {
			return []byte("[]")
		}
	}
	return x[reflect.ValueOf(v).Pointer()]
}

// reorder sorts the members of every object of p whose counterpart in from has its members in order.
func reorder(p, from []byte) ([]byte, error) {
	a, err := parseTree(p)
	if err != nil {
		return nil, err
	}
	b, err := parseTree(from)
	if err != nil {
		return nil, err
	}
	return a.root.ordered(make([]byte, 0, len(p)), b.root), nil
}

func (n *node) ordered(dst []byte, like *node) []byte {
	if n.scalar() || like == nil || like.raw[0] != n.raw[0] {
		return append(dst, n.raw...)
	}
	at := make([]int, len(n.kids))
	for i := range at {
		at[i] = i
	}
	if n.object() && slices.IsSorted(like.names) {
		sort.SliceStable(at, func(i, j int) bool { return n.names[at[i]] < n.names[at[j]] })
	}
	dst = append(dst, n.raw[0])
	other := like.members()
	for _, i := range at {
		dst = canon.Comma(dst)
		if n.object() {
			dst = append(dst, n.key(i)...)
			dst = n.kids[i].ordered(dst, other[n.names[i]])
			continue
		}
		if i < len(like.kids) {
			dst = n.kids[i].ordered(dst, like.kids[i])
		} else {
			dst = append(dst, n.kids[i].raw...)
		}
	}
	return append(dst, n.raw[0]+2)
}

// key returns the bytes of a member's name and its colon: they end where its value starts.
func (n *node) key(i int) []byte {
	before := 1
	if i > 0 {
		before = n.offset(i-1) + len(n.kids[i-1].raw) + 1
	}
	return n.raw[before:n.offset(i)]
}

// offset returns the offset of a child's bytes within the bytes of its parent.
func (n *node) offset(i int) int { return n.kids[i].at - n.at }

// members returns the values of an object by their names; of nil, none.
func (n *node) members() map[string]*node {
	if n == nil || !n.object() {
		return nil
	}
	m := make(map[string]*node, len(n.names))
	for i, name := range n.names {
		m[name] = n.kids[i]
	}
	return m
}

// appendMoves extends a patch whose result is got by moves that put the members of got's objects into the order of
// want. ok is false if more than the order differs, or if nothing does.
func appendMoves(patch, got []byte, want *tree) (moved []byte, ok bool) {
	t, err := parseTree(got)
	if err != nil {
		return nil, false
	}
	m := mover{patch: slices.Clone(patch[:len(patch)-1])}
	if !m.walk(t.root, want.root, "") || len(m.patch) == len(patch)-1 {
		return nil, false
	}
	return append(m.patch, ']'), true
}

type mover struct{ patch []byte }

func (m *mover) walk(got, want *node, path string) bool {
	if string(got.raw) == string(want.raw) {
		return true
	}
	if got.scalar() || got.raw[0] != want.raw[0] || len(got.kids) != len(want.kids) {
		return false
	}
	if !got.object() {
		for i, kid := range got.kids {
			if !m.walk(kid, want.kids[i], path+"/"+strconv.Itoa(i)) {
				return false
			}
		}
		return true
	}
	at := make(map[string]int, len(got.names))
	for i, name := range got.names {
		at[name] = i
	}
	last, behind := -1, false // once a name is out of order, it and all after it go to the end
	for i, name := range want.names {
		j, ok := at[name]
		if !ok {
			return false
		}
		to := path + "/" + escapePointer.Replace(name)
		if !m.walk(got.kids[j], want.kids[i], to) {
			return false
		}
		if behind = behind || j < last; behind {
			m.patch = canon.AppendString(append(canon.Comma(m.patch), `{"op":"move","from":`...), to)
			m.patch = append(canon.AppendString(append(m.patch, `,"path":`...), to), '}')
		}
		last = j
	}
	return true
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")
