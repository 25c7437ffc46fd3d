package secrets

import (
	"cmp"
	"slices"
	"strings"
)

// Bounds of what is looked at, in bytes.
const (
	maxMatch = 8 << 10 // a pattern that begins at a keyword ends before
	maxName  = 50      // of a value, before the keyword
	maxLine  = 1 << 10 // of a line, on each side of a match
)

// hit is a finding before overlaps are removed.
type hit struct {
	Finding
	name bool // by a name and not by a form
}

// search is one pass over a text.
type search struct {
	*rules
	text string
	done map[int]int // by rule: the end of the last match
	// by rule that is looked for around its keyword: what is still to be searched
	around map[int]span
	hits   []hit
}

// span is a part of a text.
type span struct{ from, to int }

func (a *rules) find(text string) []Finding {
	s := search{rules: a, text: text}
	a.words.each(text, func(word, at int) {
		for _, r := range a.of[word] {
			s.look(r, at)
		}
	})
	for i, in := range s.around {
		s.lookIn(s.list[i], in)
	}
	return s.apart()
}

// look tries a rule whose keyword is at a place.
func (s *search) look(i, at int) {
	r := s.list[i]
	if r.At != "" {
		if r.Word && at > 0 && isWord(s.text[at-1]) || r.At == "name" && !assigns(s.text[at:]) {
			return
		}
	}
	if r.At == "" {
		s.near(r, i, at)
		return
	}
	if s.done == nil {
		s.done = map[int]int{}
	}
	if at < s.done[i] {
		return
	}
	part := s.text[at:min(len(s.text), at+maxMatch)]
	if r.At == "name" {
		part = part[:min(len(part), maxAssignment)]
	}
	m := r.compiled().FindStringSubmatchIndex(part)
	if m == nil || m[1] == len(part) && at+m[1] < len(s.text) { // its end is that of the part
		return
	}
	s.done[i] = at + m[1]
	from := at
	if r.At == "name" {
		for from > 0 && at-from < maxName && isName(s.text[from-1]) {
			from--
		}
	}
	s.take(r, m, at, from)
}

// near remembers that a rule is to be looked for around a keyword. What is around several is searched once.
func (s *search) near(r *rule, i, at int) {
	was, ok := s.around[i]
	now := span{max(at-r.Near, 0), min(at+r.Near, len(s.text))}
	if ok && now.from <= was.to {
		now.from = was.from
	} else if ok {
		s.lookIn(r, was)
	}
	if s.around == nil {
		s.around = map[int]span{}
	}
	s.around[i] = now
}

// lookIn looks for a rule in a part of the text. What touches an end of the part that is none of the text may be cut
// off there, and is none.
func (s *search) lookIn(r *rule, in span) {
	part := s.text[in.from:in.to]
	for _, m := range r.compiled().FindAllStringSubmatchIndex(part, -1) {
		if (m[0] > 0 || in.from == 0) && (m[1] < len(part) || in.to == len(s.text)) {
			s.take(r, m, in.from, in.from+m[0])
		}
	}
}

// take adds a match of a rule, whose indexes are from a place on, if it is a credential.
func (s *search) take(r *rule, m []int, base, from int) {
	start, stop := group(r, m)
	if q := s.text[base+start]; stop-start > 2 && s.text[base+stop-1] == q && strings.IndexByte("\"'`", q) >= 0 {
		start, stop = start+1, stop-1 // some rules take the quotes for a part of it
	}
	secret := s.text[base+start : base+stop]
	if secret == "" || r.Bits > 0 && entropy(secret) <= r.Bits {
		return
	}
	match := strings.Trim(s.text[from:base+m[1]], "\n")
	line := lineOf(s.text, from, base+m[1])
	for _, list := range [][]allow{s.global, r.Allow} {
		for i := range list {
			if list[i].allows(secret, match, line) {
				return
			}
		}
	}
	s.hits = append(s.hits, hit{Finding{r.ID, base + start, base + stop}, r.At == "name"})
}

// group returns the place of the credential in a match.
func group(r *rule, m []int) (start, stop int) {
	if r.Group > 0 {
		return m[2*r.Group], m[2*r.Group+1]
	}
	for i := 2; i < len(m); i += 2 {
		if m[i] < m[i+1] {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

// lineOf returns the lines of a match, or the parts of them nearby.
func lineOf(text string, from, to int) string {
	before := text[max(0, from-maxLine):from]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after := text[to:min(len(text), to+maxLine)]
	if i := strings.IndexByte(after, '\n'); i >= 0 {
		after = after[:i]
	}
	return text[from-len(before) : to+len(after)]
}

// apart returns the findings without those that overlap a better one: one by a form is better than one by a name, and
// then the longer one.
func (s *search) apart() []Finding {
	slices.SortStableFunc(s.hits, func(a, b hit) int {
		switch {
		case a.name != b.name && a.name:
			return 1
		case a.name != b.name:
			return -1
		}
		return cmp.Or(cmp.Compare(b.End-b.Start, a.End-a.Start), cmp.Compare(a.Start, b.Start),
			strings.Compare(a.Rule, b.Rule))
	})
	var taken []Finding // sorted by place
	for _, h := range s.hits {
		i, _ := slices.BinarySearchFunc(taken, h.Start, func(f Finding, at int) int { return cmp.Compare(f.End, at+1) })
		if i == len(taken) || taken[i].Start >= h.End {
			taken = slices.Insert(taken, i, h.Finding)
		}
	}
	return taken
}

// Bounds of an assignment to a name, as the rules have it: the rest of the name, a quote, an operator, a quote and the
// value.
const (
	maxRest       = 40 // bytes after a keyword that can be of the name, the rest of the word included
	maxQuotes     = 4
	maxAssignment = 512
)

// assigns reports whether a text that begins with the keyword of a name can be an assignment. It is quick: most of
// these words are in prose and code.
func assigns(text string) bool {
	i := 0
	for i < len(text) && i < maxRest && (isName(text[i]) || text[i] == ' ' || text[i] == '\t') {
		i++
	}
	for n := 0; i < len(text) && n < maxQuotes; n++ {
		switch text[i] {
		case '\'', '"', '\\', ' ', '\t', '\n', '\r', '\f', '\v':
			i++
			continue
		}
		break
	}
	return i < len(text) && strings.IndexByte("=>:|?,", text[i]) >= 0
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isName reports whether a byte can be of the name before an assignment.
func isName(c byte) bool { return isWord(c) || c == '.' || c == '-' }
