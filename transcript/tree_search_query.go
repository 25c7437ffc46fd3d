package transcript

import (
	"bytes"
	"encoding/binary"
	"slices"
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

// MayShow returns a function that reports whether the line of an entry, as it is stored or not, may show a word of a
// text that Tree.SearchIn looks for. It excludes only lines in ASCII without escapes, whose texts are pieces of it.
func MayShow(text string) func(line []byte) bool { return newQuery(text).mayBeIn }

func (q query) mayBeIn(line []byte) bool {
	if bytes.IndexByte(line, '\\') >= 0 || !ascii(line) {
		return true
	}
	for _, w := range q.words {
		if !ascii([]byte(w)) || containsFold(line, w) {
			return true
		}
	}
	return len(q.words) == 0
}

func ascii(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		if binary.LittleEndian.Uint64(text)&0x8080808080808080 != 0 {
			return false
		}
	}
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// frequent are bytes of lines, the most frequent first.
const frequent = "etaoinsrlhdcumpgfybwvk0123456789xjqz"

// containsFold reports whether a line in ASCII contains a word in lower case, whatever the case there. It looks for
// the rarest byte of the word.
func containsFold(line []byte, word string) bool {
	at := 0
	for i := range len(word) {
		if strings.IndexByte(frequent, word[i]) > strings.IndexByte(frequent, word[at]) {
			at = i
		}
	}
	c := word[at]
	if containsAt(line, word, at, c) {
		return true
	}
	return 'a' <= c && c <= 'z' && containsAt(line, word, at, c-'a'+'A')
}

// containsAt is containsFold where the line has the byte c at index at of the word.
func containsAt(line []byte, word string, at int, c byte) bool {
	for i := at; i+len(word)-at <= len(line); i++ {
		next := bytes.IndexByte(line[i:], c)
		if next < 0 {
			return false
		}
		i += next
		begin, end := i-at, i-at+len(word)
		if end <= len(line) && equalFold(line[begin:end], word) {
			return true
		}
	}
	return false
}

// equalFold reports whether a text in ASCII is a word of the same length in lower case, whatever the case there.
func equalFold(text []byte, word string) bool {
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

func within(word string, texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool { return fold.Index(t, word) >= 0 })
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
