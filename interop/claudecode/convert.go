package claudecode

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// maxType bounds the type of a custom entry.
const maxType = 256

// converter makes entries of units. The result depends only on the unit and the index.
type converter struct {
	x     *index
	line  []member // the current line
	made  []byte   // the current entry
	block []byte   // blocks of the entry
	ids   []byte   // IDs of the entry and of its parent
	out   [][]byte
	notes []note
}

// unit makes the entries of a unit. All pieces of a message become one entry.
func (c *converter) unit(u *unit) {
	switch u.what {
	case beginning:
		c.begin(u.at, u.row)
	case ending:
		p := place{id: []byte(`"cc-head"`), parent: c.x.AppendID(nil, u.row), at: u.at, row: &c.x.Rows[u.row]}
		p.stamp = jsonl.AppendTime(nil, time.UnixMilli(u.at))
		c.line = append(c.line[:0], member{Key: []byte("type"), Val: []byte(`"head"`)})
		c.custom(p, []byte("{}"))
	case waited:
		c.note("", c.x.Rows[u.row].Line, transcript.DiagConverted,
			"too much waits for its parent: lines before this one come before theirs")
	case amending:
		c.amend(u)
	default:
		c.entries(u)
	}
}

// amend makes amendments of the entries of a message that a later line changes.
func (c *converter) amend(u *unit) {
	r := &c.x.Rows[u.row]
	from := len(c.out)
	c.entries(&unit{row: c.x.Rows[r.parent].Unit, pieces: u.pieces, at: u.at})
	made := slices.DeleteFunc(slices.Clone(c.out[from:]), func(raw []byte) bool {
		return bytes.HasPrefix(raw, []byte(`{"type":"model_change"`)) // the model is the same
	})
	c.out = c.out[:from]
	id := c.x.AppendID(nil, u.row)
	p := place{id: id, parent: rootIDJSON, stamp: jsonl.AppendTime(nil, time.UnixMilli(u.at)), at: u.at, row: r}
	if r.Up != noRow {
		p.parent = c.x.AppendID(nil, r.Up)
	}
	for k, raw := range made {
		var d transcript.Draft
		l, err := transcript.ParseLine(raw)
		if e := l.Entry(0); err == nil {
			d, err = e.Amend(e.Body(), false)
		}
		if p.id = id; k < len(made)-1 {
			p.id = extendID(id, "."+strconv.Itoa(k))
		}
		if err != nil {
			c.custom(p, raw)
		} else {
			c.put(p, append(append(append(c.open(p, "custom"), ','), d.Body[1:len(d.Body)-1]...), '}'))
		}
		p.parent = p.id
	}
}

// begin makes the root entry. With it a session with several roots is one tree.
func (c *converter) begin(at int64, child int32) {
	data := []byte{'{'}
	for _, f := range []struct{ name, val string }{{"sessionId", c.x.Session}, {"agentId", c.x.AgentID}} {
		if f.val != "" {
			data = appendMember(data, f.name, rawjson.AppendString(nil, f.val))
		}
	}
	data = appendMember(data, "envelope", c.x.Env.Object())
	if c.x.Children > 0 && child == 0 {
		n := len(c.x.Rows) - len(c.x.List(0))
		data = appendMember(data, sidechainLinesField, strconv.AppendInt(nil, int64(n), 10))
	}
	data = append(data, '}')
	p := place{id: rootIDJSON, stamp: jsonl.AppendTime(nil, time.UnixMilli(at)), at: at, row: &lineRow{}}
	c.line = append(c.line[:0], member{Key: []byte("type"), Val: []byte(`"session"`)})
	c.custom(p, data)
}

func (c *converter) entries(u *unit) {
	r := &c.x.Rows[u.row]
	raw := u.pieces[len(u.pieces)-1].raw
	c.line = splitMembers(c.line[:0], raw)
	c.ids = c.x.AppendID(c.ids[:0], u.row)
	p := place{id: c.ids, parent: rootIDJSON, at: u.at, row: r}
	if r.Up != noRow {
		c.ids = c.x.AppendID(c.ids, r.Up)
		p.parent = c.ids[len(p.id):]
	}
	p.stamp = c.stamp(u)
	switch {
	case r.Flags&flagPart != 0 && r.Kind == kindPlace:
		c.line = append(c.line[:0], member{Key: []byte("type"), Val: []byte(`"damaged-line"`)})
		c.custom(p, fmt.Appendf(nil, `{"line":%d,"bytes":%d}`, r.Line, r.Size))
	case r.Flags&flagPart != 0:
		c.custom(p, fmt.Appendf(nil, `{"stub":{"bytes":%d,"limit":%d}}`, r.Size, jsonl.MaxLine))
	case r.Kind == kindUser, r.Kind == kindQueued:
		c.user(p)
	case r.Kind == kindMeta:
		c.meta(p)
	case r.Kind == kindAssistant:
		c.assistant(p, u.pieces)
	case r.Kind >= kindBoundary:
		c.compaction(p, u.pieces)
	case r.Kind == kindTitle:
		out := c.open(p, "session_info")
		out = append(append(out, `,"name":`...), titleOf(raw)...)
		c.put(p, append(append(append(out, `,"claudeCode":`...), raw...), '}'))
	default:
		c.custom(p, raw)
	}
}

