package transcript

import (
	"github.com/coppice-go/coppice/internal/rawjson"
)

// headOnly returns the entry with its line cut to the head fields if no context will ever read the rest.
func headOnly(r rules, e Entry) Entry {
	if e.Hidden {
		e.Type, e.Raw = silentType, headLine(e.Raw, quote(silentType))
		return e
	}
	if !r.silent(e.Type) {
		return e
	}
	var typ, id, parent, at []byte
	for m := rawjson.Walk(e.Raw); m.Closing == '}' && m.Next(); {
		switch string(m.Key) {
		case "type":
			typ = m.Val
		case "id":
			id = m.Val
		case "parentId":
			parent = m.Val
		case "timestamp":
			at = m.Val
		}
	}
	if short := rawjson.Object("type", typ, "id", id, "parentId", parent, "timestamp", at); len(short) < len(e.Raw) {
		e.Raw = short
	}
	return e
}

// drop lets go of the entries in front of index n: no context can reach them any more. Their settings live
// on in the base, and where an explicit model outranks later messages, its entry stays.
func (w *WorkingContext) drop(n int) {
	w.keep(n, func(int, Entry) bool { return false })
}

// keep lets go of the entries in front of index n but those that stays wants. It counts nothing.
func (w *WorkingContext) keep(n int, stays func(i int, e Entry) bool) {
	if n <= 0 {
		return
	}
	model := -1
	for i := n - 1; i >= 0 && w.rules.explicit && model < 0; i-- {
		if w.entries[i].Type == "model_change" && w.rules.changedModel(w.entries[i]) != "" {
			model = i
		}
	}
	w.base = w.rules.settings(w.entries[:n], w.base)
	kept := make([]Entry, 0, len(w.entries)-n+4)
	for i, e := range w.entries[:n] {
		if i == model || stays(i, e) {
			kept = append(kept, e)
		} else {
			w.bytes -= len(e.Raw)
		}
	}
	w.entries = append(kept, w.entries[n:]...)
}

// trim cuts the front of the window to three quarters of the bound once it has passed it, so that cuts are
// rare, cheap over time, and the front of the context stays the same for many turns (which is what prompt
// caches live on). The cut is before a user's turn if that keeps half of what fits, else between groups.
func (w *WorkingContext) trim() {
	if w.max < 0 || w.bytes <= w.max {
		return
	}
	if w.wait > 0 {
		w.wait--
		return
	}
	w.merge()
	w.cutAt(w.groups())
}

// cutAt cuts the front of a window that has passed its bound.
func (w *WorkingContext) cutAt(g []place) {
	stays := w.staying()
	start := w.cutPoint(g, stays)
	gone := 0
	for i, e := range w.entries[:start] {
		if g[i].speaks && !stays(i, e) {
			gone++
		}
	}
	if gone > 0 {
		w.keep(start, stays)
		w.omitted += gone
	}
	if w.bytes > w.max {
		w.dropSilent()
	}
	if w.fails++; w.bytes <= w.max || gone > 0 {
		w.fails = 0
	}
	w.wait = 1<<min(w.fails, 30)>>1 - min(w.fails, 1)
}

// staying returns which entries no cut takes away: the latest boundary, branch summaries, and edits of these.
func (w *WorkingContext) staying() func(i int, e Entry) bool {
	latest := w.latest()
	edited := map[string]bool{}
	for i, e := range w.entries {
		if i == latest || e.Type == "branch_summary" {
			edited[e.ID] = true
		}
	}
	return func(i int, e Entry) bool {
		return i == latest || e.Type == "branch_summary" || e.Type == "context_edit" &&
			edited[rawjson.Text(rawjson.Field(e.Raw, "targetId"))]
	}
}

// dropSilent lets go of the heads that are held only because a compaction may name them. One that does is
// then answered with false.
func (w *WorkingContext) dropSilent() {
	kept := make([]Entry, 0, len(w.entries))
	first := w.rules.choose(w.entries).kept // named by the latest compaction
	for i, e := range w.entries {
		if w.rules.silent(e.Type) && !e.Hidden && i < len(w.entries)-1 && i != first {
			w.bytes -= len(e.Raw)
		} else {
			kept = append(kept, e)
		}
	}
	w.entries = kept
}

// cutPoint chooses the entry that comes first after the cut; 0 = there is nothing to cut. stays reports
// whether an entry remains in front of any cut.
func (w *WorkingContext) cutPoint(g []place, stays func(i int, e Entry) bool) int {
	target := w.target()
	size := w.bytes // of what a cut before i leaves
	first, last := 0, 0
	for i, e := range w.entries {
		if g[i].cut {
			last = i
			if first == 0 && size <= target {
				first = i
			}
			if first > 0 && g[i].turn {
				if size >= target/2 {
					return i
				}
				return first
			}
		}
		if !stays(i, e) {
			size -= len(e.Raw)
		}
	}
	if first == 0 {
		return last
	}
	return first
}

// target is how many bytes a cut leaves at most.
func (w *WorkingContext) target() int { return w.max / 4 * 3 }

// place is what the place before an entry is good for.
type place struct {
	speaks bool // the entry yields a message
	cut    bool // a cut here splits no call from its results, and leaves a message after it
	turn   bool // and a user's turn starts here
	alone  bool // the entry has a result of a call that is not before it
}

// groups returns for each entry whether a cut may be made before it, and of what kind. A call without a
// result holds its group open until the user speaks again.
func (w *WorkingContext) groups() []place {
	places := make([]place, len(w.entries))
	cover := make([]int, len(w.entries)+1) // differences: how many pairs span the place before i
	callAt := map[string]int{}
	open := map[string]int{}
	b := contextBuilder{rules: w.rules}
	if w.rules.edits {
		b.findEdits(w.entries)
	}
	for i, e := range w.entries {
		b.truncate(0)
		b.entry(e)
		if len(b.messages) == 0 {
			continue
		}
		l := b.links[0]
		alone := false
		for _, id := range l.Results {
			k, ok := callAt[id]
			if ok && k < i {
				cover[k+1]++
				cover[i+1]--
				delete(open, id)
			}
			alone = alone || !ok
		}
		turn := b.messages[0].Role == "user" && len(l.Results) == 0
		places[i] = place{speaks: true, cut: true, turn: turn, alone: alone}
		if turn {
			clear(open)
		}
		for _, c := range l.Calls {
			callAt[c.ID], open[c.ID] = i, i
		}
	}
	for _, k := range open {
		cover[k+1]++
	}
	spans := 0
	for i := range places {
		spans += cover[i]
		places[i].cut = places[i].cut && spans == 0
		places[i].turn = places[i].turn && spans == 0
	}
	return places
}
