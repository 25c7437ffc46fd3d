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
func (w *WorkingContext) drop(n int) { w.keep(n, nil) }

// keep lets go of the entries in front of index n but those that stay; stays nil = none does. It counts nothing.
func (w *WorkingContext) keep(n int, stays []bool) {
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
		if i == model || stays != nil && stays[i] {
			kept = append(kept, e)
		} else {
			w.bytes -= len(e.Raw)
		}
	}
	w.entries = append(kept, w.entries[n:]...)
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
