package importer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop"
	"github.com/coppice-go/coppice/interop/formats"
	"github.com/coppice-go/coppice/transcript"
)

// LinesOptions of Lines.
type LinesOptions struct {
	// Salt is part of ids that have to be made: equal lines with equal salt have equal ids.
	Salt string
	// After returns the entry of the session after which one that names id is: id itself, or the last result that
	// follows it; "" = the session does not have it. Tool returns the name of the tool of a call in it, "" = not known.
	// Root reports whether the entry id, which names none, begins a conversation. They return the same when the lines
	// were stored.
	After func(id string) (string, error)
	Root  func(id string) (bool, error)
	Tool  func(call string) (string, error)
}

// ErrLines is wrapped by the error of Lines for a line that is not of the format.
var ErrLines = errors.New("a line is not of the format")

// Lines returns the entries of lines that a program adds to its session: those that an import makes of a file with
// these lines, without the first one, which represents the file, and without changes of the model.
//
// Each line is in one entry, as the member original, or, where an entry is made of several, as one of originals: as it
// is if it is compact, else as a text. An entry is below the line that its own names, if the session or the lines have
// it. Without such a name, and where it is the result of a call in the context, it is below the entry before it; the
// first one is at the head. A line with a uuid that comes again as it is counts once.
func Lines(f interop.Format, lines []json.RawMessage, o LinesOptions) ([]transcript.Draft, error) {
	l := &added{o: o, format: f, at: map[string]int{}}
	for _, line := range lines {
		id := rawjson.Text(rawjson.Field(line, "uuid"))
		first, again := l.at[id]
		if again && bytes.Equal(line, l.lines[first]) {
			continue
		}
		if id != "" && !again {
			l.at[id] = len(l.lines)
		}
		l.lines = append(l.lines, line)
	}
	if err := l.read(); err != nil {
		return nil, err
	}
	if !l.attribute() {
		if err := l.keep(); err != nil {
			return nil, err
		}
		l.attribute()
	}
	return l.drafts()
}

// noTime is the time of a line for which there is none: it is stored as of when it is appended, so that a repeat is
// equal.
var noTime = time.UnixMilli(1).UTC()

// added is the lines of one call.
type added struct {
	o      LinesOptions
	format interop.Format
	lines  []json.RawMessage
	at     map[string]int // lines by uuid
	made   []converted
}

// converted is an entry that a reader made.
type converted struct {
	id, parent string
	typ        string
	stamp      []byte // a string literal
	rest       []byte // the members after the first four, each after a comma
	message    []byte // of these, the message; nil = none
	line       int    // that it is named after; -1 = none
	lines      []int  // that it is made of
}

