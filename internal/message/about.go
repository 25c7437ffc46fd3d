package message

import (
	"bytes"
	"strings"
	"unicode"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// titles are the names of elements that programs insert. An element that is not listed is named by the words of its
// tag; "" = the content needs no name.
var titles = map[string]string{
	"system-reminder": "reminder", "local-command-caveat": "note about commands",
	"ide_selection": "selection in the editor", "ide_opened_file": "file open in the editor",
	"ide_diagnostics":      "diagnostics of the editor",
	"local-command-stdout": "output", "bash-stdout": "output", "local-command-stderr": "error output",
	"bash-stderr": "error output", "command-name": "", "command-args": "", "tool_use_error": "", "persisted-output": "",
	"bash-input": "!", "user_shell_command": "!", "system-interrupt": "interrupt", "irc": "message",
}

// Bounds of About: bytes of the text, which is for one line; elements; bytes of a tag.
const (
	maxAbout = 8 << 10
	maxParts = 16
	maxTag   = 256
)

// About returns a one-line description of a text that a program wrote, a JSON string: elements by their titles, without
// tags. ok is false if the text does not begin with an element that programs insert.
func About(val []byte) (words string, ok bool) {
	if len(val) > maxAbout {
		end := maxAbout
		if i := bytes.LastIndexByte(val[end-len(`\u0000`):end], '\\'); i >= 0 { // not within an escape
			for end += i - len(`\u0000`); val[end-1] == '\\'; end-- {
			}
		}
		val = append(val[:end:end], '"')
	}
	rest, list := rawjson.Text(val), []string{}
	for len(list) < maxParts {
		rest = strings.TrimLeft(rest, blank)
		name, body, after := element(rest)
		if name == "" {
			list = append(list, rest)
			break
		}
		ok = true
		if words := aboutElement(name, body); words != "" {
			list = append(list, words)
		}
		rest = after
	}
	return strings.TrimSpace(strings.Join(list, " ")), ok
}

// element returns the element at the start of a text, up to its end or that of the text, and the rest; name "" = the
// text does not begin with an element that programs insert.
func element(text string) (name, body, after string) {
	head, rest, ok := strings.Cut(text, ">")
	if !ok || len(head) > maxTag || !strings.HasPrefix(head, "<") {
		return "", "", ""
	}
	name = head[1:]
	if !inserted().named(name) {
		if name, _, _ = strings.Cut(name, " "); !inserted().named(name) {
			return "", "", ""
		}
	}
	body, after, _ = strings.Cut(rest, "</"+name+">")
	return name, body, after
}

// named reports whether programs insert a tag.
func (t *insertions) named(tag string) bool {
	_, ok := titles[tag]
	return ok || t.names[tag] || t.begins[tag]
}

func aboutElement(name, body string) string {
	if name == "command-message" { // the name again
		return ""
	}
	if _, rest, ok := strings.Cut(body, "<summary>"); ok {
		body, _, _ = strings.Cut(rest, "</summary>")
	}
	words := strings.TrimSpace(untagged(body[:min(len(body), maxAbout)]))
	title, ok := titles[name]
	if !ok {
		title = strings.NewReplacer("-", " ", "_", " ").Replace(name)
	}
	switch {
	case words == "" && (strings.HasSuffix(name, "out") || strings.HasSuffix(name, "err")):
		return ""
	case words == "" || title == "":
		return title + words
	case title == "!":
		return "! " + words
	}
	return title + ": " + words
}

// untagged replaces each tag of a text by a space.
func untagged(text string) string {
	var out strings.Builder
	for {
		before, tag, ok := strings.Cut(text, "<")
		out.WriteString(before)
		if !ok {
			return out.String()
		}
		name, after, closed := strings.Cut(tag, ">")
		word, _, _ := strings.Cut(strings.TrimPrefix(name, "/"), " ")
		if closed && len(name) <= maxTag && word != "" &&
			strings.TrimFunc(word, func(r rune) bool { return unicode.IsLetter(r) || r == '-' || r == '_' }) == "" {
			out.WriteByte(' ')
			text = after
			continue
		}
		out.WriteByte('<')
		text = tag
	}
}
