package export

import (
	"regexp"
	"strings"
	"sync"
)

// lazy compiles an expression when it is first used: most programs that link this package never use one.
func lazy(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// dashes is the line below the head of a table, and everything that could be one.
var dashes = lazy(`^[ \t>|:+*-]*-[ \t|:-]*$`)

// defuse takes away what reaches out of a quotation from lines that belong together. What is between backticks
// on one line is code, and stays, if all backticks before it have their partner on their line: then it is code by
// every reading of where paragraphs and the cells of tables begin. table: they can be one; unsure: none is code.
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
	sure   bool // backticks have had their partners so far
	table  bool // the line can be a row of a table
	broken bool // the line before ends with a backslash
}

var (
	autolink = lazy("^<https?://[^\\s<>`]*>")
	harmless = lazy(`^\]\([ \t]*(?:https?://|mailto:|#|[^:&\\<\s]*[/?#)\s])`)
)

func (d *defuser) run() string {
	for i := 0; i < len(d.s); {
		n, with := 1, "" // how much to copy, and what before it
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

// write copies a part of the line. Some readers (goldmark 1.8 is one) mistake a backslash at the beginning of a
// line if the line before ends with some: there, what it would take the meaning from is written by its number.
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

// ticks says how far the code reaches that begins with these backticks; of backticks that begin none, they alone.
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
