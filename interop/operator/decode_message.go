package operator

import (
	"bytes"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// decodedMessage is a parsed message of operator: the parts of pi's messages, and notes on what depends on earlier
// entries. Values are JSON. They are slices of the line, or of buffers that the next message reuses.
type decodedMessage struct {
	Raw      []byte // the whole value, if it is not an object
	Role     []byte // operator's name
	Head     []byte // its other fields, each with a leading comma
	Contents []byte // if they are not a list
	At, ID   []byte
	Text     []byte // of all parts
	Parts    []decodedPart
	Notes    []callNote // in order of position in Text
	// the lines exceed maxSpread, or there are more than maxNotes notes: the content is incomplete
	Over bool

	run   int  // start of the current run of blocks in Text
	taken bool // contents were read
}

// decodedPart is a run of blocks, or the fields of one tool result, which becomes a message of its own.
type decodedPart struct {
	From, To int // range in Text
	Kind     partKind
}

// partKind is the kind of a part.
type partKind int

// The kinds of parts.
const (
	partAsIs partKind = iota // contents that are not a list
	partList
	partResult
)

// callNote is a tool call, or the position in Text for the name of the called tool, which results do not contain.
type callNote struct {
	At       int // noteIsCall, or the position
	ID, Name []byte
}

// noteIsCall marks a note of a call.
const noteIsCall = -1

// maxNotes bounds the notes of a message.
const maxNotes = 1 << 18

// maxSpread bounds the lines of one entry, in bytes.
const maxSpread = 2 * jsonl.MaxLine

func (m *decodedMessage) note(n callNote) {
	if m.Over = m.Over || len(m.Notes) >= maxNotes; !m.Over {
		m.Notes = append(m.Notes, n)
	}
}

// reset empties a message. It drops large buffers.
func (m *decodedMessage) reset() {
	*m = decodedMessage{
		Head: emptied(m.Head), Text: emptied(m.Text), Parts: emptied(m.Parts),
		Notes: emptied(m.Notes),
	}
}

// maxReused bounds a buffer that is kept between two entries, in elements.
const maxReused = 1 << 18

// emptied returns an empty buffer for reuse, or nil instead of a large one.
func emptied[T any](buffer []T) []T {
	if cap(buffer) > maxReused {
		return nil
	}
	return buffer[:0]
}

// Read parses a line that is a message, as in the older form.
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

// take splits contents at their tool results.
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

// endRun makes a part of the run of blocks that ends at to.
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

// result appends the fields of a tool result. twice = it has two types, and the appended bytes are invalid.
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

// resultContent appends text as a list of one block, or a list of blocks in pi's form.
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

// inner is blocks for a nested list, whose calls are not the message's.
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

// appendUsage appends token counts under pi's names, and their sum.
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

// countOf returns the index of a count, and pi's name for it.
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
