// Package shortid shortens ids for people: a prefix that names one of them only, and never the whole of a long one.
package shortid

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// Least is the least length of a prefix among several ids.
	Least = 8
	// Alone is the least length of a prefix that is shown without others. Of an id that begins with its time it is
	// the whole time, so that two ids share it only if they were made in the same millisecond.
	Alone = 13
)

// Set is a set of ids, each with the length of its prefix.
type Set struct {
	least  int
	length map[string]int // of ids that need more than least
	width  int
}

// Derived reports an id that was made of another one, as an import makes that of a part of an entry: the other id, a
// point, and more. A prefix that both have names the other one.
func Derived(id, from string) bool {
	return len(id) > len(from) && id[len(from)] == '.' && id[:len(from)] == from
}

// Of returns the set of these ids. Each gets the shortest prefix that no other of them has, of at least so many
// characters; one that is alone has at least 13. Those that are derived are whole, and do not count for the others.
func Of(ids []string, least int) *Set {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	s, from := &Set{length: map[string]int{}}, ""
	ids = slices.DeleteFunc(slices.Compact(ids), func(id string) bool {
		if !Derived(id, from) {
			from = id
			return false
		}
		s.length[id], s.width = len(id), max(s.width, len(id))
		return true
	})
	if len(ids) == 1 {
		least = max(least, Alone)
	}
	s.least = least
	before := 0 // what an id shares with the one before it
	for i, id := range ids {
		after := 0
		if i+1 < len(ids) {
			after = common(id, ids[i+1])
		}
		n := min(len(id), max(least, 1+max(before, after)))
		if n > least {
			s.length[id] = n
		}
		s.width = max(s.width, n)
		before = after
	}
	return s
}

// Short returns the prefix of an id. One that is not in the set is cut to the least length.
func (s *Set) Short(id string) string {
	n := s.least
	if own, ok := s.length[id]; ok {
		n = own
	}
	return cut(id, n)
}

// Width returns the length of the longest prefix.
func (s *Set) Width() int { return s.width }

// One returns the prefix of an id that is shown without others.
func One(id string) string { return cut(id, Alone) }

// In returns a text with an id shortened where it is a word: not in a path, a key or a longer name.
func In(text, id string) string {
	const joins = `ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./\_-`
	var b strings.Builder
	for {
		i := strings.Index(text, id)
		if i < 0 || id == "" {
			return b.String() + text
		}
		end := i + len(id)
		before := i > 0 && strings.IndexByte(joins, text[i-1]) >= 0
		after := end < len(text) && strings.IndexByte(joins, text[end]) >= 0
		b.WriteString(text[:i])
		if before || after {
			b.WriteString(id)
		} else {
			b.WriteString(One(id))
		}
		text = text[end:]
	}
}

// cut returns at least n bytes of an id: an id of other programs may have runes of several bytes.
func cut(id string, n int) string {
	for n < len(id) && !utf8.RuneStart(id[n]) {
		n++
	}
	return id[:min(n, len(id))]
}

// Seen shortens ids that are shown one after the other, each before the next is known. The zero value is ready.
type Seen struct{ taken map[string]string }

// Short returns a prefix of an id that no other id before it got.
func (s *Seen) Short(id string) string {
	if s.taken == nil {
		s.taken = map[string]string{}
	}
	short := One(id)
	for n := len(short); n < len(id); n++ {
		if other, ok := s.taken[short]; !ok || other == id {
			break
		}
		short = cut(id, n+1)
	}
	s.taken[short] = id
	return short
}

// Named bounds the candidates that an error lists.
const Named = 5

// Candidates returns the ids to which an ambiguous prefix may be extended, as prefixes of their own, for an error.
func Candidates(ids []string) string {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	set, more := Of(ids, Least), ""
	if len(ids) > Named {
		ids, more = ids[:Named], ", ..."
	}
	short := make([]string, len(ids))
	for i, id := range ids {
		short[i] = set.Short(id)
	}
	return strings.Join(short, ", ") + more
}

func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
