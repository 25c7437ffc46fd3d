package claudecode

import (
	"fmt"
	"strconv"
	"time"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/claudecode/internal/graph"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// maxType bounds the type of a custom entry.
const maxType = 256

// piece is one line of what becomes one entry.
type piece struct {
	row int32
	raw []byte
}

// entries makes what becomes of a row: of a message in pieces the last one with all of them.
func (e *emitter) entries(pieces []piece) {
	i := pieces[len(pieces)-1].row
	r := &e.x.Rows[i]
	raw := pieces[len(pieces)-1].raw
	e.line = graph.Split(e.line[:0], raw)
	stamp := e.field("timestamp")
	if len(pieces) > 1 {
		stamp = rawjson.Field(pieces[0].raw, "timestamp")
	}
	p := place{id: e.x.ID(i), parent: parentID(e.x, r.Up), stamp: e.stamp(stamp), row: r}
	switch {
	case r.Flags&graph.FlagPart != 0:
		e.custom(p, fmt.Appendf(nil, `{"stub":{"bytes":%d,"limit":%d}}`, r.Size, jsonl.MaxLine))
	case r.Kind == graph.KindUser:
		e.user(p)
	case r.Kind == graph.KindMeta:
		e.meta(p)
	case r.Kind == graph.KindAssistant:
		e.assistant(p, pieces)
	case r.Kind >= graph.KindBoundary:
		e.compaction(p, pieces)
	case r.Kind == graph.KindTitle:
		out := p.open("session_info")
		out = rawjson.AppendString(append(out, `,"name":`...), e.title)
		e.put(p, append(append(append(out, `,"claudeCode":`...), raw...), '}'))
	default:
		e.custom(p, raw)
	}
}

// place is where an entry stands: its id, parent and time.
type place struct {
	id, parent string
	stamp      []byte // a string literal
	row        *graph.Row
}

func (p place) open(typ string) []byte {
	const room = 512
	out := make([]byte, 0, int(p.row.Size)+room)
	out = append(append(out, `{"type":"`...), typ...)
	out = rawjson.AppendString(append(out, `","id":`...), p.id)
	if p.parent == "" {
		out = append(out, `,"parentId":null`...)
	} else {
		out = rawjson.AppendString(append(out, `,"parentId":`...), p.parent)
	}
	return append(append(out, `,"timestamp":`...), p.stamp...)
}

// millis appends the entry's time as messages have it.
func (p place) millis(out []byte) []byte {
	return jsonl.AppendMillis(append(out, `,"timestamp":`...), rawjson.Time(p.stamp))
}

// put hands an entry out, or its stub if it is too large.
func (e *emitter) put(p place, raw []byte) {
	fitted, whole := jsonl.Fit(raw)
	if !whole {
		e.x.Diag.Add(p.id, uint64(p.row.Line), diag.Oversize,
			fmt.Sprintf("%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file", len(raw), jsonl.MaxEntry))
	}
	e.out = append(e.out, transcript.Draft{Raw: fitted})
}

// field gives a field of the line at hand.
func (e *emitter) field(name string) (val []byte) {
	for i := range e.line {
		if string(e.line[i].Key) == name {
			val = e.line[i].Val
		}
	}
	return val
}

// stamp gives a line's time as it is, or what stands for it.
func (e *emitter) stamp(val []byte) []byte {
	if t, ok := jsonl.Stamp(val); ok {
		if e.last = t; val[0] == '"' {
			return val
		}
	}
	return jsonl.AppendTime(nil, e.time())
}

// time is the time of the line before, or now.
func (e *emitter) time() time.Time {
	if e.last.IsZero() {
		return e.now
	}
	return e.last
}

// custom keeps what has no other place, as it is.
func (e *emitter) custom(p place, data []byte) {
	typ := "line"
	if t := rawjson.Text(e.field("type")); t != "" && len(t) <= maxType {
		typ = t
	}
	out := p.open("custom")
	out = rawjson.AppendString(append(out, `,"customType":`...), "claude-code."+typ)
	e.put(p, append(append(append(out, `,"data":`...), data...), '}'))
}

// user makes the entries of a user's line: each result, then what was said.
func (e *emitter) user(p place) {
	content := rawjson.Field(e.field("message"), "content")
	if p.row.Held == 0 {
		out := append(p.open("message"), `,"message":{"role":"user","content":`...)
		out = append(p.millis(appendContent(out, content)), '}')
		e.put(p, append(e.x.Env.AppendRest(out, e.line, false, nil), '}'))
		return
	}
	last := p.row.Held
	if p.row.Flags&graph.FlagText == 0 {
		last--
	}
	details := e.field("toolUseResult")
	used := p.row.Held == 1 && details != nil
	own, said := p.id, []byte{'['}
	n := int32(0)
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		if string(rawjson.Field(m.Val, "type")) != `"tool_result"` {
			said = appendBlock(said, m.Val)
			continue
		}
		if p.id = own; n < last {
			p.id = own + "." + strconv.Itoa(int(n))
		}
		out := e.result(p, m.Val)
		if used {
			out = append(append(out, `,"details":`...), details...)
		}
		out = append(p.millis(out), '}')
		if n == last {
			out = e.x.Env.AppendRest(out, e.line, used, nil)
		}
		e.put(p, append(out, '}'))
		p.parent = p.id
		n++
	}
	if p.row.Flags&graph.FlagText != 0 {
		p.id = own
		out := append(append(p.open("message"), `,"message":{"role":"user","content":`...), said...)
		out = append(p.millis(append(out, ']')), '}')
		e.put(p, append(e.x.Env.AppendRest(out, e.line, used, nil), '}'))
	}
}