// read makes the entries.
func (l *added) read() (err error) {
	src := interop.Bytes("lines", bytes.Join(raws(l.lines), []byte("\n")))
	r, err := formats.Open(src, l.format, interop.Options{Now: noTime})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err = r.Header(); errors.Is(err, interop.ErrNotSession) {
		return nil
	}
	for err == nil {
		var d transcript.Draft
		if d, err = r.Next(); err == nil {
			l.made = append(l.made, l.entry(d.Raw))
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if r.BadLines() > 0 {
		for _, d := range r.Diagnostics() {
			return fmt.Errorf("%w: line %d: %s", ErrLines, d.Ordinal, d.Detail)
		}
		return ErrLines
	}
	return nil
}

func raws(lines []json.RawMessage) [][]byte {
	out := make([][]byte, len(lines))
	for i, line := range lines {
		out[i] = line
	}
	return out
}

// keep makes entries of lines that no message can be made of.
func (l *added) keep() error {
	l.made = nil
	for i, line := range l.lines {
		typ := rawjson.Text(rawjson.Field(line, "type"))
		if typ == "" {
			return fmt.Errorf("%w: line %d has no type", ErrLines, i+1)
		}
		id := rawjson.Text(rawjson.Field(line, "uuid"))
		if id == "" {
			id = "cc-" + strconv.Itoa(i+1)
		}
		rest := rawjson.AppendString([]byte(`,"customType":`), string(l.format)+"."+typ)
		l.made = append(l.made, converted{id: id, typ: "custom", line: i, rest: rest})
	}
	return nil
}

// entry takes apart the line of an entry.
func (l *added) entry(raw []byte) (c converted) {
	for m := rawjson.Walk(raw); m.Next(); {
		switch string(m.Key) {
		case "type":
			c.typ = rawjson.Text(m.Val)
		case "id":
			c.id = rawjson.Text(m.Val)
		case "parentId":
			c.parent = rawjson.Text(m.Val)
		case "timestamp":
			c.stamp = bytes.Clone(m.Val)
		case "message":
			c.message = bytes.Clone(m.Val)
		default:
			c.rest = member(c.rest, string(m.Key), m.Val)
		}
	}
	c.line = l.lineOf(c.id)
	return c
}

func member(out []byte, name string, val []byte) []byte {
	out = rawjson.AppendString(append(out, ','), name)
	return append(append(out, ':'), val...)
}

// lineOf returns the index of the line after which an entry is named; -1 = none: by its uuid, or by its number from 1.
// What is after a dot distinguishes entries of one line.
func (l *added) lineOf(id string) int {
	for {
		if i, named := l.at[id]; named {
			return i
		}
		if number, ok := madeID(id); ok {
			if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= len(l.lines) {
				return n - 1
			}
			return -1
		}
		dot := strings.LastIndexByte(id, '.')
		if dot < 0 {
			return -1
		}
		id = id[:dot]
	}
}

// madeID reports whether an id was made by a reader, and returns what comes after its prefix.
func madeID(id string) (rest string, made bool) {
	if rest, made = strings.CutPrefix(id, "cc-"); made {
		return rest, true
	}
	return strings.CutPrefix(id, "cx-")
}

// attribute assigns each line to one entry, so that the lines of all entries are in order: to the one that is named
// after it, or to the one before or after that, where entries are in another order, or a message is made of several
// lines: Claude Code's is named after the last, Codex' after the first. false: no entry is named after a line.
func (l *added) attribute() bool {
	named := []int{} // entries that take lines: of those that are named after one line the last
	owner := map[int]int{}
	for k, c := range l.made {
		if c.line >= 0 && c.typ != "model_change" {
			owner[c.line] = k
		}
	}
	for k, c := range l.made {
		if at, ok := owner[c.line]; ok && at == k {
			named = append(named, k)
		}
	}
	next := 0 // line that no entry has yet
	for n, k := range named {
		end := l.made[k].line + 1
		if l.format == interop.Codex && n+1 < len(named) {
			end = l.made[named[n+1]].line
		}
		if n+1 == len(named) {
			end = len(l.lines)
		}
		for ; next < end; next++ {
			l.made[k].lines = append(l.made[k].lines, next)
		}
	}
	return len(named) > 0
}

// drafts returns the entries as they are to be appended.
func (l *added) drafts() (out []transcript.Draft, err error) {
	parents := map[string]string{} // of entries that are left out
	for k := range l.made {
		c := &l.made[k]
		for up, left := parents[c.parent]; left; up, left = parents[c.parent] {
			c.parent = up
		}
		if c.typ == "model_change" || c.id == rootOfFile {
			parents[c.id] = c.parent
			continue
		}
		d, err := l.draft(c)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// rootOfFile is the id of the entry that represents a file of Claude Code.
const rootOfFile = "cc-session"

// draft returns one entry.
func (l *added) draft(c *converted) (d transcript.Draft, err error) {
	id := l.renamed(c.id)
	parent, root := l.renamed(c.parent), false
	if c.parent == "" || c.parent == rootOfFile {
		if parent, root, err = l.above(c); err != nil {
			return d, err
		}
	}
	rest := c.rest
	if c.message != nil {
		message, err := l.withTool(c.message)
		if err != nil {
			return d, err
		}
		if string(rawjson.Field(message, "timestamp")) == strconv.FormatInt(noTime.UnixMilli(), 10) {
			message = rawjson.WithField(message, "timestamp", nil)
		}
		rest = append(member(nil, "message", message), rest...)
	}
	rest = l.withOriginal(rest, c.lines)
	at, err := time.Parse(time.RFC3339Nano, rawjson.Text(c.stamp))
	if timed := err == nil && !at.Equal(noTime); root {
		if !timed {
			c.stamp = rawjson.AppendString(nil, noTime.Format(time.RFC3339Nano))
		}
		raw := rawjson.AppendString([]byte(`{"type":`), c.typ)
		raw = rawjson.AppendString(append(raw, `,"id":`...), id)
		raw = append(append(raw, `,"parentId":null,"timestamp":`...), c.stamp...)
		return transcript.Draft{Raw: append(append(raw, rest...), '}')}, nil
	} else if !timed {
		at = time.Time{}
	}
	body := []byte("{}")
	if len(rest) > 0 {
		body = append(append([]byte{'{'}, rest[1:]...), '}')
	}
	return transcript.Draft{Type: c.typ, ID: id, Parent: parent, Time: at, Body: body}, nil
}

// above returns the parent of an entry for which the lines have none: the line that its own names, if the session has
// it; "" = the head, or the entry before. root: it begins a conversation.
func (l *added) above(c *converted) (parent string, root bool, err error) {
	if c.line < 0 || l.format != interop.ClaudeCode {
		return "", false, nil
	}
	line := l.lines[c.line]
	named := rawjson.Field(line, "parentUuid")
	if call := resultOf(c.message); call != "" { // it follows the calls of its answer, whichever piece of that it names
		tool, err := l.o.Tool(call)
		if err != nil || tool != "" {
			return "", false, err
		}
	}
	if rawjson.IsString(named) {
		parent, err = l.o.After(rawjson.Text(named))
		return parent, false, err
	}
	typ := rawjson.Text(rawjson.Field(line, "type"))
	if string(named) != "null" || typ != "user" && typ != "assistant" {
		return "", false, nil
	}
	root, err = l.o.Root(c.id)
	return "", root, err
}

// renamed returns an id as it is stored: one that a reader made is that of a line of these lines alone.
func (l *added) renamed(id string) string {
	if _, made := madeID(id); !made {
		return id
	}
	sum := sha256.Sum256([]byte(l.o.Salt + "\x00" + id))
	return id[:3] + hex.EncodeToString(sum[:8])
}

// resultOf returns the call of which a message is the result; "" = it is none.
func resultOf(message []byte) string {
	if string(rawjson.Field(message, "role")) != `"toolResult"` {
		return ""
	}
	return rawjson.Text(rawjson.Field(message, "toolCallId"))
}

// withTool adds to the result of a call the name of its tool, where the call is in lines that came before.
func (l *added) withTool(message []byte) ([]byte, error) {
	call := resultOf(message)
	if call == "" || string(rawjson.Field(message, "toolName")) != `""` {
		return message, nil
	}
	name, err := l.o.Tool(call)
	if err != nil || name == "" {
		return message, err
	}
	return rawjson.WithField(message, "toolName", rawjson.AppendString(nil, name)), nil
}

// withOriginal adds the lines of an entry.
func (l *added) withOriginal(rest []byte, lines []int) []byte {
	text := func(i int) []byte {
		line := bytes.TrimSpace(l.lines[i])
		var dense bytes.Buffer
		if json.Compact(&dense, line) == nil && bytes.Equal(dense.Bytes(), l.lines[i]) {
			return line
		}
		return rawjson.AppendString(nil, string(l.lines[i]))
	}
	switch len(lines) {
	case 0:
		return rest
	case 1:
		return member(rest, "original", text(lines[0]))
	}
	list := []byte{'['}
	for n, i := range lines {
		if n > 0 {
			list = append(list, ',')
		}
		list = append(list, text(i)...)
	}
	return member(rest, "originals", append(list, ']'))
}

// Originals returns the lines that an entry of Lines has; nil = none.
func Originals(entry []byte) (lines [][]byte) {
	plain := func(val []byte) []byte {
		if rawjson.IsString(val) {
			return []byte(rawjson.Text(val))
		}
		return val
	}
	if val := rawjson.Field(entry, "original"); len(val) > 0 {
		return append(lines, plain(val))
	}
	for m := rawjson.Walk(rawjson.Field(entry, "originals")); m.Closing == ']' && m.Next(); {
		lines = append(lines, plain(m.Val))
	}
	return lines
}
