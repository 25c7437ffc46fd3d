package secrets

import (
	_ "embed"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"sync"
)

//go:embed rules.txt
var rulesText string

// rule is a line of rules.txt, which tools/secretrules writes. The first line has no id, and has what every rule
// allows.
type rule struct {
	ID       string   `json:"id"`
	Keywords []string `json:"keywords"` // in lower case; the pattern is looked for where one occurs

	// At "start" the pattern begins at the keyword. At "name" the keyword is in the name of a value, and the pattern
	// begins there. "" = the pattern is looked for in the Near bytes before and after the keyword.
	At    string  `json:"at"`
	Word  bool    `json:"word"` // no character of a word is before the keyword
	Near  int     `json:"near"`
	Regex string  `json:"regex"`
	Group int     `json:"group"` // of the credential in the pattern; 0 = the first that is not empty, else all
	Bits  float64 `json:"entropy"`
	Allow []allow `json:"allow"`

	compiled func() *regexp.Regexp
}

// allow is what is no credential although a rule found it.
type allow struct {
	Target  string   `json:"target"` // "match", "line"; "" = the credential
	Regexes []string `json:"regexes"`
	Words   string   `json:"words"` // separated by spaces; any of them in the credential allows it

	patterns func() []*regexp.Regexp
	words    func() *keywords
}

// rules are all rules, and the index of their keywords.
type rules struct {
	list   []*rule
	global []allow
	words  *keywords
	of     [][]int // the rules of each keyword
}

// load reads the rules. The file is a part of the program: an error in it is one of the program.
func load() *rules {
	all := &rules{}
	index := map[string]int{}
	var words []string
	for line := range strings.Lines(rulesText) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		r := &rule{}
		if err := json.Unmarshal([]byte(line), r); err != nil {
			panic("secrets/rules.txt: " + err.Error())
		}
		for i := range r.Allow {
			r.Allow[i].prepare()
		}
		if r.ID == "" {
			all.global = r.Allow
			continue
		}
		r.compiled = sync.OnceValue(func() *regexp.Regexp {
			if r.At == "" {
				return regexp.MustCompile(r.Regex)
			}
			return regexp.MustCompile(`\A(?:` + r.Regex + `)`)
		})
		for _, k := range r.Keywords {
			i, ok := index[k]
			if !ok {
				i = len(words)
				index[k] = i
				words, all.of = append(words, k), append(all.of, nil)
			}
			all.of[i] = append(all.of[i], len(all.list))
		}
		all.list = append(all.list, r)
	}
	all.words = newKeywords(words)
	return all
}

func (a *allow) prepare() {
	a.patterns = sync.OnceValue(func() (list []*regexp.Regexp) {
		for _, text := range a.Regexes {
			list = append(list, regexp.MustCompile(text))
		}
		return list
	})
	a.words = sync.OnceValue(func() *keywords { return newKeywords(strings.Fields(a.Words)) })
}

// allows reports whether a credential is none, by itself, its match or its line.
func (a *allow) allows(secret, match, line string) bool {
	target := secret
	switch a.Target {
	case "match":
		target = match
	case "line":
		target = line
	}
	for _, re := range a.patterns() {
		if re.MatchString(target) {
			return true
		}
	}
	return a.Words != "" && a.words().in(secret)
}

// entropy returns Shannon's entropy of the bytes of a text, in bits for each.
func entropy(text string) float64 {
	var count [256]int
	for i := range len(text) {
		count[text[i]]++
	}
	bits, n := 0.0, float64(len(text))
	for _, c := range count {
		if c > 0 {
			p := float64(c) / n
			bits -= p * math.Log2(p)
		}
	}
	return bits
}
