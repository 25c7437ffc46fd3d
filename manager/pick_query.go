package manager

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/fold"
)

// Query is a search query. The zero Query matches everything.
type Query struct {
	words   []string // their letters must occur in this order
	phrases []string
	pattern *regexp.Regexp
}

// maxQuery bounds a query, in bytes.
const maxQuery = 1 << 10

// ParseQuery parses a query: words, whose letters must occur in their order, with anything between; "phrases", which
// must occur literally; or re: and a regular expression for the whole. Case is ignored. All parts must match.
func ParseQuery(text string) (Query, error) {
	var q Query
	if len(text) > maxQuery {
		return q, fmt.Errorf("query of %d bytes: the limit is %d", len(text), maxQuery)
	}
	if pattern, ok := strings.CutPrefix(strings.TrimSpace(text), "re:"); ok {
		re, err := regexp.Compile("(?i)" + pattern)
		if err != nil {
			return q, fmt.Errorf("query: %w", err)
		}
		q.pattern = re
		return q, nil
	}
	for i, part := range strings.Split(fold.Text(text), `"`) {
		if i%2 == 0 {
			q.words = append(q.words, strings.Fields(part)...)
		} else if phrase := strings.Join(strings.Fields(part), " "); phrase != "" {
			q.phrases = append(q.phrases, phrase)
		}
	}
	return q, nil
}

// Score reports whether a text matches, and how well: the lower the better. A whole word is better than its
// letters, close letters are better than distant ones, and the beginning is better than the end.
func (q Query) Score(text string) (int, bool) {
	if q.pattern != nil {
		at := q.pattern.FindStringIndex(text)
		if at == nil {
			return 0, false
		}
		return at[0], true
	}
	low := fold.Text(text)
	flat := strings.Join(strings.Fields(low), " ")
	score := 0
	for _, p := range q.phrases {
		at := fold.Index(flat, p)
		if at < 0 {
			return 0, false
		}
		score += at
	}
	for _, w := range q.words {
		if at := fold.Index(low, w); at >= 0 {
			score += at
			continue
		}
		gaps, ok := scattered(low, w)
		if !ok {
			return 0, false
		}
		score += 1000 + gaps
	}
	return score, true
}

// scattered finds the letters of a word in order, on one line, and counts the characters between them.
func scattered(text, word string) (gaps int, ok bool) {
	best := -1
	for line := range strings.SplitSeq(text, "\n") {
		first, at := -1, 0
		fits := true
		for _, r := range word {
			i := strings.IndexRune(line[at:], r)
			if i < 0 {
				fits = false
				break
			}
			if first < 0 {
				first = at + i
			}
			at += i + utf8.RuneLen(r)
		}
		if fits && (best < 0 || at-first-len(word) < best) {
			best = at - first - len(word)
		}
	}
	return best, best >= 0
}
