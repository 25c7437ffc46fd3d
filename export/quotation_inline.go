package export

import (
	"regexp"
	"strings"
	"sync"
)

// lazy compiles an expression at its first use: most programs that link this package never need it.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// dashes matches the line below the head of a table, and all lines that could be one.
var dashes = lazy(`^[ \t>|:+*-]*-[ \t|:-]*$`)

// defuse escapes elements that have an effect outside of a quotation, in lines that belong together. Text between
// backticks on one line is code and stays, if all backticks before it are paired on their line: then every reader
// treats it as code, wherever paragraphs and table cells begin. table = the lines can be a table; unsure = nothing is
// code.
func defuse(lines []string, table, unsure bool) {
	broken := false
	for i, l := range lines {
		d := defuser{s: l, sure: !unsure, table: table, broken: broken}
		broken = strings.HasSuffix(strings.TrimRight(l, " \t"), `\`)
		lines[i] = d.run()
		unsure = !d.sure
	}
}

type defuser struct {
	s      string
	b      strings.Builder
	sure   bool // all backticks so far were paired
	table  bool // the line can be a table row
	broken bool // the line before ends with a backslash
}

var (
	autolink = lazy("^<https?://[^\\s<>`]*>")
	harmless = lazy(`^\]\([ \t]*(?:https?://|mailto:|#|[^:&\\<\s]*[/?#)\s])`)
)

func (d *defuser) run() string {
	for i := 0; i < len(d.s); {
		n, with := 1, "" // bytes to copy, and an escape before them
		switch rest := d.s[i:]; {
		case rest[0] == '\\' && len(rest) > 1:
			if n = 2; d.broken && (rest[1] == '<' || rest[1] == '!') {
				i++
				n, with = 1, `\`
			}
		case rest[0] == '`':
			n = d.ticks(rest)
		case rest[0] == '<':
			if link := autolink().FindString(rest); link != "" {
				n = len(link)
			} else if len(rest) > 1 && (letter(rest[1]) || strings.IndexByte("/!?", rest[1]) >= 0) {
				with = `\`
			}
		case strings.HasPrefix(rest, "!["):
			with = `\`
		case strings.HasPrefix(rest, "]:"), strings.HasPrefix(rest, "](") && !harmless().MatchString(rest):
			d.b.WriteByte(']')
			i++
			with = `\`
		}
		d.write(with, d.s[i:i+n])
		i += n
	}
	return d.b.String()
}

// write copies a part of the line. Some readers (goldmark 1.8 is one) misread a backslash at the beginning of a line if
// the line before ends with some. There a character reference is written instead of the escaped character.
func (d *defuser) write(with, part string) {
	if with != "" && d.broken {
		switch part {
		case "<":
			with, part = "", "&lt;"
		case "!":
			with, part = "", "&#33;"
		}
	}
	d.b.WriteString(with)
	d.b.WriteString(part)
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// ticks returns the length of the code that begins with these backticks, or of the backticks alone if they begin none.
func (d *defuser) ticks(s string) int {
	size := len(s) - len(strings.TrimLeft(s, "`"))
	if !d.sure {
		return size
	}
	for i := size; i < len(s); {
		if d.table && s[i] == '|' && s[i-1] != '\\' {
			break
		}
		run := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		if run == size {
			return i + run
		}
		i += max(run, 1)
	}
	d.sure = false
	return size
}
