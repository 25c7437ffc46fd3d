package codex

import (
	"fmt"
	"strconv"

	"github.com/coppice-go/coppice/internal/diag"
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
	"github.com/coppice-go/coppice/transcript"
)

// entryAt is where an entry comes from: its line, its number among the entries of the line, its time.
type entryAt struct {
	line, n int
	stamp   []byte
}

func (a entryAt) id() string {
	if a.n == 0 {
		return "cx-" + strconv.Itoa(a.line)
	}
	return "cx-" + strconv.Itoa(a.line) + "." + strconv.Itoa(a.n)
}

// open begins an entry that hangs on the tip.
func (r *Reader) open(a entryAt, typ string, room int) []byte {
	out := make([]byte, 0, room+256)
	out = append(append(out, `{"type":"`...), typ...)
	out = append(append(out, `","id":"`...), a.id()...)
	if out = append(out, `","parentId":`...); r.tip == "" {
		out = append(out, "null"...)
	} else {
		out = append(append(append(out, '"'), r.tip...), '"')
	}
	out = append(out, `,"timestamp":`...)
	if t, ok := jsonl.Stamp(a.stamp); ok {
		if r.last = t; a.stamp[0] == '"' {
			return append(out, a.stamp...)
		}
	}
	return jsonl.AppendTime(out, r.last)
}

// put hands an entry out, or its stub if it is too large; the next one hangs on it.
func (r *Reader) put(a entryAt, raw []byte) {
	fitted, whole := jsonl.Fit(raw)
	if !whole {
		r.diag.Add(a.id(), uint64(a.line), diag.Oversize,
			fmt.Sprintf("%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file", len(raw), jsonl.MaxEntry))
	}
	r.out = append(r.out, transcript.Draft{Raw: fitted})
	r.tip = a.id()
}

// custom keeps what has no other place, as it is.
func (r *Reader) custom(a entryAt, kind string, data []byte) {
	const most = 200
	if len(kind) > most {
		kind = "line"
	}
	out := rawjson.AppendString(append(r.open(a, "custom", len(data)), `,"customType":`...), "codex."+kind)
	r.put(a, append(append(append(out, `,"data":`...), data...), '}'))
}

// take turns one line into entries.
func (r *Reader) take(o jsonl.Object) {
	l := readLine(o.Raw)
	a := entryAt{line: o.Number, n: o.At, stamp: l.stamp}
	if o.Part {
		r.diag.Add(a.id(), uint64(o.Number), diag.Oversize,
			fmt.Sprintf("%d bytes, over the limit of %d: a stub stands in its place, the bytes are in the original file", o.Size, jsonl.MaxLine))
		r.flush("")
		r.custom(a, "line", fmt.Appendf(nil, `{"stub":{"bytes":%d,"limit":%d}}`, o.Size, jsonl.MaxLine))
		return
	}
	switch {
	case l.form == formUnknown && l.typ == nil:
		r.bad++
		r.diag.Add("", uint64(o.Number), diag.BadLine, "an object without a type")
	case l.form == formUnknown, l.form == formState, l.form == formHeader:
		r.aside(a, rawjson.Text(l.typ), o.Raw)
	case string(l.typ) == `"response_item"`:
		r.item(a, l, o.Raw)
	case string(l.typ) == `"event_msg"`:
		r.event(a, l, o.Raw)
	case string(l.typ) == `"turn_context"`:
		r.context(a, l, o.Raw)
	case string(l.typ) == `"compacted"`:
		r.compacted(a, l.payload)
	default:
		r.aside(a, rawjson.Text(l.typ), o.Raw)
	}
}

// aside keeps a line; inside an answer it comes behind it.
func (r *Reader) aside(a entryAt, kind string, raw []byte) {
	if kind == "" {
		kind = "line"
	}
	if r.answer.blocks == nil {
		r.custom(a, kind, raw)
		return
	}
	if r.answer.hold(a, kind, raw) {
		r.flush("")
	}
}

