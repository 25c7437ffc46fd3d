package harness

import (
	"maps"
	"slices"

	"github.com/coppice-go/coppice/internal/rawjson"
	"github.com/coppice-go/coppice/interop/internal/piwriter"
	"github.com/coppice-go/coppice/transcript"
)

// mainLane is the lane that the harness opens.
const mainLane = "main"

// lane is a named branch.
type lane struct {
	tip   string // last entry of the file on the lane; "" = before the first
	hang  string // parent of the next entry: tip, or the last entry that the reader put after it
	named bool   // the file names it
	lost  bool   // the tip may be an unreadable entry
	want  settings
	said  settings // configuration according to the entries of the branch
}

// settings are a lane's configuration.
type settings struct{ provider, model, thinking, tools string }

// tip is the end of a lane after a transaction.
type tip struct{ lane, id string }

// laneNamed returns a lane; nil = there are too many, or the name is too long.
func (r *Reader) laneNamed(name string) *lane {
	l := r.lanes[name]
	if l == nil && len(name) <= maxName && len(r.lanes) < maxLanes {
		l = &lane{}
		r.lanes[name] = l
	}
	return l
}

// speakOf is laneNamed for a lane that the file names. Later writes that name no lane belong to it.
func (r *Reader) speakOf(name []byte) *lane {
	l := r.laneNamed(rawjson.Text(name))
	if l == nil {
		r.once(transcript.DiagNoted,
			"lanes beyond the first 256, or with long names: their writes are kept, their places "+
				"are not followed")
		return r.lane
	}
	l.named, r.lane = true, l
	return l
}

// tip reports whether a write sets a lane's tip.
func (w *write) tip() (lane, id string, ok bool) {
	if string(w.kind) != `"value"` || string(w.op) != `"set"` || string(w.namespace) != nsTip || len(w.key) > maxID ||
		!isPlace(w.value) {
		return "", "", false
	}
	return rawjson.Text(w.key), rawjson.Text(w.value), true
}

func isPlace(val []byte) bool {
	return string(val) == "null" || rawjson.IsString(val) && len(val) <= maxID
}

// laneOf returns the lane of an entry: the lane that it names, else one whose tip its transaction sets, if the entry
// continues that lane or becomes its tip. nil = unknown.
func (r *Reader) laneOf(w *write) *lane {
	if rawjson.IsString(w.lane) {
		return r.laneNamed(rawjson.Text(w.lane))
	}
	var becomes *lane
	for _, t := range r.tips {
		l := r.laneNamed(t.lane)
		switch {
		case l == nil:
		case equal(w.parent, l.tip):
			return l
		case equal(w.id, t.id):
			becomes = l
		}
	}
	return becomes
}

// equal compares an ID in JSON (null = "") with a string.
func equal(val []byte, id string) bool {
	if n := len(val) - 2; rawjson.IsString(val) && n == len(id) && string(val[1:n+1]) == id {
		return true
	}
	return rawjson.Text(val) == id
}

// parentOf returns the parent of an entry.
func (r *Reader) parentOf(w *write, l *lane) string {
	if !isPlace(rawjson.OrNull(w.parent)) {
		r.note(transcript.DiagNoted, "a parent that is no id: a root from here on", 0)
		return ""
	}
	switch {
	case l != nil && equal(w.parent, l.tip):
		l.lost = false
		return l.hang
	case l != nil && l.lost && rawjson.IsString(w.parent):
		l.lost = false
		r.note(transcript.DiagNoted,
			"its parent may be an entry that could not be read: it continues what is left of the lane",
			0)
		return l.hang
	}
	return r.end(rawjson.Text(w.parent))
}

// end returns the last entry that the reader put after an entry, or the entry itself.
func (r *Reader) end(id string) string {
	if b, ok := r.lastAfter[id]; ok {
		return b
	}
	return id
}

// moveTo sets a lane's tip. If that is not the last entry added, the write is kept.
func (r *Reader) moveTo(l *lane, to []byte, kind string, raw []byte) {
	if l.lost = false; equal(to, l.tip) {
		return
	}
	l.tip = rawjson.Text(to)
	l.hang, l.said = r.end(l.tip), settings{}
	r.custom(l, kind, raw)
}

// addConfig appends entries for the part of a lane's configuration that its branch does not have yet.
func (r *Reader) addConfig(l *lane) {
	want, said := l.want, l.said
	if want == said {
		return
	}
	l.said = want
	if want.model != "" && (want.model != said.model || want.provider != said.provider) {
		id, out := r.open("model_change", l, 256)
		out = rawjson.AppendString(append(out, `,"provider":`...), want.provider)
		r.add(l, id, append(rawjson.AppendString(append(out, `,"modelId":`...), want.model), '}'))
	}
	if want.thinking != "" && want.thinking != said.thinking {
		id, out := r.open("thinking_level_change", l, 64)
		r.add(l, id, append(rawjson.AppendString(append(out, `,"thinkingLevel":`...), want.thinking), '}'))
	}
	if want.tools != "" && want.tools != said.tools {
		id, out := r.open("active_tools_change", l, len(want.tools)+32)
		r.add(l, id, append(append(append(out, `,"activeToolNames":`...), want.tools...), '}'))
	}
}

// finish appends the entries for the end of the file: every lane's configuration, names and tips of lanes, and last the
// head of the session.
func (r *Reader) finish() {
	known := false
	for _, name := range slices.Sorted(maps.Keys(r.lanes)) {
		l := r.lanes[name]
		r.addConfig(l)
		known = known || l.named
		if name != mainLane && l.named {
			r.custom(l, "branch", rawjson.Object("name", rawjson.AppendString(nil, name),
				"tip", piwriter.OrNull(l.tip)))
		}
	}
	head := r.lanes[mainLane]
	if !head.named && known {
		head = r.lane
	}
	at := head.hang
	if !known && r.loose != "" {
		at = r.loose // the file has no intact record of its lanes
	}
	if at != r.newest {
		id := r.newID()
		out := append(r.begun("leaf", piwriter.OrNull(id), piwriter.OrNull(at), 64), `,"targetId":`...)
		r.put(id, append(append(out, piwriter.OrNull(at)...), '}'))
	}
}
