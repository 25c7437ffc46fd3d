package codex

import (
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/claudecode/jsonl"
	"github.com/coppice-go/coppice/interop/codex/internal/rollout"
)

// item takes one item of the conversation.
func (r *Reader) item(p *rollout.Piece) {
	switch p.Act {
	case rollout.User:
		r.flush("")
		r.heard(p.Texts)
		r.turns = append(r.turns, r.tip)
		out := append(r.open(p.At, "message", len(p.Body)), `,"message":{"role":"user","content":`...)
		r.close(p.At, append(append(out, p.Body...), r.millis()...))
	case rollout.Unsaid:
		r.flush("")
		r.heard(p.Texts)
		r.unsaid(p.At, p.Name, p.Body)
	case rollout.Answer:
		r.heard(p.Texts)
		r.answer.begin(p.At)
		r.answer.add(p.Body)
		if p.Called {
			r.answer.called = true
			r.expect(p.CallID, p.Name)
		}
		if len(r.answer.blocks) > maxAnswer {
			r.flush("")
		}
	case rollout.Output:
		r.output(p)
	case rollout.Aside:
		r.aside(p.At, p.Kind, p.Raw)
	}
}

// expect notes a call whose output is to come.
func (r *Reader) expect(id, name string) {
	const most, long = 1 << 16, 256
	if len(r.calls) < most && len(name) <= long && len(id) <= long {
		r.calls[id] = name
	}
}

// output makes the result of a call.
func (r *Reader) output(p *rollout.Piece) {
	r.flush("")
	id := p.Fields.CallID
	if !rawjson.IsString(id) {
		id = []byte(`""`)
	}
	name := r.calls[p.CallID]
	delete(r.calls, p.CallID)
	out := append(append(r.open(p.At, "message", len(p.Body)), `,"message":{"role":"toolResult","toolCallId":`...), id...)
	out = append(rawjson.AppendString(append(out, `,"toolName":`...), name), `,"content":`...)
	out = append(append(out, p.Body...), `,"isError":`...)
	if p.Failed {
		out = append(out, "true"...)
	} else {
		out = append(out, "false"...)
	}
	r.close(p.At, append(out, r.millis()...))
}

// unsaid makes a message that the model sees and nobody said.
func (r *Reader) unsaid(a rollout.At, kind string, content []byte) {
	out := rawjson.AppendString(append(r.open(a, "custom_message", len(content)), `,"customType":`...), kind)
	r.put(a, append(append(append(out, `,"content":`...), content...), `,"display":false}`...))
}

func (r *Reader) millis() []byte {
	return append(jsonl.AppendMillis([]byte(`,"timestamp":`), r.last), '}')
}

func (r *Reader) close(a rollout.At, out []byte) { r.put(a, append(out, '}')) }

// replacement takes one item of a history that stands in the place of another.
func (r *Reader) replacement(a rollout.At, item []byte) {
	if len(item) == 0 || item[0] != '{' {
		return
	}
	p := rollout.MakeItem(r.seed, a, item)
	if p.Act == rollout.User || p.Act == rollout.Unsaid {
		r.flush("")
		if p.Act == rollout.User {
			r.turns = append(r.turns, r.tip)
		}
		r.unsaid(a, "codex.replacement", p.Body)
		return
	}
	r.item(p)
}

// flush hands out the answer that was collected; stop "" = as it looks.
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
	out := append(r.open(w.at, "message", len(w.blocks)+len(r.model)), `,"message":{"role":"assistant","content":[`...)
	out = append(append(out, w.blocks...), `],"api":"openai-responses","provider":`...)
	out = rawjson.AppendString(append(rawjson.AppendString(out, r.provider), `,"model":`...), r.model)
	out = appendUsage(append(out, `,"usage":`...), w.usage)
	out = append(append(append(out, `,"stopReason":"`...), stop...), '"')
	r.close(w.at, append(out, r.millis()...))
	held, room := w.held, w.blocks
	const keep = 1 << 20 // bytes of room for the next one
	if r.answer = (answer{}); cap(room) <= keep {
		r.answer.blocks = room[:0]
	}
	for _, h := range held {
		r.custom(h.at, h.kind, h.raw)
	}
}
