package codex

import (
	"fmt"
	"strconv"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
	"github.com/coppice-go/coppice/interop/codex/internal/rollout"
	"github.com/coppice-go/coppice/transcript"
)

// open begins an entry that hangs on the tip, with room for a body.
func (r *Reader) open(a rollout.At, typ string, room int) []byte {
	const around = 512 // bytes around a body: the most that an answer has
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

// put hands an entry out, or its stub if it is too large; the next one hangs on it.
func (r *Reader) put(a rollout.At, raw []byte) {
	fitted, whole := jsonl.Fit(raw)
	if !whole {
		r.note(a.ID(), a.Line, diag.Oversize,
			fmt.Sprintf("%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file", len(raw), jsonl.MaxEntry))
	}
	r.out = append(r.out, transcript.Draft{Raw: fitted})
	r.tip = a.ID()
}

// custom keeps what has no other place, as it is.
func (r *Reader) custom(a rollout.At, kind string, data []byte) {
	const most = 200
	if len(kind) > most {
		kind = "line"
	}
	out := rawjson.AppendString(append(r.open(a, "custom", len(data)), `,"customType":`...), "codex."+kind)
	r.put(a, append(append(append(out, `,"data":`...), data...), '}'))
}

// take turns one line into entries.
func (r *Reader) take(p *rollout.Piece) {
	r.told(p.Notes)
	if p.Cut {
		r.note(p.At.ID(), p.At.Line, diag.Oversize,
			fmt.Sprintf("%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file", p.Size, jsonl.MaxLine))
		r.flush("")
		r.custom(p.At, "line", fmt.Appendf(nil, `{"stub":{"bytes":%d,"limit":%d}}`, p.Size, jsonl.MaxLine))
		return
	}
	switch {
	case p.Form == rollout.Unknown && p.Type == nil:
		r.bad++
		r.note("", p.At.Line, diag.BadLine, "an object without a type")
	case p.Form == rollout.Unknown, p.Form == rollout.State, p.Form == rollout.Head:
		r.aside(p.At, rawjson.Text(p.Type), p.Raw)
	case string(p.Type) == `"response_item"`:
		r.item(p)
	case string(p.Type) == `"event_msg"`:
		r.event(p)
	case string(p.Type) == `"turn_context"`:
		r.context(p)
	case string(p.Type) == `"compacted"`:
		r.compacted(p.At, p.Payload)
	default:
		r.aside(p.At, rawjson.Text(p.Type), p.Raw)
	}
}

// aside keeps a line; inside an answer it comes behind it.
func (r *Reader) aside(a rollout.At, kind string, raw []byte) {
	if kind == "" {
		kind = "line"
	}
	if !r.answer.open {
		r.custom(a, kind, raw)
		return
	}
	if r.answer.hold(a, kind, raw) {
		r.flush("")
	}
}

// context notes the model and how hard it thinks.
func (r *Reader) context(p *rollout.Piece) {
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

// event takes what happened: most of it is kept as it is.
func (r *Reader) event(p *rollout.Piece) {
	kind := p.Kind
	if kind == "" {
		kind = "event_msg"
	}
	switch kind {
	case "user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content":
		r.echo(p)
	case "agent_reasoning_section_break":
		r.echoes.dropped++
	case "token_count":
		if p.Body != nil && r.answer.open {
			r.answer.usage = p.Body
			r.flush("")
		}
		r.aside(p.At, kind, p.Raw)
	case "turn_aborted":
		r.flush("aborted")
		r.custom(p.At, kind, p.Raw)
	case "thread_rolled_back":
		r.rollback(p.Fields.Turns)
		r.custom(p.At, kind, p.Raw)
	default:
		r.aside(p.At, kind, p.Raw)
	}
}

// rollback goes back to before the last turns of the user.
func (r *Reader) rollback(turns []byte) {
	r.flush("")
	n, err := strconv.Atoi(string(turns))
	if err != nil || n <= 0 || len(r.turns) == 0 {
		return
	}
	at := max(len(r.turns)-n, 0)
	r.tip = r.turns[at]
	r.turns = r.turns[:at]
}

// compacted makes the entry of a compaction, and behind it what Codex put in the place of the history.
func (r *Reader) compacted(a rollout.At, payload []byte) {
	r.flush("")
	summary := rawjson.Field(payload, "message")
	history := rawjson.Field(payload, "replacement_history")
	skip := -1
	n, text := 0, []byte(nil)
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); n++ {
		if string(rawjson.Field(m.Val, "role")) == `"user"` {
			skip, text = n, rawjson.AppendString(nil, rollout.PlainText(rawjson.Field(m.Val, "content")))
		}
	}
	if !rawjson.IsString(summary) || len(summary) == 2 {
		if summary = text; encrypted(history) {
			summary, skip = []byte(keptEncrypted), -1
		}
	} else if whole, said := rawjson.Text(text), rawjson.Text(summary); len(whole) < len(said) || whole[len(whole)-len(said):] != said {
		skip = -1 // the last message is not the summary
	}
	if summary == nil {
		summary = []byte(`""`)
	}
	out := append(append(r.open(a, "compaction", len(payload)), `,"summary":`...), summary...)
	out = append(append(append(out, `,"firstKeptEntryId":"`...), a.ID()...), `","tokensBefore":0`...)
	out = append(append(append(out, `,"details":{"codex":`...), rawjson.WithField(payload, "replacement_history", nil)...), '}')
	if hidden(history) {
		remote := rawjson.Object("provider", rawjson.AppendString(nil, r.provider), "replacementHistory", history)
		out = append(append(append(out, `,"preserveData":{"openaiRemoteCompaction":`...), remote...), '}')
	}
	r.put(a, append(out, '}'))
	n = 0
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); n++ {
		if n != skip {
			a.N++
			r.replacement(a, m.Val)
		}
	}
	r.flush("")
}

// keptEncrypted is the summary of a compaction that says nothing in clear, as JSON.
const keptEncrypted = `"Codex kept the summary of what was said before encrypted: nobody but its provider can read it."`

// hidden tells a history of which a part is for the provider's eyes only.
func hidden(history []byte) bool {
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); {
		if isCompaction(m.Val) {
			return true
		}
	}
	return false
}

// encrypted tells a history whose summary is encrypted: what the user said in it is no summary.
func encrypted(history []byte) bool {
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); {
		if isCompaction(m.Val) && len(rawjson.Field(m.Val, "encrypted_content")) > len(`""`) && rawjson.IsString(rawjson.Field(m.Val, "encrypted_content")) {
			return true
		}
	}
	return false
}

func isCompaction(item []byte) bool {
	switch string(rawjson.Field(item, "type")) {
	case `"compaction"`, `"compaction_summary"`, `"context_compaction"`:
		return true
	}
	return false
}
