package searchindex

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coppice-go/coppice/internal/fold"
)

// ErrQuery is wrapped by the error for an invalid expression after "re:".
var ErrQuery = errors.New("searchindex: not a query")

// Bounds of queries (I15).
const (
	maxQuery   = 4 << 10 // bytes
	maxTerms   = 32      // words and phrases; further ones are ignored
	maxPattern = 1 << 10 // bytes of a regular expression
	tokenRunes = 3       // the index's tokens are any three runes
	maxToken   = 64      // runes of a term passed to the index; the whole term is compared afterwards
)

// Query is what to search for. The zero Query matches everything.
type Query struct {
	terms   []string // folded, see internal/fold; all must match
	pattern *regexp.Regexp
}

// Parse parses a query as typed: words that must all occur, in any order and case, also as parts of words; "words in
// quotes" in this order with any white space between them; or re: and a regular expression (RE2, any case). Accents and
// the Unicode normal form do not matter, except for an expression, which matches the original text. The only possible
// error is an invalid expression.
func Parse(text string) (Query, error) {
	text = strings.TrimSpace(cut(clean(text), maxQuery))
	if expr, ok := strings.CutPrefix(text, "re:"); ok {
		return parsePattern(strings.TrimSpace(expr))
	}
	var words []string
	for i, part := range strings.Split(text, `"`) {
		if i%2 == 1 {
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return Words(words...), nil
}

func parsePattern(expr string) (Query, error) {
	if len(expr) > maxPattern {
		return Query{}, fmt.Errorf("%w: an expression of %d bytes, the limit is %d", ErrQuery, len(expr), maxPattern)
	}
	if expr == "" {
		return Query{}, nil
	}
	re, err := regexp.Compile("(?i)" + expr)
	if err != nil {
		return Query{}, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return Query{pattern: re}, nil
}

// Words returns a query for words that must all occur; one with spaces is a phrase.
func Words(words ...string) Query {
	var q Query
	for _, w := range words {
		w = folded(cut(clean(w), maxQuery))
		if w != "" && !slices.Contains(q.terms, w) && len(q.terms) < maxTerms {
			q.terms = append(q.terms, w)
		}
	}
	return q
}

// prefix returns a query that matches texts with this beginning, and the folded beginning.
func prefix(start string) (Query, string) {
	start = folded(clean(cut(start, maxQuery)))
	return Words(start), start
}

// Empty reports whether the query matches everything.
func (q Query) Empty() bool { return len(q.terms) == 0 && q.pattern == nil }

// Find matches the searchable text of an entry. snippet is one line around the first match, and mark the position of
// the match in it, in bytes. ok is false if the text does not match.
func (q Query) Find(text string) (snippet string, mark [2]int, ok bool) {
	at, end := 0, 0
	if q.pattern != nil {
		where := q.pattern.FindStringIndex(text)
		if where == nil {
			return "", mark, false
		}
		at, end = len(oneLine(text[:where[0]])), len(oneLine(text[:where[1]]))
		if text = oneLine(text); at > 0 && at < end && text[at] == ' ' {
			at++
		}
		snippet, mark = around(text, min(at, end), end)
		return snippet, mark, true
	}
	text = oneLine(text)
	low := fold.Text(text)
	for i, term := range q.terms {
		where := fold.Index(low, term)
		if where < 0 {
			return "", mark, false
		}
		if i == 0 {
			at = q.densest(low, where)
			end = at + len(term)
		}
	}
	at, end = fold.Span(text, at, end)
	snippet, mark = around(text, at, end)
	return snippet, mark, true
}

// maxPlaces bounds the places that are compared for a snippet.
const maxPlaces = 64

// densest returns the occurrence of the first word, from the position first on, that has most of the other words near
// it.
func (q Query) densest(low string, first int) int {
	best, most := first, -1
	for at, n := first, 0; n < maxPlaces; n++ {
		near := low[max(0, at-snippetBytes/2):min(len(low), at+snippetBytes/2)]
		beside := 0
		for _, term := range q.terms[1:] {
			if fold.Index(near, term) >= 0 {
				beside++
			}
		}
		if beside > most {
			best, most = at, beside
		}
		next := fold.Index(low[at+1:], q.terms[0])
		if next < 0 || most == len(q.terms)-1 {
			break
		}
		at += 1 + next
	}
	return best
}

const snippetBytes = 160

// around returns one line of a text with the match in its middle, and the position of the match in it.
func around(text string, at, end int) (string, [2]int) {
	end = min(end, at+snippetBytes)
	from := max(0, at-(snippetBytes-(end-at))/2)
	to := min(len(text), max(from+snippetBytes, end))
	from = max(0, min(from, to-snippetBytes))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end++
	}
	snippet := text[from:to]
	mark := [2]int{at - from, end - from}
	if from > 0 {
		const dots = "…"
		snippet = dots + snippet
		mark[0] += len(dots)
		mark[1] += len(dots)
	}
	if to < len(text) {
		snippet += "…"
	}
	return snippet, mark
}

// match returns an expression for the full-text index that matches every entry that the query can find; "" = there is
// none. exact reports whether it matches no other entries.
func match(q Query) (expr string, exact bool) {
	terms, exact := q.terms, true
	if q.pattern != nil {
		terms, exact = literals(q.pattern), false
	}
	var b strings.Builder
	for _, t := range terms {
		n := utf8.RuneCountInString(t)
		if n < tokenRunes {
			exact = false
			continue
		}
		if last, _ := utf8.DecodeLastRuneInString(t); fold.Continues(last) {
			exact = false // the index does not know where a letter ends
		}
		if n > maxToken {
			t, exact = string([]rune(t)[:maxToken]), false
		}
		if b.Len() > 0 {
			b.WriteString(" AND ")
		}
		b.WriteString(`"` + strings.ReplaceAll(t, `"`, `""`) + `"`)
	}
	return b.String(), exact && b.Len() > 0
}

// short returns the words of a query that are too short for the full-text index.
func short(q Query) []string {
	var out []string
	for _, t := range q.terms {
		if utf8.RuneCountInString(t) < tokenRunes {
			out = append(out, t)
		}
	}
	return out
}

// literals returns texts, folded, that every match of an expression contains.
func literals(re *regexp.Regexp) []string {
	tree, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return nil
	}
	var out []string
	var walk func(x *syntax.Regexp)
	walk = func(x *syntax.Regexp) {
		switch x.Op {
		case syntax.OpLiteral:
			for _, part := range strings.FieldsFunc(string(x.Rune), treacherous) {
				out = append(out, fold.Text(part))
			}
		case syntax.OpConcat, syntax.OpCapture, syntax.OpPlus:
			for _, sub := range x.Sub {
				walk(sub)
			}
		case syntax.OpRepeat:
			if x.Min > 0 {
				walk(x.Sub[0])
			}
		default: // the match may lack it
		}
	}
	walk(tree)
	return out[:min(len(out), maxTerms)]
}

// treacherous reports whether a rune may match another one that folds differently: white space, and letters with more
// than two forms.
func treacherous(r rune) bool {
	if unicode.IsSpace(r) {
		return true
	}
	text := fold.Text(string(r))
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if fold.Text(string(f)) != text {
			return true
		}
	}
	return false
}
