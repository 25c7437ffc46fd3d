package message

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// table has the texts that programs insert, by program and the version in whose files they were seen: the tags of
// elements; the beginning and the end of other texts; those around an image; whole parts of a message, also followed by
// one word; and those of a developer message. The viewer reads the same file.
//
//go:embed inserted.json
var table []byte

// insertions is the parsed table. Keys are a program and a version.
type insertions struct {
	Tags      map[string][]string
	Texts     map[string][][2]string
	Media     map[string][][2]string // around a user's request, or an image
	Whole     map[string][][2]string
	Word      map[string][]string // the beginnings of those that end with one more word
	Developer map[string][][2]string

	names  map[string]bool // all tags
	begins map[string]bool // beginnings of other texts that start with one
	pairs  [][2]string     // all texts, and those around images
}

// opened are the tags of Codex that older versions did not always close.
const opened = "codex 0.40"

var inserted = sync.OnceValue(func() *insertions {
	t := &insertions{names: map[string]bool{}, begins: map[string]bool{}}
	if err := json.Unmarshal(table, t); err != nil {
		panic(err) // the table is part of the program
	}
	for of, list := range t.Tags {
		for _, name := range list {
			t.names[name] = true
			if of == opened {
				t.Whole[of] = append(t.Whole[of], [2]string{"<" + name + ">"})
			}
		}
	}
	for _, list := range t.Developer {
		for _, m := range list {
			t.begins[strings.Trim(m[0], "<>")] = true
		}
	}
	for _, by := range []map[string][][2]string{t.Texts, t.Media} {
		for _, list := range by {
			t.pairs = append(t.pairs, list...)
		}
	}
	return t
})

// knows reports whether the table has entries of a program.
func (t *insertions) knows(program string) bool {
	for of := range t.Tags {
		if name, _, _ := strings.Cut(of, " "); name == program {
			return true
		}
	}
	return false
}

// Inserted reports whether a program and not a person wrote the content of a role. program is the name of its format.
// For Codex one inserted text is enough, as in Codex itself; for others all texts have to be inserted.
func Inserted(program, role string, content []byte) bool {
	t := inserted()
	by := t.Whole
	if role == "developer" {
		by = t.Developer
	} else if role != "user" || !t.knows(program) {
		return false
	}
	some, all := false, true
	for c := Content(content); c.Next(); {
		switch {
		case c.Block.Kind == Text && isMarked(c.Block.Text, program, t.Media):
		case c.Block.Kind == Text && isMarked(c.Block.Text, program, by),
			role == "user" && (c.Block.Inserted() || t.endsWithWord(&c.Block, program)):
			some = true
		case c.Block.Kind != Text || len(c.Block.Text) > 2:
			all = false
		}
	}
	return some && (all || program == "codex")
}

// endsWithWord reports whether a block is a text of the table followed by one word.
func (t *insertions) endsWithWord(b *Block, program string) bool {
	for of, list := range t.Word {
		for _, begin := range list {
			if b.Kind != Text || !strings.HasPrefix(of, program+" ") || !bytes.HasPrefix(b.Text, []byte(`"`+begin)) {
				continue
			}
			word := strings.TrimSpace(rawjson.Text(b.Text)[len(begin):])
			return word != "" && !strings.ContainsAny(word, blank)
		}
	}
	return false
}

