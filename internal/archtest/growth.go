package archtest

import (
	"bufio"
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxColumns is the maximum width of a line of Go or Markdown. A tab is four columns wide, as for the linter lll.
const maxColumns = 120

// maxShown bounds the occurrences in a finding: in a longer list new ones are not visible.
const maxShown = 20

// markers are words and phrases of comments that plain technical English does not need. Most often a relative clause
// has no noun, data "says" something, or the word order is inverted: name the subject and use the usual verb.
var markers = regexp.MustCompile(`(?i)\b(` + strings.Join([]string{
	"says?", "said", "beside", "anew", "gives?", "tells?", "stands?", "nobody", "somebody", "whoever",
	"comes? upon", "came upon", "goes on", "what (?:became|becomes?) of", "who comes?", "that are none", "of before",
	"behind the last",
}, "|") + `)\b`)

var (
	word = regexp.MustCompile(`[\p{L}][\p{L}'-]*`)
	// Comments of TypeScript and CSS, and of Python with its docstrings. A line comment follows white space, so that
	// the // of an address does not begin one.
	slashComments = regexp.MustCompile(`(?s:/\*.*?\*/)|(?m:(?:^|\s)//.*$)`)
	hashComments  = regexp.MustCompile(`(?s:""".*?""")|(?m:(?:^|\s)#.*$)`)
	linkTarget    = regexp.MustCompile(`\]\([^)]*\)`)
	linkLine      = regexp.MustCompile(`^\[[^\]]+\]:`)
)

// counted counts occurrences by key; the counts may not grow.
type counted map[string]*occurrences

type occurrences struct {
	n      int
	places []string // "file:line: what", in order
}

// growth counts the markers in the comments of each folder ("words FOLDER"), and the lines of Go and Markdown that are
// wider than maxColumns in each file ("columns FILE"). It also returns the number of words of all comments.
func growth(fsys fs.FS) (found counted, words int, err error) {
	found = counted{}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if leftOut(name) {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go", ".ts", ".tsx", ".mjs", ".css", ".py", ".md":
		default:
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		found.columns(name, text)
		if !generated(text) {
			words += found.words(name, text)
		}
		return nil
	})
	return found, words, err
}

// leftOut reports whether a folder has no source of this module: fixtures, and the output of tools.
func leftOut(dir string) bool {
	base := path.Base(dir)
	return base != "." && strings.HasPrefix(base, ".") ||
		slices.Contains([]string{"testdata", "node_modules", "__pycache__", "bin", "dist", "build"}, base)
}

func generated(text []byte) bool {
	head := text[:min(len(text), 400)]
	return bytes.Contains(head, []byte("DO NOT EDIT")) || bytes.Contains(head, []byte("Do not edit"))
}

func (c counted) add(key, place string) {
	o := c[key]
	if o == nil {
		o = &occurrences{}
		c[key] = o
	}
	o.n++
	o.places = append(o.places, place)
}

// columns counts the lines of Go and Markdown that are too wide. In Markdown, tables, fenced code, definitions of links
// and the targets of links do not count: they cannot be wrapped.
func (c counted) columns(name string, text []byte) {
	ext, fenced, n := path.Ext(name), false, 0
	if ext != ".go" && ext != ".md" {
		return
	}
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if ext == ".md" {
			trimmed := strings.TrimSpace(line)
			if strings.HasPrefix(trimmed, "```") {
				fenced = !fenced
			}
			if fenced || strings.HasPrefix(trimmed, "|") || linkLine.MatchString(trimmed) {
				continue
			}
			line = linkTarget.ReplaceAllString(line, "]")
		}
		if width := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t"); width > maxColumns {
			c.add("columns "+name, fmt.Sprintf("%s:%d: %d columns", name, n, width))
		}
	}
}

// words counts the markers in the comments of a file under its folder, and returns the number of all words in them.
func (c counted) words(name string, text []byte) (words int) {
	for _, comment := range comments(name, text) {
		words += len(word.FindAllString(comment.text, -1))
		for _, at := range markers.FindAllStringIndex(comment.text, -1) {
			line := comment.line + strings.Count(comment.text[:at[0]], "\n")
			c.add("words "+path.Dir(name), fmt.Sprintf("%s:%d: %q", name, line, comment.text[at[0]:at[1]]))
		}
	}
	return words
}

type comment struct {
	line int
	text string
}

func comments(name string, text []byte) []comment {
	var pattern *regexp.Regexp
	switch path.Ext(name) {
	case ".go":
		return goComments(name, text)
	case ".ts", ".tsx", ".mjs", ".css":
		pattern = slashComments
	case ".py":
		pattern = hashComments
	default:
		return nil
	}
	var out []comment
	for _, at := range pattern.FindAllIndex(text, -1) {
		out = append(out, comment{1 + bytes.Count(text[:at[0]], []byte("\n")), string(text[at[0]:at[1]])})
	}
	return out
}

func goComments(name string, text []byte) []comment {
	var out []comment
	var s scanner.Scanner
	file := token.NewFileSet().AddFile(name, -1, len(text))
	s.Init(file, text, nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return out
		}
		if tok == token.COMMENT {
			out = append(out, comment{file.Line(pos), lit})
		}
	}
}

// exceeds returns a finding for each count that is larger than in the baseline; a key without a baseline may not occur.
func (c counted) exceeds(baseline map[string]int) []Finding {
	var out []Finding
	for _, key := range slices.Sorted(maps.Keys(c)) {
		o, most := c[key], baseline[key]
		if o.n <= most {
			continue
		}
		kind, name, _ := strings.Cut(key, " ")
		text := fmt.Sprintf("%d, at most %d", o.n, most)
		if len(o.places) <= maxShown {
			text += ":\n\t" + strings.Join(o.places, "\n\t")
		}
		out = append(out, Finding{kind, name, text})
	}
	return out
}

// shrunk returns the baseline with each count lowered to the one found.
func (c counted) shrunk(baseline map[string]int) map[string]int {
	out := map[string]int{}
	for key, most := range baseline {
		if o := c[key]; o != nil {
			out[key] = min(o.n, most)
		}
	}
	return out
}

// readBaseline reads lines of a kind, a name and a count.
func readBaseline(text []byte) (map[string]int, error) {
	out := map[string]int{}
	for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
		var kind, name string
		var n int
		if _, err := fmt.Sscanf(s.Text(), "%s %s %d", &kind, &name, &n); err != nil {
			return nil, fmt.Errorf("baseline: %q: %w", s.Text(), err)
		}
		out[kind+" "+name] = n
	}
	return out, nil
}

func writeBaseline(baseline map[string]int) []byte {
	var b bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(baseline)) {
		fmt.Fprintf(&b, "%s %d\n", key, baseline[key])
	}
	return b.Bytes()
}