// result begins the entry of a tool's result.
func (e *emitter) result(p place, block []byte) []byte {
	var id, content, failed []byte
	for m := rawjson.Walk(block); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "tool_use_id":
			id = m.Val
		case "content":
			content = m.Val
		case "is_error":
			failed = m.Val
		}
	}
	if !rawjson.IsString(id) {
		id = []byte(`""`)
	}
	k, _ := graph.MakeKey(rawjson.Text(id))
	out := append(append(p.open("message"), `,"message":{"role":"toolResult","toolCallId":`...), id...)
	out = rawjson.AppendString(append(out, `,"toolName":`...), e.x.Tools.Text(e.x.Calls[k].Tool))
	out = append(out, `,"content":`...)
	if rawjson.IsString(content) {
		out = append(append(append(out, `[{"type":"text","text":`...), content...), "}]"...)
	} else {
		out = appendBlocks(out, content)
	}
	return strconv.AppendBool(append(out, `,"isError":`...), rawjson.IsTrue(failed))
}

// meta makes a message of the program's own: the model sees it, the user's words they are not.
func (e *emitter) meta(p place) {
	content := rawjson.Field(e.field("message"), "content")
	out := append(p.open("custom_message"), `,"customType":"claude-code.meta","content":`...)
	out = append(appendContent(out, content), `,"display":false`...)
	e.put(p, append(e.x.Env.AppendRest(out, e.line, false, nil), '}'))
}

// compaction makes one entry of a boundary and the summary behind it, or of either alone.
func (e *emitter) compaction(p place, pieces []piece) {
	var summary, meta []byte
	first := p.id // nothing is kept
	for _, c := range pieces {
		r := &e.x.Rows[c.row]
		if r.Kind == graph.KindSummary {
			summary = plainText(rawjson.Field(rawjson.Field(c.raw, "message"), "content"))
			continue
		}
		meta = rawjson.Field(c.raw, "compactMetadata")
		if k, ok := e.x.Kept(r); ok {
			first = firstID(e.x, k)
		}
	}
	if summary == nil {
		summary = []byte(`""`)
	}
	tokens := rawjson.Field(meta, "preTokens")
	if !rawjson.IsNumber(tokens) {
		tokens = []byte("0")
	}
	out := append(append(p.open("compaction"), `,"summary":`...), summary...)
	out = rawjson.AppendString(append(out, `,"firstKeptEntryId":`...), first)
	out = append(append(out, `,"tokensBefore":`...), tokens...)
	if meta != nil {
		out = append(append(append(out, `,"details":{"compactMetadata":`...), meta...), '}')
	}
	e.put(p, append(e.x.Env.AppendRest(out, e.line, false, nil), '}'))
}

// parentID gives the id of the entry that ends a row.
func parentID(x *graph.Index, i int32) string {
	if i == graph.None {
		return graph.RootID
	}
	return x.ID(i)
}

// firstID gives the id of the entry that begins a row.
func firstID(x *graph.Index, i int32) string {
	r := &x.Rows[i]
	if r.Held > 1 || r.Held == 1 && r.Flags&graph.FlagText != 0 {
		return x.ID(i) + ".0"
	}
	return x.ID(i)
}
