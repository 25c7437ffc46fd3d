package codex

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
)

// item handles one item of the conversation. next is the offset of the number of a second entry for the same item.
func (r *Reader) item(p *rolloutPiece, next int) {
	switch p.Act {
	case actUser:
		r.echoes.Heard(p.Texts)
		r.ask(p, plainText(p.Body))
	case actUnsaid:
		r.echoes.Heard(p.Texts)
		switch r.flush(""); {
		case p.Asks && r.agent: // the agent's task, and later messages to it
			r.ask(p, "")
			return
		case p.Asks:
			r.closeCounts()
			r.line.Ask(r.place(), "")
		case p.Told:
			r.line.Tell(r.place())
		case p.User:
			r.closeCounts()
			r.line.Ask(r.place(), plainText(p.Body))
		default:
			r.line.Note()
		}
		r.unsaid(p.At, p.Name, p.Body, p.Asks)
	case actAnswer:
		r.echoes.Heard(p.Texts)
		if !r.answer.open {
			r.costs.due = dueCount{}
			r.line.Say()
			r.answer.begin(p.At)
		}
		r.answer.add(p.Body)
		if p.Called {
			r.answer.called = true
			r.expect(p.CallID, p.Name)
		}
		full := false
		if p.Image != nil {
			a := p.At
			a.N += next
			full = r.answer.hold(a, "codex."+p.Kind, p.Image, true)
		}
		if full || len(r.answer.blocks) > maxAnswer {
			r.flush("")
		}
	case actOutput:
		r.output(p)
	case actAside:
		r.aside(p.At, p.Kind, p.Raw)
	}
}

// ask appends a message of the user, or of another agent to this one.
func (r *Reader) ask(p *rolloutPiece, said string) {
	r.flush("")
	r.closeCounts()
	r.line.Ask(r.place(), said)
	out := append(r.open(p.At, "message", len(p.Body)), `,"message":{"role":"user","content":`...)
	r.close(p.At, append(append(out, p.Body...), r.millis()...))
}

// place returns the current position of the conversation.
func (r *Reader) place() turnPlace { return turnPlace{Tip: r.tip, Model: r.model, Effort: r.effort} }

// expect records a call whose output follows.
func (r *Reader) expect(id, name string) {
	const most, long = 1 << 16, 256
	if len(r.calls) < most && len(name) <= long && len(id) <= long {
		r.calls[id] = name
	}
}

// output appends the result of a call.
func (r *Reader) output(p *rolloutPiece) {
	r.flush("")
	r.costs.due.done = true
	r.line.Say()
	id := p.Fields.CallID
	if !rawjson.IsString(id) {
		id = []byte(`""`)
	}
	name := r.calls[p.CallID]
	delete(r.calls, p.CallID)
	out := append(append(r.open(p.At, "message", len(p.Body)), `,"message":{"role":"toolResult","toolCallId":`...),
		id...)
	out = append(rawjson.AppendString(append(out, `,"toolName":`...), name), `,"content":`...)
	out = append(append(out, p.Body...), `,"isError":`...)
	out = strconv.AppendBool(out, p.Failed || r.failed != "" && r.failed == p.CallID)
	r.close(p.At, append(out, r.millis()...))
}

// unsaid appends a message that the model sees and that neither the user nor the model wrote. shown = the conversation
// displays it.
func (r *Reader) unsaid(a position, kind string, content []byte, shown bool) {
	out := rawjson.AppendString(append(r.open(a, "custom_message", len(content)), `,"customType":`...), kind)
	out = append(append(append(out, `,"content":`...), content...), `,"display":`...)
	r.put(a, append(strconv.AppendBool(out, shown), '}'))
}

func (r *Reader) millis() []byte {
	return append(jsonl.AppendMillis([]byte(`,"timestamp":`), r.last), '}')
}

func (r *Reader) close(a position, out []byte) bool { return r.put(a, append(out, '}')) }

// replacement handles one item of a history that replaces the conversation.
func (r *Reader) replacement(a position, item []byte) {
	if len(item) == 0 || item[0] != '{' {
		return
	}
	p := makeItemPiece(a, item)
	if p.Act == actUser || p.Act == actUnsaid {
		r.flush("")
		if p.Act == actUser || p.Asks {
			r.line.Keep(r.place(), plainText(p.Body))
		}
		r.unsaid(a, "codex.replacement", p.Body, false)
		return
	}
	const apart = 1 << 30 // above all numbers of the history's items
	r.item(p, apart)
}

// flush appends the collected answer. stop is its stop reason; "" = derived from its content.
func (r *Reader) flush(stop string) {
	w := &r.answer
	if !w.open {
		return
	}
	if stop == "" {
		if stop = "stop"; w.called {
			stop = "toolUse"
		}
	}
	out := append(r.open(w.at, "message", len(w.blocks)+len(r.model)),
		`,"message":{"role":"assistant","content":[`...)
	out = append(append(out, w.blocks...), `],"api":"openai-responses","provider":`...)
	out = rawjson.AppendString(append(rawjson.AppendString(out, r.provider), `,"model":`...), r.model)
	cost := w.cost
	if o := r.costs.owed; o.known {
		cost.add(o.tokenUsage, o.at, o.of)
		r.costs.owed = spent{}
	}
	d := dueCount{open: !cost.known, done: w.failed, at: len(r.out), from: len(out) + len(`,"usage":`)}
	out = cost.Append(append(out, `,"usage":`...))
	d.to = len(out)
	out = append(out, cost.of...)
	out = append(appendStop(out, stop, w.fault), r.millis()...)
	if whole := r.close(w.at, out); whole {
		r.costs.due = d
	} else if cost.known && rawjson.Field(rawjson.Field(r.out[d.at].Raw, "message"), "usage") == nil {
		// the answer's stub has no usage
		cost.at.N++
		r.spend(cost.at, cost.tokenUsage, cost.of)
	}
	held, room := w.held, w.blocks
	const keep = 1 << 20 // bytes of the buffer that is kept for reuse
	if r.answer = (answer{}); cap(room) <= keep {
		r.answer.blocks = room[:0]
	}
	for _, h := range held {
		if h.said {
			r.unsaid(h.at, h.kind, h.raw, true)
		} else {
			r.custom(h.at, h.kind, h.raw)
		}
	}
}

// fail ends the open answer as a failed one. An answer with a count, or with an output for one of its calls, ended
// before.
func (r *Reader) fail(stop string, why []byte) {
	if !rawjson.IsString(why) || len(why) == 2 {
		why = nil
	}
	if w := &r.answer; w.open {
		if w.failed, w.fault = !r.costs.owed.known, why; !w.failed {
			stop, w.fault = "", nil
		}
		r.flush(stop)
		return
	}
	d := &r.costs.due
	if !d.open || d.done {
		return
	}
	d.done = true
	raw := r.out[d.at].Raw
	rest := raw[d.to+len(`,"stopReason":"`):]
	rest = rest[bytes.IndexByte(rest, '"')+1:]
	r.out[d.at].Raw = append(appendStop(slices.Clone(raw[:d.to]), stop, why), rest...)
}

func appendStop(dst []byte, stop string, why []byte) []byte {
	dst = append(append(append(dst, `,"stopReason":"`...), stop...), '"')
	if why != nil {
		dst = append(append(dst, `,"errorMessage":`...), why...)
	}
	return dst
}