// rootIDJSON is the ID of the root entry.
var rootIDJSON = rawjson.AppendString(nil, rootID)

// place is the position of an entry: ID, parent and time as JSON strings.
type place struct {
	id, parent []byte // parent nil = none
	stamp      []byte
	at         int64 // stamp in milliseconds since 1970
	row        *lineRow
}

// open begins an entry, in the buffer of the last one.
func (c *converter) open(p place, typ string) []byte {
	out := append(append(c.made[:0], `{"type":"`...), typ...)
	out = append(append(out, `","id":`...), p.id...)
	out = append(append(out, `,"parentId":`...), rawjson.OrNull(p.parent)...)
	return append(append(out, `,"timestamp":`...), p.stamp...)
}

// millis appends the time as messages have it.
func (p place) millis(out []byte) []byte {
	return strconv.AppendInt(append(out, `,"timestamp":`...), p.at, 10)
}

// put adds an entry to the output, or its stub if it is too large.
func (c *converter) put(p place, raw []byte) {
	fitted, whole := jsonl.Fit(raw)
	if !whole {
		c.note(rawjson.Text(p.id), p.row.Line, transcript.DiagOversize,
			jsonl.OversizeDetail(int64(len(raw)), jsonl.MaxEntry))
	}
	c.out = append(c.out, bytes.Clone(fitted))
	c.made = reuse(raw)
}

// reuse returns a buffer for the next value. It drops large buffers.
func reuse(used []byte) []byte {
	if cap(used) > 4*jsonl.BatchSize {
		return nil
	}
	return used[:0]
}

// field returns a field of the current line.
func (c *converter) field(name string) (val []byte) {
	for i := range c.line {
		if string(c.line[i].Key) == name {
			val = c.line[i].Val
		}
	}
	return val
}

// stamp returns the time of a unit's first line, or the time that replaces it.
func (c *converter) stamp(u *unit) []byte {
	if first := &u.pieces[0]; c.x.Rows[first.row].Flags&flagTimed != 0 {
		val := c.field("timestamp")
		if len(u.pieces) > 1 {
			val = rawjson.Field(first.raw, "timestamp")
		}
		if rawjson.IsString(val) {
			return val
		}
	}
	return jsonl.AppendTime(nil, time.UnixMilli(u.at))
}

// custom keeps a line unchanged that the transcript cannot express.
func (c *converter) custom(p place, data []byte) {
	typ := "line"
	if t := rawjson.Text(c.field("type")); t != "" && len(t) <= maxType {
		typ = t
	}
	out := c.open(p, "custom")
	out = rawjson.AppendString(append(out, `,"customType":`...), "claude-code."+typ)
	c.put(p, append(append(append(out, `,"data":`...), data...), '}'))
}

// said returns a message's content, or the prompt that was queued while the model worked.
func (c *converter) said() (content []byte) {
	if string(c.field("type")) != `"attachment"` {
		return rawjson.Field(c.field("message"), "content")
	}
	for i := range c.line {
		if m := &c.line[i]; string(m.Key) == "attachment" {
			content = rawjson.Field(m.Val, "prompt")
			m.Val = rawjson.WithField(m.Val, "prompt", nil) // avoid a second copy of the prompt
		}
	}
	return content
}

// user makes the entries of a user line: one for each result, then one for the rest.
func (c *converter) user(p place) {
	content := c.said()
	if p.row.Held == 0 {
		c.words(p, content, false)
		return
	}
	last := p.row.Held
	if p.row.Flags&flagText == 0 {
		last--
	}
	details := c.field("toolUseResult")
	used := p.row.Held == 1 && details != nil
	own, n := p.id, int32(0)
	said := append(reuse(c.block), '[')
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		b := readBlock(m.Val)
		if string(b.typ) != `"tool_result"` {
			if len(said) > 1 {
				said = append(said, ',')
			}
			said = append(said, m.Val...)
			continue
		}
		if p.id = own; n < last {
			p.id = extendID(own, "."+strconv.Itoa(int(n)))
		}
		out := c.result(p, &b)
		if used {
			out = append(append(out, `,"details":`...), details...)
		}
		out = append(p.millis(out), '}')
		if n == last {
			out = c.x.Env.AppendRest(out, c.line, used, nil)
		}
		c.put(p, append(out, '}'))
		p.parent = p.id
		n++
	}
	if p.row.Flags&flagText != 0 {
		p.id = own
		said = append(said, ']')
		c.words(p, said, used)
	}
	c.block = said
}

