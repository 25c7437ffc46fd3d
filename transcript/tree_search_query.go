package transcript

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/fold"
)

// query is what a search looks for: words, all of which an entry must hold.
type query struct{ words []string }

// newQuery takes the words of a search apart.
func newQuery(text string) query { return query{strings.Fields(fold.Text(text))} }

// holds reports whether each word is somewhere in one of the texts, both folded, or names the type or the role.
// A query without words holds always.
func (q query) holds(typ, role string, texts ...string) bool {
	if len(q.words) == 0 {
		return true
	}
	folded := make([]string, 0, 4)
	for _, t := range texts {
		if t != "" {
			folded = append(folded, fold.Text(t))
		}
	}
	for _, w := range q.words {
		if !within(w, folded) && !namesKind(w, typ, role) {
			return false
		}
	}
	return true
}

// mayBeIn reports whether the line of an entry may show a word of the query. It excludes only lines in ASCII without
// escapes, whose texts are pieces of it. lower is a buffer, which it returns.
func (q query) mayBeIn(line, lower []byte) (bool, []byte) {
	for _, w := range q.words {
		if strings.ContainsFunc(w, func(r rune) bool { return r >= utf8.RuneSelf }) {
			return true, lower
		}
	}
	for _, c := range line {
		switch {
		case c >= utf8.RuneSelf || c == '\\':
			return true, lower
		case 'A' <= c && c <= 'Z':
			c += 'a' - 'A'
		}
		lower = append(lower, c)
	}
	for _, w := range q.words {
		if bytes.Contains(lower, []byte(w)) {
			return true, lower
		}
	}
	return len(q.words) == 0, lower
}

func within(word string, texts []string) bool {
	for _, t := range texts {
		if fold.Index(t, word) >= 0 {
			return true
		}
	}
	return false
}

// namesKind reports whether a word is a name of what an entry is: its role; of what is no message its type; or a
// part of either, as "tool" is of "toolResult" and "model" of "model_change". Parts of parts do not count: "use" is
// no user. Nor does the type of messages, which nearly all entries have.
func namesKind(word, typ, role string) bool {
	return named(word, role) || typ != "message" && named(word, typ)
}

func named(word, name string) bool {
	if strings.EqualFold(word, name) {
		return true
	}
	for name != "" {
		end := strings.IndexFunc(name[1:], func(r rune) bool { return r == '_' || r == '-' || unicode.IsUpper(r) }) + 1
		if end == 0 {
			end = len(name)
		}
		if strings.EqualFold(word, name[:end]) {
			return true
		}
		name = strings.TrimLeft(name[end:], "_-")
	}
	return false
}