// isMarked compares the ends of a text, if it begins like a text of the table or with possible white space.
func isMarked(val []byte, program string, by map[string][][2]string) bool {
	if len(val) < 2 || val[1] > ' ' && val[1] < 0x80 && bytes.IndexByte([]byte(`<#CTwW\`), val[1]) < 0 {
		return false
	}
	text := strings.TrimSpace(rawjson.Text(val))
	for of, list := range by {
		if !strings.HasPrefix(of, program+" ") {
			continue
		}
		for _, m := range list {
			if len(text) >= len(m[0])+len(m[1]) && strings.EqualFold(text[:len(m[0])], m[0]) &&
				strings.EqualFold(text[len(text)-len(m[1]):], m[1]) {
				return true
			}
		}
	}
	return false
}

// Inserted reports whether a program wrote the whole text of a block.
func (b *Block) Inserted() bool {
	if b.Kind != Text || !maybeSpans(b.Text) {
		return false
	}
	before, typed, _ := Apart(rawjson.Text(b.Text))
	return before != "" && typed == ""
}

// Typed reports whether a person wrote a block of a user message: text that no program inserted, a command, or a call.
func (m *Message) Typed(b *Block) bool {
	switch b.Kind {
	case Text:
		return len(b.Text) > 2 && !m.aside && !b.Inserted()
	case Command, Call:
		return true
	case Unread, Thinking, Result, Attached:
	}
	return false
}

// Typed returns the part of a user's text, a JSON string, that a person wrote.
func Typed(val []byte) []byte {
	if !maybeSpans(val) {
		return val
	}
	before, typed, after := Apart(rawjson.Text(val))
	if before == "" && after == "" {
		return val
	}
	return rawjson.AppendString(nil, typed)
}

// maybeSpans reports whether a string begins or ends like an inserted text, or with possible white space.
func maybeSpans(val []byte) bool {
	if len(val) <= 2 {
		return false
	}
	first, last := val[1], val[len(val)-2]
	return first <= ' ' || bytes.IndexByte([]byte(`<#[C\`), first) >= 0 ||
		last <= ' ' || last == '>' || val[len(val)-3] == '\\'
}

// Piece is a part of a user's text: typed by a person, or inserted by a program.
type Piece struct {
	Text     string
	Inserted bool
}

// Pieces returns the parts of a text of a decoded message, in order.
func (m *Message) Pieces(text []byte) (list []Piece) {
	all := rawjson.Text(text)
	if m.Speaker != User || !maybeSpans(text) {
		return []Piece{{all, false}}
	}
	before, typed, after := Apart(all)
	for _, p := range []Piece{{before, true}, {typed, false}, {after, true}} {
		if p.Text != "" {
			list = append(list, p)
		}
	}
	return list
}

// TypedText returns the texts of a decoded message, joined by newlines, without the insertions of programs in texts of
// a user.
func (m *Message) TypedText() string {
	var texts []string
	for i := range m.Blocks {
		if m.Blocks[i].Kind != Text {
			continue
		}
		val := m.Blocks[i].Text
		if m.Speaker == User {
			val = Typed(val)
		}
		if len(val) > 2 {
			texts = append(texts, rawjson.Text(val))
		}
	}
	return strings.Join(texts, "\n")
}

const blank = " \t\r\n"

// Apart returns the texts that programs inserted before and after the typed text, and the typed text. If everything is
// inserted it is in before.
func Apart(text string) (before, typed, after string) {
	start := 0
	for n := 1; n > 0; start += n {
		n = spanAt(text[start:])
	}
	typed = text[start:]
	if start > 0 {
		typed = strings.TrimLeft(typed, blank)
		start = len(text) - len(typed)
	}
	cut := cutSpans(typed)
	if strings.Trim(cut, blank) == "" && (start > 0 || len(cut) < len(typed)) {
		return text, "", ""
	}
	return text[:start], cut, typed[len(cut):]
}

// spanAt returns the length of an inserted text at the start of a text, with the white space before it; 0 = there is
// none.
func spanAt(text string) int {
	rest := strings.TrimLeft(text, blank)
	skipped := len(text) - len(rest)
	if head, body, ok := strings.Cut(rest, ">"); ok && head != "" && head[0] == '<' {
		name := head[1:]
		if first, _, _ := strings.Cut(name, " "); !inserted().names[name] {
			name = first
		}
		if i := strings.Index(body, "</"+name+">"); i >= 0 && inserted().names[name] {
			return skipped + len(head) + 1 + i + len(name) + len("</>")
		}
	}
	for _, m := range inserted().pairs {
		if !strings.HasPrefix(rest, m[0]) {
			continue
		}
		if i := strings.Index(rest[len(m[0]):], m[1]); i >= 0 {
			return skipped + len(m[0]) + i + len(m[1])
		}
	}
	return 0
}

// cutSpans removes the elements that programs inserted on separate lines at the end of a text.
func cutSpans(text string) string {
	for {
		rest := strings.TrimRight(text, blank)
		end := strings.LastIndex(rest, "</")
		if end < 0 || rest[len(rest)-1] != '>' || !inserted().names[rest[end+2:len(rest)-1]] {
			return text
		}
		begin := strings.LastIndex(rest[:end], "<"+rest[end+2:len(rest)-1])
		if begin < 0 || begin > 0 && rest[begin-1] != '\n' {
			return text
		}
		text = strings.TrimRight(rest[:begin], blank)
	}
}