// words makes the entry of a content with role user: a message of the user, or one that the program inserted.
func (c *converter) words(p place, content []byte, used bool) {
	if !c.typed(content) {
		c.told(p, content, used)
		return
	}
	out := append(c.open(p, "message"), `,"message":{"role":"user","content":`...)
	out = append(p.millis(appendContent(out, content)), '}')
	c.put(p, append(c.x.Env.AppendRest(out, c.line, used, nil), '}'))
}

// typed reports whether a person wrote a content of the current line, by the fields of the line and by the text.
func (c *converter) typed(content []byte) bool {
	from := c.field("origin")
	if string(c.field("type")) == `"attachment"` {
		from = nil // the index has checked it
	}
	return !rawjson.IsTrue(c.field("isMeta")) && isTyped(from) && !message.Inserted("claude-code", "user", content)
}

// isTyped reports whether the origin of a line is a person. Other origins are tasks, agents, and channels to programs.
func isTyped(origin []byte) bool {
	switch string(rawjson.Field(origin, "kind")) {
	case "", `"human"`, `"unclassified"`:
		return true
	}
	return false
}

// result begins the entry of a tool result.
func (c *converter) result(p place, b *block) []byte {
	id := b.answers
	if !rawjson.IsString(id) {
		id = []byte(`""`)
	}
	out := append(append(c.open(p, "message"), `,"message":{"role":"toolResult","toolCallId":`...), id...)
	out = rawjson.AppendString(append(out, `,"toolName":`...), c.x.Tools.Text(c.x.Calls[keyOf(id)].Tool))
	out = append(out, `,"content":`...)
	if rawjson.IsString(b.content) {
		out = append(append(append(out, `[{"type":"text","text":`...), b.content...), "}]"...)
	} else {
		out = appendBlocks(out, b.content)
	}
	return strconv.AppendBool(append(out, `,"isError":`...), rawjson.IsTrue(b.failed))
}

// meta makes a message of the program that the model sees.
func (c *converter) meta(p place) {
	c.told(p, c.said(), false)
}

// told makes such a message of a content. Its type records whether the line is marked as meta.
func (c *converter) told(p place, content []byte, used bool) {
	kind := typeInserted
	if p.row.Kind == kindMeta || rawjson.IsTrue(c.field("isMeta")) {
		kind = typeMeta
	}
	out := append(append(c.open(p, "custom_message"), `,"customType":"`...), kind...)
	out = appendContent(append(out, `","content":`...), content)
	c.put(p, append(c.x.Env.AppendRest(append(out, `,"display":false`...), c.line, used, nil), '}'))
}

// Types of messages that the program inserted: on lines with isMeta, and on others.
const (
	typeMeta     = "claude-code.meta"
	typeInserted = "claude-code.inserted"
)

// compaction makes one entry of a boundary and its summary, or of either alone.
func (c *converter) compaction(p place, pieces []piece) {
	var summary, meta []byte
	first := p.id // nothing is kept
	for _, piece := range pieces {
		r := &c.x.Rows[piece.row]
		if r.Kind == kindSummary {
			summary = plainText(rawjson.Field(rawjson.Field(piece.raw, "message"), "content"))
			continue
		}
		meta = rawjson.Field(piece.raw, "compactMetadata")
		if k, ok := c.x.Kept(piece.row); ok {
			first = firstID(c.x, k)
		}
	}
	if summary == nil {
		summary = []byte(`""`)
	}
	tokens := rawjson.Field(meta, "preTokens")
	if !rawjson.IsNumber(tokens) {
		tokens = []byte("0")
	}
	out := append(append(c.open(p, "compaction"), `,"summary":`...), summary...)
	out = append(append(out, `,"firstKeptEntryId":`...), first...)
	out = append(append(out, `,"tokensBefore":`...), tokens...)
	if meta != nil {
		out = append(append(append(out, `,"details":{"compactMetadata":`...), meta...), '}')
	}
	c.put(p, append(c.x.Env.AppendRest(out, c.line, false, nil), '}'))
}

// firstID returns the ID of the first entry of a row.
func firstID(x *index, i int32) []byte {
	id := x.AppendID(nil, i)
	if r := &x.Rows[i]; r.Held > 1 || r.Held == 1 && r.Flags&flagText != 0 {
		return extendID(id, ".0")
	}
	return id
}

// extendID returns an ID with a suffix.
func extendID(id []byte, more string) []byte {
	return append(append(bytes.Clone(id[:len(id)-1]), more...), '"')
}
