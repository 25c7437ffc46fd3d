package claudecode

import (
	"strconv"
	"strings"

	"github.com/coppice-go/coppice/internal/message"
	"github.com/coppice-go/coppice/internal/rawjson"
)

// joinedMessage is a message of the model, joined from its pieces.
type joinedMessage struct {
	content                []byte
	id, model, stop, usage []byte
	more                   []byte // other fields of the message
	calls, aborted         bool
	many                   bool             // more than one piece
	seen                   map[lineKey]bool // the calls of a message in many pieces
}

// take adds a piece. A repeated call is kept once.
func (a *joinedMessage) take(raw []byte) {
	for m := rawjson.Walk(raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "content":
			a.blocks(m.Val)
		case "id":
			a.id = m.Val
		case "model":
			a.model = m.Val
		case "stop_reason":
			if rawjson.IsString(m.Val) {
				a.stop = m.Val
			}
		case "usage":
			if m.Val[0] == '{' {
				a.usage = m.Val // the last piece has the count of the whole message
			}
		case "role", "type":
		default:
			if string(m.Val) != "null" {
				if a.more == nil {
					a.more = []byte{'{'}
				}
				a.more = appendMember(a.more, string(m.Key), m.Val)
			}
		}
	}
}

func (a *joinedMessage) blocks(content []byte) {
	if rawjson.IsString(content) {
		a.content = appendBlock(a.content, content)
		return
	}
	for m := rawjson.Walk(content); m.Closing == ']' && m.Next(); {
		b := readBlock(m.Val)
		if string(b.typ) == `"tool_use"` {
			a.calls = true
			if a.many {
				if a.seen == nil {
					a.seen = map[lineKey]bool{}
				}
				id := keyOf(b.id)
				if a.seen[id] {
					continue
				}
				a.seen[id] = true
			}
		}
		a.content = b.append(a.content)
	}
}

// synthetic is the model name of messages that Claude Code itself writes in place of an answer: an error, or "no
// response requested".
const synthetic = `"<synthetic>"`

// stopReason returns the stop reason in pi's terms. Pieces often have none.
func (a *joinedMessage) stopReason(failed bool) string {
	switch {
	case failed && strings.Contains(string(a.content), `"No response requested."`), a.aborted && !failed:
		return "aborted"
	case failed:
		return "error"
	}
	switch string(a.stop) {
	case `"max_tokens"`, `"model_context_window_exceeded"`:
		return "length"
	case `"tool_use"`:
		return "toolUse"
	case `"refusal"`:
		return "error"
	case "":
		if a.calls {
			return "toolUse"
		}
	}
	return "stop"
}

func (c *converter) assistant(p place, pieces []piece) {
	if p.row.Flags&flagModel != 0 {
		m := p
		m.id = extendID(p.id, ".model")
		out := rawjson.AppendString(append(c.open(m, "model_change"), `,"provider":"anthropic","modelId":`...),
			c.x.Models.Text(p.row.Model))
		c.put(m, append(out, '}'))
		p.parent = m.id
	}
	a := joinedMessage{content: append(reuse(c.block), '['), many: len(pieces) > 1}
	for _, piece := range pieces[:len(pieces)-1] {
		a.take(rawjson.Field(piece.raw, "message"))
	}
	a.take(c.field("message"))
	spread := a.model == nil && rawjson.Field(c.field("message"), "0") != nil
	failed := rawjson.IsTrue(c.field("isApiErrorMessage")) || string(a.model) == synthetic || spread
	a.aborted = rawjson.IsTrue(c.field("isAbortedMidStream"))
	out := append(c.open(p, "message"), `,"message":{"role":"assistant","content":`...)
	a.content = append(a.content, ']')
	if string(a.model) == synthetic && isText(a.content) {
		out = append(out, "[]"...) // the blocks are the text of the error, not of the model
	} else {
		out = append(out, a.content...)
	}
	out = append(out, `,"api":"anthropic-messages","provider":"anthropic","model":`...)
	out = rawjson.AppendString(out, c.x.Models.Text(p.row.Model))
	if string(a.model) == synthetic {
		out = append(append(out, `,"responseModel":`...), a.model...)
	}
	if rawjson.IsString(a.id) {
		out = append(append(out, `,"responseId":`...), a.id...)
	}
	out = appendUsage(append(out, `,"usage":`...), a.usage)
	out = rawjson.AppendString(append(out, `,"stopReason":`...), a.stopReason(failed))
	if a.stop != nil {
		out = append(append(out, `,"rawStopReason":`...), a.stop...)
	}
	switch {
	case spread: // Claude Code took the text of a stream for a message: a field per character
		out = append(out, `,"errorMessage":"the provider answered with a text that is no message"`...)
	case failed:
		out = append(append(out, `,"errorMessage":`...), plainText(a.content)...)
	}
	out = append(p.millis(out), '}')
	if a.more != nil {
		a.more = append(a.more, '}')
	}
	c.put(p, append(c.x.Env.AppendRest(out, c.line, false, a.more), '}'))
	c.block = a.content
}

// isText reports whether all blocks are text.
func isText(blocks []byte) bool {
	for c := message.Content(blocks); c.Next(); {
		if c.Block.Kind != message.Text {
			return false
		}
	}
	return true
}

// appendUsage appends the usage in pi's form. The file has no costs.
func appendUsage(dst, usage []byte) []byte {
	var n [5]int64 // input, output, read, written, written for an hour
	count := func(val []byte) int64 {
		v, err := strconv.ParseInt(string(val), 10, 64)
		if err != nil || v < 0 || v > 1<<50 {
			return 0
		}
		return v
	}
	hour := false
	for m := rawjson.Walk(usage); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "input_tokens":
			n[0] = count(m.Val)
		case "output_tokens":
			n[1] = count(m.Val)
		case "cache_read_input_tokens":
			n[2] = count(m.Val)
		case "cache_creation_input_tokens":
			n[3] = count(m.Val)
		case "cache_creation":
			if h := rawjson.Field(m.Val, "ephemeral_1h_input_tokens"); h != nil {
				n[4], hour = count(h), true
			}
		}
	}
	for i, name := range []string{`{"input":`, `,"output":`, `,"cacheRead":`, `,"cacheWrite":`} {
		dst = strconv.AppendInt(append(dst, name...), n[i], 10)
	}
	if hour {
		dst = strconv.AppendInt(append(dst, `,"cacheWrite1h":`...), n[4], 10)
	}
	dst = strconv.AppendInt(append(dst, `,"totalTokens":`...), n[0]+n[1]+n[2]+n[3], 10)
	return append(dst, `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`...)
}
