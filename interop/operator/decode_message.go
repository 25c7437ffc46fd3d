package operator

import (
	"bytes"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// decodedMessage is one of operator's as it is taken apart: what of it becomes of pi's, and what only
// those who know the entries before can say. Values are JSON; they lie in the line, or in buffers that
// the next message uses again.
type decodedMessage struct {
	Raw      []byte // the whole, if it is no object
	Role     []byte // by operator's name
	Head     []byte // its other fields, a comma in front of each
	Contents []byte // if they are no list
	At, ID   []byte
	Text     []byte // of the parts, one after the other
	Parts    []decodedPart
	Notes    []callNote // in the order of Text
	// it becomes more than maxSpread, or has more notes than are kept: what is here is not all of it
	Over bool

	run   int  // where in Text the run of blocks begins
	taken bool // contents were seen
}

// decodedPart is a run of blocks, or the fields of one result of a tool, which is a message by itself.
type decodedPart struct {
	From, To int // in Text
	Kind     partKind
}

// partKind is the kind of a part.
type partKind int

// The kinds of parts.
const (
	partAsIs partKind = iota // contents that are no list
	partList
	partResult
)

// callNote is a call of a tool, or a place in Text where the name of the tool of a call belongs:
// results do not say it.
type callNote struct {
	At       int // Call, or the place
	ID, Name []byte
}

// noteIsCall is the place of a note that is a call.
const noteIsCall = -1

// maxNotes bounds the notes of a message.
const maxNotes = 1 << 18

// maxSpread bounds the lines that one entry becomes, in bytes.
const maxSpread = 2 * jsonl.MaxLine

func (m *decodedMessage) note(n callNote) {
	if m.Over = m.Over || len(m.Notes) >= maxNotes; !m.Over {
		m.Notes = append(m.Notes, n)
	}
}

// reset empties a message. Buffers that a large one left are let go.
func (m *decodedMessage) reset() {
	*m = decodedMessage{
		Head: emptied(m.Head), Text: emptied(m.Text), Parts: emptied(m.Parts),
		Notes: emptied(m.Notes),
	}
}

// maxReused bounds what a buffer holds between two entries, in elements.
const maxReused = 1 << 18

// emptied returns an emptied buffer, or none instead of one that has grown beyond what is held between two entries.
func emptied[T any](buffer []T) []T {
	if cap(buffer) > maxReused {
		return nil
	}
	return buffer[:0]
}

// Read takes a line apart that is a message, as the older form has them.
func (m *decodedMessage) Read(raw []byte) { m.read(&cursor{p: raw}) }

func (m *decodedMessage) read(c *cursor) {
	m.reset()
	if !c.enter('{') {
		m.Raw = c.value()
		return
	}
	for c.more() {
		switch key := c.key(); string(key) {
		case "role":
			m.Role = c.value()
		case "contents":
			m.take(c)
		case "content":
			if m.taken {
				c.value()
				continue
			}
			m.take(c)
		case "timestamp":
			m.At = c.value()
		case "id":
			m.ID = c.value()
		case "usage":
			m.Head = appendUsage(append(m.Head, `,"usage":`...), c)
		case "stop_reason":
			m.Head = appendStop(m.Head, c.value())
		case "error":
			if val := c.value(); val[0] == '"' && string(val) != `""` {
				m.Head = appendMember(m.Head, "errorMessage", val)
			}
		default:
			m.Head = c.camel(m.Head, key)
		}
	}
	if !m.taken {
		m.Parts = append(m.Parts, decodedPart{})
	}
}

// take cuts contents at the results in them.
func (m *decodedMessage) take(c *cursor) {
	m.Text, m.Parts, m.Notes = m.Text[:0], m.Parts[:0], m.Notes[:0]
	m.taken, m.Contents, m.run = true, nil, 0
	if !c.enter('[') {
		m.Contents = c.value()
		m.Parts = append(m.Parts, decodedPart{})
		return
	}
	for c.more() {
		m.element(c)
	}
	if m.endRun(len(m.Text)); len(m.Parts) == 0 {
		m.Parts = append(m.Parts, decodedPart{Kind: partList})
	}
}

// endRun makes a part of the run of blocks that ends at a place in text.
func (m *decodedMessage) endRun(to int) {
	if to > m.run {
		m.Parts = append(m.Parts, decodedPart{From: m.run, To: to, Kind: partList})
	}
	m.run = to
}

func (m *decodedMessage) element(c *cursor) {
	typ := typeOf(*c)
	if string(typ) != `"tool_result"` {
		m.Text = m.block(m.Text, m.run, c, typ)
		return
	}
	block, notes, start := *c, len(m.Notes), len(m.Text)
	if m.result(c) {
		m.Text, m.Notes = m.Text[:start], m.Notes[:notes]
		m.element(&cursor{p: withoutTwice(block.value(), "type")})
		return
	}
	m.endRun(start)
	m.run = len(m.Text)
	m.Parts = append(m.Parts, decodedPart{From: start, To: m.run, Kind: partResult})
}

// result appends the fields of a result. twice: it has two types, and what was appended counts for nothing.
func (m *decodedMessage) result(c *cursor) (twice bool) {
	isError, typed := []byte("false"), false
	for c.enter('{'); c.more(); {
		key := c.key()
		switch string(key) {
		case "type":
			twice, typed = typed, true
			c.value()
		case "id":
			val := c.value()
			m.Text = appendMember(m.Text, "toolCallId", val)
			m.note(callNote{At: len(m.Text), ID: val})
		case "content":
			m.resultContent(c)
		case "is_error":
			isError = c.value()
		case "metadata":
			if val := c.value(); string(val) != "{}" && string(val) != "null" {
				m.Text = appendMember(m.Text, "details", val)
			}
		case "terminate":
			if val := c.value(); string(val) != "false" {
				m.Text = appendMember(m.Text, "terminate", val)
			}
		case "terminate_message":
			if val := c.value(); val[0] != 'n' {
				m.Text = appendMember(m.Text, "terminateMessage", val)
			}
		default:
			m.Text = c.member(m.Text, key, c.value())
		}
	}
	m.Text = appendMember(m.Text, "isError", isError)
	return twice
}

// resultContent returns text as a list of one block, and a list of blocks as pi's.
func (m *decodedMessage) resultContent(c *cursor) {
	m.Text = append(m.Text, `,"content":`...)
	if !c.enter('[') {
		val := c.value()
		if !rawjson.IsString(val) {
			m.Text = append(m.Text, val...)
			return
		}
		m.Text = append(append(append(m.Text, `[{"type":"text","text":`...), val...), '}', ']')
		return
	}
	m.Text = append(m.Text, '[')
	m.Text = append(m.inner(m.Text, c), ']')
}

// inner is blocks for a list whose calls are not the message's own.
func (m *decodedMessage) inner(dst []byte, c *cursor) []byte {
	notes := len(m.Notes)
	dst = m.blocks(dst, c)
	m.Notes = m.Notes[:notes]
	return dst
}

func appendStop(dst, val []byte) []byte {
	reason, _ := stringBytes(val)
	switch string(reason) {
	case "tool_calls":
		return append(dst, `,"stopReason":"toolUse"`...)
	case "abort":
		return append(dst, `,"stopReason":"aborted"`...)
	case "content_filter":
		return appendMember(append(dst, `,"stopReason":"error"`...), "rawStopReason", val)
	}
	return appendMember(dst, "stopReason", val)
}

// appendUsage appends counts of tokens under pi's names, and their sum.
func appendUsage(dst []byte, c *cursor) []byte {
	if !c.enter('{') {
		return append(dst, c.value()...)
	}
	from, costs, summed := len(dst), 0, false
	var counts [4]int64
	for c.more() {
		key := c.key()
		if i, name := countOf(key); i >= 0 {
			val := c.value()
			counts[i] = tokens(val)
			dst = appendMember(dst, name, val)
			continue
		}
		switch string(key) {
		case "cost":
			costs++
			dst = appendCost(append(dst, `,"cost":`...), c)
		default:
			summed = summed || string(key) == "totalTokens"
			dst = c.member(dst, key, c.value())
		}
	}
	total := strconv.AppendInt(nil, counts[0]+counts[1]+counts[2]+counts[3], 10)
	if !summed && costs < 2 {
		return closeObject(appendMember(dst, "totalTokens", total), from)
	}
	usage := bytes.Clone(closeObject(dst, from)[from:])
	if costs > 1 {
		usage = withoutTwice(usage, "cost")
	}
	return append(dst[:from], rawjson.WithField(usage, "totalTokens", total)...)
}

// countOf returns the place of a count in the sum, and pi's name for it.
func countOf(key []byte) (i int, name string) {
	switch string(key) {
	case "input_tokens", "input":
		return 0, "input"
	case "output_tokens", "output":
		return 1, "output"
	case "cache_read_tokens", "cacheRead":
		return 2, "cacheRead"
	case "cache_write_tokens", "cacheWrite":
		return 3, "cacheWrite"
	}
	return -1, ""
}

func tokens(val []byte) int64 {
	n, err := strconv.ParseInt(string(val), 10, 64)
	if err != nil || n < 0 || n > 1<<50 {
		return 0
	}
	return n
}

func appendCost(dst []byte, c *cursor) []byte {
	from := len(dst)
	if !c.enter('{') {
		c.value()
		return closeObject(dst, from)
	}
	for c.more() {
		switch key := c.key(); string(key) {
		case "cache_read":
			dst = appendMember(dst, "cacheRead", c.value())
		case "cache_write":
			dst = appendMember(dst, "cacheWrite", c.value())
		default:
			dst = c.member(dst, key, c.value())
		}
	}
	return closeObject(dst, from)
}