// context notes the model and how hard it thinks.
func (r *Reader) context(a entryAt, l line, raw []byte) {
	r.flush("")
	r.custom(a, "turn_context", raw)
	if m := rawjson.Text(rawjson.Field(l.payload, "model")); m != "" && m != r.model {
		r.model = m
		a.n++
		out := rawjson.AppendString(append(r.open(a, "model_change", len(m)), `,"provider":`...), r.provider)
		r.put(a, append(rawjson.AppendString(append(out, `,"modelId":`...), m), '}'))
	}
	if e := rawjson.Text(rawjson.Field(l.payload, "effort")); e != "" && e != r.effort {
		r.effort = e
		if e == "none" {
			e = "off"
		}
		a.n++
		out := r.open(a, "thinking_level_change", len(e))
		r.put(a, append(rawjson.AppendString(append(out, `,"thinkingLevel":`...), e), '}'))
	}
}

// event takes what happened: most of it is kept as it is.
func (r *Reader) event(a entryAt, l line, raw []byte) {
	kind := l.kind
	if kind == "" {
		kind = "event_msg"
	}
	switch kind {
	case "user_message", "agent_message":
		r.echo(a, kind, rawjson.Field(l.payload, "message"), raw)
	case "agent_reasoning", "agent_reasoning_raw_content":
		r.echo(a, kind, rawjson.Field(l.payload, "text"), raw)
	case "agent_reasoning_section_break":
		r.echoes.dropped++
	case "token_count":
		if u := rawjson.Field(rawjson.Field(l.payload, "info"), "last_token_usage"); len(u) > 0 && u[0] == '{' && r.answer.blocks != nil {
			r.answer.usage = append([]byte(nil), u...)
			r.flush("")
		}
		r.aside(a, kind, raw)
	case "turn_aborted":
		r.flush("aborted")
		r.custom(a, kind, raw)
	case "thread_rolled_back":
		r.rollback(l.payload)
		r.custom(a, kind, raw)
	default:
		r.aside(a, kind, raw)
	}
}

// rollback goes back to before the last turns of the user.
func (r *Reader) rollback(payload []byte) {
	r.flush("")
	n, err := strconv.Atoi(string(rawjson.Field(payload, "num_turns")))
	if err != nil || n <= 0 || len(r.turns) == 0 {
		return
	}
	at := max(len(r.turns)-n, 0)
	r.tip = r.turns[at]
	r.turns = r.turns[:at]
}

// compacted makes the entry of a compaction, and behind it what Codex put in the place of the history.
func (r *Reader) compacted(a entryAt, payload []byte) {
	r.flush("")
	summary := rawjson.Field(payload, "message")
	history := rawjson.Field(payload, "replacement_history")
	skip := -1
	n, text := 0, []byte(nil)
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); n++ {
		if string(rawjson.Field(m.Val, "role")) == `"user"` {
			skip, text = n, rawjson.AppendString(nil, plainText(rawjson.Field(m.Val, "content")))
		}
	}
	if !rawjson.IsString(summary) || len(summary) == 2 {
		summary = text
	} else if whole, said := rawjson.Text(text), rawjson.Text(summary); len(whole) < len(said) || whole[len(whole)-len(said):] != said {
		skip = -1 // the last message is not the summary
	}
	if summary == nil {
		summary = []byte(`""`)
	}
	out := append(append(r.open(a, "compaction", len(payload)), `,"summary":`...), summary...)
	out = append(append(append(out, `,"firstKeptEntryId":"`...), a.id()...), `","tokensBefore":0`...)
	out = append(append(append(out, `,"details":{"codex":`...), rawjson.WithField(payload, "replacement_history", nil)...), '}')
	if hidden(history) {
		remote := rawjson.Object("provider", rawjson.AppendString(nil, r.provider), "replacementHistory", history)
		out = append(append(append(out, `,"preserveData":{"openaiRemoteCompaction":`...), remote...), '}')
	}
	r.put(a, append(out, '}'))
	n = 0
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); n++ {
		if n != skip {
			a.n++
			r.replacement(a, m.Val)
		}
	}
	r.flush("")
}

// hidden tells a history of which a part is for the provider's eyes only.
func hidden(history []byte) bool {
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); {
		switch string(rawjson.Field(m.Val, "type")) {
		case `"compaction"`, `"compaction_summary"`, `"context_compaction"`:
			return true
		}
	}
	return false
}
