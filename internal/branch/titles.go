// Package branch has the names of branches: which of them were made, and what people read in their place.
package branch

import (
	"strings"

	"github.com/coppice-go/coppice/transcript"
)

// titleWords bounds the words of a title, and titleBytes its length.
const (
	titleWords = 6
	titleBytes = 40
)

// Titles returns what people read in place of the names of the tree's branches, by name. A chosen name is its own
// title. A branch with a name that was made has the first words of the first prompt that no branch before it has,
// chosen names first; without such a prompt its name. If it has no message of its own either it has no title: another
// name leads to the same place. Time is linear in the tree.
func Titles(t *transcript.Tree) map[string]string {
	branches := t.Branches()
	titles := make(map[string]string, len(branches))
	claimed := make([]uint64, (t.Len()+63)/64) // a bit for each entry
	for _, made := range []bool{false, true} {
		for _, b := range branches {
			if isMade(b.Name) != made {
				continue
			}
			prompt, own := claim(t, b.Head, claimed)
			switch {
			case !made:
				titles[b.Name] = b.Name
			case prompt != "":
				titles[b.Name] = prompt
			case own:
				titles[b.Name] = b.Name
			}
		}
	}
	return titles
}

// isMade reports whether a name was made: Automatic, or main-N of a line that was left.
func isMade(name string) bool {
	n, ok := strings.CutPrefix(name, "main-")
	return Automatic(name) || ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// claim takes the entries from a head upwards that nothing has claimed, and returns the first words of the first prompt
// among them, and whether there is a message.
func claim(t *transcript.Tree, head string, claimed []uint64) (prompt string, own bool) {
	at, err := t.Ordinal(head)
	first, some := uint64(0), false
	ok := head != "" && err == nil
	for ; ok && claimed[at/64]>>(at%64)&1 == 0; at, ok = t.Parent(at) {
		claimed[at/64] |= 1 << (at % 64)
		own = own || t.Shows(transcript.FilterDefault, at)
		if t.Shows(transcript.FilterUserOnly, at) {
			first, some = at, true
		}
	}
	if some {
		prompt = firstWords(t.NodeAt(first).Preview)
	}
	return prompt, own
}

// firstWords returns the beginning of a text: whole words, but for one that is longer than a title.
func firstWords(text string) string {
	words := strings.Fields(text)
	var title string
	for i, w := range words {
		next := strings.TrimSpace(title + " " + w)
		if i == titleWords || len(next) > titleBytes && title != "" {
			return title + "…"
		}
		title = next
	}
	return title
}

// Automatic reports whether a name of a branch was made for a rollback, rollback-SEQ or rollback-SEQ-N, or for a turn
// that lost, conflict- and 8 hex digits: at the limit of names the oldest of these go.
func Automatic(name string) bool {
	if numbers, ok := strings.CutPrefix(name, "rollback-"); ok {
		return numbers != "" && strings.Trim(numbers, "0123456789-") == ""
	}
	hex, ok := strings.CutPrefix(name, "conflict-")
	return ok && len(hex) == 8 && strings.Trim(hex, "0123456789abcdef") == ""
}
