package harness

import (
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// maxID bounds an ID in bytes; no program makes longer ones.
const maxID = 1 << 10

// begun begins an entry; id and parent are JSON.
func (r *Reader) begun(typ string, id, parent []byte, room int) []byte {
	out := make([]byte, 0, room+len(id)+len(parent)+128)
	out = append(append(append(out, `{"type":"`...), typ...), `","id":`...)
	out = append(append(append(out, id...), `,"parentId":`...), parent...)
	return jsonl.AppendTime(append(out, `,"timestamp":`...), r.last)
}

// open begins an entry that the file does not have, at the end of a lane.
func (r *Reader) open(typ string, l *lane, room int) (id string, out []byte) {
	id = r.newID()
	return id, r.begun(typ, rawjson.AppendString(nil, id), piwriter.OrNull(l.hang), room)
}

// add appends an entry that was opened on a lane; it becomes the end of the lane.
func (r *Reader) add(l *lane, id string, out []byte) {
	r.put(id, out)
	l.hang = id
}

// put appends an entry, or its stub if it is too large.
func (r *Reader) put(id string, out []byte) {
	fitted, whole := jsonl.Fit(out)
	if !whole {
		r.diag.Add(id, uint64(r.line.Number), transcript.DiagOversize,
			jsonl.OversizeDetail(int64(len(out)), jsonl.MaxEntry))
	}
	r.out = append(r.out, transcript.Draft{Raw: fitted})
	r.newest = id
}

// custom keeps data that the transcript cannot express unchanged, on a lane.
func (r *Reader) custom(l *lane, kind string, data []byte) {
	id, out := r.open("custom", l, len(data)+64)
	out = append(append(out, `,"customType":"pi-harness.`...), kind...)
	r.add(l, id, append(append(append(out, `","data":`...), data...), '}'))
}

// entry handles an entry of the file.
func (r *Reader) entry(w *write) {
	if !rawjson.IsString(w.id) || len(w.id) > maxID || len(w.id) == 2 {
		r.note(transcript.DiagConverted, "an entry without an id: kept aside", 0)
		r.custom(r.lane, "entry", w.raw)
		return
	}
	if t, ok := jsonl.Stamp(w.stamp); ok {
		r.last = t
	} else {
		r.once(transcript.DiagConverted,
			"entries without a time that an entry could have: they get that of the one before")
	}
	l := r.laneOf(w)
	switch typ := string(w.typ); typ {
	case `"message"`, `"model_change"`, `"thinking_level_change"`, `"active_tools_change"`, `"custom"`:
		r.place(w, l, typ[1:len(typ)-1], func(out []byte) []byte { return append(appendRest(out, w), '}') })
	case `"compaction"`:
		r.place(w, l, "compaction", func(out []byte) []byte {
			// it keeps nothing before it
			return append(append(append(appendRest(out, w), `,"firstKeptEntryId":`...), w.id...), '}')
		})
	case `"branch_summary"`:
		r.place(w, l, "branch_summary", func(out []byte) []byte {
			if out = append(appendRest(out, w), '}'); !rawjson.IsString(w.from) {
				out = rawjson.WithField(out, "fromId", []byte(`"root"`)) // the name in version 3
			}
			return out
		})
	default:
		r.place(w, l, "custom", func(out []byte) []byte {
			return append(append(append(out, `,"customType":"pi-harness.entry","data":`...), w.raw...), '}')
		})
	}
}

// appendRest appends the type-specific fields of an entry.
func appendRest(out []byte, w *write) []byte {
	if w.n <= len(w.rest) {
		for _, m := range w.rest[:w.n] {
			out = append(append(append(append(out, ','), m.name...), ':'), m.val...)
		}
		return out
	}
	for m := rawjson.Walk(w.raw); m.Next(); {
		if !isPlaceName(m.Key) {
			out = append(rawjson.AppendString(append(out, ','), string(m.Key)), ':')
			out = append(out, m.Val...)
		}
	}
	return out
}

// place appends an entry of the file below its parent, and the entries that belong after it.
func (r *Reader) place(w *write, l *lane, typ string, body func(out []byte) []byte) {
	id, parent := rawjson.Text(w.id), r.parentOf(w, l)
	if l != nil {
		l.named, r.lane = true, l
		l.hang = parent
		r.addConfig(l)
		parent = l.hang
	}
	r.put(id, body(r.begun(typ, w.id, piwriter.OrNull(parent), len(w.raw)+len(w.id))))
	last := id
	switch typ {
	case "message":
		m := w.message
		r.spoken(l, m)
		if m.usage {
			r.spent.add(id)
		}
		if r.hides(m) {
			last = r.hide(id)
		}
	case "compaction":
		last = r.retained(id, l, w.tail)
		r.spent.add(id)
	case "branch_summary":
		r.spent.add(id)
	}
	if last != id && len(id) <= maxName {
		if len(r.lastAfter) < maxPairs {
			r.lastAfter[id] = last
		} else {
			r.once(transcript.DiagNoted,
				"more compactions and left-out turns than are followed: what other lanes hang on "+
					"them does not see what is behind them")
		}
	}
	if r.loose = last; l != nil {
		l.tip, l.hang = id, last
	}
}

// lookAt parses a message that is known to be valid.
func lookAt(message []byte) (s said) {
	for m := rawjson.Walk(message); m.Closing == '}' && m.Next(); {
		s.set(m.Key, m.Val)
	}
	return s
}

// hides reports whether the harness omits a message from every context: a failed or an incomplete turn. 0.84 omits only
// the latter.
func (r *Reader) hides(s said) bool {
	if string(s.role) != `"assistant"` {
		return false
	}
	switch string(s.stop) {
	case `"deferred"`:
		return true
	case `"error"`, `"aborted"`:
		return !r.old
	}
	return false
}

// hide appends an entry that removes another one from the context, and returns its ID.
func (r *Reader) hide(target string) string {
	id := r.newID()
	out := r.begun("context_edit", piwriter.OrNull(id), piwriter.OrNull(target), len(target)+64)
	r.put(id, append(rawjson.AppendString(append(out, `,"targetId":`...), target), `,"replacement":null}`...))
	return id
}

// spoken records the model of an assistant message as the one in force on the branch.
func (r *Reader) spoken(l *lane, s said) {
	if l == nil || string(s.role) != `"assistant"` ||
		equal(s.model, l.said.model) && equal(s.provider, l.said.provider) {
		return
	}
	if len(s.model) <= maxID && len(s.provider) <= maxID {
		l.said.model, l.said.provider = rawjson.Text(s.model), rawjson.Text(s.provider)
	}
}

// noUsage is the usage of a copied message: only the first copy counts.
const noUsage = `{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` +
	`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

// retained appends the messages that a compaction kept, and returns the ID of the last one. User messages become
// messages that only the model sees, because the conversation has them already.
func (r *Reader) retained(last string, l *lane, tail []byte) string {
	for m := rawjson.Walk(tail); m.Closing == ']' && m.Next(); {
		s := lookAt(m.Val)
		if len(m.Val) == 0 || m.Val[0] != '{' || r.hides(s) {
			continue
		}
		id, message := r.newID(), m.Val
		parent := piwriter.OrNull(last)
		switch string(s.role) {
		case `"user"`, `"custom"`:
			content := rawjson.Field(message, "content")
			kind := rawjson.Field(message, "customType")
			if !rawjson.IsString(kind) {
				kind = []byte(`"pi-harness.retained"`)
			}
			out := append(append(r.begun("custom_message", piwriter.OrNull(id), parent, len(message)),
				`,"customType":`...),
				kind...)
			out = append(append(out, `,"content":`...), rawjson.OrNull(content)...)
			if details := rawjson.Field(message, "details"); details != nil {
				out = append(append(out, `,"details":`...), details...)
			}
			r.put(id, append(out, `,"display":false}`...))
		default:
			r.spoken(l, s)
			switch {
			case string(s.role) == `"assistant"`:
				message = rawjson.WithField(message, "usage", []byte(noUsage))
			case s.usage:
				message = rawjson.WithField(message, "usage", nil)
			}
			out := append(r.begun("message", piwriter.OrNull(id), parent, len(message)), `,"message":`...)
			r.put(id, append(append(out, message...), '}'))
		}
		last = id
	}
	return last
}

// spent holds the IDs of the newest entries with a usage of their own.
type spent struct {
	ids [64]string
	n   int
}

func (s *spent) add(id string) {
	s.ids[s.n%len(s.ids)] = id
	s.n++
}

func (s *spent) has(id string) bool {
	return id != "" && slices.Contains(s.ids[:], id)
}
