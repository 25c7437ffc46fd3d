package harness

import (
	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/jsonl"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// Names of the values that the reader uses, as JSON.
const (
	nsTip    = `"pi.branch.tip"`
	nsConfig = `"pi.lane.config"`
	nsState  = `"pi.lane.state"`
	nsName   = `"pi.session.name"`
	nsLabel  = `"pi.entry.label"`
)

// value handles a value that is set or deleted.
func (r *Reader) value(w *write) {
	set := string(w.op) == `"set"`
	switch string(w.namespace) {
	case nsTip:
		if l := r.speakOf(w.key); set && isPlace(w.value) && l == r.lanes[rawjson.Text(w.key)] {
			r.moveTo(l, w.value, "value", w.raw)
			return
		}
	case nsConfig:
		if l := r.speakOf(w.key); set && l == r.lanes[rawjson.Text(w.key)] && configure(l, w.value) {
			return
		}
	case nsState:
		r.speakOf(w.key)
	case nsName:
		if !set || rawjson.IsString(w.value) {
			r.name(w.value)
			return
		}
	case nsLabel:
		if rawjson.IsString(w.key) && (!set || rawjson.IsString(w.value)) {
			r.label(w.key, w.value)
			return
		}
	}
	r.custom(r.lane, "value", w.raw)
}

// configure sets a lane's configuration, or returns false if the value has another form.
func configure(l *lane, val []byte) bool {
	var want settings
	fine := len(val) > 0 && val[0] == '{' && len(val) <= jsonl.Prefix
	for m := rawjson.Walk(val); fine && m.Next(); {
		switch string(m.Key) {
		case "model":
			want.provider, want.model = rawjson.Text(rawjson.Field(m.Val, "provider")),
				rawjson.Text(rawjson.Field(m.Val, "modelId"))
			fine = want.provider != "" && want.model != ""
		case "thinkingLevel":
			want.thinking = rawjson.Text(m.Val)
			fine = want.thinking != ""
		case "activeToolNames":
			want.tools = string(m.Val)
			fine = m.Val[0] == '['
		default:
			fine = false
		}
	}
	if fine {
		l.want = want
	}
	return fine
}

// name names the session; a value that is not a string removes the name.
func (r *Reader) name(name []byte) {
	if !rawjson.IsString(name) {
		name = []byte(`""`)
	}
	id, out := r.open("session_info", r.lane, len(name)+16)
	r.add(r.lane, id, append(append(append(out, `,"name":`...), name...), '}'))
}

// label names an entry; nil removes the name.
func (r *Reader) label(target, label []byte) {
	id, out := r.open("label", r.lane, len(target)+len(label)+32)
	out = append(append(out, `,"targetId":`...), target...)
	if rawjson.IsString(label) {
		out = append(append(out, `,"label":`...), label...)
	}
	r.add(r.lane, id, append(out, '}'))
}

// usage handles a usage row. A row that repeats the usage of an entry is not counted.
func (r *Reader) usage(w *write) {
	extra := rawjson.IsTrue(w.adjustment) && string(rawjson.Field(w.details, "source")) != `"v3-import"`
	r.row(w, extra || w.entry != nil && !rawjson.IsTrue(w.adjustment))
}

// row appends a usage row. extra = the row counts in addition to the entries, unless its entry has the same usage.
func (r *Reader) row(w *write, extra bool) {
	if !extra || len(w.usage) == 0 || w.usage[0] != '{' || !rawjson.IsString(w.id) || len(w.id) > maxID ||
		len(w.id) == 2 || r.spent.has(rawjson.Text(w.entry)) {
		r.custom(r.lane, string(w.kind[1:len(w.kind)-1]), w.raw)
		return
	}
	by := r.lane.want
	if by.model == "" {
		by = r.lane.said
	}
	if by.model == "" || by.provider == "" {
		by.provider, by.model = "unknown", "unknown"
	}
	out := append(r.begun("usage", w.id, piwriter.OrNull(r.lane.hang), len(w.raw)+128),
		`,"kind":"pi-harness","provider":`...)
	out = rawjson.AppendString(append(rawjson.AppendString(out, by.provider), `,"model":`...), by.model)
	out = append(append(out, `,"usage":`...), w.usage...)
	if w.entry != nil {
		out = append(append(out, `,"entryId":`...), w.entry...)
	}
	if w.details != nil {
		out = append(append(out, `,"details":`...), w.details...)
	}
	r.add(r.lane, rawjson.Text(w.id), append(out, '}'))
}

// record handles a record of 0.84 about a lane's work.
func (r *Reader) record(w *write) {
	if rawjson.IsString(w.lane) {
		r.speakOf(w.lane)
	}
	if t, ok := jsonl.Stamp(w.stamp); ok {
		r.last = t
	}
	if string(w.typ) == `"usage"` {
		r.row(w, true)
		return
	}
	r.custom(r.lane, "record", w.raw)
}

// moved handles a lane that 0.84 creates or moves.
func (r *Reader) moved(w *write) {
	l := r.speakOf(w.lane)
	if !rawjson.IsString(w.lane) || l != r.lanes[rawjson.Text(w.lane)] || !isPlace(w.leaf) {
		r.custom(r.lane, "lane", w.raw)
		return
	}
	r.moveTo(l, w.leaf, "lane", w.raw)
}

// fact handles a fact of 0.84 about the session: its name, or a label.
func (r *Reader) fact(w *write) {
	switch {
	case string(w.fact) == `"name"` && (w.name == nil || rawjson.IsString(w.name)):
		r.name(w.name)
	case string(w.fact) == `"label"` && rawjson.IsString(w.target) && (w.label == nil || rawjson.IsString(w.label)):
		r.label(w.target, w.label)
	default:
		r.note(transcript.DiagNoted, "a fact of a kind that is not known: kept as it is", 0)
		r.custom(r.lane, "fact", w.raw)
	}
}
