package codex

import (
	"strconv"

	"github.com/coppice-go/coppice/internal/rawjson"
)

// started records the beginning of a turn. Before 2026 the event has no turn ID, and comes within the turn.
func (r *Reader) started(p *rolloutPiece) {
	id := rawjson.Field(p.Payload, "turn_id")
	r.costs.turn = rawjson.Text(id)
	switch {
	case rawjson.IsString(id):
		r.flush("")
		r.line.Begin(r.place())
	case !r.answer.open:
		r.line.Tell(r.place())
	}
}

// named takes the name of the session's thread from its own file. The newest one counts, unless the list of names has
// one.
func (r *Reader) named(p *rolloutPiece) {
	thread := rawjson.Text(rawjson.Field(p.Payload, "thread_id"))
	name := cleanTitle(rawjson.Field(p.Payload, "thread_name"))
	if name == "" || r.header.Title != "" || thread != "" && thread != r.header.ID {
		return
	}
	r.flush("")
	a := p.At
	a.N++
	r.put(a, append(rawjson.AppendString(append(r.open(a, "session_info", len(name)), `,"name":`...), name), '}'))
}

// rollback removes the last messages of the user.
func (r *Reader) rollback(turns []byte) {
	r.flush("")
	r.closeCounts()
	n, err := strconv.Atoi(string(turns))
	if err != nil {
		return
	}
	if to, ok := r.line.Back(n); ok {
		r.tip, r.model, r.effort = to.Tip, to.Model, to.Effort
	}
}

// compacted makes the entry of a compaction, and after it the history that replaces the conversation.
func (r *Reader) compacted(a position, payload []byte) {
	r.flush("")
	r.closeCounts()
	history := rawjson.Field(payload, "replacement_history")
	summary, skip := compactionSummary(payload)
	before := r.place()
	out := append(append(r.open(a, "compaction", len(payload)), `,"summary":`...), summary...)
	out = append(append(append(out, `,"firstKeptEntryId":"`...), a.ID()...), `","tokensBefore":0`...)
	out = append(append(append(out, `,"details":{"codex":`...),
		rawjson.WithField(payload, "replacement_history", nil)...), '}')
	if hasSealedItem(history) {
		remote := rawjson.Object("provider", rawjson.AppendString(nil, r.provider), "replacementHistory", history)
		out = append(append(append(out, `,"preserveData":{"openaiRemoteCompaction":`...), remote...), '}')
	}
	r.put(a, append(out, '}'))
	if len(history) == 0 || history[0] != '[' {
		r.remembered(a)
		return
	}
	r.line.Fold(before, survivesRollback(payload, r.paged))
	n := 0
	for m := rawjson.Walk(history); m.Closing == ']' && m.Next(); n++ {
		if n != skip {
			a.N++
			r.replacement(a, m.Val)
		}
	}
	r.flush("")
	r.closeCounts()
	r.line.Folded(skip >= 0)
}

// remembered appends the user's texts after a compaction without a history, as those of 2025: Codex keeps them.
func (r *Reader) remembered(a position) {
	r.whole(a)
	r.line.Say()
	for _, said := range r.line.Words() {
		a.N++
		text := append(rawjson.AppendString([]byte(`[{"type":"text","text":`), said), "}]"...)
		r.unsaid(a, "codex.replacement", text, false)
	}
}
