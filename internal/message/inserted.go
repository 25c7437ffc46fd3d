package message

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// table has, by program and role, the texts that a program inserts: how each begins, how it ends, and a version of
// the program in whose files it was seen. The viewer reads the same file.
//
//go:embed inserted.json
var table []byte

// mark is the beginning of a text that a program inserts, and its end where the beginning may be a person's too.
type mark struct{ begin, end string }

// marks are the table, by program and role.
var marks = sync.OnceValue(func() map[string]map[string][]mark {
	var rows map[string]map[string][][3]string
	if err := json.Unmarshal(table, &rows); err != nil {
		panic(err) // it is part of the program
	}
	all := map[string]map[string][]mark{}
	for program, roles := range rows {
		all[program] = map[string][]mark{}
		for role, list := range roles {
			for _, row := range list {
				all[program][role] = append(all[program][role], mark{row[0], row[1]})
			}
		}
	}
	return all
})

// spans are the marks of all programs in messages of a user whose end is known: a tag without one ends with its
// closing tag.
var spans = sync.OnceValue(func() (list []mark) {
	for _, roles := range marks() {
		for _, m := range roles["user"] {
			if name, isTag := strings.CutPrefix(m.begin, "<"); m.end == "" && isTag && strings.HasSuffix(name, ">") {
				m.end = "</" + name
			}
			if len(m.end) > 1 || m.begin[0] == '[' {
				list = append(list, m)
			}
		}
	}
	slices.SortFunc(list, func(a, b mark) int { return strings.Compare(a.begin+a.end, b.begin+b.end) })
	return list
})

// Inserted reports whether a program wrote a content of a role, and not a person. program is the name of its format. Of
// Codex one such text is enough, as it is for Codex itself; of others all of them are.
func Inserted(program, role string, content []byte) bool {
	list := marks()[program][role]
	if list == nil {
		return false
	}
	any, all := false, true
	for c := Content(content); c.Next(); {
		switch {
		case c.Block.Kind == Text && isMarked(c.Block.Text, list), c.Block.Inserted():
			any = true
		case c.Block.Kind != Text || len(c.Block.Text) > 2:
			all = false
		}
	}
	return any && (all || program == "codex")
}

// isMarked looks at the ends of a text, if it begins as marks do, or with what may be white space.
func isMarked(val []byte, by []mark) bool {
	if len(val) < 2 || val[1] > ' ' && val[1] < 0x80 && bytes.IndexByte([]byte(`<#[CTwW\`), val[1]) < 0 {
		return false
	}
	text := strings.TrimSpace(rawjson.Text(val))
	for _, m := range by {
		if len(text) >= len(m.begin)+len(m.end) && strings.EqualFold(text[:len(m.begin)], m.begin) &&
			strings.EqualFold(text[len(text)-len(m.end):], m.end) {
			return true
		}
	}
	return false
}

// Inserted reports whether a block is a text of which a program wrote all.
func (b *Block) Inserted() bool {
	if b.Kind != Text || !maybeSpans(b.Text) {
		return false
	}
	before, typed, _ := Apart(rawjson.Text(b.Text))
	return before != "" && typed == ""
}

// Typed reports whether a block of a user's message is a person's: words that no program inserted, a command, or a
// call.
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

// Typed returns the part of a user's text that a person wrote, a string.
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

// maybeSpans reports whether a string begins or ends as the texts of programs do, or with what may be white space.
func maybeSpans(val []byte) bool {
	if len(val) <= 2 {
		return false
	}
	first, last := val[1], val[len(val)-2]
	return first <= ' ' || first >= 0x80 || bytes.IndexByte([]byte(`<#[CW\`), first) >= 0 ||
		last <= ' ' || last == '>' || val[len(val)-3] == '\\'
}

// Piece is a part of a text: of a user's message, what a person wrote or what a program put to it.
type Piece struct {
	Text     string
	Inserted bool
}

// Pieces returns the parts of a text of a message that Decode returned, in their order.
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

// TypedText returns the texts of a message that Decode returned, one below the other, without what a program put to
// those of a user.
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

// Apart returns what programs put before a text, what a person wrote, and what programs put after it. A text of
// programs alone is before.
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

// spanAt returns the length of the text of a program at the beginning of a text, with the white space before it; 0 =
// there is none.
func spanAt(text string) int {
	rest := strings.TrimLeft(text, blank)
	for _, m := range spans() {
		if len(rest) < len(m.begin) || !strings.EqualFold(rest[:len(m.begin)], m.begin) {
			continue
		}
		if i := strings.Index(rest[len(m.begin):], m.end); i >= 0 {
			return len(text) - len(rest) + len(m.begin) + i + len(m.end)
		}
	}
	return 0
}

// cutSpans returns a text without the elements that programs put on lines of their own at its end.
func cutSpans(text string) string {
	for found := true; found; {
		found = false
		for _, m := range spans() {
			rest := strings.TrimRight(text, blank)
			if m.begin[0] != '<' || !strings.HasSuffix(rest, m.end) {
				continue
			}
			i := strings.LastIndex(rest, m.begin)
			if i == 0 || i > 0 && rest[i-1] == '\n' {
				text, found = strings.TrimRight(text[:i], blank), true
				break
			}
		}
	}
	return text
}
