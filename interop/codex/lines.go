package codex

import (
	"fmt"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// open begins an entry whose parent is the tip, with room for a body.
func (r *Reader) open(a position, typ string, room int) []byte {
	const around = 512 // bytes around the body: the most that an answer needs
	out := make([]byte, 0, room+around)
	out = append(append(out, `{"type":"`...), typ...)
	out = append(append(out, `","id":"`...), a.ID()...)
	if out = append(out, `","parentId":`...); r.tip == "" {
		out = append(out, "null"...)
	} else {
		out = append(append(append(out, '"'), r.tip...), '"')
	}
	out = append(out, `,"timestamp":`...)
	if a.Timed {
		if r.last = a.When; a.Stamp[0] == '"' {
			return append(out, a.Stamp...)
		}
	}
	return jsonl.AppendTime(out, r.last)
}

// put appends an entry, or its stub if it is too large. The entry becomes the tip.
func (r *Reader) put(a position, raw []byte) (whole bool) {
	fitted, whole := jsonl.Fit(raw)
	if !whole {
		r.note(a.ID(), a.Line, transcript.DiagOversize,
			jsonl.OversizeDetail(int64(len(raw)), jsonl.MaxEntry))
	}
	r.out = append(r.out, transcript.Draft{Raw: fitted})
	r.tip = a.ID()
	if r.untold {
		r.untold, r.resting = false, r.next
		r.resting.Entry = r.tip
	}
	if d := &r.costs.due; d.open {
		if d.size += len(fitted); d.size > maxHeld {
			*d = dueCount{late: true}
		}
	}
	return whole
}

// custom keeps a line unchanged that the transcript cannot express.
func (r *Reader) custom(a position, kind string, data []byte) {
	const most = 200
	if len(kind) > most {
		kind = "line"
	}
	out := rawjson.AppendString(append(r.open(a, "custom", len(data)), `,"customType":`...), "codex."+kind)
	r.put(a, append(append(append(out, `,"data":`...), data...), '}'))
}

// take turns one line into entries.
func (r *Reader) take(p *rolloutPiece) {
	r.addNotes(p.Notes)
	if p.Cut {
		r.note(p.At.ID(), p.At.Line, transcript.DiagOversize,
			jsonl.OversizeDetail(p.Size, jsonl.MaxLine))
		r.flush("")
		r.custom(p.At, "line", fmt.Appendf(nil, `{"stub":{"bytes":%d,"limit":%d}}`, p.Size, jsonl.MaxLine))
		return
	}
	switch {
	case p.Form == formUnknown && p.Type == nil:
		r.bad++
		r.note("", p.At.Line, transcript.DiagBadLine, "an object without a type")
	case p.Form == formUnknown, p.Form == formState, p.Form == formHead:
		r.aside(p.At, rawjson.Text(p.Type), p.Raw)
	case string(p.Type) == `"response_item"`, string(p.Type) == `"inter_agent_communication"` && p.Act == actUnsaid:
		r.item(p, 1)
		r.late(r.echoes.Item())
	case string(p.Type) == `"event_msg"`:
		r.event(p)
	case string(p.Type) == `"turn_context"`:
		r.context(p)
	case string(p.Type) == `"compacted"`:
		r.late(r.echoes.Drain())
		r.compacted(p.At, p.Payload)
	default:
		r.aside(p.At, rawjson.Text(p.Type), p.Raw)
	}
}

// aside keeps a line. During an answer the line is held until the answer is complete.
func (r *Reader) aside(a position, kind string, raw []byte) {
	if kind == "" {
		kind = "line"
	}
	if !r.answer.open {
		r.custom(a, kind, raw)
		return
	}
	if r.answer.hold(a, kind, raw, false) {
		r.flush("")
	}
}

// late keeps events that no item repeats.
func (r *Reader) late(events []waitingEvent) {
	for _, e := range events {
		r.aside(e.At, e.Kind, e.Raw)
	}
}

// context records model and reasoning effort.
func (r *Reader) context(p *rolloutPiece) {
	r.late(r.echoes.Begun())
	r.flush("")
	a := p.At
	r.custom(a, "turn_context", p.Raw)
	if m := rawjson.Text(p.Fields.Model); m != "" && m != r.model {
		r.model = m
		a.N++
		out := rawjson.AppendString(append(r.open(a, "model_change", len(m)), `,"provider":`...), r.provider)
		r.put(a, append(rawjson.AppendString(append(out, `,"modelId":`...), m), '}'))
	}
	if e := rawjson.Text(p.Fields.Effort); e != "" && e != r.effort {
		r.effort = e
		if e == "none" {
			e = "off"
		}
		a.N++
		out := r.open(a, "thinking_level_change", len(e))
		r.put(a, append(rawjson.AppendString(append(out, `,"thinkingLevel":`...), e), '}'))
	}
}

// event handles an event. Most are kept unchanged.
func (r *Reader) event(p *rolloutPiece) {
	kind := p.Kind
	if kind == "" {
		kind = "event_msg"
	}
	switch kind {
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content":
		r.late(r.echoes.Event(p))
	case "item_completed":
		if len(p.Texts) == 0 {
			r.aside(p.At, kind, p.Raw)
			return
		}
		r.late(r.echoes.Event(p))
	case "agent_reasoning_section_break":
		r.echoes.Dropped++
	case "mcp_tool_call_end":
		if p.Failed {
			r.failed = p.CallID
		}
		r.aside(p.At, kind, p.Raw)
	case "token_count":
		r.counted(p)
		r.aside(p.At, kind, p.Raw)
	case "task_started", "turn_started":
		r.late(r.echoes.Begun())
		r.started(p)
		r.aside(p.At, kind, p.Raw)
	case "task_complete", "turn_complete":
		r.late(r.echoes.Drain())
		r.aside(p.At, kind, p.Raw)
	case "turn_aborted":
		r.late(r.echoes.Drain())
		r.fail("aborted", nil)
		r.custom(p.At, kind, p.Raw)
	case "error", "stream_error":
		r.fail("error", p.Fields.message)
		r.aside(p.At, kind, p.Raw)
	case "thread_name_updated":
		r.aside(p.At, kind, p.Raw)
		r.named(p)
	case "thread_rolled_back":
		r.whole(p.At)
		r.rollback(p.Fields.Turns)
		r.custom(p.At, kind, p.Raw)
	default:
		r.aside(p.At, kind, p.Raw)
	}
}
